// Package history keeps what a commit log was, beyond the log itself: checkpoints
// of the folded state, an archive of the records, and the way back from both when
// the log is lost.
//
// A Checkpointer folds the newest checkpoint and the log after it once more, and
// only when that gives the state of the live view does a pointer document name the
// new checkpoint. What lies before the checkpoint that the pointer names second is
// then purged from the log. An Archiver copies the log's records to segments every
// few seconds. Both run under a lease that only avoids double work: pointers move
// forward only, by compare-and-set, and segments of the same records are the same
// bytes.
//
// A Loader gives views their checkpoint. Rebuild folds checkpoint and archive
// without any log, and Recover makes the logs anew from that.
package history
