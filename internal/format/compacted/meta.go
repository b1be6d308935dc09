package compacted

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/lakestream-go/lakestream/internal/base"
)

// FormatVersion is the version that this package writes. It reads this one and
// older ones.
const FormatVersion = 1

// Meta says what an object holds. It stands in the file's key-value metadata.
type Meta struct {
	Cluster base.ClusterID
	Shard   base.Shard
	Log     base.LogID
	// Range is what the object covers: one row per offset.
	Range base.OffsetRange
}

// String renders the cluster, the shard, the log and the range.
func (m Meta) String() string {
	return fmt.Sprintf("cluster %s shard %s log %s %s", m.Cluster, m.Shard, m.Log, m.Range)
}

// Keys of the file's key-value metadata.
const (
	metaFormat    = "lakestream.format"
	metaCluster   = "lakestream.cluster"
	metaShard     = "lakestream.shard"
	metaStream    = "lakestream.stream"
	metaPartition = "lakestream.partition"
	metaStart     = "lakestream.start"
	metaEnd       = "lakestream.end"
)

func (m Meta) encode() metadata.KeyValueMetadata {
	kv := metadata.NewKeyValueMetadata()
	for _, entry := range [][2]string{
		{metaFormat, strconv.Itoa(FormatVersion)},
		{metaCluster, m.Cluster.String()},
		{metaShard, m.Shard.String()},
		{metaStream, strconv.FormatUint(uint64(m.Log.Stream), 10)},
		{metaPartition, strconv.FormatInt(int64(m.Log.Partition), 10)},
		{metaStart, strconv.FormatInt(int64(m.Range.Start), 10)},
		{metaEnd, strconv.FormatInt(int64(m.Range.End), 10)},
	} {
		// Append fails only on an empty key.
		_ = kv.Append(entry[0], entry[1])
	}
	return kv
}

// decodeMeta reads what encode wrote. It looks at the format version first, so
// that a newer file is told from a broken one.
func decodeMeta(kv metadata.KeyValueMetadata) (Meta, error) {
	f := fieldReader{kv: kv}
	if version := f.int(metaFormat, 64); f.err == nil && version > FormatVersion {
		return Meta{}, fmt.Errorf("compacted object of format %d, this version reads up to %d: %w",
			version, FormatVersion, base.ErrNewerFormat)
	}
	var m Meta
	m.Cluster = parseField(&f, metaCluster, base.ParseClusterID)
	m.Shard = parseField(&f, metaShard, base.ParseShard)
	m.Log.Stream = base.StreamID(parseField(&f, metaStream, func(text string) (uint64, error) {
		return strconv.ParseUint(text, 10, 64)
	}))
	m.Log.Partition = base.Partition(f.int(metaPartition, 32)) //nolint:gosec // parsed as 32 bits
	m.Range.Start = base.Offset(f.int(metaStart, 64))
	m.Range.End = base.Offset(f.int(metaEnd, 64))
	if f.err != nil {
		return Meta{}, corruptf("file metadata: %w", f.err)
	}
	if m.Range.Start < 0 || m.Range.End < m.Range.Start {
		return Meta{}, corruptf("file metadata: range %s", m.Range)
	}
	return m, nil
}

// check refuses an object that holds something else than want.
func (m Meta) check(want Meta) error {
	switch {
	case m.Cluster != want.Cluster:
		return fmt.Errorf("compacted object of cluster %s, want %s: %w", m.Cluster, want.Cluster, base.ErrForeign)
	case m != want:
		return corruptf("object holds %s, want %s", m, want)
	default:
		return nil
	}
}

// fieldReader takes typed fields out of key-value metadata and keeps the first
// error.
type fieldReader struct {
	kv  metadata.KeyValueMetadata
	err error
}

func (f *fieldReader) int(key string, bits int) int64 {
	return parseField(f, key, func(text string) (int64, error) { return strconv.ParseInt(text, 10, bits) })
}

func parseField[T any](f *fieldReader, key string, parse func(string) (T, error)) T {
	var zero T
	if f.err != nil {
		return zero
	}
	text := f.kv.FindValue(key)
	if text == nil {
		f.err = fmt.Errorf("%s is missing", key)
		return zero
	}
	value, err := parse(*text)
	if err != nil {
		f.err = fmt.Errorf("%s: %w", key, err)
		return zero
	}
	return value
}

// corruptf makes an error that matches base.ErrCorrupt.
func corruptf(format string, args ...any) error {
	return base.WithClass(base.ErrCorrupt, fmt.Errorf("compacted object is corrupt: "+format, args...))
}
