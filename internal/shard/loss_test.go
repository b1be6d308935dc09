package shard_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// shortLog is a commit log whose leader says that it ends earlier than it does,
// and which can acknowledge records that it then has not.
type shortLog struct {
	coord.CommitLog
	// cut is how many revisions the leader leaves out of its answers.
	cut atomic.Uint64
	// loses makes Put acknowledge what it does not keep.
	loses atomic.Bool
	asked atomic.Int64
}

func (l *shortLog) Put(ctx context.Context, data []byte) (base.Revision, error) {
	if !l.loses.Load() {
		return l.CommitLog.Put(ctx, data)
	}
	_, last, err := l.CommitLog.Bounds(ctx)
	return last + 1, err
}

func (l *shortLog) Bounds(ctx context.Context) (first, last base.Revision, err error) {
	l.asked.Add(1)
	first, last, err = l.CommitLog.Bounds(ctx)
	return first, last - base.Revision(l.cut.Load()), err
}

func openShort(w *world) (*shortLog, *shard.View) {
	w.t.Helper()
	log, err := w.server.Open("instance").Log(w.t.Context(), testShard.String())
	require.NoError(w.t, err)
	short := &shortLog{CommitLog: log}
	return short, w.openOn(short)
}

// Waiting for a record that the store acknowledged and lost must end.
func TestAPublishEndsWhenTheStoreLostItsRecord(t *testing.T) {
	w := newWorld(t)
	log, v := openShort(w)
	log.loses.Store(true)
	began := w.clock.Now()
	_, err := w.publish(v, "orders")
	require.ErrorIs(t, err, base.ErrUnknown)
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.ErrorContains(t, err, "ends at revision 1, before 2 which was acknowledged")
	require.ErrorIs(t, v.Err(), base.ErrCorrupt)
	require.GreaterOrEqual(t, w.clock.Now().Sub(began), 30*time.Second, "a leader gets the time to catch up")
}

func TestAViewStopsWhenTheLogStaysShorterThanWhatItApplied(t *testing.T) {
	w := newWorld(t)
	log, v := openShort(w)
	_, err := w.publish(v, "orders")
	require.NoError(t, err)
	log.cut.Store(1)
	w.until("the view stops", func() bool { return v.Err() != nil })
	require.ErrorIs(t, v.Err(), base.ErrCorrupt)
}

// A leader that was elected just now may answer before it has caught up.
func TestAViewOutlivesALeaderThatIsBehindForAWhile(t *testing.T) {
	w := newWorld(t)
	log, v := openShort(w)
	_, err := w.publish(v, "orders")
	require.NoError(t, err)
	for range 3 {
		log.cut.Store(1)
		asked := log.asked.Load()
		w.until("the leader answers short", func() bool { return log.asked.Load() >= asked+2 })
		log.cut.Store(0)
		asked = log.asked.Load()
		w.until("the leader answers right", func() bool { return log.asked.Load() >= asked+2 })
	}
	require.NoError(t, v.Err())
	_, err = w.publish(v, "clicks")
	require.NoError(t, err)
}

// holedLog is a commit log of which one revision can no longer be read.
type holedLog struct {
	coord.CommitLog
	lost base.Revision
}

func (l *holedLog) Watch(ctx context.Context, from base.Revision) (coord.Watch, error) {
	inner, err := l.CommitLog.Watch(ctx, from)
	if err != nil {
		return nil, err
	}
	w := &holedWatch{Watch: inner, entries: make(chan coord.Entry)}
	go func() {
		defer close(w.entries)
		for e := range inner.Entries() {
			if e.Revision != l.lost {
				w.entries <- e
			}
		}
	}()
	return w, nil
}

type holedWatch struct {
	coord.Watch
	entries chan coord.Entry
}

func (w *holedWatch) Entries() <-chan coord.Entry { return w.entries }

func (w *holedWatch) Stop() {
	w.Watch.Stop()
	for range w.entries {
		continue // until the watch below has ended
	}
}

// Following a log from whose middle a record vanished must end: nothing brings the
// record back, and nothing after it can be folded.
func TestAViewStopsWhereTheStoreLostARecord(t *testing.T) {
	w := newWorld(t)
	whole := w.open()
	for _, name := range []string{"a", "b", "c"} {
		_, err := w.publish(whole, name)
		require.NoError(t, err)
	}
	log, err := w.server.Open("instance").Log(t.Context(), testShard.String())
	require.NoError(t, err)
	opened := make(chan error, 1)
	go func() {
		_, err := shard.OpenView(t.Context(), w.options(&holedLog{CommitLog: log, lost: 3}))
		opened <- err
	}()
	w.until("the view gives up", func() bool { return len(opened) == 1 })
	err = <-opened
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.ErrorContains(t, err, "lacks revision 3")
}
