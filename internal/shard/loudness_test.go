package shard_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// lines is where a log goes that is read while it is written.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// Given a connection that is lost, refused for a while and made again, when the
// view follows it, then it stays quiet: the connection's owner tells of that once.
func TestAnInterruptionIsNoWarning(t *testing.T) {
	w := newWorld(t)
	var away sync.Mutex
	refuse := false
	w.faults = func(c coord.Call) coord.Fault {
		away.Lock()
		defer away.Unlock()
		switch {
		case refuse && c.Op == coord.OpWatch:
			return coord.Fault{Before: base.ErrUnavailable}
		default:
			return coord.Fault{Cut: refuse && c.Op == coord.OpDeliver}
		}
	}
	setAway := func(on bool) {
		away.Lock()
		defer away.Unlock()
		refuse = on
	}
	out := &lines{}
	v := w.openLogging(out)
	setAway(true)
	w.server.Stray(testShard.String(), shardtest.Encode(t, stream("orders")))
	w.until("some watches fail", func() bool { return w.count(coord.OpWatch) > 4 })
	setAway(false)
	w.reaches(v, 2)
	watches := w.count(coord.OpWatch)
	w.reconnects.Add(1)
	w.until("the view watches on the new connection", func() bool { return w.count(coord.OpWatch) > watches })
	require.NotContains(t, out.String(), "WARN")
	require.Contains(t, out.String(), "the watch was closed")
	require.Contains(t, out.String(), "the connection was made again")
}

// Given a watch that leaves a record out, when the view notices, then it warns.
func TestARecordThatWasLeftOutIsAWarning(t *testing.T) {
	w := newWorld(t)
	log := &scripted{first: 1, last: 3, watches: [][]coord.Entry{
		{entry(t, 1, ""), entry(t, 3, "b")},
		{entry(t, 1, ""), entry(t, 2, "a"), entry(t, 3, "b")},
	}}
	out := &lines{}
	opened := make(chan *shard.View, 1)
	go func() {
		opts := w.options(log)
		opts.Logger = slog.New(slog.NewTextHandler(out, nil))
		v, err := shard.OpenView(t.Context(), opts)
		if err == nil {
			t.Cleanup(v.Close)
		}
		opened <- v
	}()
	w.until("the view opens", func() bool { return len(opened) == 1 })
	require.EqualValues(t, 3, (<-opened).Revision())
	require.Contains(t, out.String(), "level=WARN")
	require.Contains(t, out.String(), "revisions are missing")
}
