package natskv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of the server's files that describe a stream, and where they are.
const (
	streamFiles        = "jetstream/*/streams/*"
	streamConfigFile   = "meta.inf"
	streamChecksumFile = "meta.sum"
)

// finishCreations removes the configuration of each stream that has no checksum for
// it: the process was killed between writing the two. The server would leave such a
// stream out whenever it starts, and never write the missing file; without either it
// writes both when the stream is created again. Records, if any, stay.
func finishCreations(store string) error {
	streams, err := filepath.Glob(filepath.Join(store, filepath.FromSlash(streamFiles)))
	if err != nil {
		return fmt.Errorf("looking for half-created streams: %w", err)
	}
	for _, dir := range streams {
		_, err := os.Stat(filepath.Join(dir, streamChecksumFile))
		if !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, streamConfigFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a half-created stream: %w", err)
		}
	}
	return nil
}
