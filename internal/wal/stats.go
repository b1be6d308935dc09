package wal

import (
	"sync/atomic"
	"time"
)

// Stats is a snapshot of what a Writer did since it was made.
type Stats struct {
	// Appends counts the appends that were resolved, Records what was appended.
	Appends, Records int64
	// Objects and ObjectBytes count the objects that were put.
	Objects, ObjectBytes int64
	// Flushes counts sealed objects by reason.
	Flushes map[string]uint64
	// PutTime is the sum of the times that successful uploads took, with
	// their retries; CommitTime that of putting commit records.
	PutTime, CommitTime time.Duration
	// PutErrors and CommitErrors count failed attempts, which are repeated.
	PutErrors, CommitErrors int64
	// Writers counts the writers that were opened: above 1 means fences.
	Writers int64
	// BufferedBytes is what unresolved appends hold now.
	BufferedBytes int64
	// Waiting is how many appends are unresolved now.
	Waiting int
	// InFlight is how many sealed objects are unresolved now.
	InFlight int
	// Blocked says what everything waits for, and the newest failure, when
	// nothing has moved for a while; empty while things move.
	Blocked string
}

type counters struct {
	appends, records        atomic.Int64
	objects, objectBytes    atomic.Int64
	putTime, commitTime     atomic.Int64 // nanoseconds
	putErrors, commitErrors atomic.Int64
	writers, buffered       atomic.Int64
	blocked                 atomic.Bool
}

var sealNames = [sealReasons]string{
	SealedBySize: "size", SealedEagerly: "eager", SealedIdle: "idle", SealedByLinger: "linger", SealedByFlush: "flush",
}

// String returns the reason as metrics name it.
func (r SealReason) String() string { return sealNames[r] }

// Stats returns a snapshot. Its numbers may be of slightly different moments.
func (w *Writer) Stats() Stats {
	s := Stats{
		Appends: w.count.appends.Load(), Records: w.count.records.Load(),
		Objects: w.count.objects.Load(), ObjectBytes: w.count.objectBytes.Load(),
		Flushes: make(map[string]uint64, sealReasons),
		PutTime: time.Duration(w.count.putTime.Load()), CommitTime: time.Duration(w.count.commitTime.Load()),
		PutErrors: w.count.putErrors.Load(), CommitErrors: w.count.commitErrors.Load(),
		Writers: w.count.writers.Load(), BufferedBytes: w.count.buffered.Load(),
	}
	if _, what := w.progress(); what != "" && w.count.blocked.Load() {
		s.Blocked = what + ": " + w.reason()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.InFlight, s.Waiting = w.core.InFlight(), w.core.callers.waiting
	for reason := range sealReasons {
		s.Flushes[reason.String()] = w.core.seals[reason]
	}
	return s
}
