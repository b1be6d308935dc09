package config

import (
	"fmt"
	"strings"
)

// Benthos checks that a field exists and has children or not, never that a scalar
// means anything. The rules below do, so that `lint` finds what a run would refuse.

// Patterns of values, as lint rules and parsers know them.
const (
	sizePattern     = `^[0-9]+(\\.[0-9]+)? *([kKmMgGtT][iI]?)?[bB]?$`
	durationPattern = `^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	amountPattern   = `^(unlimited|[0-9]+(\\.[0-9]+)? *([kKmMgGtT][iI]?)?[bB]?)$`
	spanPattern     = `^(unlimited|([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`
	streamPattern   = `^([A-Za-z0-9._-]{1,128}/)?[A-Za-z0-9._-]{1,128}$`
	namePattern     = `^[A-Za-z0-9._-]{1,128}$`
	selectorPattern = `^([A-Za-z0-9._-]{1,128}/)?[A-Za-z0-9._-]{1,128}(:[0-9]+(-[0-9]+)?(:[0-9]+)?)?$`
	positionPattern = `^(earliest|latest|committed|[0-9]+|@-?[0-9].*)$`
	groupPattern    = `^[A-Za-z0-9._-]{1,96}$`
)

// What values are wanted, as lint rules and errors say.
const (
	wantSize     = "want a size like 8MiB, 64KiB or 1GB"
	wantDuration = "want a duration like 250ms, 10s or 1h"
	wantAmount   = "want a size like 10GiB, or unlimited"
	wantSpan     = "want a duration like 168h, or unlimited"
	wantStream   = "want namespace/name or name, each of 1 to 128 of the characters A-Z a-z 0-9 . _ -"
	wantGroup    = "want 1 to 96 of the characters A-Z a-z 0-9 . _ -"
	wantName     = "want 1 to 128 of the characters A-Z a-z 0-9 . _ -"
	wantSelector = "want namespace/name, namespace/name:0-3 for partitions, or namespace/name:0:100 for a partition and its start offset"
	wantPosition = "want earliest, latest, committed, an offset, @ and a time (RFC 3339 or milliseconds), or @-1h for a time ago"
)

// lintPattern complains about text that does not match. The rule of a list is run
// on the list too, which it lets pass; empty text stands for unset.
func lintPattern(pattern, want string) string {
	return fmt.Sprintf(`root = if this.type() != "array" && this.string() != "" && !this.string().re_match("%s") { [ "%s" ] }`, pattern, want)
}

// lintInterpolated is lintPattern for a field that may hold interpolations.
func lintInterpolated(pattern, want string) string {
	return fmt.Sprintf(`root = if !this.string().contains("${!") && !this.string().re_match("%s") { [ "%s" ] }`, pattern, want)
}

// lintBetween complains about a number outside a range.
func lintBetween(low, high int) string {
	return fmt.Sprintf(`root = if this.number().catch(%d) < %d || this.number().catch(%d) > %d { [ "want %d to %d" ] }`, low-1, low, low-1, high, low, high)
}

// lintOneOf complains about list items that are not among the allowed.
func lintOneOf(allowed ...string) string {
	return fmt.Sprintf(`root = if this.type() != "array" && !["%s"].contains(this.string()) { [ "want one of %s" ] }`,
		strings.Join(allowed, `", "`), strings.Join(allowed, ", "))
}

// lintChoice complains about text that is none of the allowed, in any case of
// letters.
func lintChoice(allowed ...string) string {
	return fmt.Sprintf(`root = if !["%s"].contains(this.string().lowercase()) { [ "want one of %s" ] }`,
		strings.ToLower(strings.Join(allowed, `", "`)), strings.Join(allowed, ", "))
}

// lintInput complains about streams that are none, where they are no regular
// expressions, and about a start that only a group has.
const lintInput = `root = if !this.regexp_streams.or(false) && this.streams.or([]).any(s -> !s.string().re_match("` + selectorPattern + `")) {
  [ "streams: ` + wantSelector + `" ]
} else if this.start_offset.or("") == "committed" && this.consumer_group.or("") == "" {
  [ "start_offset: ` + wantCommitted + `" ]
}`

const wantCommitted = "committed needs a consumer_group"

// lintBatching complains about a batch that only its size ends: the last, partial
// one would never be written, and the pipeline would never end.
const lintBatching = `root = if (this.count.or(0) > 1 || this.byte_size.or(0) > 0 || this.check.or("") != "") && this.period.or("") == "" {
  [ "` + wantPeriod + `" ]
}`

const wantPeriod = "want a period beside count, byte_size or check: without one a last, partial batch is never written"
