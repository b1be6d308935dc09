package blob

import (
	"fmt"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Bounds of a key, in bytes: what every supported store and file system takes.
const (
	MaxKeyBytes     = 1024
	MaxKeyPartBytes = 255
)

// checkKey checks a key against the grammar that Store documents. The grammar
// keeps a key inside its store: no part can be "..", none is hidden. What some
// provider could only store under another name, as Azure a percent sign or a dot
// before a slash, has no place in it: a listing would be in another order, and other
// readers of the bucket would not find the object.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKeyBytes {
		return fmt.Errorf("object key %q: %w: want 1 to %d bytes", key, base.ErrInvalid, MaxKeyBytes)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" {
			return fmt.Errorf("object key %q: %w: a slash stands between two parts only", key, base.ErrInvalid)
		}
		if err := checkKeyPart(part); err != nil {
			return fmt.Errorf("object key %q: %w", key, err)
		}
	}
	return nil
}

// checkPrefix checks the start of a key: every part but the last is whole.
func checkPrefix(prefix string) error {
	switch {
	case prefix == "":
		return nil
	case strings.HasSuffix(prefix, "."): // the part may go on
		return checkKey(prefix + "0")
	default:
		return checkKey(strings.TrimSuffix(prefix, "/"))
	}
}

func checkKeyPart(part string) error {
	if len(part) > MaxKeyPartBytes {
		return fmt.Errorf("%w: a part is longer than %d bytes", base.ErrInvalid, MaxKeyPartBytes)
	}
	if part[0] == '.' || part[len(part)-1] == '.' {
		return fmt.Errorf("%w: part %q starts or ends with a dot", base.ErrInvalid, part)
	}
	for i := range len(part) {
		if !isKeyByte(part[i]) {
			return fmt.Errorf("%w: part %q: want the characters A-Z a-z 0-9 . _ = @ + - ~ , and space",
				base.ErrInvalid, part)
		}
	}
	return nil
}

func isKeyByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	default:
		return strings.IndexByte("._=@+-~, ", c) >= 0
	}
}

// checkRange checks the arguments of a ranged read.
func checkRange(key string, offset, length int64) error {
	if offset < 0 || length < 0 {
		return fmt.Errorf("object %s: %w: offset %d and length %d must not be negative",
			key, base.ErrInvalid, offset, length)
	}
	return checkKey(key)
}

// checkList checks the arguments of a listing.
func checkList(prefix string, limit int) error {
	if limit < 1 {
		return fmt.Errorf("listing objects under %q: %w: limit %d is below 1", prefix, base.ErrInvalid, limit)
	}
	return checkPrefix(prefix)
}
