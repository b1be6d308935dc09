package catalog

import "github.com/lakestream-go/lakestream/internal/shard"

// TableOf returns the table that a stream has, from the folded log meta alone: for
// those who look at a cluster that is not running.
func TableOf(meta *shard.State, st *shard.Stream) Table { return inheritedOf(meta).Table(st) }
