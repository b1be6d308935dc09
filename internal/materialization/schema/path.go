package schema

import "strings"

// MaxNameBytes is the longest name of a field that may become a column; a value
// under a longer one overflows.
const MaxNameBytes = 255

// AppendStep appends one step of a column path to dst: the name, with ~0 for a
// tilde and ~1 for a dot. Steps are joined by dots; an array element's step is
// its index.
func AppendStep(dst, name []byte) []byte {
	for _, c := range name {
		switch c {
		case '~':
			dst = append(dst, '~', '0')
		case '.':
			dst = append(dst, '~', '1')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

var unescape = strings.NewReplacer("~1", ".", "~0", "~")

// NameOf returns the name that a step of a column path, or a column, stands for.
func NameOf(step string) string {
	if !strings.Contains(step, "~") {
		return step
	}
	return unescape.Replace(step)
}

// Fold returns what two names that differ only in case have in common.
func Fold(name string) string { return strings.ToLower(name) }

// canName reports whether a field of this name can be a column at a depth. An
// empty name is refused because many readers cannot address it; the names of
// system columns belong to the engine.
func canName(name []byte, depth int) bool {
	if len(name) == 0 || len(name) > MaxNameBytes {
		return false
	}
	return depth > 1 || name[0] != '_' || !isReserved(Fold(string(name)))
}
