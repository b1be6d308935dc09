package natskv

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

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
	if err := s.wrote(ctx, err); err != nil {
		return 0, fmt.Errorf("putting record in %s: %w", l.bucket.name, err)
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
	if err := s.read(ctx, err); err != nil {
		return 0, 0, fmt.Errorf("reading bounds of %s: %w", l.bucket.name, err)
	}
	first, last = bounds(info.State)
	return first, last, nil
}

// bounds reads the first and the last revision off the state of a stream.
func bounds(state jetstream.StreamState) (first, last base.Revision) {
	if state.LastSeq == 0 {
		return 0, 0
	}
	return base.Revision(state.FirstSeq), base.Revision(state.LastSeq)
}

// Purge asks for the last revision first: a server that is told to purge beyond
// it drops all and skips revisions.
func (l *commitLog) Purge(ctx context.Context, below base.Revision) error {
	first, last, err := l.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("purging %s: %w", l.bucket.name, err)
	}
	below = min(below, last)
	if below <= first {
		return nil
	}
	s := l.bucket.store
	ctx, cancel := s.request(ctx)
	defer cancel()
	err = l.bucket.stream.Purge(ctx, jetstream.WithPurgeSequence(uint64(below)))
	if err := s.wrote(ctx, err); err != nil {
		return fmt.Errorf("purging %s below revision %d: %w", l.bucket.name, below, err)
	}
	return nil
}
