package engine

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/shard"
)

// awaitIndex makes an append wait while the shard's index is full: every instance
// holds it in memory, and compaction makes it shorter.
func (s *shardEngine) awaitIndex(ctx context.Context) error {
	if !s.indexFull() {
		return nil
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	if err := s.view.WaitUntil(ctx, func(st *shard.State) bool { return st.IndexEntries() < s.engine.opts.MaxIndexEntries }); err != nil {
		return fmt.Errorf("waiting for compaction: the index is full: %w", err)
	}
	return nil
}

func (s *shardEngine) indexFull() (full bool) {
	s.view.Inspect(func(st *shard.State) { full = st.IndexEntries() >= s.engine.opts.MaxIndexEntries })
	return full
}
