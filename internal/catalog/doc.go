// Package catalog creates, changes, describes and drops the streams, namespaces and
// table catalogs of a cluster, and resolves what streams inherit.
//
// A stream lives in the shard that its name hashes to, what belongs to no stream in
// the log meta. Every operation is one commit record there, so that all instances
// agree on its outcome; only dropping a namespace takes several, of which the last
// decides. Operations are refused by the fold with a reason, which becomes one of
// the errors of this package.
//
// A setting of a stream, where it is unset that of its namespace, then that of the
// cluster, then a default, holds: Resolve and ResolveRetention are pure. To add a
// field, add it to commit.proto, to TablePolicy or Retention, and to their Over,
// encode and decode.
package catalog
