// Package crash kills engines and proves that nothing was lost or doubled.
//
// A Spec describes one life of a child process: it opens an engine on a data
// directory, appends records from several goroutines at once, and writes each
// acknowledgement to a ledger that is synced before the next append. The child
// ends itself by SIGKILL when it passes a chosen crash point for the n-th time, or
// the parent kills it at a moment of its own; or else it drains and exits. Check
// then compares ledgers, logs and tables, after any number of lives in one
// directory:
//
//   - each acknowledged record is in its log at exactly its offset;
//   - each attempt to append is in one log at most once, and nothing else is;
//   - offsets are dense, and every object that the index names can be read;
//   - the stream's table holds each record once, under its offset, as a row or, when it
//     cannot be one, as a dead letter;
//   - no shard has stopped and nothing is reported as wrong.
//
// A child whose crash point was not reached has drained and exits with 0, which a
// test takes for a failure: a point that no run reaches proves nothing.
//
// To add a crash point, call the engine's CrashPoint with its name and list the
// name in Points; a child that passes an unlisted name fails.
package crash
