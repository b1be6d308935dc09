package base

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"
)

// DefaultNamespace is the namespace of a stream named without one.
const DefaultNamespace = "default"

// MaxNameBytes is the longest a namespace or a stream name may be.
const MaxNameBytes = 128

// StreamName is the full name of a stream: a namespace and a name in it.
type StreamName struct {
	Namespace, Name string
}

// String renders namespace/name, which ParseStreamName reads back.
func (n StreamName) String() string { return n.Namespace + "/" + n.Name }

// Compare orders names by namespace, then by name.
func (n StreamName) Compare(o StreamName) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.Name, o.Name))
}

// ParseStreamName reads namespace/name, or name alone, which is in the default
// namespace. Each part is 1 to 128 of the characters A-Z a-z 0-9 . _ - and is
// neither "." nor "..".
func ParseStreamName(text string) (StreamName, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		namespace, name = DefaultNamespace, text
	}
	if err := CheckName(namespace); err != nil {
		return StreamName{}, fmt.Errorf("stream %q: namespace: %w", text, err)
	}
	if err := CheckName(name); err != nil {
		return StreamName{}, fmt.Errorf("stream %q: name: %w", text, err)
	}
	return StreamName{Namespace: namespace, Name: name}, nil
}

// CheckName checks one part of a name against the grammar that ParseStreamName
// documents. Its error says what is allowed.
func CheckName(part string) error {
	const allowed = "want 1 to 128 of the characters A-Z a-z 0-9 . _ -"
	if part == "" || len(part) > MaxNameBytes || part == "." || part == ".." {
		return fmt.Errorf("%w: %q: %s", ErrInvalid, part, allowed)
	}
	for i := range len(part) {
		c := part[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-':
		default:
			return fmt.Errorf("%w: %q: %s", ErrInvalid, part, allowed)
		}
	}
	return nil
}

// ShardOf returns the shard in which a stream lives: the FNV-1a hash of its full
// name modulo the shard count, which is 1 to MaxShards and fixed when the cluster
// is created. It is part of the format: another hash would lose every stream.
func ShardOf(name StreamName, shards int) Shard {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name.String()))
	return Shard(h.Sum32() % uint32(shards)) //nolint:gosec // the count is at most 64
}
