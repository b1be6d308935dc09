package natskv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lakestream-go/lakestream/internal/base"
)

// IsDataDir reports whether dir is a data directory in which an embedded server
// has run before. It changes nothing: what only looks asks before OpenEmbedded,
// which makes any directory into one.
func IsDataDir(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, natsDirName))
	return err == nil && info.IsDir()
}

// CheckDir returns base.ErrInvalid for a directory that OpenEmbedded would refuse
// however often it is tried. It changes nothing.
func CheckDir(dir string) error {
	if err := usableDir(dir); err != nil {
		return base.WithClass(base.ErrInvalid, openError(dir, err))
	}
	return nil
}

// usableDir says why a directory, or one that would be created there, cannot serve.
func usableDir(dir string) error {
	if dir == "" {
		return errors.New("no directory given")
	}
	ancestor := existingAncestor(dir)
	if kind := networkFileSystem(ancestor); kind != "" {
		return fmt.Errorf("it lies on a network file system (%s), where locks cannot be relied on; "+
			"use a local disk, or name an external NATS server", kind)
	}
	switch info, err := os.Stat(ancestor); {
	case err != nil:
		return err
	case info.IsDir():
	case ancestor == filepath.Clean(dir):
		return errors.New("it is a file, not a directory")
	default:
		return fmt.Errorf("%s is a file, not a directory", ancestor)
	}
	if err := writable(ancestor); err != nil {
		return fmt.Errorf("writing in %s: %w", ancestor, err)
	}
	return nil
}

// existingAncestor returns the nearest path at or above dir that exists.
func existingAncestor(dir string) string {
	for path := filepath.Clean(dir); ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
	}
}
