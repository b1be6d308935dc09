package cursor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// MaxNameBytes is the longest the name of a cursor, of a group or of a member may
// be: escaped, it fits into the key of a document.
const MaxNameBytes = 96

// First tokens of the keys of documents.
const (
	cursorKind = "cursor" // cursor.<stream>.<partition>.<name>
	commitKind = "commit" // commit.<stream>.<partition>.<group>
	groupKind  = "group"  // group.<group>
	memberKind = "member" // member.<group>.<session>
)

// CheckName checks the name of a cursor, a group or a member: 1 to MaxNameBytes of
// the characters A-Z a-z 0-9 . _ -. The error is an ErrInvalid.
func CheckName(name string) error {
	if len(name) > MaxNameBytes {
		return fmt.Errorf("%w: name of %d bytes: the limit is %d", base.ErrInvalid, len(name), MaxNameBytes)
	}
	return base.CheckName(name)
}

// token turns a name into one token of a key, and different names into different
// tokens: a dot would end the token, and the underscore escapes it.
func token(name string) string {
	return strings.NewReplacer("_", "__", ".", "_d").Replace(name)
}

// nameOf undoes token. What token did not make is refused.
func nameOf(token string) (string, bool) {
	var name strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] != '_' {
			name.WriteByte(token[i])
			continue
		}
		if i++; i == len(token) {
			return "", false
		}
		switch token[i] {
		case '_':
			name.WriteByte('_')
		case 'd':
			name.WriteByte('.')
		default:
			return "", false
		}
	}
	return name.String(), name.Len() > 0
}

// Stream is one incarnation of a stream, and its name for people.
type Stream struct {
	Shard base.Shard
	ID    base.StreamID
	Name  base.StreamName
}

// token renders the incarnation as one token: s00-12.
func (s Stream) token() string { return s.Shard.String() + "-" + strconv.FormatUint(uint64(s.ID), 10) }

// same reports whether two are the same incarnation.
func (s Stream) same(o Stream) bool { return s.Shard == o.Shard && s.ID == o.ID }

// Place is one partition of a stream.
type Place struct {
	Stream    Stream
	Partition base.Partition
}

// String renders the place for people: namespace/name:3.
func (p Place) String() string {
	return p.Stream.Name.String() + ":" + strconv.Itoa(int(p.Partition))
}

// key returns the key of a cursor at the place.
func (p Place) key(kind, name string) string {
	return p.Stream.prefix(kind) + strconv.Itoa(int(p.Partition)) + "." + token(name)
}

// prefix starts the keys of a stream's cursors of one kind.
func (s Stream) prefix(kind string) string { return kind + "." + s.token() + "." }

// split returns what follows the prefix of a stream in the key of a cursor.
func (s Stream) split(kind, key string) (base.Partition, string, bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(key, s.prefix(kind)), ".")
	if !ok {
		return 0, "", false
	}
	n, err := strconv.ParseInt(number, 10, 32)
	name, isName := nameOf(rest)
	return base.Partition(n), name, err == nil && n >= 0 && isName
}

func groupKey(group string) string { return groupKind + "." + token(group) }

func memberPrefix(group string) string { return memberKind + "." + token(group) + "." }
