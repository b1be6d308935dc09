// Package catalog creates, adopts and describes streams, and resolves how a
// stream becomes a table.
//
// A stream lives in the shard that its name hashes to; every operation is one
// commit record there, so that all instances agree on its outcome. To add a
// policy field, add it to commit.proto, TablePolicy, merge and resolve.
package catalog
