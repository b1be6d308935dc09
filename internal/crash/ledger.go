package crash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lakestream-go/lakestream/engine"
)

// Somewhere is the offset of a record that was acknowledged because the stream had it
// already: where is not told.
const Somewhere engine.Offset = -1

// Ack is one acknowledged record and where it was said to be.
type Ack struct {
	Attempt   string
	Stream    string
	Partition engine.Partition
	Offset    engine.Offset
}

// ledger is a file of acknowledgements, one a line. It is safe for concurrent use.
type ledger struct {
	mu sync.Mutex
	// file is guarded by mu.
	file *os.File
}

// openLedger continues the ledger in a file, or begins one that is durable.
func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // named by the test
	if err != nil {
		return nil, fmt.Errorf("opening ledger: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("opening ledger: %w", err)
	}
	defer func() { _ = dir.Close() }() // only read
	if err := dir.Sync(); err != nil {
		return nil, fmt.Errorf("opening ledger: %w", err)
	}
	return &ledger{file: file}, nil
}

// add makes acknowledgements durable: they are kept whatever happens afterwards.
func (l *ledger) add(acks []Ack) error {
	var text bytes.Buffer
	for _, a := range acks {
		fmt.Fprintf(&text, "%s %s %d %d\n", a.Attempt, a.Stream, a.Partition, a.Offset)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(text.Bytes()); err != nil {
		return fmt.Errorf("writing ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("writing ledger: %w", err)
	}
	return nil
}

func (l *ledger) close() error { return l.file.Close() }

// ReadLedger returns what a ledger holds. A last line without its end was being
// written when its process died, and counts for nothing; no ledger is an empty one.
func ReadLedger(path string) ([]Ack, error) {
	text, err := os.ReadFile(path) //nolint:gosec // named by the test
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ledger: %w", err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	var acks []Ack
	for line := range strings.Lines(string(whole)) {
		var a Ack
		if _, err := fmt.Sscanf(line, "%s %s %d %d\n", &a.Attempt, &a.Stream, &a.Partition, &a.Offset); err != nil {
			return nil, fmt.Errorf("reading ledger line %q: %w", line, err)
		}
		acks = append(acks, a)
	}
	return acks, nil
}
