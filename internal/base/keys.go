package base

import (
	"fmt"
	"strconv"
	"strings"
)

// Prefixes of the object keys that the engine writes (interface: objects).
const (
	WALPrefix       = "wal/"
	CompactedPrefix = "compacted/"
)

// WALKey returns the key of a writer's object: wal/s00/<writer>/<seq 20 digits>.wal.
func WALKey(shard Shard, writer WriterID, seq Seq) string {
	return fmt.Sprintf("%s%s/%d/%020d.wal", WALPrefix, shard, writer, seq)
}

// CompactedKey returns the key of the n-th attempt of a writer at a compacted
// object of one range of one log.
func CompactedKey(shard Shard, writer WriterID, log LogID, r OffsetRange, n Seq) string {
	return fmt.Sprintf("%s%s/%d/%s-%d-%d-%d.parquet", CompactedPrefix, shard, writer, log, r.Start, r.End, n)
}

// WriterOfKey returns the shard and the writer that an object key names, for
// keys under wal/ and compacted/ as WALKey and CompactedKey write them. Any other
// key is ErrInvalid: what this software did not name it must not delete.
func WriterOfKey(key string) (Shard, WriterID, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || (parts[0]+"/" != WALPrefix && parts[0]+"/" != CompactedPrefix) {
		return 0, 0, fmt.Errorf("object key %q: not a WAL or compacted object: %w", key, ErrInvalid)
	}
	shard, err := ParseShard(parts[1])
	if err != nil {
		return 0, 0, fmt.Errorf("object key %q: %w", key, err)
	}
	writer, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || writer == 0 || strconv.FormatUint(writer, 10) != parts[2] {
		return 0, 0, fmt.Errorf("object key %q: no writer: %w", key, ErrInvalid)
	}
	return shard, WriterID(writer), nil
}
