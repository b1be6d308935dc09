package blob

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncedWrites is the open flag that makes every write return only when its
// bytes, and the size of the file, are durable: one system call less than a sync
// afterwards.
const syncedWrites = unix.O_DSYNC

// writeDurably writes data to f, a new file opened with syncedWrites. Aligned data
// bypasses the page cache where the file system allows it, which saves copying it.
func writeDurably(f *os.File, data []byte) error {
	if len(data) == 0 {
		return f.Sync() // no write, no sync
	}
	// Asked of the open file and not in the open call: some file systems refuse
	// that only after they created the file.
	direct := isAligned(data) && setFlags(f, unix.O_DIRECT) == nil
	n, err := f.Write(data)
	if direct && errors.Is(err, unix.EINVAL) { // refused at the write
		if err := setFlags(f, 0); err != nil {
			return err
		}
		_, err = f.Write(data[n:])
	}
	return err
}

// setFlags sets the status flags of an open file that the kernel lets change.
func setFlags(f *os.File, flags int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	err = conn.Control(func(fd uintptr) {
		_, setErr = unix.FcntlInt(fd, unix.F_SETFL, flags)
	})
	return errors.Join(err, setErr)
}
