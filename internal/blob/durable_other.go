//go:build !linux

package blob

import (
	"errors"
	"os"
)

// syncedWrites is no flag: what other systems offer does not reach the disk's own
// cache, where a sync does.
const syncedWrites = 0

// writeDurably writes data to f, a new file, and syncs it.
func writeDurably(f *os.File, data []byte) error {
	_, err := f.Write(data)
	return errors.Join(err, f.Sync())
}
