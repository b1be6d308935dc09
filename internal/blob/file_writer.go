package blob

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/lakestream-go/lakestream/internal/base"
)

// writerBufferBytes gathers the small writes of an encoder.
const writerBufferBytes = 256 << 10

// fileWriter writes one object to a hidden file and links it to its key at the
// end. A link, unlike a rename, never replaces what has the name already. So the
// file system must know hard links, as all that suit a server do.
type fileWriter struct {
	store  *fileStore
	ctx    context.Context
	key    string
	temp   string // path of the hidden file below the root
	file   *os.File
	buffer *bufio.Writer
	ended  bool
}

// Create implements Store.
func (s *fileStore) Create(ctx context.Context, key string) (Writer, error) {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return nil, err
	}
	f, temp, err := s.temps.create(ctx)
	if err != nil {
		return nil, fileError("creating object "+key, err)
	}
	return &fileWriter{
		store: s, ctx: ctx, key: key, temp: temp, file: f,
		buffer: bufio.NewWriterSize(f, writerBufferBytes),
	}, nil
}

// Write implements io.Writer.
func (w *fileWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, fmt.Errorf("writing object %s: %w", w.key, err)
	}
	n, err := w.buffer.Write(p)
	if err != nil {
		return n, fileError("writing object "+w.key, err)
	}
	return n, nil
}

// Commit implements Writer.
func (w *fileWriter) Commit() error {
	if w.ended {
		return endedError(w.key)
	}
	defer w.Abort() // the hidden name goes in any case
	doing := "committing object " + w.key
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := errors.Join(w.buffer.Flush(), w.store.disk.sync(w.file)); err != nil {
		return fileError(doing, err)
	}
	dir, err := w.store.dirs.acquire(path.Dir(w.key))
	if err != nil {
		return w.store.createError(doing, w.key, err)
	}
	defer w.store.dirs.release(dir)
	if err := w.store.root.Link(w.temp, w.key); err != nil {
		return w.store.createError(doing, w.key, err)
	}
	if err := w.store.disk.sync(dir.file); err != nil {
		return classify(doing, base.ErrUnknown, err)
	}
	return nil
}

// Abort implements Writer.
func (w *fileWriter) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	// What stays after a failure here is removed when the store is closed, or
	// when the next process sets up its own folder.
	_ = w.file.Close()
	_ = w.store.root.Remove(w.temp)
}
