package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// deliveries is how many records are timed.
const deliveries = 2000

func delivery() fact {
	return fact{
		name:    "append to delivery",
		what:    "One record at a time is appended to a file store that syncs every object, with a commit log that syncs every record, and delivered to a reader that tails. Beside it the PUT of an object of that size alone. When nothing is in flight a record does not wait for `wal.linger`, which is 10 ms here; on a bucket add it to the PUT there.",
		columns: []string{"from the append until", "p50", "p99"},
		measure: measureDelivery,
	}
}

func measureDelivery(ctx context.Context, b *bench) (rows [][]string, err error) {
	dir, remove, err := b.freshDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	n := max(100, deliveries/b.scale)
	puts, err := timePuts(ctx, b, dir, n)
	if err != nil {
		return nil, err
	}
	acked, delivered, err := timeDeliveries(ctx, b, dir+"/engine", n)
	if err != nil {
		return nil, err
	}
	for _, r := range []struct {
		name  string
		times []time.Duration
	}{{"a PUT alone would be done", puts}, {"it is acknowledged", acked}, {"a tail has it", delivered}} {
		p50, p99 := percentiles(r.times)
		rows = append(rows, []string{r.name, p50, p99})
	}
	return rows, nil
}

// timePuts puts objects of the size that one record takes.
func timePuts(ctx context.Context, b *bench, dir string, n int) (times []time.Duration, err error) {
	store, err := blob.Open(ctx, "file://"+dir+"/puts", blob.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, store.Close()) }()
	object := make([]byte, 3*messageBytes)
	for i := range n {
		started := b.clock.Now()
		if err := store.Put(ctx, fmt.Sprintf("wal/%d.wal", i), object); err != nil {
			return nil, err
		}
		times = append(times, b.clock.Now().Sub(started))
	}
	return times, nil
}

// timeDeliveries appends records, each when the one before was delivered.
func timeDeliveries(ctx context.Context, b *bench, dir string, n int) (acked, delivered []time.Duration, err error) {
	e, err := openQuietly(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = firstOf(err, e.Close(ctx)) }()
	off := false
	stream, err := e.EnsureStream(ctx, streamName, engine.StreamConfig{Table: engine.TablePolicy{Enabled: &off}})
	if err != nil {
		return nil, nil, err
	}
	log, err := stream.Log(0)
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	arrivals := make(chan arrival)
	go tail(ctx, b, log, arrivals)
	for i := range n {
		batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{{Value: payloads()[i%len(payloads())]}}}}}
		started := b.clock.Now()
		if err := stream.Append(ctx, &batch); err != nil {
			return nil, nil, err
		}
		if err := batch.Results[0].Err; err != nil {
			return nil, nil, err
		}
		acked = append(acked, b.clock.Now().Sub(started))
		a := <-arrivals
		if a.err != nil {
			return nil, nil, a.err
		}
		delivered = append(delivered, a.at.Sub(started))
	}
	return acked, delivered, nil
}

// arrival is when a tail got a record.
type arrival struct {
	at  time.Time
	err error
}

// tail tells when each record comes, until ctx ends.
func tail(ctx context.Context, b *bench, log *engine.Log, arrivals chan<- arrival) {
	for next := engine.Offset(0); ; {
		records, err := log.Tail(ctx, next, engine.ReadLimits{MaxMessages: 1})
		select {
		case arrivals <- arrival{at: b.clock.Now(), err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		next = records.Next
	}
}
