package memtables

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// CreateFile implements materialization.Tables. The file appears when Close
// returns nil.
func (t *Tables) CreateFile(_ context.Context, path string) (io.WriteCloser, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.files[path]; found {
		return nil, fmt.Errorf("creating file %s: %w", path, base.ErrExists)
	}
	return &writer{tables: t, path: path}, nil
}

// OpenFile implements materialization.Tables.
func (t *Tables) OpenFile(_ context.Context, path string) (materialization.File, error) {
	var opened materialization.File
	err := t.run(Op{Kind: OpOpen, Path: path}, func() error {
		data, found := t.files[path]
		if !found {
			return base.ErrNotFound
		}
		opened = openFile{bytes.NewReader(data)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening file %s: %w", path, err)
	}
	return opened, nil
}

// RemoveFile implements materialization.Tables.
func (t *Tables) RemoveFile(_ context.Context, path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.files, path)
	return nil
}

// writer collects a file.
type writer struct {
	tables *Tables
	path   string
	data   bytes.Buffer
}

func (w *writer) Write(p []byte) (int, error) { return w.data.Write(p) }

func (w *writer) Close() error {
	err := w.tables.run(Op{Kind: OpWrite, Path: w.path}, func() error {
		w.tables.files[w.path] = w.data.Bytes()
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing file %s: %w", w.path, err)
	}
	return nil
}

// openFile is a file open for reading.
type openFile struct {
	*bytes.Reader
}

// Close implements io.Closer.
func (openFile) Close() error { return nil }
