// Package compaction rewrites the log: one pass reads a run of WAL objects once,
// writes a compacted object per log and, from the same bytes, the files of each
// log's table.
//
// Plan decides what a pass does, purely, over a shard's state. Pass and CatchUp
// are step machines: each Step has at most a few effects, all through interfaces,
// and may be the last before a crash. Driver repeats them under a lease, which
// only avoids double work: what the fold rejects was done by someone else.
package compaction
