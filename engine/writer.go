package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// eagerBytes is how much makes an object worth its cost while a slot is free.
const eagerBytes = 2 * mib

// openWriter returns the shard's writer, starting it with the first append, and
// remembers that the stream was written to.
func (s *shardEngine) openWriter(id base.StreamID) (*wal.Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, base.ErrClosed
	case s.engine.opts.Observe:
		return nil, fmt.Errorf("the engine was opened to look only: %w", base.ErrInvalid)
	}
	if s.writer == nil {
		writer, err := wal.NewWriter(s.writerOptions())
		if err != nil {
			return nil, err
		}
		s.writer = writer
	}
	s.wrote[id] = true
	return s.writer, nil
}

func (s *shardEngine) writerOptions() wal.Options {
	e := s.engine
	options := wal.Options{
		Cluster: e.identity.Cluster, Shard: s.shard, Instance: e.instance,
		Store: e.objects, Log: s.view, Clock: e.clock, Logger: e.logger, Entropy: rand.Reader, Jitter: mathrand.Float64,
		MaxObjectBytes: int(e.opts.WAL.MaxObjectBytes), EagerBytes: eagerBytes,
		MaxBufferedBytes: int(e.opts.WAL.MaxBufferedBytes), Room: e.room, MaxRecordBytes: int(e.opts.WAL.MaxRecordBytes),
		Linger: e.opts.WAL.Linger, UploadConcurrency: e.opts.WAL.UploadConcurrency,
		CrashPoint: e.opts.CrashPoint,
	}
	if e.opts.WAL.Compression == "zstd" {
		options.Compression = recordbatch.Zstd
	}
	if e.opts.onFiles() {
		options.FlushWhenIdle, options.Alignment = true, blob.BlockSize
	}
	return options
}

// flushWriter waits until everything that was appended is resolved.
func (s *shardEngine) flushWriter(ctx context.Context) error {
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	if writer == nil {
		return nil
	}
	return writer.Flush(ctx)
}

// fenceWriter gives the writer a new identity, under which it goes on with what the
// log has not accepted.
func (s *shardEngine) fenceWriter(ctx context.Context) error {
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	if writer == nil {
		return nil
	}
	return writer.Fence(ctx)
}

// closeWriter refuses further appends and ends the writer.
func (s *shardEngine) closeWriter(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	writer := s.writer
	s.mu.Unlock()
	if writer == nil {
		return nil
	}
	return writer.Close(ctx)
}

// written returns what this engine appended to the shard.
func (s *shardEngine) written() Written {
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	if writer == nil {
		return Written{}
	}
	stats := writer.Stats()
	return Written{Records: stats.Records, Bytes: stats.ObjectBytes, Objects: stats.Objects}
}

// blockedBy returns what keeps appends from becoming durable, or nothing.
func (s *shardEngine) blockedBy() string {
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	if writer == nil {
		return ""
	}
	return writer.Stats().Blocked
}

// wroteTo reports whether this engine appended to a stream.
func (s *shardEngine) wroteTo(id base.StreamID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrote[id]
}
