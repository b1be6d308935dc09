// Package log is the read path: from an offset of a log to its records, wherever
// compaction has put them.
//
// A Fetcher, one per process, reads objects through a cache that is bounded in
// bytes; readers that want the same bytes share one request. A Reader walks one
// log: it looks up the index entry that covers an offset, decodes raw blocks or
// compacted objects alike, and crosses from one to the other without a gap or a
// duplicate. NewSource presents a range of a log to whoever rewrites or verifies
// it.
//
// Guarantees: records come in the order of their offsets, each exactly once, and
// only with matching checksums; they own their bytes, which no later read
// touches; a tail that waits makes no request. Compaction may replace an object
// and have it deleted under a reader, which then looks into the index once more.
//
// To add a kind of storage, add a cursor and a case to Reader.openEntry.
package log
