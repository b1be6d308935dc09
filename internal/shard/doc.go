// Package shard is the deterministic state machine of one commit shard and the
// live view that feeds it.
//
// State folds commit records one by one: Apply(revision, time, bytes) changes the
// state and returns an outcome, with no I/O, no clock and no randomness, so that
// every instance that folds the same history holds the same state. What the fold
// rejects is rejected everywhere alike. Follower adds what a process needs around
// a state: the check that histories agree, subscriptions to outcomes and
// wake-ups. View feeds a follower from a coordination store and never trusts its
// silence.
//
// To add a record kind: add it to package commitrecord, a case to State.dispatch
// and a fold method in the file of its subject; give each refusal a Reason; add
// what it changes to State.Hash.
package shard
