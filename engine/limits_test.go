package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/cursor"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"

	"github.com/lakestream-go/lakestream/engine"
)

// The page on limits is a promise: what it says is what the code enforces.
func TestTheLimitsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	require.NoError(t, err)
	rows := make(map[string]string)
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	defaults := engine.Options{}.WithDefaults()
	for row, limits := range map[string][]int{
		"namespace or stream name":                                        {base.MaxNameBytes},
		"cursor, group or member name":                                    {cursor.MaxNameBytes},
		"append (one batch of a caller)":                                  {wal.MaxAppendBytes, wal.MaxBlocks},
		"record, `wal.max_record_bytes`":                                  {int(defaults.WAL.MaxRecordBytes >> 20)},
		"WAL object, `wal.max_object_bytes`":                              {int(defaults.WAL.MaxObjectBytes >> 20)},
		"commit record":                                                   {commitrecord.MaxBytes},
		"properties of a stream, namespace or catalog":                    {shard.MaxProperties, shard.MaxPropertyBytes},
		"schema definition":                                               {shard.MaxSchemaBytes},
		"shards of a cluster, `shards`":                                   {base.MaxShards},
		"partitions of a stream":                                          {shard.MaxPartitions},
		"logs of a shard, those kept after a delete included":             {shard.MaxLogs},
		"names of deleted streams of a shard":                             {shard.MaxTombstones},
		"namespaces":                                                      {shard.MaxNamespaces},
		"table catalogs":                                                  {shard.MaxCatalogs},
		"open writers of a shard":                                         {shard.MaxOpenWriters},
		"appends that are not acknowledged yet, `wal.max_buffered_bytes`": {int(defaults.WAL.MaxBufferedBytes >> 20)},
		"index entries of a shard":                                        {defaults.MaxIndexEntries},
		"read cache, `cache_bytes`":                                       {int(defaults.CacheBytes >> 20)},
		"one compaction pass, `compaction.max_memory_bytes`":              {int(defaults.Compaction.MaxMemoryBytes >> 20)},
		"checkpoint of a shard":                                           {checkpoint.MaxBytes},
		"sequences remembered of a producer":                              {shard.ProducerWindow},
		"producers of a stream":                                           {shard.MaxProducers, shard.MaxProducerBytes},
		"intervals of all producers of a shard":                           {shard.MaxIntervals},
		"ranges that a cursor has acknowledged out of order":              {cursor.MaxAcks},
		"consumer groups":                                                 {cursor.MaxGroups},
		"members of a group":                                              {cursor.MaxMembers},
		"partitions of a group":                                           {cursor.MaxGroupPartitions},
		"columns of an inferred schema":                                   {schema.DefaultMaxColumns},
		"depth of an inferred schema":                                     {schema.DefaultMaxDepth},
		"depth of a JSON document":                                        {document.MaxDepth},
		"column name":                                                     {schema.MaxNameBytes},
		"files of one commit":                                             {commit.DefaultMaxFiles},
	} {
		require.Contains(t, rows, row)
		for _, limit := range limits {
			require.Contains(t, strings.Fields(strings.ReplaceAll(rows[row], ",", " ")), fmt.Sprint(limit), "%s: %s", row, rows[row])
		}
		delete(rows, row)
	}
	for _, elsewhere := range []string{"what", "-", "", "streams of one interpolated output, `max_streams`"} {
		delete(rows, elsewhere)
	}
	require.Empty(t, rows, "rows of the page that nothing is compared with")
}
