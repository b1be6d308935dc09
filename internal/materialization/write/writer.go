package write

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/lakestream-go/lakestream/internal/materialization"
)

// FileSystem is where data files go. materialization.Tables is one.
type FileSystem interface {
	// CreateFile starts a file, durable when Close returns nil.
	CreateFile(ctx context.Context, path string) (io.WriteCloser, error)
	// RemoveFile deletes a file. Absent is no error.
	RemoveFile(ctx context.Context, path string) error
}

// Options bound the files. The zero value means the defaults.
type Options struct {
	// TargetFileBytes is the size at which a file ends, 128 MiB by default.
	// Files may be larger by what one row group takes once encoded.
	TargetFileBytes int64
	// RowGroupBytes is the memory of Arrow data after which a row group ends,
	// 64 MiB by default, never more than TargetFileBytes. A Writer holds at
	// most one row group, encoded.
	RowGroupBytes int64
}

// Defaults of Options.
const (
	DefaultTargetFileBytes = 128 << 20
	DefaultRowGroupBytes   = 64 << 20
)

func (o Options) withDefaults() Options {
	if o.TargetFileBytes <= 0 {
		o.TargetFileBytes = DefaultTargetFileBytes
	}
	if o.RowGroupBytes <= 0 {
		o.RowGroupBytes = DefaultRowGroupBytes
	}
	o.RowGroupBytes = min(o.RowGroupBytes, o.TargetFileBytes)
	return o
}

// Writer writes batches of one schema into files. It is not safe for concurrent
// use. After an error only Abort may be called.
type Writer struct {
	files   FileSystem
	next    func() string
	options Options

	open *file
	// created are the paths of all files that were started.
	created []string
	done    []materialization.DataFile
}

// New returns a Writer that asks next for the path of each file it starts. Paths
// must never come twice, not even from another Writer.
func New(files FileSystem, next func() string, options Options) *Writer {
	return &Writer{files: files, next: next, options: options.withDefaults()}
}

// file is a file under way.
type file struct {
	path    string
	sink    io.WriteCloser
	counted *countingWriter
	parquet *pqarrow.FileWriter
	rows    int64
	// groupBytes is the Arrow size of what the open row group was given.
	groupBytes int64
}

// countingWriter counts what a file was given. It hides the sink's Close from
// the Parquet writer, so that only the Writer decides when a file is durable.
type countingWriter struct {
	to    io.Writer
	bytes int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Write appends a batch, which it does not keep. It errors with base.ErrInvalid
// when a required column has a null.
func (w *Writer) Write(ctx context.Context, batch arrow.RecordBatch) error {
	if batch.NumRows() == 0 {
		return nil
	}
	if err := checkRequired(batch); err != nil {
		return err
	}
	if w.open == nil {
		if err := w.start(ctx, batch); err != nil {
			return err
		}
	}
	f := w.open
	if f.groupBytes >= w.options.RowGroupBytes {
		if err := f.parquet.NewBufferedRowGroupChecked(); err != nil {
			return fmt.Errorf("ending a row group of %s: %w", f.path, err)
		}
		f.groupBytes = 0
	}
	if err := f.parquet.WriteBuffered(batch); err != nil {
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	f.rows += batch.NumRows()
	f.groupBytes += sizeOf(batch)
	if f.counted.bytes+f.parquet.RowGroupTotalCompressedBytes() >= w.options.TargetFileBytes {
		return w.finish()
	}
	return nil
}

func sizeOf(batch arrow.RecordBatch) int64 {
	var bytes int64
	for _, column := range batch.Columns() {
		bytes += int64(column.Data().SizeInBytes()) //nolint:gosec // memory fits 63 bits
	}
	return bytes
}

// start opens the next file. The context must stay alive until it is finished.
func (w *Writer) start(ctx context.Context, first arrow.RecordBatch) error {
	path := w.next()
	sink, err := w.files.CreateFile(ctx, path)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	w.created = append(w.created, path)
	w.open = &file{path: path, sink: sink, counted: &countingWriter{to: sink}}
	w.open.parquet, err = pqarrow.NewFileWriter(
		first.Schema(), w.open.counted, properties(first), pqarrow.NewArrowWriterProperties())
	if err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	return nil
}

// finish makes the open file complete and durable.
func (w *Writer) finish() error {
	f := w.open
	if err := f.parquet.Close(); err != nil {
		return fmt.Errorf("writing the footer of %s: %w", f.path, err)
	}
	w.open = nil
	if err := f.sink.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", f.path, err)
	}
	w.done = append(w.done, materialization.DataFile{Path: f.path, Size: f.counted.bytes, Rows: f.rows})
	return nil
}

// Close ends the last file and returns all, in order, each durable; none when
// nothing was written.
func (w *Writer) Close() ([]materialization.DataFile, error) {
	if w.open != nil {
		if err := w.finish(); err != nil {
			return nil, err
		}
	}
	return w.done, nil
}

// Abort gives up and removes every file that was started, also when ctx is
// done, also after Close. Its error tells what may have stayed.
func (w *Writer) Abort(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if w.open != nil {
		// The file goes away, so only its handle matters.
		_ = w.open.sink.Close()
		w.open = nil
	}
	for _, path := range w.created {
		if err := w.files.RemoveFile(ctx, path); err != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", path, err))
		}
	}
	w.created, w.done = nil, nil
	return errors.Join(errs...)
}
