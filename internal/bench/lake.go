package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

const (
	streamName = "bench/events"
	// noTables keeps the log as it was written: an engine's fields.
	noTables = "compaction: { enabled: false }"
	// withTables has the time to fill them.
	withTables = "drain_timeout: 10m"
)

// output returns the YAML of our output, with these fields of its own and of the
// engine on a directory.
func output(dir, fields, engineFields string) string {
	return fmt.Sprintf("stream: %s\n%s\nengine: { data_dir: %q, %s }", streamName, fields, dir, engineFields)
}

// component makes a component of the YAML of its fields.
func component(fields string) string {
	return "lakestream:\n  " + strings.ReplaceAll(fields, "\n", "\n  ")
}

// acquire opens the engine of an output's YAML, which the pipeline then shares, so
// that opening and closing it is not measured.
func acquire(ctx context.Context, fields string) (*engine.Engine, func(context.Context) error, error) {
	parsed, err := config.OutputSpec().ParseYAML(fields, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing output: %w", err)
	}
	conf, err := config.ParseOutput(parsed)
	if err != nil {
		return nil, nil, err
	}
	opts := *conf.Engine
	opts.Logger = slog.New(slog.DiscardHandler)
	return engine.Acquire(ctx, opts)
}

// checkAppended demands that a stream holds exactly so many records.
func checkAppended(e *engine.Engine, want int) error {
	stream, err := e.Stream(streamName)
	if err != nil {
		return err
	}
	found := engine.Offset(0)
	for p := range stream.Partitions() {
		log, err := stream.Log(engine.Partition(p))
		if err != nil {
			return err
		}
		_, head, err := log.Bounds()
		if err != nil {
			return err
		}
		found += head
	}
	if found != engine.Offset(want) {
		return fmt.Errorf("%s holds %d records, want %d", streamName, found, want)
	}
	return nil
}

// observe opens the engine on a directory that none has open, to compact it.
func observe(ctx context.Context, dir string) (*engine.Engine, error) {
	return engine.Open(ctx, engine.Options{DataDir: dir, Observe: true, Logger: slog.New(slog.DiscardHandler)})
}

// stored is a directory with a stream in it, made when it is first needed and
// shared by the contenders of a group.
type stored struct {
	messages  int
	compacted bool

	once sync.Once
	dir  string
	size int // messages that it holds
	err  error
}

func (s *stored) prepare(ctx context.Context, b *bench) error {
	s.once.Do(func() {
		s.dir, s.size = filepath.Join(b.dir, fmt.Sprintf("stored-%d-%t", s.messages, s.compacted)), b.count(s.messages)
		if s.err = fill(ctx, b, s.dir, s.size, "table: { enabled: false }"); s.err == nil && s.compacted {
			s.err = compactOnce(ctx, s.dir)
		}
	})
	return s.err
}

// beginTable appends a few messages to a new directory and compacts them, so that a
// table, where there is one, exists and has its columns: what is measured afterwards
// is what goes on for good. It returns their number.
func beginTable(ctx context.Context, b *bench, dir, fields string) (messages int, err error) {
	if err := fill(ctx, b, dir, batchSize, fields); err != nil {
		return 0, err
	}
	return batchSize, compactOnce(ctx, dir)
}

// fill appends messages to a directory, raw.
func fill(ctx context.Context, b *bench, dir string, messages int, fields string) error {
	yaml := output(dir, fields, noTables)
	p := pipeline{in: "bench_source: {}", out: component(yaml), batches: messages / batchSize, size: batchSize}
	_, err := p.measure(ctx, b, messages)
	return err
}

func compactOnce(ctx context.Context, dir string) error {
	e, err := observe(ctx, dir)
	if err != nil {
		return err
	}
	if _, err := e.Compact(ctx); err != nil {
		_ = e.Close(ctx) // the first error says more
		return err
	}
	return e.Close(ctx)
}
