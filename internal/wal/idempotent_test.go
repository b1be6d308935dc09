package wal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// sequenced makes one record of each sequence, whose value is its number.
func (r *rig) sequenced(partition base.Partition, producer string, sequences ...base.ProducerSeq) wal.LogRecords {
	l := wal.LogRecords{Log: r.id(partition), Producer: producer, Sequences: sequences}
	for _, seq := range sequences {
		l.Records = append(l.Records, recordbatch.Record{Value: fmt.Append(nil, seq)})
	}
	return l
}

func (r *rig) send(logs ...wal.LogRecords) []wal.LogResult {
	r.t.Helper()
	b := &wal.Batch{Urgent: true, Logs: logs}
	require.NoError(r.t, r.writer.Append(r.t.Context(), b))
	require.Len(r.t, b.Results, len(logs))
	return b.Results
}

func span(from, n base.ProducerSeq) []base.ProducerSeq {
	all := make([]base.ProducerSeq, n)
	for i := range all {
		all[i] = from + base.ProducerSeq(i)
	}
	return all
}

func TestWhatIsSentAgainIsSuccessAndAddsNothing(t *testing.T) {
	r := newRig(t, faults{}, nil)
	first := r.send(r.sequenced(0, "p", 7, 5, 6))[0]
	require.NoError(t, first.Err)
	require.Equal(t, 3, first.Records)

	again := r.send(r.sequenced(1, "p", 5, 6, 7))[0]
	require.NoError(t, again.Err)
	require.Zero(t, again.Records)
	require.Equal(t, []int{0, 1, 2}, again.Duplicates)

	some := r.send(r.sequenced(0, "p", 8, 6, 9), r.sequenced(1, "p", 7, 4))
	require.Equal(t, []int{1}, some[0].Duplicates)
	require.Equal(t, 2, some[0].Records)
	require.EqualValues(t, 3, some[0].Base, "offsets follow without what was left out")
	require.Equal(t, []int{0}, some[1].Duplicates)
	r.close()
	require.Equal(t, []string{"7", "5", "6", "8", "9"}, r.read(0))
	require.Equal(t, []string{"4"}, r.read(1))
}

func TestProducersDoNotKnowOfEachOther(t *testing.T) {
	r := newRig(t, faults{}, nil)
	for _, producer := range []string{"a", "b"} {
		require.Equal(t, 2, r.send(r.sequenced(0, producer, 1, 2))[0].Records)
	}
	plain := wal.LogRecords{Log: r.id(0), Records: []recordbatch.Record{{Value: []byte("plain")}}}
	results := r.send(plain, r.sequenced(0, "a", 2, 3), plain)
	require.Equal(t, []int{1, 1, 1}, []int{results[0].Records, results[1].Records, results[2].Records})
	r.close()
	require.Equal(t, []string{"1", "2", "1", "2", "plain", "3", "plain"}, r.read(0), "each block of a log has its place")
}

func TestRecordsOfOneSequenceAreOneThing(t *testing.T) {
	r := newRig(t, faults{}, nil)
	require.Equal(t, 3, r.send(r.sequenced(0, "p", 1, 1, 1))[0].Records)
	require.Equal(t, []int{0, 1}, r.send(r.sequenced(0, "p", 1, 1))[0].Duplicates)

	// One that can never be appended keeps its fellows out: they would claim its
	// sequence.
	l := r.sequenced(0, "p", 2, 3, 2)
	l.Records[0].Value = make([]byte, 2<<20)
	result := r.send(l)[0]
	require.NoError(t, result.Err)
	require.Equal(t, 1, result.Records)
	require.Len(t, result.Invalid, 2)
	for k, index := range []int{0, 2} {
		require.Equal(t, index, result.Invalid[k].Index)
		require.ErrorIs(t, result.Invalid[k].Err, base.ErrInvalid)
	}
	r.close()
	require.Equal(t, []string{"1", "1", "1", "3"}, r.read(0))
}

func TestTheWindowHasAnExactEdge(t *testing.T) {
	r := newRig(t, faults{}, nil)
	const newest = 100_000
	r.send(r.sequenced(0, "p", newest))

	edge := base.ProducerSeq(newest + 1 - shard.ProducerWindow)
	result := r.send(r.sequenced(0, "p", edge-1, edge))[0]
	require.NoError(t, result.Err)
	require.Equal(t, 1, result.Records, "the oldest that the window holds is new")
	require.Equal(t, []int{0, 1}, r.send(r.sequenced(1, "p", edge, newest))[0].Duplicates)
	require.Len(t, result.Invalid, 1)
	require.Equal(t, 0, result.Invalid[0].Index)
	require.ErrorIs(t, result.Invalid[0].Err, base.ErrInvalid)
	require.ErrorContains(t, result.Invalid[0].Err, "let the source commit more often")
}

func TestABatchMustFitTheWindowAndACommitRecord(t *testing.T) {
	r := newRig(t, faults{}, nil)
	results := r.send(r.sequenced(0, "wide", 1, shard.ProducerWindow+1), r.sequenced(1, "p", 1), r.sequenced(2, "wide", 5))
	require.ErrorIs(t, results[0].Err, base.ErrInvalid)
	require.ErrorContains(t, results[0].Err, "send smaller batches")
	require.Equal(t, 1, results[1].Records, "another producer is none the worse")
	require.ErrorIs(t, results[2].Err, base.ErrInvalid)

	result := r.send(r.sequenced(0, "p", math.MaxInt64+1, math.MaxInt64))[0]
	require.Equal(t, 1, result.Records)
	require.Equal(t, 0, result.Invalid[0].Index)

	for _, producer := range []string{strings.Repeat("x", shard.MaxProducerBytes+1), "\xff"} {
		require.ErrorIs(t, r.send(r.sequenced(0, producer, 1))[0].Err, base.ErrInvalid)
	}
	short := r.sequenced(0, "p", 1)
	short.Sequences = nil
	require.ErrorIs(t, r.writer.Append(t.Context(), &wal.Batch{Logs: []wal.LogRecords{short}}), base.ErrInvalid)

	scattered := make([]wal.LogRecords, 0, 4)
	for p := range 4 { // every other sequence of four producers
		var odd []base.ProducerSeq
		for seq := base.ProducerSeq(1); seq < shard.ProducerWindow; seq += 4 {
			odd = append(odd, seq)
		}
		scattered = append(scattered, r.sequenced(0, fmt.Sprint(p), odd...))
	}
	require.ErrorIs(t, r.writer.Append(t.Context(), &wal.Batch{Logs: scattered}), base.ErrInvalid)
	require.Equal(t, shard.ProducerWindow/4, r.send(scattered[0])[0].Records, "one of them fits")
}

func TestTooManyProducersAreRefused(t *testing.T) {
	r := newRig(t, faults{}, nil)
	const step = 1000
	for from := 0; from < shard.MaxProducers; from += step {
		logs := make([]wal.LogRecords, step)
		for i := range logs {
			logs[i] = r.sequenced(0, fmt.Sprint(from+i), 1)
		}
		r.send(logs...)
	}
	result := r.send(r.sequenced(0, "one more", 1))[0]
	require.ErrorContains(t, result.Err, string(shard.LimitReached))
	require.NotErrorIs(t, result.Err, base.ErrUnknown)
	require.Equal(t, 1, r.send(r.sequenced(0, "7", 2))[0].Records, "those that are known go on")
}

func TestAClusterThatOlderInstancesMayFoldTakesNoProducers(t *testing.T) {
	state := shard.NewState(cluster, testShard)
	batch := &wal.Batch{Logs: []wal.LogRecords{
		{Log: base.LogID{Stream: 1}, Producer: "p", Sequences: span(1, 1), Records: make([]recordbatch.Record, 1)},
		{Log: base.LogID{Stream: 1}, Records: make([]recordbatch.Record, 1)},
	}}
	progress, err := wal.NewIdempotent(batch, 1000)
	require.NoError(t, err)
	attempt := progress.Attempt(state)
	require.Len(t, attempt.Logs, 1, "records without a producer go")
	require.Empty(t, attempt.Logs[0].Producer)
	require.ErrorContains(t, progress.Results()[0].Err, "upgrade every instance")
}

// A reply that was lost is asked for again, by the same writer or by its successor.
func TestFaultsLeaveEachSequenceOnce(t *testing.T) {
	for name, f := range map[string]faults{
		"record not put":           firstCommits(4, coord.Fault{Before: errDown}),
		"record put, reply lost":   firstCommits(4, coord.Fault{After: errNoReply}),
		"put twice and reply lost": firstCommits(4, coord.Fault{Twice: true, After: errNoReply}),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, f, fastRetries)
			for from := range base.ProducerSeq(5) {
				require.NoError(t, r.send(r.sequenced(0, "p", span(from*3, 6)...))[0].Err)
				require.NoError(t, r.writer.Fence(t.Context()))
			}
			r.close()
			var want []string
			for seq := range 18 {
				want = append(want, fmt.Sprint(seq))
			}
			require.Equal(t, want, r.read(0))
		})
	}
}

// Two instances send the same records in batches of their own, at once: each gets
// success for all, and the stream has each once.
func TestTwoWritersRaceWithTheSameSequences(t *testing.T) {
	r := newRig(t, faults{}, nil)
	other := r.secondWriter()
	const total = 3000
	var runs sync.WaitGroup
	for k, w := range []*wal.Writer{r.writer, other} {
		for range 4 {
			rng := mathrand.New(mathrand.NewPCG(uint64(k), 7))
			runs.Go(func() {
				left := span(0, total)
				rng.Shuffle(len(left), func(a, b int) { left[a], left[b] = left[b], left[a] })
				for len(left) > 0 {
					n := min(len(left), 1+rng.IntN(100))
					if err := r.sendThrough(w, left[:n/2], left[n/2:n]); err != nil {
						t.Error(err)
						return
					}
					left = left[n:]
				}
			})
		}
	}
	runs.Wait()
	require.NoError(t, other.Close(t.Context()))
	r.close()
	all := slices.Concat(r.read(0), r.read(1))
	require.Len(t, all, total)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), total)
}

// sendThrough appends sequences to the first and the second log, and wants each to be
// new or a duplicate.
func (r *rig) sendThrough(w *wal.Writer, first, second []base.ProducerSeq) error {
	b := &wal.Batch{Logs: []wal.LogRecords{r.sequenced(0, "p", first...), r.sequenced(1, "p", second...)}}
	if err := w.Append(r.t.Context(), b); err != nil {
		return err
	}
	for i, result := range b.Results {
		if result.Err != nil || result.Records+len(result.Duplicates) != len(b.Logs[i].Records) {
			return fmt.Errorf("%+v", result)
		}
	}
	return nil
}

// secondWriter returns the writer of another process on the same stores, which sees
// records when the first does.
func (r *rig) secondWriter() *wal.Writer {
	w, err := wal.NewWriter(wal.Options{
		Cluster: cluster, Shard: testShard, Instance: "other", Store: r.store, Log: r.view,
		Clock: base.SystemClock{}, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader, Jitter: func() float64 { return 0 },
		MaxObjectBytes: 8 << 20, EagerBytes: 2 << 20, MaxBufferedBytes: 64 << 20, MaxRecordBytes: 1 << 20,
		Linger: 1e6, FlushWhenIdle: true, UploadConcurrency: 4,
	})
	require.NoError(r.t, err)
	return w
}

// An end of the second attempt is told for what it concerns alone.
func TestAnErrorAfterAPartWasAppendedIsThatOfTheRest(t *testing.T) {
	r := newRig(t, faults{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.writer.Append(ctx, &wal.Batch{Logs: []wal.LogRecords{r.sequenced(0, "p", 1)}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, base.ErrUnknown, "nothing was tried")

	_, err = r.view.Publish(t.Context(), &commitpb.LogFence{Stream: uint64(r.stream), Partition: []uint32{1}, Reason: "test"})
	require.NoError(t, err)
	results := r.send(r.sequenced(0, "p", 1), r.sequenced(1, "p", 2), r.sequenced(0, "q", 1))
	require.Error(t, results[0].Err, "a producer's records land together")
	require.Error(t, results[1].Err)
	require.NoError(t, results[2].Err)
	require.Equal(t, 1, r.send(r.sequenced(0, "p", 1))[0].Records, "what was refused claimed nothing")
}
