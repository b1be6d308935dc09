package natskv_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// benchmarkLogs gives a log of the embedded server, which syncs each record,
// and one in memory as the floor.
func benchmarkLogs(b *testing.B, run func(b *testing.B, log coord.CommitLog)) {
	b.Run("mem", func(b *testing.B) {
		log, err := mem.NewServer(coordtest.NewClock()).Open("bench").Log(b.Context(), "s00")
		require.NoError(b, err)
		run(b, log)
	})
	b.Run("embedded", func(b *testing.B) {
		s, err := natskv.OpenEmbedded(b.Context(), embedded(b.TempDir()))
		require.NoError(b, err)
		defer func() { require.NoError(b, s.Close(b.Context())) }()
		log, err := s.Log(b.Context(), "s00")
		require.NoError(b, err)
		run(b, log)
	})
}

// BenchmarkPut measures one durable record of 1 KiB after the other.
func BenchmarkPut(b *testing.B) {
	benchmarkLogs(b, func(b *testing.B, log coord.CommitLog) {
		record := bytes.Repeat([]byte{'x'}, 1<<10)
		b.ReportAllocs()
		for b.Loop() {
			_, err := log.Put(b.Context(), record)
			require.NoError(b, err)
		}
	})
}

// BenchmarkCommitToWatch measures from the return of Put to the entry's arrival
// at a watch, which may precede it, besides the whole round.
func BenchmarkCommitToWatch(b *testing.B) {
	benchmarkLogs(b, func(b *testing.B, log coord.CommitLog) {
		w, err := log.Watch(b.Context(), 1)
		require.NoError(b, err)
		defer w.Stop()
		arrivals := make(chan arrival, 1)
		go func() {
			for entry := range w.Entries() {
				arrivals <- arrival{entry.Revision, time.Now()}
			}
		}()
		var late []time.Duration
		for b.Loop() {
			at, err := log.Put(b.Context(), []byte("record"))
			done := time.Now()
			require.NoError(b, err)
			seen := <-arrivals
			require.Equal(b, at, seen.revision)
			late = append(late, max(seen.at.Sub(done), 0))
		}
		slices.Sort(late)
		b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-late-µs")
		b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-late-µs")
	})
}

type arrival struct {
	revision base.Revision
	at       time.Time
}
