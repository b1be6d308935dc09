package shard

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Limits of the fold. They are part of its rules: changing one is a new fold
// version.
const (
	// MaxPartitions is the most partitions that a stream may have.
	MaxPartitions = 4096
	// MaxOpenWriters is the most writers that may be open in a shard.
	MaxOpenWriters = 10_000
	// MaxFormerTables is how many uuids of tables that a stream was unbound from
	// are remembered; the oldest are forgotten first.
	MaxFormerTables = 32
	// MaxLogs is the most logs that the streams of a shard may have, those
	// included that were deleted without a purge.
	MaxLogs = 100_000
	// MaxTombstones is the most names of deleted streams that a shard remembers.
	// Beyond it no stream can be deleted.
	MaxTombstones = 1_000_000
	// MaxNamespaces and MaxCatalogs bound what the log meta holds.
	MaxNamespaces = 100_000
	MaxCatalogs   = 1000
	// MaxProperties is the most properties that a stream, namespace or catalog
	// may have; MaxPropertyBytes bounds a key and a value together.
	MaxProperties    = 1000
	MaxPropertyBytes = 4096
	// MaxSchemaBytes bounds a schema's definition.
	MaxSchemaBytes = 256 << 10
)

// State is one shard folded up to a revision. It is not safe for concurrent
// use; Follower guards it.
type State struct {
	cluster     base.ClusterID
	shard       base.Shard
	created     bool
	shards      int
	foldVersion uint32

	revision base.Revision
	time     base.Millis
	hash     base.Hash
	// foreign counts records that were no-ops because they are not ours.
	foreign int64

	streams map[base.StreamID]*Stream
	names   map[base.StreamName]base.StreamID
	writers map[base.WriterID]*Writer
	tokens  map[string]base.WriterID
	objects objectTable
	// dead holds the objects that no live entry references, until Reclaimed.
	dead map[string]Dead

	// tombstones hold the name of every stream that was deleted, for ever.
	tombstones map[base.StreamName]Tombstone
	// kept are streams that were deleted without a purge: their data stays.
	kept map[base.StreamID]*Stream
	// sealed holds, by namespace, the newest incarnation that takes no streams.
	sealed map[string]base.NamespaceID
	// logs counts those of streams and kept.
	logs int
	// intervals counts those of all producers' windows.
	intervals int
	// entries counts those of all logs' indexes.
	entries int
	// epoch counts the recoveries from a lost coordination store.
	epoch uint64

	// meta is filled in the log meta only.
	meta metaState
}

// Writer is an open writer.
type Writer struct {
	ID base.WriterID
	// Instance names the lease of the process that opened it.
	Instance string
	// Next is the seq that the writer must publish next.
	Next base.Seq

	token string
}

// Dead is an object that nothing live references.
type Dead struct {
	Key string
	// Since is the revision that took its last reference away.
	Since base.Revision
	Size  int64
}

// Stream is a live stream: one log per partition and the table they fill.
type Stream struct {
	ID   base.StreamID
	Name base.StreamName
	// Version counts the changes of the stream's configuration, and its binding
	// to a table, from 1.
	Version uint64
	Policy  *commitpb.TablePolicy
	Table   TableBinding
	// Former are the uuids of the tables and dead-letter tables that the stream
	// was unbound from, the newest last: it is never bound to them again.
	Former []string
	Logs   []*Log

	// Namespace is the incarnation of the namespace that it was created in, 0
	// for a stream of fold version 1.
	Namespace base.NamespaceID
	// Retention is what its logs keep; never nil.
	Retention *commitpb.Retention
	// Schema is nil when none was declared.
	Schema *commitpb.StreamSchema
	// Properties are the user's, by key, as of PropertiesSource.
	Properties       []*commitpb.Property
	PropertiesSource uint64

	producers map[string]*window
}

// Tombstone is what remains of a deleted stream.
type Tombstone struct {
	ID base.StreamID
	// Purged tells that its data was given up too.
	Purged bool
}

// TableBinding is the table that a stream's prepared ranges were written for.
type TableBinding struct {
	// UUID is empty until the first Prepared is accepted.
	UUID string
	// DeadLetterUUID is empty until a record was dead-lettered.
	DeadLetterUUID string
	// Snapshot and CommitID are those of the newest Materialized.
	Snapshot int64
	CommitID string
	// DeadLetterSnapshot and DeadLetterCommitID likewise, for the dead-letter
	// table.
	DeadLetterSnapshot int64
	DeadLetterCommitID string
}

// NewState returns the state of a shard before its first record.
func NewState(cluster base.ClusterID, shard base.Shard) *State {
	return &State{
		cluster: cluster,
		shard:   shard,
		streams: make(map[base.StreamID]*Stream),
		names:   make(map[base.StreamName]base.StreamID),
		writers: make(map[base.WriterID]*Writer),
		tokens:  make(map[string]base.WriterID),
		dead:    make(map[string]Dead),

		tombstones: make(map[base.StreamName]Tombstone),
		kept:       make(map[base.StreamID]*Stream),
		sealed:     make(map[string]base.NamespaceID),
		meta:       newMetaState(),
	}
}

// Cluster returns the id of the cluster whose records the state folds.
func (s *State) Cluster() base.ClusterID { return s.cluster }

// Shard returns which shard the state is of.
func (s *State) Shard() base.Shard { return s.shard }

// Created reports whether the log holds a ClusterCreate record.
func (s *State) Created() bool { return s.created }

// Shards returns the shard count that the cluster was created with.
func (s *State) Shards() int { return s.shards }

// FoldVersion returns the version whose kinds may be written.
func (s *State) FoldVersion() uint32 { return s.foldVersion }

// Revision returns the newest folded revision.
func (s *State) Revision() base.Revision { return s.revision }

// Time returns the append time of the newest folded record.
func (s *State) Time() base.Millis { return s.time }

// ChainHash returns the hash over the whole history.
func (s *State) ChainHash() base.Hash { return s.hash }

// Foreign returns how many records were no-ops because they are not ours.
func (s *State) Foreign() int64 { return s.foreign }

// Stream returns a live stream by its id.
func (s *State) Stream(id base.StreamID) (*Stream, bool) {
	st, ok := s.streams[id]
	return st, ok
}

// StreamByName returns a live stream by its name.
func (s *State) StreamByName(name base.StreamName) (*Stream, bool) {
	id, ok := s.names[name]
	if !ok {
		return nil, false
	}
	return s.Stream(id)
}

// Streams returns the live streams, by id.
func (s *State) Streams() []*Stream { return sortedValues(s.streams) }

// Tombstone returns what remains of a deleted stream of this name.
func (s *State) Tombstone(name base.StreamName) (Tombstone, bool) {
	t, ok := s.tombstones[name]
	return t, ok
}

// Kept returns the streams that were deleted without a purge, by id.
func (s *State) Kept() []*Stream { return sortedValues(s.kept) }

// Logs returns how many logs the streams have, those that are kept included.
func (s *State) Logs() int { return s.logs }

// IndexEntries returns how many entries the indexes of all logs have.
func (s *State) IndexEntries() int { return s.entries }

// Epoch returns how often the shard was recovered from a lost coordination store.
func (s *State) Epoch() uint64 { return s.epoch }

// Writer returns an open writer.
func (s *State) Writer(id base.WriterID) (*Writer, bool) {
	w, ok := s.writers[id]
	return w, ok
}

// Writers returns the open writers, by id.
func (s *State) Writers() []*Writer { return sortedValues(s.writers) }

// Dead returns the objects that nothing live references, by key.
func (s *State) Dead() []Dead { return sortedValues(s.dead) }

// Log returns a log of a live stream.
func (s *State) Log(id base.LogID) (*Log, bool) {
	st, ok := s.streams[id.Stream]
	if !ok || id.Partition < 0 || int(id.Partition) >= len(st.Logs) {
		return nil, false
	}
	return st.Logs[id.Partition], true
}
