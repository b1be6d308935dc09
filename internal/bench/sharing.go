package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"github.com/lakestream-go/lakestream/engine"
)

const (
	// sharingLogs is how many logs share each object.
	sharingLogs = 1000
	// sharingObjects is how many there are.
	sharingObjects = 10
)

func sharing() fact {
	return fact{
		name: "reads of 1,000 logs that share objects",
		what: fmt.Sprintf("Each of %d objects holds records of %d bytes of each of %d logs. What readers with an empty cache fetch for what they return: keys, values and headers. Records are wrapped in batches, which count as fetched only; where a log has one record an object, its wrapping takes about half.",
			sharingObjects, messageBytes, sharingLogs),
		columns: []string{"case", "objects", "GETs", "fetched", "returned", "fetched ÷ returned"},
		measure: measureSharing,
	}
}

func measureSharing(ctx context.Context, b *bench) (rows [][]string, err error) {
	for _, perLog := range []int{1, 20} {
		dir := filepath.Join(b.dir, fmt.Sprintf("sharing-%d", perLog))
		if err := fillShared(ctx, dir, perLog); err != nil {
			return nil, err
		}
		for name, read := range map[string]func(context.Context, *engine.Stream) error{
			"all logs at once": readAtOnce, "one log": readFirst,
		} {
			row, err := countReads(ctx, dir, read)
			if err != nil {
				return nil, err
			}
			rows = append(rows, append([]string{fmt.Sprintf("%s, %d records an object", name, perLog)}, row...))
		}
	}
	return rows, nil
}

func openQuietly(ctx context.Context, dir string) (*engine.Engine, error) {
	return engine.Open(ctx, engine.Options{
		DataDir: dir, Shards: 1, Logger: slog.New(slog.DiscardHandler), Compaction: engine.CompactionOptions{Disabled: true},
	})
}

// fillShared appends some records to each log, one object after the other.
func fillShared(ctx context.Context, dir string, perLog int) (err error) {
	e, err := openQuietly(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, e.Close(ctx)) }()
	off := false
	stream, err := e.EnsureStream(ctx, streamName, engine.StreamConfig{
		Partitions: sharingLogs, Table: engine.TablePolicy{Enabled: &off},
	})
	if err != nil {
		return err
	}
	all := payloads()
	for n := range sharingObjects {
		batch := engine.Batch{Logs: make([]engine.LogRecords, sharingLogs)}
		for p := range batch.Logs {
			batch.Logs[p].Log.Partition = engine.Partition(p)
			for i := range perLog {
				value := all[(n*sharingLogs*perLog+p*perLog+i)%len(all)]
				batch.Logs[p].Records = append(batch.Logs[p].Records, engine.Record{Value: value})
			}
		}
		if err := stream.Append(ctx, &batch); err != nil {
			return err
		}
	}
	return nil
}

// firstOf keeps the error that came first.
func firstOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// countReads reads with an empty cache.
func countReads(ctx context.Context, dir string, read func(context.Context, *engine.Stream) error) (row []string, err error) {
	e, err := openQuietly(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, e.Close(ctx)) }()
	stream, err := e.Stream(streamName)
	if err != nil {
		return nil, err
	}
	if err := read(ctx, stream); err != nil {
		return nil, err
	}
	s := e.ReadStats()
	bytes := func(n int64) string { return humanize.IBytes(uint64(n)) } //nolint:gosec // never negative
	return []string{
		fmt.Sprint(sharingObjects), fmt.Sprint(s.Gets), bytes(s.ReadBytes), bytes(s.ReturnedBytes),
		fmt.Sprintf("%.2f", float64(s.ReadBytes)/float64(max(1, s.ReturnedBytes))),
	}, nil
}

func readAtOnce(ctx context.Context, stream *engine.Stream) error {
	group, ctx := errgroup.WithContext(ctx)
	for p := range stream.Partitions() {
		group.Go(func() error { return readLog(ctx, stream, engine.Partition(p)) }) //nolint:gosec // a thousand
	}
	return group.Wait()
}

func readFirst(ctx context.Context, stream *engine.Stream) error { return readLog(ctx, stream, 0) }

func readLog(ctx context.Context, stream *engine.Stream, p engine.Partition) error {
	log, err := stream.Log(p)
	if err != nil {
		return err
	}
	_, head, err := log.Bounds()
	if err != nil {
		return err
	}
	for next := engine.Offset(0); next < head; {
		records, err := log.Read(ctx, next, engine.ReadLimits{})
		if err != nil {
			return err
		}
		next = records.Next
	}
	return nil
}
