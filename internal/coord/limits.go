package coord

import (
	"fmt"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// MaxRecordBytes is the most that one record or document may hold. It leaves
// room for headers in the 1 MiB that NATS servers accept by default.
const MaxRecordBytes = 1<<20 - 4<<10

// maxKeyBytes bounds a document key and a log name.
const maxKeyBytes = 255

// maxFirst leaves room for as many revisions again, in any integer on the way.
const maxFirst base.Revision = 1 << 53

// CheckData refuses a record or document over the limit, which is at most
// MaxRecordBytes. The error is an ErrInvalid.
func CheckData(data []byte, limit int) error {
	if len(data) > limit {
		return fmt.Errorf("%w: record of %d bytes: the limit is %d", base.ErrInvalid, len(data), limit)
	}
	return nil
}

// CheckKey checks a document key: dot-separated, non-empty tokens of A-Z a-z
// 0-9 _ and -, at most 255 bytes. The error is an ErrInvalid.
func CheckKey(key string) error {
	if len(key) > maxKeyBytes {
		return fmt.Errorf("%w: key of %d bytes: the limit is %d", base.ErrInvalid, len(key), maxKeyBytes)
	}
	for token := range strings.SplitSeq(key, ".") {
		if !isToken(token) {
			return fmt.Errorf("%w: key %q: want dot-separated tokens of A-Z a-z 0-9 _ -", base.ErrInvalid, key)
		}
	}
	return nil
}

// CheckLogName checks the name of a commit log: one token of a key. The error
// is an ErrInvalid.
func CheckLogName(name string) error {
	if len(name) > maxKeyBytes || !isToken(name) {
		return fmt.Errorf("%w: log name %q: want 1 to %d of A-Z a-z 0-9 _ -", base.ErrInvalid, name, maxKeyBytes)
	}
	return nil
}

// CheckFirst checks the revision from which a log is to start: 1 to 1<<53, far
// beyond what a log can reach. The error is an ErrInvalid.
func CheckFirst(first base.Revision) error {
	if first < 1 || first > maxFirst {
		return fmt.Errorf("%w: first revision %d: want 1 to %d", base.ErrInvalid, first, maxFirst)
	}
	return nil
}

// CheckTTL checks a time to live: 0 for none, or whole seconds, the unit in
// which servers count it. The error is an ErrInvalid.
func CheckTTL(ttl time.Duration) error {
	if ttl < 0 || ttl%time.Second != 0 {
		return fmt.Errorf("%w: time to live %s: want 0 or whole seconds", base.ErrInvalid, ttl)
	}
	return nil
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}
