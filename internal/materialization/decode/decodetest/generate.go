package decodetest

import (
	"strings"

	"pgregory.net/rapid"
)

// names collide in every way that matters: case, dots, tildes, system columns.
var names = []string{
	`a`, `A`, `b`, `B`, `c`, `id`, `ID`, `Id`, `a.b`, `a~b`, `~1`, `value`, `element`, `list`, `key_value`, ``,
	`__offset`, `__Overflow`, `é`, `É`, `\u0061`, `\n`, `\"`, `0`, `1`,
}

var scalars = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `7`, `1.5`, `-0.0`, `0.1`, `1.50`, `1e3`, `1e22`, `1e400`,
	`9007199254740992`, `9007199254740993`, `1152921504606846976`, `9223372036854775807`, `9223372036854775808`,
	`3.14159265358979323846`, `5e-324`, `""`, `"x"`, `"1"`, `"2026-11-01T00:00:00Z"`, `"\ud83d\ude00"`, `"\ud83d"`,
	`"\u0000"`, `"tab\t\"quoted\""`, `"é"`,
}

// Payload generates JSON payloads, most of them objects, that disagree about
// types, names and depth.
func Payload() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		if rapid.IntRange(0, 9).Draw(t, "shape") == 0 {
			return []byte(text(t, 4))
		}
		return []byte(object(t, 4))
	})
}

// Payloads generates up to most payloads.
func Payloads(most int) *rapid.Generator[[][]byte] { return rapid.SliceOfN(Payload(), 0, most) }

func text(t *rapid.T, depth int) string {
	choice := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case depth > 0 && choice == 0:
		elements := rapid.IntRange(0, 3).Draw(t, "elements")
		parts := make([]string, elements)
		for i := range parts {
			parts[i] = text(t, depth-1)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case depth > 0 && choice <= 2:
		return object(t, depth-1)
	default:
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	}
}

func object(t *rapid.T, depth int) string {
	members := rapid.IntRange(0, 5).Draw(t, "members")
	parts := make([]string, members)
	for i := range parts {
		parts[i] = `"` + rapid.SampledFrom(names).Draw(t, "name") + `": ` + text(t, depth)
	}
	return "{" + strings.Join(parts, ",") + "}"
}
