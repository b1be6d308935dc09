package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
)

// replay reads the stream through the input.
func (s *stored) replay(ctx context.Context, b *bench) (cost, error) {
	if err := s.prepare(ctx, b); err != nil {
		return cost{}, err
	}
	engineFields := fmt.Sprintf("engine: { data_dir: %q, %s }", s.dir, noTables)
	_, release, err := acquire(ctx, output(s.dir, "", noTables))
	if err != nil {
		return cost{}, err
	}
	p := pipeline{
		in:  component("streams: [ " + streamName + " ]\nstop_at_end: true\n" + engineFields),
		out: "bench_sink: {}", inFlight: batchesInFlight,
	}
	spent, err := p.measure(ctx, b, s.size)
	if err != nil {
		_ = release(ctx) // the first error says more
		return cost{}, err
	}
	if got := p.sink.messages.Load(); got != int64(s.size) {
		return cost{}, fmt.Errorf("%d messages were replayed, want %d", got, s.size)
	}
	return spent, release(ctx)
}

// decodeRaw decodes the records of every WAL object.
func (s *stored) decodeRaw(ctx context.Context, b *bench) (cost, error) {
	if err := s.prepare(ctx, b); err != nil {
		return cost{}, err
	}
	var entries []recordbatch.Entry
	records := 0
	err := eachObject(s.dir, "wal", func(data []byte) error {
		object, err := walobject.Parse(data)
		if err != nil {
			return err
		}
		for i := range object.Blocks {
			entries = append(entries, recordbatch.Entry{Records: object.Blocks[i].Records, Data: object.Block(i)})
		}
		return nil
	})
	if err != nil {
		return cost{}, err
	}
	reader := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	spent, err := b.measure(s.size, func() error {
		for _, e := range entries {
			reader.Reset(e)
			for range e.Records {
				if _, err := reader.Next(); err != nil {
					return err
				}
				records++
			}
		}
		return nil
	})
	if err == nil && records != s.size {
		err = fmt.Errorf("%d records were decoded, want %d", records, s.size)
	}
	return spent, err
}

// decodeCompacted decodes the columns of every compacted object.
func (s *stored) decodeCompacted(ctx context.Context, b *bench) (cost, error) {
	if err := s.prepare(ctx, b); err != nil {
		return cost{}, err
	}
	objects, err := s.objects("compacted")
	if err != nil {
		return cost{}, err
	}
	return b.measure(s.size, func() error {
		for _, data := range objects {
			if err := decodeColumns(bytes.NewReader(data), func(columnPiece) {}); err != nil {
				return err
			}
		}
		return nil
	})
}

// encodeCompacted encodes the columns of every compacted object again.
func (s *stored) encodeCompacted(ctx context.Context, b *bench) (cost, error) {
	if err := s.prepare(ctx, b); err != nil {
		return cost{}, err
	}
	objects, err := s.objects("compacted")
	if err != nil {
		return cost{}, err
	}
	files := make([]columns, len(objects))
	for i, data := range objects {
		if files[i], err = loadColumns(data); err != nil {
			return cost{}, err
		}
	}
	return b.measure(s.size, func() error {
		for i := range files {
			if err := files[i].encode(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *stored) objects(kind string) (all [][]byte, err error) {
	err = eachObject(s.dir, kind, func(data []byte) error {
		all = append(all, data)
		return nil
	})
	return all, err
}

// eachObject reads every object of a kind in a data directory.
func eachObject(dir, kind string, yield func([]byte) error) error {
	root := filepath.Join(dir, "objects", kind)
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // below the directory that this program made
		if err != nil {
			return err
		}
		return yield(data)
	})
}
