package main

import (
	"context"
	"fmt"
)

const (
	// batchSize and batchesInFlight are those of the batched groups.
	batchSize       = 1000
	batchesInFlight = 64
	plainTable      = "table: { enabled: false }"
)

// groups returns everything that is measured.
func groups() []group {
	return []group{appendBatches(), appendSingly(), replayRaw(), replayCompacted(), pass()}
}

func appendBatches() group {
	inFlight := fmt.Sprintf("max_in_flight: %d", batchesInFlight)
	plain := appending{messages: 2_000_000, fields: inFlight + "\n" + plainTable, engine: noTables}
	zstd := plain
	zstd.engine += ", wal: { compression: zstd }"
	partitions := plain
	partitions.fields += "\npartitions: 16\npartition: ${! counter() % 16 }"
	withTable := plain
	withTable.messages, withTable.fields, withTable.engine, withTable.drain = 500_000, inFlight, withTables, true
	return group{
		name: "append in batches of 1,000",
		what: "A source yields batches of 1,000 messages of 142 bytes, 64 of them in flight, and the output appends them to a file store that syncs every object, with a commit log that syncs every record.",
		floor: contender{
			name: "sink that does nothing", what: "The same source, and a sink that accepts every batch at once.",
			run: (&emptySink{messages: 2_000_000}).run,
		},
		subjects: []contender{
			{name: "uncompressed", what: "One partition, no table: the append path alone.", bar: 0.5, run: plain.run},
			{name: "zstd", what: "The same, with `wal.compression: zstd`.", bar: 0.3, run: zstd.run},
			{name: "16 partitions", what: "The same as uncompressed, with a `partition` that is interpolated for each message.", run: partitions.run},
			{name: "to the table", what: "Defaults, with the table on, from the first message until the table's last snapshot holds the last row.", run: withTable.run},
		},
	}
}

func appendSingly() group {
	const messages = 300_000
	plain := appending{messages: messages, generate: true, fields: plainTable, engine: noTables}
	withTable := appending{messages: messages, generate: true, engine: withTables, drain: true}
	return group{
		name:  "append one by one",
		what:  "Benthos's `generate` makes the same 142 bytes over and over, in batches of 1, with defaults throughout.",
		floor: contender{name: "drop", what: "Benthos's `drop` output.", run: (&emptySink{messages: messages, generate: true}).run},
		subjects: []contender{
			{name: "no table", what: "The append path alone.", bar: 0.6, run: plain.run},
			{name: "sink that answers late", what: "For comparison: a sink that does nothing but keep 512 batches in flight and answer them 256 at a time.", run: lateRun(messages)},
			{name: "to the table", what: "With the table on, until the table's last snapshot holds the last row.", run: withTable.run},
		},
	}
}

func replayRaw() group {
	log := &stored{messages: 1_000_000}
	return group{
		name:     "replay raw",
		what:     "The input reads what was appended uncompressed, one partition, from the file store into a sink that does nothing.",
		floor:    contender{name: "bare decode", what: "The records of the same WAL objects are decoded and checked in memory, on one goroutine.", run: log.decodeRaw},
		subjects: replays(log),
	}
}

func replayCompacted() group {
	log := &stored{messages: 1_000_000, compacted: true}
	return group{
		name:     "replay compacted",
		what:     "The input reads the same records from compacted objects.",
		floor:    contender{name: "bare decode", what: "The Parquet library decodes every column of the same objects in memory, on one goroutine, and nothing is checked or assembled.", run: log.decodeCompacted},
		subjects: replays(log),
	}
}

func replays(log *stored) []contender {
	return []contender{
		{name: "through the input", what: "The whole pipeline.", run: log.replay},
		{
			name: "pipeline alone", what: "For comparison: a source that does nothing but make as many messages, and the same sink.",
			run: (&emptySink{messages: log.messages}).run,
		},
	}
}

func pass() group {
	log := &stored{messages: 300_000, compacted: true}
	return group{
		name:  "compaction pass",
		what:  "What was appended uncompressed, one partition, is rewritten by `compact`.",
		floor: contender{name: "bare Parquet encode", what: "The Parquet library encodes the same columns with the same encodings, in memory.", run: log.encodeCompacted},
		subjects: []contender{
			{name: "no table", what: "WAL objects are read and verified, compacted objects written and published.", run: passing{messages: log.messages, fields: plainTable}.run},
			{name: "with a table", what: "The same, and the records are decoded as JSON into data files, which are committed.", run: passing{messages: log.messages}.run},
		},
	}
}

// input returns the YAML of the source of a number of messages, and their number
// as batches.
func input(messages int, generate bool) (yaml string, batches int) {
	if generate {
		return fmt.Sprintf("generate: { count: %d, interval: \"\", mapping: 'root = %q' }", messages, payloads()[0]), messages
	}
	return "bench_source: {}", messages / batchSize
}

// lateRun runs the generator into the sink that answers late.
func lateRun(full int) func(context.Context, *bench) (cost, error) {
	return func(ctx context.Context, b *bench) (cost, error) {
		messages := b.count(full)
		in, _ := input(messages, true)
		p := pipeline{in: in, out: "bench_late_sink: {}"}
		return p.measure(ctx, b, messages)
	}
}

// emptySink runs a source into a sink that does nothing.
type emptySink struct {
	messages int
	generate bool
}

func (s *emptySink) run(ctx context.Context, b *bench) (cost, error) {
	messages := b.count(s.messages)
	in, batches := input(messages, s.generate)
	p := pipeline{in: in, out: "bench_sink: {}", batches: batches, size: batchSize, inFlight: batchesInFlight}
	if s.generate {
		p.out = "drop: {}"
	}
	return p.measure(ctx, b, messages)
}

// appending runs a source into our output.
type appending struct {
	messages       int
	generate       bool
	fields, engine string // of the output, and of its engine
	// drain measures until tables hold everything.
	drain bool
}

func (a appending) run(ctx context.Context, b *bench) (spent cost, err error) {
	dir, remove, err := b.freshDir()
	if err != nil {
		return cost{}, err
	}
	defer remove()
	before := 0
	if a.drain {
		if before, err = beginTable(ctx, b, dir, a.fields); err != nil {
			return cost{}, err
		}
	}
	yaml := output(dir, a.fields, a.engine)
	e, release, err := acquire(ctx, yaml)
	if err != nil {
		return cost{}, err
	}
	messages := b.count(a.messages)
	in, batches := input(messages, a.generate)
	p := pipeline{in: in, out: component(yaml), batches: batches, size: batchSize}
	stream, err := p.build()
	if err != nil {
		return cost{}, err
	}
	work := func() error {
		if err := stream.Run(ctx); err != nil {
			return err
		}
		if err := checkAppended(e, before+messages); err != nil || !a.drain {
			return err
		}
		return release(ctx)
	}
	if spent, err = b.measure(messages, work); err != nil || a.drain {
		return spent, err
	}
	return spent, release(ctx)
}

// passing runs one compaction of everything that was appended.
type passing struct {
	messages int
	fields   string // of the output that appended it
}

func (p passing) run(ctx context.Context, b *bench) (cost, error) {
	dir, remove, err := b.freshDir()
	if err != nil {
		return cost{}, err
	}
	defer remove()
	if _, err := beginTable(ctx, b, dir, p.fields); err != nil {
		return cost{}, err
	}
	messages := b.count(p.messages)
	if err := fill(ctx, b, dir, messages, p.fields); err != nil {
		return cost{}, err
	}
	e, err := observe(ctx, dir)
	if err != nil {
		return cost{}, err
	}
	spent, err := b.measure(messages, func() error {
		_, err := e.Compact(ctx)
		return err
	})
	if err != nil {
		_ = e.Close(ctx) // the first error says more
		return cost{}, err
	}
	return spent, e.Close(ctx)
}
