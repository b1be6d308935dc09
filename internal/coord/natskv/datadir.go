package natskv

import (
	"os"
	"path/filepath"
)

// IsDataDir reports whether dir is a data directory in which an embedded server
// has run before. It changes nothing: what only looks asks before OpenEmbedded,
// which makes any directory into one.
func IsDataDir(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, natsDirName))
	return err == nil && info.IsDir()
}
