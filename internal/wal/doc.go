// Package wal is the append path of one shard: it groups the appends of many
// callers and logs into WAL objects, uploads them in parallel and commits them
// strictly in sequence.
//
// An append travels so: it waits for room in the buffer, in the order of arrival;
// its records are encoded into runs, outside any lock; it joins the open object;
// the object is sealed by size, when the store is idle, or when it has lingered;
// it is built, compressed and put; its commit record is put once this view has
// applied the one before; and when the view shows the outcome, the append
// resolves to its offsets or to its own error. So a resolved append is durable:
// object, record and offsets.
//
// Core decides all of it and does none of it: events in, actions out, no
// goroutine, no clock, no I/O, so that a simulator can step it. Writer drives a
// Core with goroutines, a blob.Store and a shard.View.
//
// A writer is an identity that the commit log knows: the revision of its
// WriterOpen record. When it is fenced, everything that the log has not accepted
// moves to a new writer, under new keys; what was put under the old one can never
// be committed, so nothing is appended twice.
//
// To add a reason to flush, extend Core.decide; to add a step with an outside
// effect, add an ActionKind, the event that reports its end, and a crash point.
package wal
