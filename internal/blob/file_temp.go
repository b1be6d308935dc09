package blob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Names inside the hidden folder of unfinished writes.
const (
	tempRoot = ".tmp"
	lockName = "LOCK"
)

// lockRetry is the wait between two tries for the lock that is held while a
// process sets its folder up, which takes less than that.
const lockRetry = 5 * time.Millisecond

// tempFolder holds the files that Create writes until Commit links them to their
// keys. Every open store has a folder of its own in .tmp, made at the first
// Create, with a lock in it: a folder whose lock is free was left by a process
// that died, and whoever comes next removes it.
type tempFolder struct {
	root *os.Root

	mu   sync.Mutex
	dir  string       // guarded by mu: below root, "" before the first file
	lock *flock.Flock // guarded by mu: held while dir is in use
	next uint64       // guarded by mu: names the next file
}

// create makes a new file and returns it with its path below the root.
func (t *tempFolder) create(ctx context.Context) (*os.File, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" {
		if err := t.setUp(ctx); err != nil {
			return nil, "", fmt.Errorf("setting up folder for unfinished writes: %w", err)
		}
	}
	t.next++
	name := path.Join(t.dir, strconv.FormatUint(t.next, 10))
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	return f, name, err
}

// setUp removes what dead processes left and makes this store's folder, under a
// lock, so that nobody takes a folder whose lock is not held yet for a dead one's.
func (t *tempFolder) setUp(ctx context.Context) (err error) {
	if err := t.root.Mkdir(tempRoot, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	all := t.lockIn(tempRoot)
	if _, err := all.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("locking %s: %w", all.Path(), err)
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	if err := t.sweep(); err != nil {
		return fmt.Errorf("removing unfinished writes of ended processes: %w", err)
	}
	return t.claim()
}

// sweep removes the folders whose lock nobody holds.
func (t *tempFolder) sweep() error {
	dir, err := t.root.Open(tempRoot)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		left := path.Join(tempRoot, entry.Name())
		lock := t.lockIn(left)
		free, err := lock.TryLock()
		if err := errors.Join(err, lock.Close()); err != nil {
			return err
		}
		if !free {
			continue
		}
		if err := t.root.RemoveAll(left); err != nil {
			return err
		}
	}
	return nil
}

// claim makes a folder that no other store has and locks it. The process id in
// its name is for people; containers that share a disk may share ids.
func (t *tempFolder) claim() error {
	for n := 0; ; n++ {
		dir := path.Join(tempRoot, fmt.Sprintf("%d-%d", os.Getpid(), n))
		err := t.root.Mkdir(dir, dirMode)
		if errors.Is(err, os.ErrExist) {
			continue // in use, else it was swept: the loop ends after as many as there are
		}
		if err != nil {
			return err
		}
		lock := t.lockIn(dir)
		if held, err := lock.TryLock(); err != nil || !held {
			return errors.Join(fmt.Errorf("locking %s failed", lock.Path()), err, lock.Close())
		}
		t.dir, t.lock = dir, lock
		return nil
	}
}

func (t *tempFolder) lockIn(dir string) *flock.Flock {
	return flock.New(filepath.Join(t.root.Name(), filepath.FromSlash(dir), lockName))
}

// close removes the folder with all that is unfinished in it.
func (t *tempFolder) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" {
		return nil
	}
	// Unlocked first, because some systems keep a locked file from being removed.
	// Should the process end in between, the next one sweeps.
	err := errors.Join(t.lock.Close(), t.root.RemoveAll(t.dir))
	t.dir, t.lock = "", nil
	return err
}
