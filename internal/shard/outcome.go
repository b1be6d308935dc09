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
	// Stream is the id of the created, existing or updated stream.
	Stream base.StreamID
	Logs   []LogOutcome
}

// OK reports whether the record as a whole was accepted.
func (o *Outcome) OK() bool { return o.Rejected == Accepted }
