package natskv

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// commitKey is the one key of a log bucket. With one key the sequence numbers
// of the stream are the revisions of the key, hence dense.
const commitKey = "commit"

type commitLog struct {
	bucket *bucket
}

var _ coord.CommitLog = (*commitLog)(nil)

func (l *commitLog) Put(ctx context.Context, data []byte) (base.Revision, error) {
	s := l.bucket.store
	if err := s.readyToWrite(ctx, data); err != nil {
		return 0, fmt.Errorf("putting record in %s: %w", l.bucket.name, err)
	}
	ctx, cancel := s.request(ctx)
	defer cancel()
	revision, err := l.bucket.kv.Put(ctx, commitKey, data)
	if err != nil {
		return 0, fmt.Errorf("putting record in %s: %w", l.bucket.name, s.wrote(ctx, err))
	}
	return base.Revision(revision), nil
}

func (l *commitLog) Bounds(ctx context.Context) (first, last base.Revision, err error) {
	s := l.bucket.store
	if err := s.ready(ctx); err != nil {
		return 0, 0, fmt.Errorf("reading bounds of %s: %w", l.bucket.name, err)
	}
	ctx, cancel := s.request(ctx)
	defer cancel()
	// The stream's leader answers this request, never a replica.
	info, err := l.bucket.stream.Info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("reading bounds of %s: %w", l.bucket.name, readError(ctx, err))
	}
	if info.State.LastSeq == 0 {
		return 0, 0, nil
	}
	return base.Revision(info.State.FirstSeq), base.Revision(info.State.LastSeq), nil
}
