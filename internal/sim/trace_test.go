package sim

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
)

// tailLines is how much of a trace a failure shows.
const tailLines = 60

// trace is what a run did. Two runs of one seed have equal sums.
type trace struct {
	sum  hash.Hash
	tail []string
}

func newTrace() *trace { return &trace{sum: sha256.New()} }

func (t *trace) add(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	_, _ = t.sum.Write([]byte(line + "\n"))
	if len(t.tail) == 2*tailLines {
		t.tail = append(t.tail[:0], t.tail[tailLines:]...)
	}
	t.tail = append(t.tail, line)
}

func (t *trace) hash() string { return fmt.Sprintf("%x", t.sum.Sum(nil)) }

// String returns the last lines.
func (t *trace) String() string {
	return strings.Join(t.tail[max(0, len(t.tail)-tailLines):], "\n")
}
