package blob

import "os"

// syncFile syncs a file to the disk. Windows offers no sync of a directory: its
// entries are as durable as the file system's journal makes them.
func syncFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	return f.Sync()
}
