package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

// diskRecorder notes what is synced and can make a disk fail.
type diskRecorder struct {
	root string

	mu       sync.Mutex
	synced   []string // guarded by mu: paths below root
	writeErr error    // guarded by mu: returned after half of the data
	syncErr  error    // guarded by mu: returned instead of a sync
}

func (d *diskRecorder) disk() disk {
	return disk{write: d.write, sync: d.sync}
}

func (d *diskRecorder) write(f *os.File, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writeErr != nil {
		_, err := f.Write(data[:len(data)/2])
		return errors.Join(d.writeErr, err)
	}
	return writeDurably(f, data)
}

func (d *diskRecorder) sync(f *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncErr != nil {
		return d.syncErr
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	if name, err = filepath.Rel(d.root, name); err != nil {
		return err
	}
	d.synced = append(d.synced, name)
	return syncFile(f)
}

// take returns what was synced since the last call.
func (d *diskRecorder) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	synced := d.synced
	d.synced = nil
	return synced
}

func recordedStore(t *testing.T) (*fileStore, *diskRecorder) {
	t.Helper()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no /proc to name what is synced")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	d := &diskRecorder{root: root}
	s, err := openFileStore(root, d.disk())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, d
}

func TestPutSyncsEveryFolderOnTheWay(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, s.Put(t.Context(), "wal/s00/7/a", []byte("x")))
	require.Equal(t, []string{".", "wal", "wal/s00", "wal/s00/7"}, d.take(),
		"given an empty store, each new entry is synced from the top before Put returns")
	require.NoError(t, s.Put(t.Context(), "wal/s00/7/b", []byte("x")))
	require.Equal(t, []string{"wal/s00/7"}, d.take(), "then only the folder of the new file")
	require.NoError(t, s.Put(t.Context(), "top", []byte("x")))
	require.Equal(t, []string{"."}, d.take())
}

func TestPutSyncsFoldersThatAnotherProcessJustMade(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, os.MkdirAll(filepath.Join(d.root, "wal", "s00"), 0o700))
	require.NoError(t, s.Put(t.Context(), "wal/s00/a", []byte("x")))
	require.Equal(t, []string{".", "wal", "wal/s00"}, d.take())
}

func TestCommitSyncsTheObjectBeforeItsName(t *testing.T) {
	s, d := recordedStore(t)
	w, err := s.Create(t.Context(), "compacted/a")
	require.NoError(t, err)
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	synced := d.take()
	require.Contains(t, synced[0], tempRoot, "the bytes first")
	require.Equal(t, []string{".", "compacted"}, synced[1:])
}

func TestDeleteSyncsTheFolder(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, s.Put(t.Context(), "wal/a", []byte("x")))
	d.take()
	require.NoError(t, s.Delete(t.Context(), "wal/a"))
	require.Equal(t, []string{"wal"}, d.take())
}

func TestFullDiskLeavesNoPartOfAnObject(t *testing.T) {
	s, d := recordedStore(t)
	d.writeErr = &fs.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}
	err := s.Put(t.Context(), "wal/a", make([]byte, 100_000))
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.NotErrorIs(t, err, base.ErrUnknown, "nothing happened, definitely")
	require.ErrorContains(t, err, "free space")
	_, err = s.Stat(t.Context(), "wal/a")
	require.ErrorIs(t, err, base.ErrNotFound)

	d.writeErr = nil
	require.NoError(t, s.Put(t.Context(), "wal/a", []byte("x")), "once space is freed, work goes on")
}

func TestFailedFolderSyncIsAnUnknownOutcome(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, s.Put(t.Context(), "wal/warm", nil))
	w, err := s.Create(t.Context(), "wal/c")
	require.NoError(t, err)
	d.syncErr = syscall.EIO
	require.ErrorIs(t, s.Put(t.Context(), "wal/a", []byte("x")), base.ErrUnknown)
	require.ErrorIs(t, s.Delete(t.Context(), "wal/warm"), base.ErrUnknown)

	err = w.Commit()
	require.ErrorIs(t, err, base.ErrUnavailable, "the bytes were not durable, so the object got no name")
	require.NotErrorIs(t, err, base.ErrUnknown)
	_, err = s.Stat(t.Context(), "wal/c")
	require.ErrorIs(t, err, base.ErrNotFound)
}

func TestFolderThatCannotBeMadeDurableFailsThePutBeforeItsEffect(t *testing.T) {
	s, d := recordedStore(t)
	d.syncErr = syscall.EIO
	err := s.Put(t.Context(), "wal/a", []byte("x"))
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.ErrorContains(t, err, "check the disk")
	d.syncErr = nil
	require.NoError(t, s.Put(t.Context(), "wal/a", []byte("x")))
	require.Equal(t, []string{".", "wal"}, d.take(), "the next Put tries the same syncs again")
}

func TestPutAfterTheFolderWasRemovedMakesItAgain(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, s.Put(t.Context(), "wal/a", nil))
	require.NoError(t, os.RemoveAll(filepath.Join(d.root, "wal")))
	require.NoError(t, s.Put(t.Context(), "wal/b", nil))
	require.FileExists(t, filepath.Join(d.root, "wal", "b"))
}

func TestPutAfterTheStoreWasRemovedIsUnavailable(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, os.RemoveAll(d.root))
	err := s.Put(t.Context(), "wal/a", nil)
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.ErrorContains(t, err, "was removed")
}

func TestKeyThatIsAFolderOfAnotherIsInvalid(t *testing.T) {
	s, _ := recordedStore(t)
	require.NoError(t, s.Put(t.Context(), "a/b", nil))
	require.ErrorIs(t, s.Put(t.Context(), "a", nil), base.ErrInvalid)
	require.ErrorIs(t, s.Put(t.Context(), "a/b/c", nil), base.ErrInvalid)
}

func TestLinksOutOfTheStoreAreNotFollowed(t *testing.T) {
	s, d := recordedStore(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(d.root, "out")))
	_, err := s.ReadRange(t.Context(), "out/secret", 0, 1, nil)
	require.Error(t, err)
	require.Error(t, s.Put(t.Context(), "out/new", nil))
	require.NoFileExists(t, filepath.Join(outside, "new"))
	found, err := s.List(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestListPassesOverWhatIsNotAnObject(t *testing.T) {
	s, d := recordedStore(t)
	require.NoError(t, s.Put(t.Context(), "a/b", nil))
	for _, foreign := range []string{".DS_Store", "a/.hidden", "a/b:c"} {
		require.NoError(t, os.WriteFile(filepath.Join(d.root, foreign), nil, 0o600))
	}
	found, err := s.List(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "a/b", found[0].Key)
}

func TestOperatorsLearnWhatToDo(t *testing.T) {
	tests := []struct {
		errno syscall.Errno
		class error
		says  string
	}{
		{syscall.ENOSPC, base.ErrUnavailable, "free space"},
		{syscall.EDQUOT, base.ErrUnavailable, "quota"},
		{syscall.EROFS, base.ErrUnavailable, "mount it writable"},
		{syscall.EACCES, base.ErrUnavailable, "read and write access"},
		{syscall.EMFILE, base.ErrUnavailable, "ulimit"},
		{syscall.EIO, base.ErrUnavailable, "kernel log"},
		{syscall.ENOMEM, base.ErrUnavailable, ""},
		{syscall.ENAMETOOLONG, base.ErrInvalid, ""},
		{syscall.ENOENT, base.ErrNotFound, ""},
		{syscall.EEXIST, base.ErrExists, ""},
	}
	for _, test := range tests {
		err := fileError("putting object a", &fs.PathError{Op: "open", Path: "a", Err: test.errno})
		require.ErrorIs(t, err, test.class, test.errno)
		require.ErrorIs(t, err, test.errno)
		require.ErrorContains(t, err, test.says)
		require.ErrorContains(t, err, "putting object a: ")
	}
}

func TestOpenFoldersStayBounded(t *testing.T) {
	s, _ := recordedStore(t)
	for i := range 2 * maxOpenDirs {
		require.NoError(t, s.Put(t.Context(), fmt.Sprintf("d%d/a", i), nil))
		require.LessOrEqual(t, len(s.dirs.open), maxOpenDirs)
	}
	require.NotContains(t, s.dirs.open, "d0", "the least recently used is closed")
	require.Contains(t, s.dirs.open, fmt.Sprintf("d%d", 2*maxOpenDirs-1))
}

func TestFoldersInUseSurviveEvictionAndRemoval(t *testing.T) {
	s, d := recordedStore(t)
	used, err := s.dirs.acquire("used")
	require.NoError(t, err)
	for i := range 2 * maxOpenDirs {
		require.NoError(t, s.Put(t.Context(), fmt.Sprintf("d%d/a", i), nil))
	}
	same, err := s.dirs.acquire("used")
	require.NoError(t, err)
	require.Same(t, used, same)
	s.dirs.forget(used)
	s.dirs.release(same)
	require.NoError(t, d.sync(used.file), "still open for its last user")
	s.dirs.release(used)
	require.ErrorIs(t, used.file.Close(), os.ErrClosed, "closed by its last user")
}

func TestManyGoroutinesShareFolders(t *testing.T) {
	s, d := recordedStore(t)
	var puts sync.WaitGroup
	for i := range 32 {
		puts.Go(func() {
			for n := range 10 {
				if err := s.Put(t.Context(), fmt.Sprintf("d%d/%d-%d", (i+n)%7, i, n), nil); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	puts.Wait()
	found, err := s.List(t.Context(), "", "", 1000)
	require.NoError(t, err)
	require.Len(t, found, 320)
	require.True(t, slices.Contains(d.take(), "d6"))
}
