package shard

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// Reason says why the fold refused a record or a part of one. The empty Reason
// means accepted. Reasons are part of the chain hash: never reword one.
type Reason string

// Why the fold refuses.
const (
	Accepted         Reason = ""
	NotOurs          Reason = "not a record of this cluster"
	NoCluster        Reason = "the cluster was not created"
	ClusterExists    Reason = "the cluster exists already"
	Malformed        Reason = "the record contradicts itself"
	NotNextVersion   Reason = "not the next fold version"
	StreamExists     Reason = "the stream exists already"
	NoStream         Reason = "no such stream"
	NoPartition      Reason = "no such partition"
	VersionChanged   Reason = "the stream was changed since it was read"
	AlreadyPublished Reason = "published already"
	WriterClosed     Reason = "the writer is not open"
	LimitReached     Reason = "a limit is reached"
	NotAligned       Reason = "the range does not match whole live entries"
	TooNew           Reason = "an entry is newer than the read revision"
	NotAtMark        Reason = "the range does not start at the prepared mark"
	BeyondHead       Reason = "the range ends beyond the head"
	TableChanged     Reason = "the stream is bound to another table"
	NotPrepared      Reason = "the range was not prepared"
	NotDead          Reason = "the object is not dead"

	NotYetAllowed   Reason = "the cluster's fold version does not allow the record yet"
	WrongShard      Reason = "the record belongs into another log"
	StreamDeleted   Reason = "the stream was deleted, its name is never used again"
	NamespaceSealed Reason = "the namespace is being dropped"
	NamespaceExists Reason = "the namespace exists already"
	NoNamespace     Reason = "no such namespace"
	NotEmpty        Reason = "the namespace holds streams"
	CatalogExists   Reason = "the table catalog exists already"
	NoCatalog       Reason = "no such table catalog"
	StaleSource     Reason = "the properties are of a later source revision already"
	LogFenced       Reason = "the log is fenced"
	TrimmedAlready  Reason = "the log is trimmed that far already"
	NotTrimmed      Reason = "the range was not trimmed"
	Duplicate       Reason = "the producer's sequences are in the stream already"
	Overlaps        Reason = "some of the producer's sequences are in the stream already"
	BelowWindow     Reason = "the producer's sequences lie below its window"
	NotNextEpoch    Reason = "not the next epoch"
)

// LogOutcome is what became of one log's part of a record.
type LogOutcome struct {
	Log base.LogID
	// Base is the first offset that an accepted append was given.
	Base     base.Offset
	Records  int
	Rejected Reason
}

// Outcome is what became of one record: the same in every instance.
type Outcome struct {
	Revision base.Revision
	// Time is the append time of the commit: never decreasing.
	Time    base.Millis
	Kind    commitrecord.Kind
	Request commitrecord.RequestID
	// Writer and Seq identify records that introduce objects.
	Writer base.WriterID
	Seq    base.Seq
	// Rejected is why the whole record was refused; Logs tells per log.
	Rejected Reason
	// Stream is the id of the created, existing, updated or deleted stream.
	Stream base.StreamID
	// Namespace is the id of the created, existing or updated namespace.
	Namespace base.NamespaceID
	Logs      []LogOutcome
	// Recalled marks an outcome that was not seen: the view went on from a
	// checkpoint. Logs then names only those that still show it.
	Recalled bool
}

// OK reports whether the record as a whole was accepted.
func (o *Outcome) OK() bool { return o.Rejected == Accepted }
