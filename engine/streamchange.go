package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/worker"
)

// Unlimited is the retention time or the number of bytes that keeps everything.
const Unlimited = -1

// explain adds what holds an upgrade back to an error that comes of it.
func (e *Engine) explain(ctx context.Context, err error) error {
	if !errors.Is(err, ErrNotYetAllowed) {
		return err
	}
	instances, unknown := worker.Instances(ctx, e.coordination.Documents())
	if next := e.foldStatus(instances, unknown == nil).NextAction; next != "" {
		return fmt.Errorf("%w: %s", err, next)
	}
	return err
}

// Info returns the stream as it is now.
func (s *Stream) Info() (StreamInfo, error) { return s.shard.engine.catalog.Refresh(s.info) }

// Update changes the stream's own settings as edit does, which is called again when
// someone else changed them meanwhile: what it sets holds, what it leaves or makes
// unset is inherited. A change of the name or the system columns of a table that is
// filled already is ErrInvalid. Running pipelines take note at once.
func (s *Stream) Update(ctx context.Context, edit func(*Settings) error) error {
	_, err := s.shard.engine.catalog.Update(ctx, s.info, edit)
	return s.shard.engine.explain(ctx, err)
}

// IncreasePartitions lets the stream grow to a number of partitions, all visible at
// once. That it has them already is no error; fewer than it has are ErrInvalid. A
// key may go to another partition afterwards.
func (s *Stream) IncreasePartitions(ctx context.Context, partitions int) error {
	_, err := s.shard.engine.catalog.IncreasePartitions(ctx, s.info, partitions)
	return s.shard.engine.explain(ctx, err)
}

// ReplaceProperties makes properties all that the stream has, as of a revision of
// whatever they come from, from 1 on. For an older or equal revision than that of the
// properties that the stream has it changes nothing and reports false.
func (s *Stream) ReplaceProperties(ctx context.Context, properties map[string]string, source uint64) (replaced bool, err error) {
	replaced, err = s.shard.engine.catalog.ReplaceProperties(ctx, s.info, properties, source)
	return replaced, s.shard.engine.explain(ctx, err)
}

// ResolveTable tells how the stream becomes a table with what it inherits. It opens
// nothing: that a table is named does not mean that it exists.
func (s *Stream) ResolveTable() (Materialization, error) {
	return s.shard.engine.catalog.ResolveMaterialization(s.info.Name)
}

// Trim hides what lies before an offset of a partition, or with hard gives it up,
// and returns the first live offset. The mark never moves back: less than what is
// trimmed already changes nothing. An offset beyond the head is ErrInvalid. Records
// that a table lacks and that are given up are missing there.
func (s *Stream) Trim(ctx context.Context, p Partition, to Offset, hard bool) (start Offset, err error) {
	start, err = s.shard.engine.catalog.Trim(ctx, s.info, p, to, hard)
	return start, s.shard.engine.explain(ctx, err)
}

// TrimBefore is Trim to the first offset that was appended at or after t.
func (s *Stream) TrimBefore(ctx context.Context, p Partition, t time.Time, hard bool) (start Offset, err error) {
	log, err := s.Log(p)
	if err != nil {
		return 0, err
	}
	to, err := log.OffsetAt(ctx, t)
	if err != nil {
		return 0, fmt.Errorf("trimming partition %d of %s: %w", p, s.Name(), err)
	}
	return s.Trim(ctx, p, to, hard)
}

// Fence closes partitions for appends until Unfence, in every instance: they fail
// with ErrFenced and the reason. No partitions means all that the stream has. What is
// fenced already keeps its reason.
func (s *Stream) Fence(ctx context.Context, reason string, partitions ...Partition) error {
	return s.shard.engine.explain(ctx, s.shard.engine.catalog.Fence(ctx, s.info, reason, partitions...))
}

// Unfence opens partitions for appends again, or all that the stream has. While a
// table holds offsets that one of them would give again, after a recovery, it is
// ErrTableAhead and opens none.
func (s *Stream) Unfence(ctx context.Context, partitions ...Partition) error {
	info, err := s.Info()
	if err != nil {
		return err
	}
	switch err := s.shard.engine.checkAhead(ctx, info, partitions...); {
	case errors.Is(err, ErrTableAhead):
		return fmt.Errorf("%w; %s", err, aheadAction(s.Name()))
	case err != nil:
		return err
	}
	return s.shard.engine.explain(ctx, s.shard.engine.catalog.Unfence(ctx, s.info, partitions...))
}
