//go:build !windows

package blob

import "os"

// syncFile syncs a file or a directory to the disk.
func syncFile(f *os.File) error { return f.Sync() }
