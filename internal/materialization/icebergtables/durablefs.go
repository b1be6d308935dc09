package icebergtables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"
)

// Modes of what is created. Table files are for other engines to read too.
const (
	privateDirectory fs.FileMode = 0o700
	privateFile      fs.FileMode = 0o600
	sharedDirectory  fs.FileMode = 0o755
	sharedFile       fs.FileMode = 0o644
)

// registerDurableFiles makes the library write local files through durableFS,
// in the whole process. Its registry has no other scope.
var registerDurableFiles = sync.OnceFunc(func() {
	for _, scheme := range []string{"file", ""} {
		iceio.Unregister(scheme)
		iceio.Register(scheme, func(context.Context, *url.URL, map[string]string) (iceio.IO, error) {
			return durableFS{}, nil
		})
	}
})

// durableFS is the local file system with writes that survive a power failure:
// when a file's Close returns nil, its bytes and every directory entry that
// leads to it are on disk. A file is written in place under its final name; it
// may be torn until then, but no catalog names it before.
type durableFS struct {
	iceio.LocalFS
}

// Create starts a new file, with its directories. A file that exists is left as
// it was: metadata and data files are never changed.
func (durableFS) Create(name string) (iceio.FileWriter, error) {
	path, err := localPath(name)
	if err != nil {
		return nil, err
	}
	if err := makeDirectories(filepath.Dir(path), sharedDirectory); err != nil {
		return nil, err
	}
	created, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, sharedFile) //nolint:gosec // table files are for other engines to read
	if err != nil {
		return nil, err
	}
	return &durableFile{File: created}, nil
}

// WriteFile writes a whole new file.
func (d durableFS) WriteFile(name string, content []byte) error {
	created, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = created.Write(content)
	return errors.Join(err, created.Close())
}

// durableFile is a file whose Close makes it durable.
type durableFile struct {
	*os.File
}

// ReadFrom hides that of os.File, whose copies between files some file systems
// complete later.
func (f *durableFile) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{f.File}, r)
}

// Close syncs the file and its directory entry.
func (f *durableFile) Close() error {
	err := f.Sync()
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(f.Name()))
	}
	return err
}

// makeDirectories makes a directory and its missing ancestors, each synced into
// its parent.
func makeDirectories(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return fmt.Errorf("making directory %s: %w", path, fs.ErrNotExist)
	}
	if err := makeDirectories(parent, mode); err != nil {
		return err
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDirectory(parent)
}

func syncDirectory(path string) error {
	directory, err := os.Open(path) //nolint:gosec // a directory that the operator configured
	if err != nil {
		return err
	}
	err = directory.Sync()
	if closeErr := directory.Close(); err == nil {
		err = closeErr
	}
	return err
}

// localPath returns the path that a file:// URL or a plain path names.
func localPath(name string) (string, error) {
	if !strings.HasPrefix(name, "file:") {
		return name, nil
	}
	parsed, err := url.Parse(name)
	if err != nil {
		return "", err
	}
	if parsed.Host != "" && parsed.Host != "localhost" {
		return "", fmt.Errorf("location %q names another host: %w", name, fs.ErrInvalid)
	}
	return filepath.FromSlash(parsed.Path), nil
}
