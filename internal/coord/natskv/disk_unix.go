//go:build unix

package natskv

import "golang.org/x/sys/unix"

// freeBytes returns how much an unprivileged process may still write at path.
func freeBytes(path string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil //nolint:gosec // block sizes are positive; the types differ by system
}

// writable returns why nothing can be created in a directory, or nil.
func writable(dir string) error {
	return unix.Access(dir, unix.W_OK|unix.X_OK)
}
