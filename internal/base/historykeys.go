package base

import (
	"fmt"
	"strconv"
	"strings"
)

// Prefixes of the objects from which a commit log can be rebuilt.
const (
	CheckpointPrefix = "checkpoint/"
	SegmentPrefix    = "commits/"
)

// revisionDigits is how wide a revision stands in a key, so that a list of keys
// comes in the order of revisions.
const revisionDigits = 20

// CheckpointKey returns the key of the checkpoint that an instance wrote of a
// shard's state at a revision: checkpoint/s00/<revision>-<instance>.
func CheckpointKey(shard Shard, revision Revision, instance string) string {
	return fmt.Sprintf("%s%s/%0*d-%s", CheckpointPrefix, shard, revisionDigits, uint64(revision), instance)
}

// SegmentKey returns the key of the archived records [from, to] of a shard's commit
// log: commits/s00/<from>-<to>.
func SegmentKey(shard Shard, from, to Revision) string {
	return fmt.Sprintf("%s%s/%0*d-%0*d", SegmentPrefix, shard, revisionDigits, uint64(from), revisionDigits, uint64(to))
}

// RevisionOfCheckpointKey returns the shard and the revision that CheckpointKey
// wrote into a key. Any other key is ErrInvalid: what this software did not name it
// must not delete.
func RevisionOfCheckpointKey(key string) (Shard, Revision, error) {
	shard, first, instance, err := splitHistoryKey(key, CheckpointPrefix)
	if err != nil || instance == "" {
		return 0, 0, fmt.Errorf("object key %q: no checkpoint: %w", key, ErrInvalid)
	}
	return shard, first, nil
}

// RangeOfSegmentKey returns the shard and the first and last revision that
// SegmentKey wrote into a key. Any other key is ErrInvalid.
func RangeOfSegmentKey(key string) (shard Shard, from, to Revision, err error) {
	shard, from, rest, err := splitHistoryKey(key, SegmentPrefix)
	if err == nil {
		to, err = parseRevision(rest)
	}
	if err != nil || from == 0 || to < from {
		return 0, 0, 0, fmt.Errorf("object key %q: no commit log segment: %w", key, ErrInvalid)
	}
	return shard, from, to, nil
}

// splitHistoryKey splits <prefix><shard>/<revision>-<rest>.
func splitHistoryKey(key, prefix string) (Shard, Revision, string, error) {
	name, ok := strings.CutPrefix(key, prefix)
	shardName, name, slash := strings.Cut(name, "/")
	number, rest, dash := strings.Cut(name, "-")
	if !ok || !slash || !dash || strings.Contains(rest, "/") {
		return 0, 0, "", ErrInvalid
	}
	shard, err := ParseShard(shardName)
	if err != nil {
		return 0, 0, "", err
	}
	revision, err := parseRevision(number)
	return shard, revision, rest, err
}

func parseRevision(text string) (Revision, error) {
	if len(text) != revisionDigits {
		return 0, ErrInvalid
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, ErrInvalid
	}
	return Revision(n), nil
}
