package compacted

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// Stats describe a finished object.
type Stats struct {
	Rows      int64
	RowGroups int
	// Bytes is the size of the object.
	Bytes int64
	// RawBytes counts keys, values and headers before encoding.
	RawBytes int64
	// MinTime and MaxTime bound the record timestamps. Both are 0 for an
	// object without rows.
	MinTime, MaxTime base.Millis
}

// Writer writes one compacted object, record by record, and holds one row group
// in memory. It is not safe for concurrent use.
type Writer struct {
	meta    Meta
	opts    Options
	sink    *checksumWriter
	parquet *file.Writer
	group   rowGroup
	next    base.Offset
	times   recordbatch.Positioned // append time and revision of the last record
	stats   Stats
	err     error
}

// NewWriter starts an object that is to hold the range in meta. It writes to w
// as row groups fill up; w becomes an object only after Close returned nil, and
// is made durable by its owner. Options out of bounds are base.ErrInvalid.
func NewWriter(w io.Writer, meta Meta, opts Options) (*Writer, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if meta.Range.Start < 0 || meta.Range.End < meta.Range.Start {
		return nil, fmt.Errorf("%w: compacted object of range %s", base.ErrInvalid, meta.Range)
	}
	sink := newChecksumWriter(w)
	pw, err := file.NewParquetWriterWithError(sink, fileSchema,
		file.WithWriterProps(writerProperties(opts)), file.WithWriteMetadata(meta.encode()))
	if err != nil {
		return nil, fmt.Errorf("starting a compacted object: %w", err)
	}
	return &Writer{meta: meta, opts: opts, sink: sink, parquet: pw, next: meta.Range.Start}, nil
}

// Write adds the next record, whose bytes are copied. A record that is not at
// the next offset of the range, that goes back in append time or revision, or
// that is larger than MaxRecordBytes, is base.ErrInvalid. After an error the
// object cannot be finished.
func (w *Writer) Write(r *recordbatch.Positioned) error {
	if w.err != nil {
		return w.err
	}
	size := recordBytes(r)
	if err := w.check(r, size); err != nil {
		w.err = err
		return err
	}
	if w.next == w.meta.Range.Start {
		w.stats.MinTime, w.stats.MaxTime = r.Timestamp, r.Timestamp
	}
	w.stats.MinTime = min(w.stats.MinTime, r.Timestamp)
	w.stats.MaxTime = max(w.stats.MaxTime, r.Timestamp)
	w.times.AppendTime, w.times.Revision = r.AppendTime, r.Revision
	w.next++
	w.group.append(r, size)
	if w.group.rows >= w.opts.RowGroupRows || w.group.bytes >= w.opts.RowGroupBytes {
		w.err = w.flush()
	}
	return w.err
}

func (w *Writer) check(r *recordbatch.Positioned, size int64) error {
	switch {
	case !w.meta.Range.Contains(r.Offset) || r.Offset != w.next:
		return fmt.Errorf("%w: record at offset %d of range %s, want %d", base.ErrInvalid, r.Offset, w.meta.Range, w.next)
	case w.stats.Rows+int64(w.group.rows) > 0 && (r.AppendTime < w.times.AppendTime || r.Revision < w.times.Revision):
		return fmt.Errorf("%w: record at offset %d with append time %d and revision %d after %d and %d", base.ErrInvalid,
			r.Offset, r.AppendTime, r.Revision, w.times.AppendTime, w.times.Revision)
	case size > MaxRecordBytes:
		return fmt.Errorf("%w: record at offset %d has %d bytes, want at most %d", base.ErrInvalid, r.Offset, size, MaxRecordBytes)
	default:
		return nil
	}
}

func recordBytes(r *recordbatch.Positioned) int64 {
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value)
	}
	return int64(size)
}

// flush writes the collected row group.
func (w *Writer) flush() (err error) {
	defer recovered(&err, "writing a row group")
	group, err := w.parquet.AppendRowGroupChecked()
	if err != nil {
		return fmt.Errorf("starting a row group: %w", err)
	}
	if err := w.group.writeTo(group); err != nil {
		return fmt.Errorf("writing a row group: %w", err)
	}
	w.stats.Rows += int64(w.group.rows)
	w.stats.RawBytes += w.group.bytes
	w.stats.RowGroups++
	w.group.reset()
	return nil
}

// Close writes what is left and the footer. It fails when the range is not
// complete. The underlying writer stays open. A second Close reports
// base.ErrClosed.
func (w *Writer) Close() (Stats, error) {
	if w.err != nil {
		return Stats{}, w.err
	}
	if w.next != w.meta.Range.End {
		w.err = fmt.Errorf("%w: compacted object of range %s ends at %d", base.ErrInvalid, w.meta.Range, w.next)
		return Stats{}, w.err
	}
	if w.err = w.finish(); w.err != nil {
		return Stats{}, w.err
	}
	w.stats.Bytes = w.sink.written
	w.err = fmt.Errorf("compacted object writer: %w", base.ErrClosed)
	return w.stats, nil
}

func (w *Writer) finish() (err error) {
	if w.group.rows > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	defer recovered(&err, "writing the footer")
	w.sink.hold()
	if err := w.parquet.Close(); err != nil {
		return fmt.Errorf("writing the footer: %w", err)
	}
	if err := w.sink.finish(); err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	return nil
}

// recovered turns a panic of the Parquet library into an error.
func recovered(err *error, doing string) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%s: the Parquet library panicked: %w", doing, r)
	default:
		*err = errors.Join(*err, fmt.Errorf("%s: the Parquet library panicked: %v", doing, r))
	}
}
