package natskv

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Names inside a data directory.
const (
	lockFileName = "LOCK"
	portFileName = "port.json"
	natsDirName  = "nats"
)

// portFile tells other processes of the same user how to reach the server that
// the holder of the data directory runs. It is written whole or not at all.
type portFile struct {
	// URL is the server's address on the loopback interface.
	URL string `json:"url"`
	// Token is drawn anew at each start of the server; without it the server
	// lets nobody in, so nobody lands by mistake on a server that was given
	// the same port.
	Token string `json:"token"`
	// PID is the holder's process, for people.
	PID int `json:"pid"`
}

func readPortFile(dir string) (portFile, error) {
	var p portFile
	data, err := os.ReadFile(filepath.Join(dir, portFileName)) //nolint:gosec // a fixed name in the data directory
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("reading %s: %w", portFileName, err)
	}
	if p.URL == "" || p.Token == "" {
		return p, fmt.Errorf("reading %s: address or token is missing", portFileName)
	}
	return p, nil
}

// writePortFile replaces the port file, readable by its owner only, and makes
// it durable.
func writePortFile(dir string, p portFile) (err error) {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", portFileName, err)
	}
	f, err := os.CreateTemp(dir, portFileName+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("creating %s: %w", portFileName, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("writing %s: %w", portFileName, err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, portFileName)); err != nil {
		return fmt.Errorf("renaming %s: %w", portFileName, err)
	}
	return syncDir(dir)
}

func removePortFile(dir string) error {
	err := os.Remove(filepath.Join(dir, portFileName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", portFileName, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the data directory
	if err != nil {
		return fmt.Errorf("opening data directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("syncing data directory: %w", err)
	}
	return nil
}
