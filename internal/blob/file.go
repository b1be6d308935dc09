package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Modes of what the store creates: readable by the owner's group.
const (
	fileMode = 0o640
	dirMode  = 0o750
)

// fileStore is a Store over a folder. Each key is a file of that path below it;
// hidden names belong to the store itself.
//
// Durability: a call that returns nil has synced the file's bytes and every
// directory entry from the store's folder down to it, whoever created them.
//
// Put writes straight to the final name, because renaming buys nothing for an
// object that is invisible until a commit record names it. So a crash inside Put
// may leave a partial file under a key that no record will ever name.
type fileStore struct {
	path   string
	root   *os.Root // every path is resolved below it, so no link leads out
	dirs   *dirCache
	temps  *tempFolder
	disk   disk
	closed atomic.Bool
}

// disk holds the two effects on which durability rests, so that a test can watch
// them and make them fail.
type disk struct {
	// write makes data the content of the new file f and syncs it.
	write func(f *os.File, data []byte) error
	// sync syncs a file or a directory.
	sync func(f *os.File) error
}

// openFile opens the store in the folder at path, which it creates durably
// unless opts.MustExist.
func openFile(path string, opts Options) (Store, error) {
	if path == "" {
		return nil, fmt.Errorf("storage url: %w: the path is empty", base.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolving path of store %s: %w", path, err)
	}
	if !opts.MustExist {
		if err := makeRoot(path, syncFile); err != nil {
			return nil, fileError("creating store "+path, err)
		}
	}
	s, err := openFileStore(path, disk{write: writeDurably, sync: syncFile})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openFileStore(path string, d disk) (*fileStore, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fileError("opening store "+path, err)
	}
	return &fileStore{
		path: path, root: root, disk: d,
		dirs:  newDirCache(root, d.sync),
		temps: &tempFolder{root: root},
	}, nil
}

// makeRoot creates the folder at path and its missing ancestors and syncs each
// folder that got a new entry.
func makeRoot(path string, sync func(*os.File) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeRoot(parent, sync); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	dir, err := os.Open(parent) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	return errors.Join(sync(dir), dir.Close())
}

// Put implements Store. Data as AlignedBuffer makes it is written directly; other
// data goes through the page cache.
func (s *fileStore) Put(ctx context.Context, key string, data []byte) error {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return err
	}
	doing := "putting object " + key
	dir, f, err := s.createFinal(key)
	if err != nil {
		return s.createError(doing, key, err)
	}
	defer s.dirs.release(dir)
	if err := errors.Join(s.disk.write(f, data), f.Close()); err != nil {
		if removeErr := dir.root.Remove(path.Base(key)); removeErr != nil {
			return classify(doing, base.ErrUnknown, errors.Join(err, removeErr))
		}
		return fileError(doing, err)
	}
	if err := s.disk.sync(dir.file); err != nil {
		return classify(doing, base.ErrUnknown, err)
	}
	return nil
}

// createFinal creates the file of a new key, with its folder open for a sync.
func (s *fileStore) createFinal(key string) (*dirHandle, *os.File, error) {
	const retries = 1 // a cached folder that was removed behind our back is made again
	for attempt := 0; ; attempt++ {
		dir, err := s.dirs.acquire(path.Dir(key))
		if err != nil {
			return nil, nil, err
		}
		f, err := dir.root.OpenFile(path.Base(key), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syncedWrites, fileMode)
		if err == nil {
			return dir, f, nil
		}
		if errors.Is(err, os.ErrNotExist) {
			s.dirs.forget(dir)
		}
		s.dirs.release(dir)
		if attempt == retries || !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
	}
}

// createError classes the failure to create the file of key. On a file system,
// unlike on a bucket, a key cannot be the folder of another one.
func (s *fileStore) createError(doing, key string, err error) error {
	info, statErr := s.root.Lstat(key)
	isFolder := statErr == nil && info.IsDir()
	info, statErr = s.root.Lstat(path.Dir(key))
	isBelowObject := errors.Is(statErr, syscall.ENOTDIR) || (statErr == nil && info.Mode().IsRegular())
	if isFolder || isBelowObject {
		return classify(doing, base.ErrInvalid, fmt.Errorf("a key cannot be the folder of another key: %w", err))
	}
	if isAbsent(err) { // every folder was just made, so the store's own is gone
		return classify(doing, base.ErrUnavailable, fmt.Errorf("the folder of the store was removed: %w", err))
	}
	return fileError(doing, err)
}

// ReadRange implements Store.
func (s *fileStore) ReadRange(
	ctx context.Context, key string, offset, length int64, dst []byte,
) ([]byte, error) {
	if err := s.begin(ctx, key, checkRange(key, offset, length)); err != nil {
		return nil, err
	}
	doing := "reading object " + key
	f, err := s.root.Open(key)
	if err != nil {
		return nil, fileError(doing, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, fileError(doing, err)
	}
	if !info.Mode().IsRegular() {
		return nil, classify(doing, base.ErrNotFound, errNotObject)
	}
	if length > info.Size()-offset { // before memory is taken for a wrong length
		return nil, shortObject(key, offset, length, info.Size())
	}
	dst = slices.Grow(dst[:0], int(length))[:length]
	if _, err := io.ReadFull(io.NewSectionReader(f, offset, length), dst); err != nil {
		return nil, fileError(doing, err)
	}
	return dst, nil
}

// Stat implements Store.
func (s *fileStore) Stat(ctx context.Context, key string) (Info, error) {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return Info{}, err
	}
	doing := "reading attributes of object " + key
	info, err := s.root.Lstat(key)
	if err != nil {
		return Info{}, fileError(doing, err)
	}
	if !info.Mode().IsRegular() {
		return Info{}, classify(doing, base.ErrNotFound, errNotObject)
	}
	return Info{Key: key, Size: info.Size(), Modified: base.MillisOf(info.ModTime())}, nil
}

// Delete implements Store. Folders stay: a writer may be about to use them.
func (s *fileStore) Delete(ctx context.Context, key string) error {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return err
	}
	info, err := s.root.Lstat(key)
	if isAbsent(err) || (err == nil && info.IsDir()) {
		return nil
	}
	doing := "deleting object " + key
	if err := s.root.Remove(key); err != nil && !isAbsent(err) {
		return fileError(doing, err)
	}
	if err := s.dirs.syncPath(path.Dir(key)); err != nil {
		return classify(doing, base.ErrUnknown, err)
	}
	return nil
}

// String implements Store.
func (s *fileStore) String() string { return "file://" + filepath.ToSlash(s.path) }

// Close implements Store.
func (s *fileStore) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := errors.Join(s.temps.close(), s.dirs.close(), s.root.Close()); err != nil {
		return fmt.Errorf("closing store %s: %w", s, err)
	}
	return nil
}

// begin refuses a call on a closed store, with a cancelled context or with
// arguments that were found invalid. File calls cannot be interrupted later.
func (s *fileStore) begin(ctx context.Context, key string, invalid error) error {
	if s.closed.Load() {
		return fmt.Errorf("store %s: object %s: %w", s, key, base.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store %s: object %s: %w", s, key, err)
	}
	return invalid
}
