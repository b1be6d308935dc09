package engine_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// Given a store that takes no checkpoints and no archived records, then the status
// names each with its reason and what follows of it, and appends go on; when the store
// takes them again, then all is well without a restart.
func TestHistoryThatCannotBeKeptIsAProblem(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	refused := base.WithClass(base.ErrUnavailable, errors.New("the bucket is read-only"))
	opts := without(shortLease(t)).WithObjects(func(store blob.Store) blob.Store {
		return blob.NewFaulty(store, func(c blob.Call) blob.Fault {
			if broken.Load() && c.Op == blob.OpCreate && (strings.HasPrefix(c.Key, "commits/") || strings.HasPrefix(c.Key, "checkpoint/")) {
				return blob.Fault{Before: refused}
			}
			return blob.Fault{}
		})
	})
	opts.Reclaim.CheckpointEvery = time.Second
	e := closeAtEnd(t, open(t, opts))
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 3)
	shardOf := e.Status(t.Context()).Streams[0].Shard
	var archive, checkpoints engine.Problem
	require.Eventually(t, func() bool {
		appendOrders(t, s, 3, 1)
		problems := e.Status(t.Context()).Problems
		a := slices.IndexFunc(problems, func(p engine.Problem) bool { return p.What == "archive of "+shardOf })
		c := slices.IndexFunc(problems, func(p engine.Problem) bool { return p.What == "checkpoints of "+shardOf })
		if a < 0 || c < 0 {
			return false
		}
		archive, checkpoints = problems[a], problems[c]
		return true
	}, patience, 50*time.Millisecond)
	require.Contains(t, archive.Reason, "the bucket is read-only")
	require.Contains(t, archive.NextAction, "could not be recovered")
	require.Contains(t, checkpoints.Reason, "the bucket is read-only")
	require.Contains(t, checkpoints.NextAction, "the commit log grows")

	broken.Store(false)
	require.Eventually(t, func() bool { return len(e.Status(t.Context()).Problems) == 0 }, patience, 50*time.Millisecond)
}
