// Package engine is a leaderless stream store on object storage in which every
// stream is an Apache Iceberg table.
//
// An Engine is one instance of a cluster: it appends records to WAL objects,
// reads any stream from any offset, and in the background rewrites the log into
// compacted objects and table files. Any number of instances work on one cluster;
// what they agree on is decided by a commit log in NATS JetStream. Open it alone
// with the zero Options and everything lives in one directory.
//
// An append that returned without an error is durable and has its offsets. Errors
// belong to one of three classes, told apart with errors.Is: ErrUnknown (it may
// have happened), ErrFenced (someone else owns it), and everything else, which is
// definite. All types are safe for concurrent use unless they say otherwise.
package engine
