package icebergtables

import (
	"context"
	"errors"
	"fmt"
	"io"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// CreateFile implements materialization.Tables.
func (t *Tables) CreateFile(ctx context.Context, path string) (io.WriteCloser, error) {
	files, err := t.fileSystem(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("creating file %s: %w", path, err)
	}
	writable, ok := files.(iceio.WriteFileIO)
	if !ok {
		return nil, fmt.Errorf("%w: creating file %s: its file system is read-only", base.ErrInvalid, path)
	}
	if err := refuseExisting(writable, path); err != nil {
		return nil, fmt.Errorf("creating file %s: %w", path, err)
	}
	created, err := writable.Create(path)
	if err != nil {
		return nil, fmt.Errorf("creating file %s: %w", path, fileError(err))
	}
	return created, nil
}

// refuseExisting looks first where a file system would overwrite a file. Names
// are unique, so that nobody else creates the file meanwhile.
func refuseExisting(files iceio.WriteFileIO, path string) error {
	if _, exclusive := files.(durableFS); exclusive {
		return nil
	}
	opened, err := files.Open(path)
	if err != nil {
		if err = fileError(err); errors.Is(err, base.ErrNotFound) {
			return nil
		}
		return err
	}
	return errors.Join(base.ErrExists, opened.Close())
}

// OpenFile implements materialization.Tables.
func (t *Tables) OpenFile(ctx context.Context, path string) (materialization.File, error) {
	files, err := t.fileSystem(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("opening file %s: %w", path, err)
	}
	opened, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening file %s: %w", path, fileError(err))
	}
	info, err := opened.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening file %s: %w", path, fileError(err)), opened.Close())
	}
	return sizedFile{File: opened, size: info.Size()}, nil
}

// RemoveFile implements materialization.Tables.
func (t *Tables) RemoveFile(ctx context.Context, path string) error {
	files, err := t.fileSystem(ctx, path)
	if err != nil {
		return fmt.Errorf("removing file %s: %w", path, err)
	}
	err = fileError(files.Remove(path))
	if err == nil || errors.Is(err, base.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("removing file %s: %w", path, err)
}

// sizedFile is an open file that knows its size.
type sizedFile struct {
	iceio.File
	size int64
}

// Size implements materialization.File.
func (f sizedFile) Size() int64 { return f.size }
