package engine_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// one is a batch of one record for each of some partitions.
func one(partitions ...engine.Partition) *engine.Batch {
	batch := &engine.Batch{}
	for _, p := range partitions {
		l := engine.LogRecords{Records: []engine.Record{{Timestamp: 1, Value: []byte(`{"id":1}`)}}}
		l.Log.Partition = p
		batch.Logs = append(batch.Logs, l)
	}
	return batch
}

// without tells an engine that nothing runs beside the test.
func without(opts engine.Options) engine.Options {
	opts.Compaction.Disabled = true
	return opts
}

// Behaviours 10 and 11.
func TestAFencedPartitionRefusesAndTheOthersOfItsObjectGoOn(t *testing.T) {
	opts := without(options(t))
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Partitions: 3})
	require.NoError(t, err)
	require.NoError(t, s.Fence(t.Context(), "moving to another cluster", 1))
	batch := one(0, 1, 2) // one object holds all three
	require.NoError(t, s.Append(t.Context(), batch))
	require.NoError(t, batch.Results[0].Err)
	require.NoError(t, batch.Results[2].Err)
	require.ErrorIs(t, batch.Results[1].Err, engine.ErrFenced)
	require.NotErrorIs(t, batch.Results[1].Err, engine.ErrUnknown, "it is definite")
	for _, says := range []string{"partition 1 of shop/orders", "moving to another cluster", "unfence"} {
		require.ErrorContains(t, batch.Results[1].Err, says)
	}
	for p, want := range []engine.Offset{1, 0, 1} {
		log, err := s.Log(engine.Partition(p))
		require.NoError(t, err)
		_, head, err := log.Bounds()
		require.NoError(t, err)
		require.Equal(t, want, head)
	}
	require.NoError(t, e.Close(t.Context()))

	e = open(t, opts) // the fence is durable
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	again := one(1)
	require.NoError(t, s.Append(t.Context(), again))
	require.ErrorIs(t, again.Results[0].Err, engine.ErrFenced)
	require.NoError(t, s.Unfence(t.Context()))
	require.NoError(t, s.Append(t.Context(), again))
	require.NoError(t, again.Results[0].Err)
	require.Zero(t, again.Results[0].Base)
}

// Behaviour 28.
func TestAHandleOfADeletedStreamIsRefused(t *testing.T) {
	e := open(t, without(options(t)))
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	log, err := s.Log(0)
	require.NoError(t, err)
	batch := one(0)
	require.NoError(t, s.Append(t.Context(), batch))
	dropped, err := e.DropStream(t.Context(), "shop/orders", false)
	require.NoError(t, err)
	require.True(t, dropped)
	require.Len(t, e.KeptStreams(), 1)
	require.Empty(t, e.Streams())
	require.False(t, e.StreamExists("shop/orders"))

	require.NoError(t, s.Append(t.Context(), batch))
	require.ErrorIs(t, batch.Results[0].Err, engine.ErrStreamPermanentlyDeleted)
	require.ErrorIs(t, batch.Results[0].Err, engine.ErrNotFound)
	require.NotErrorIs(t, batch.Results[0].Err, engine.ErrUnknown)
	require.ErrorContains(t, batch.Results[0].Err, "shop/orders")
	_, _, err = log.Bounds()
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = s.Info()
	require.ErrorIs(t, err, engine.ErrStreamPermanentlyDeleted)
	require.ErrorIs(t, s.IncreasePartitions(t.Context(), 3), engine.ErrStreamPermanentlyDeleted)
	_, err = e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.ErrorIs(t, err, engine.ErrStreamPermanentlyDeleted)
	require.ErrorIs(t, err, engine.ErrInvalid, "a pipeline need not try again")
}

// Behaviour 18.
func TestATrimHidesOrGivesUpRecords(t *testing.T) {
	e := open(t, without(options(t)))
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	between := time.Now()
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > between.UnixMilli() }, time.Minute, time.Millisecond)
	appendOrders(t, s, 10, 10)
	log, err := s.Log(0)
	require.NoError(t, err)

	start, err := s.Trim(t.Context(), 0, 4, false)
	require.NoError(t, err)
	require.EqualValues(t, 4, start)
	_, err = log.Read(t.Context(), 0, engine.ReadLimits{})
	require.ErrorIs(t, err, engine.ErrTrimmed)
	revealed, err := log.Read(t.Context(), 0, engine.ReadLimits{IncludeTrimmed: true})
	require.NoError(t, err)
	require.Zero(t, revealed.Records[0].Offset)
	start, err = s.TrimBefore(t.Context(), 0, between.Add(time.Millisecond), true)
	require.NoError(t, err)
	require.GreaterOrEqual(t, start, engine.Offset(4))
	start, err = s.Trim(t.Context(), 0, 10, true)
	require.NoError(t, err)
	require.EqualValues(t, 10, start)
	_, err = log.Read(t.Context(), 4, engine.ReadLimits{IncludeTrimmed: true})
	require.ErrorIs(t, err, engine.ErrTrimmed)
	_, err = s.Trim(t.Context(), 0, 21, true)
	require.ErrorIs(t, err, engine.ErrInvalid)
	_, err = s.TrimBefore(t.Context(), 3, between, true)
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestAHandleSeesItsStreamGrow(t *testing.T) {
	opts := without(options(t))
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Append(t.Context(), one(1)), engine.ErrInvalid)
	_, err = s.Log(1)
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.NoError(t, s.IncreasePartitions(t.Context(), 2))
	require.Equal(t, 2, s.Partitions())
	batch := one(1)
	require.NoError(t, s.Append(t.Context(), batch))
	require.NoError(t, batch.Results[0].Err)
}

func TestNamespacesOfTheOptionsAreDefinedAtOpen(t *testing.T) {
	opts := without(options(t))
	hour, day := time.Hour, 24*time.Hour
	opts.Namespaces = map[string]engine.NamespaceConfig{
		"shop": {Settings: engine.Settings{Retention: engine.Retention{Time: &hour}}},
		"web":  {Properties: map[string]string{"team": "a"}},
	}
	for range 2 {
		e := open(t, opts)
		shop, err := e.Namespace("shop")
		require.NoError(t, err)
		require.EqualValues(t, 1, shop.Version, "a second time nothing changes")
		require.NoError(t, e.Close(t.Context()))
	}
	opts.Namespaces = map[string]engine.NamespaceConfig{"shop": {Settings: engine.Settings{Retention: engine.Retention{Time: &day}}}}
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	info, err := s.Info()
	require.NoError(t, err)
	require.Equal(t, day, info.Kept.Time)
	require.True(t, e.NamespaceExists("web"))
}

// Given a stream with a table, when it is deleted while the engine runs, then nothing
// is wrong: its committer ends, its table stays, and the engine closes in peace.
func TestADeletedStreamLeavesItsTableAndNoTrouble(t *testing.T) {
	opts := options(t)
	var logged bytes.Buffer
	opts.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Table: engine.TablePolicy{CommitInterval: time.Second}})
	require.NoError(t, err)
	appendOrders(t, s, 0, 20)
	table := s.Table()
	require.NoError(t, table.WaitCaughtUp(t.Context()))
	appendOrders(t, s, 20, 5) // its table may not have them yet
	dropped, err := e.DropStream(t.Context(), "shop/orders", true)
	require.NoError(t, err)
	require.True(t, dropped)
	rows, err := table.Head(t.Context(), nil, 100)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(rows), 20)
	require.Empty(t, e.Status(t.Context()).Problems)
	require.NoError(t, e.Close(t.Context()))
	require.Empty(t, logged.String())
}

func TestWhatAnOlderReleaseHoldsBackIsSaidWithWhatToDo(t *testing.T) {
	opts := without(options(t)).WithFoldVersion(1)
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err, "streams are created as before")
	batch := one(0)
	require.NoError(t, s.Append(t.Context(), batch))
	require.NoError(t, batch.Results[0].Err)
	require.NoError(t, e.Close(t.Context()))

	opts.Observe = true
	e = open(t, opts.WithFoldVersion(2))
	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	for what, err := range map[string]error{
		"fence": s.Fence(t.Context(), "moving"),
		"grow":  s.IncreasePartitions(t.Context(), 3),
	} {
		require.ErrorIs(t, err, engine.ErrNotYetAllowed, what)
		require.ErrorIs(t, err, engine.ErrUnavailable, what)
		require.ErrorContains(t, err, "run a pipeline with this release", what)
	}
	require.Equal(t, 1, s.Partitions())
}
