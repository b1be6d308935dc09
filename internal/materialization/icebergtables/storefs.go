package icebergtables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// propertyStore is the catalog property that says which store a catalog's files
// are in. The library hands a catalog's properties to whatever opens files.
const propertyStore = "lakestream.store"

// storeSchemes are those of locations in buckets, as other readers spell them.
var storeSchemes = []string{"s3", "gs", "abfss"}

// stores are those of the catalogs that are open, by the value of propertyStore.
var stores = struct {
	sync.Map
	last atomic.Int64
}{}

// registerStores makes the library open files in buckets through the store of
// their catalog, in the whole process. Its registry has no other scope.
var registerStores = sync.OnceFunc(func() {
	for _, scheme := range storeSchemes {
		iceio.Unregister(scheme)
		iceio.Register(scheme, func(ctx context.Context, location *url.URL, properties map[string]string) (iceio.IO, error) {
			found, ok := stores.Load(properties[propertyStore])
			if !ok {
				return nil, fmt.Errorf("%w: no open catalog has a store for %s://%s", base.ErrInvalid, location.Scheme, location.Host)
			}
			files := found.(storeFS) //nolint:forcetypeassert // this file alone stores values
			files.ctx = ctx
			return files, nil
		})
	}
})

// addStore makes files below a location known to the library, and returns the
// value of propertyStore for them.
func addStore(store blob.Store, location string) string {
	registerStores()
	id := strconv.FormatInt(stores.last.Add(1), 10)
	stores.Store(id, storeFS{store: store, root: strings.TrimSuffix(location, "/") + "/"})
	return id
}

// storeFS shows the library an object store as a file system. A file is visible
// and durable, whole, when its writer's Close returned nil, and is never replaced.
type storeFS struct {
	ctx   context.Context // of the operation that opened the file system, as the library's interfaces have none
	store blob.Store
	root  string // location of the store's root; ends with a slash
}

// key returns the object of a location.
func (f storeFS) key(name string) (string, error) {
	key, inside := strings.CutPrefix(name, f.root)
	if !inside {
		return "", fmt.Errorf("%w: the location lies outside of %s", base.ErrInvalid, f.root)
	}
	return key, nil
}

// pathError returns an error as the library expects one, with its class.
func pathError(op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, base.ErrNotFound):
		err = base.WithClass(fs.ErrNotExist, err)
	case errors.Is(err, base.ErrExists):
		err = base.WithClass(fs.ErrExist, err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements iceio.IO.
func (f storeFS) Open(name string) (iceio.File, error) {
	key, err := f.key(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	info, err := f.store.Stat(f.ctx, key)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	source := &blockReader{ctx: f.ctx, store: f.store, info: info}
	return &storeFile{SectionReader: io.NewSectionReader(source, 0, info.Size), info: info}, nil
}

// ReadFile implements iceio.ReadFileIO.
func (f storeFS) ReadFile(name string) ([]byte, error) {
	opened, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(opened)
	return content, pathError("read", name, errors.Join(err, opened.Close()))
}

// Remove implements iceio.IO. An absent file is no error.
func (f storeFS) Remove(name string) error {
	key, err := f.key(name)
	if err == nil {
		err = f.store.Delete(f.ctx, key)
	}
	return pathError("remove", name, err)
}

// Create implements iceio.WriteFileIO.
func (f storeFS) Create(name string) (iceio.FileWriter, error) {
	key, err := f.key(name)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	w, err := f.store.Create(f.ctx, key)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return &storeWriter{name: name, w: w}, nil
}

// WriteFile implements iceio.WriteFileIO.
func (f storeFS) WriteFile(name string, content []byte) error {
	key, err := f.key(name)
	if err == nil {
		err = f.store.Put(f.ctx, key, content)
	}
	return pathError("write", name, err)
}

// storeWriter is a file being written. A write that failed is not committed.
type storeWriter struct {
	name   string
	w      blob.Writer
	failed error
}

// Write implements io.Writer.
func (w *storeWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.failed = pathError("write", w.name, err)
	}
	return n, w.failed
}

// ReadFrom implements io.ReaderFrom.
func (w *storeWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(struct{ io.Writer }{w}, r)
	if err != nil && w.failed == nil {
		w.failed = err
	}
	return n, err
}

// Close makes the file visible and durable, or discards it after a failure.
func (w *storeWriter) Close() error {
	if w.failed != nil {
		w.w.Abort()
		return w.failed
	}
	return pathError("close", w.name, w.w.Commit())
}

// storeFile is an open file.
type storeFile struct {
	*io.SectionReader

	info blob.Info
}

// Close implements io.Closer. There is nothing to release.
func (*storeFile) Close() error { return nil }

// Stat implements fs.File.
func (f *storeFile) Stat() (fs.FileInfo, error) { return storeInfo{f.info}, nil }

// storeInfo is what a store knows of an object, as the library asks for it.
type storeInfo struct{ blob.Info }

func (i storeInfo) Name() string       { return path.Base(i.Key) }
func (i storeInfo) Size() int64        { return i.Info.Size }
func (i storeInfo) Mode() fs.FileMode  { return 0o444 }
func (i storeInfo) ModTime() time.Time { return i.Modified.Time() }
func (i storeInfo) IsDir() bool        { return false }
func (i storeInfo) Sys() any           { return nil }

// readBlockBytes is how much a small read fetches. Metadata is read in small pieces
// from one end to the other, and the end of a data file in two.
const readBlockBytes = 1 << 20

// blockReader reads an object by ranges, small ones out of the block around them.
// It is safe for concurrent use.
type blockReader struct {
	ctx   context.Context
	store blob.Store
	info  blob.Info

	mu sync.Mutex
	// block holds the object's bytes from at; both are guarded by mu.
	block []byte
	at    int64
}

// ReadAt implements io.ReaderAt.
func (r *blockReader) ReadAt(p []byte, offset int64) (int, error) {
	want := min(int64(len(p)), r.info.Size-offset)
	if want <= 0 {
		return 0, io.EOF
	}
	var read []byte
	var err error
	if want >= readBlockBytes {
		read, err = r.store.ReadRange(r.ctx, r.info.Key, offset, want, p[:0:want])
	} else {
		read, err = r.small(p[:want], offset)
	}
	switch {
	case err != nil:
		return 0, pathError("read", r.info.Key, err)
	case len(read) < len(p):
		return len(read), io.EOF
	default:
		return len(read), nil
	}
}

// small copies a range out of the block that has its start, and of the next one
// where it does not suffice.
func (r *blockReader) small(p []byte, offset int64) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 0; n < len(p); {
		at := offset + int64(n)
		if start := at - at%readBlockBytes; r.block == nil || start != r.at {
			block, err := r.store.ReadRange(r.ctx, r.info.Key, start, min(readBlockBytes, r.info.Size-start), r.block[:0])
			if err != nil {
				r.block = nil
				return nil, err
			}
			r.block, r.at = block, start
		}
		n += copy(p[n:], r.block[at-r.at:])
	}
	return p, nil
}
