package engine

import (
	"context"
	"errors"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Status is what an engine knows of its cluster at one moment, for people and for
// monitoring. Its JSON is stable: fields are added, never renamed.
type Status struct {
	Cluster      string    `json:"cluster"`
	Coordination string    `json:"coordination"`
	Storage      string    `json:"storage"`
	Catalog      string    `json:"catalog"`
	Warehouse    string    `json:"warehouse"`
	Time         time.Time `json:"time"`
	// Problems are what someone should look at; none means healthy.
	Problems []Problem `json:"problems"`
	// Instances are the ids of the processes that live, which Members describe.
	Instances   []string       `json:"instances"`
	Members     []MemberStatus `json:"members"`
	FoldVersion FoldStatus     `json:"fold"`
	Shards      []ShardStatus  `json:"shards"`
	Streams     []StreamStatus `json:"streams"`
	// Groups are the consumer groups.
	Groups []GroupStatus `json:"groups"`
	// Written counts what this engine appended since it was opened.
	Written Written `json:"written"`
	// Requests counts what this engine asked of the object store since it was
	// opened.
	Requests StoreRequests `json:"requests"`
}

// Problem is something that is wrong, and what to do next.
type Problem struct {
	What       string `json:"what"`
	Reason     string `json:"reason"`
	NextAction string `json:"next_action"`
}

// Written counts appends of one engine.
type Written struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	Objects int64 `json:"objects"`
}

// StoreRequests counts calls of the object store and their bytes.
type StoreRequests = blob.Stats

// ShardStatus is the state of one shard as this engine's view shows it.
type ShardStatus struct {
	Shard    string `json:"shard"`
	Revision uint64 `json:"revision"`
	// Objects are those that live index entries reference, Dead those that
	// nothing does.
	Objects int `json:"objects"`
	Dead    int `json:"dead"`
	// ObjectBytes and DeadBytes are their sizes.
	ObjectBytes int64 `json:"object_bytes"`
	DeadBytes   int64 `json:"dead_bytes"`
	// PutsPerSecond is the rate of the last minute at which all instances put
	// WAL and compacted objects.
	PutsPerSecond float64 `json:"puts_per_second"`
	Writers       int     `json:"writers"`
	// Foreign counts records in the commit log that are not this cluster's.
	Foreign     int64  `json:"foreign_records"`
	FoldVersion uint32 `json:"fold_version"`
	// Stopped says why the shard does not go on; empty while it does.
	Stopped string `json:"stopped,omitempty"`
	// History is what the shard could be rebuilt from; nil when that cannot be
	// told.
	History *HistoryStatus `json:"history,omitempty"`
}

// StreamStatus is the state of one stream.
type StreamStatus struct {
	Name       string       `json:"name"`
	Shard      string       `json:"shard"`
	Partitions int          `json:"partitions"`
	Records    int64        `json:"records"`
	Bytes      int64        `json:"bytes"`
	Logs       []LogStatus  `json:"logs"`
	Table      *TableStatus `json:"table,omitempty"`
	// Lifecycle is ACTIVE, or SEALED when every partition is fenced.
	Lifecycle string `json:"lifecycle"`
	// Retention is what the logs keep, with what the stream inherits.
	Retention  RetentionStatus   `json:"retention"`
	Properties map[string]string `json:"properties,omitempty"`
	// Written says that this engine appended to the stream since it was opened.
	Written bool `json:"written"`
}

// LogStatus is the state of one partition. Offsets below RawFrom are compacted,
// those below Materialized are in the table.
type LogStatus struct {
	Partition    Partition `json:"partition"`
	Start        Offset    `json:"start"`
	Head         Offset    `json:"head"`
	RawFrom      Offset    `json:"raw_from"`
	Prepared     Offset    `json:"prepared"`
	Materialized Offset    `json:"materialized"`
	Entries      int       `json:"entries"`
	// Floor is the first offset that is still stored: what lies between it and Start
	// was trimmed softly.
	Floor Offset `json:"floor"`
	// Fence is why the partition takes no appends; empty when it does.
	Fence string `json:"fence,omitempty"`
}

// RetentionStatus is what each log of a stream keeps; -1 is without a bound.
type RetentionStatus struct {
	TimeMS          int64 `json:"time_ms"`
	Bytes           int64 `json:"bytes"`
	WaitForTablesMS int64 `json:"wait_for_tables_ms"`
	WaitForGroups   bool  `json:"wait_for_groups"`
}

func retentionStatus(r catalog.LogRetention) RetentionStatus {
	status := RetentionStatus{TimeMS: Unlimited, Bytes: r.Bytes, WaitForTablesMS: r.WaitForTables.Milliseconds(), WaitForGroups: r.WaitForGroups}
	if r.Time >= 0 {
		status.TimeMS = r.Time.Milliseconds()
	}
	return status
}

// String says what is kept, for people.
func (r RetentionStatus) String() string {
	age := (time.Duration(r.TimeMS) * time.Millisecond).String()
	newest := "the newest " + humanize.IBytes(uint64(max(0, r.Bytes))) + " of a partition"
	switch {
	case r.TimeMS >= 0 && r.Bytes >= 0:
		return age + ", or " + newest + " where that is less"
	case r.TimeMS >= 0:
		return age
	case r.Bytes >= 0:
		return newest
	default:
		return "everything"
	}
}

// TableStatus is the state of a stream's table.
type TableStatus struct {
	Name string `json:"name"`
	// State is PENDING, RUNNING, DEGRADED or SUSPENDED.
	State      string `json:"state"`
	Reason     string `json:"reason,omitempty"`
	NextAction string `json:"next_action,omitempty"`
	// Behind counts the records that the log holds and the table does not.
	Behind      int64  `json:"behind"`
	Snapshot    int64  `json:"snapshot,omitempty"`
	Rows        int64  `json:"rows"`
	DeadLetters int64  `json:"dead_letters"`
	UUID        string `json:"uuid,omitempty"`
	Location    string `json:"location,omitempty"`
	Metadata    string `json:"metadata,omitempty"`
	// DeadLetterTable is nil until a first record could not become a row.
	DeadLetterTable *DeadLetterStatus `json:"dead_letter_table,omitempty"`
}

// DeadLetterStatus is the state of the table that takes what cannot become a row.
type DeadLetterStatus struct {
	Name     string `json:"name"`
	Snapshot int64  `json:"snapshot,omitempty"`
	Rows     int64  `json:"rows"`
	UUID     string `json:"uuid"`
	Location string `json:"location"`
	Metadata string `json:"metadata"`
}

// Status looks at everything. What does not answer becomes a problem in the
// status; the call itself never fails and takes at most until ctx ends.
func (e *Engine) Status(ctx context.Context) Status {
	st := Status{
		Cluster: e.Cluster(), Coordination: e.coordination.String(), Storage: e.objects.String(),
		Catalog: e.opts.catalogURI(), Warehouse: e.opts.warehouse(), Time: e.clock.Now().UTC(),
		Problems: []Problem{}, Instances: []string{}, Members: []MemberStatus{}, Shards: []ShardStatus{}, Streams: []StreamStatus{},
		Requests: e.objects.Stats(),
	}
	st.addMembers(ctx, e)
	st.addGroups(ctx, e)
	for _, s := range e.shards {
		st.addShard(s)
		st.Shards[len(st.Shards)-1].History = e.historyStatus(ctx, s)
	}
	st.Problems = append(st.Problems, e.history.problems()...)
	for _, info := range e.catalog.List() {
		st.Streams = append(st.Streams, e.streamStatus(ctx, info, &st))
	}
	st.mergeReports(ctx, e.coordination.Documents(), e.instance)
	return st
}

func (st *Status) problem(what string, err error, next string) {
	st.Problems = append(st.Problems, Problem{What: what, Reason: err.Error(), NextAction: next})
}

func (st *Status) addShard(s *shardEngine) {
	var sh ShardStatus
	s.view.Inspect(func(state *shard.State) {
		sh = ShardStatus{
			Shard: s.shard.String(), Revision: uint64(state.Revision()), Objects: state.Objects(),
			Dead: len(state.Dead()), Writers: len(state.Writers()), Foreign: state.Foreign(), FoldVersion: state.FoldVersion(),
		}
		sh.ObjectBytes, sh.DeadBytes = state.ObjectBytes()
	})
	sh.PutsPerSecond = float64(s.view.Puts(base.MillisOf(st.Time))) / shard.PutWindow
	if err := s.view.Err(); err != nil && !errors.Is(err, base.ErrClosed) {
		sh.Stopped = err.Error()
	}
	st.Problems = append(st.Problems, s.problems()...)
	w := s.written()
	st.Written.Records += w.Records
	st.Written.Bytes += w.Bytes
	st.Written.Objects += w.Objects
	st.Shards = append(st.Shards, sh)
}

func (e *Engine) streamStatus(ctx context.Context, info catalog.Stream, st *Status) StreamStatus {
	out := StreamStatus{
		Name: info.Name.String(), Shard: info.Shard.String(), Partitions: info.Partitions, Logs: []LogStatus{},
		Lifecycle: string(info.Lifecycle), Retention: retentionStatus(info.Kept), Properties: info.Properties,
	}
	var behind int64
	s := e.shards[info.Shard]
	out.Written = s.wroteTo(info.ID)
	s.view.Inspect(func(state *shard.State) {
		stream, ok := state.Stream(info.ID)
		if !ok {
			return
		}
		for _, l := range stream.Logs {
			out.Logs = append(out.Logs, LogStatus{
				Partition: l.ID().Partition, Start: l.Start(), Head: l.Head(), RawFrom: state.RawStart(l),
				Prepared: l.Prepared(), Materialized: l.Materialized(), Entries: l.Len(),
				Floor: l.Floor(), Fence: l.Fence(),
			})
			out.Records += int64(l.Head() - l.Start())
			out.Bytes += l.Bytes()
			behind += int64(l.Head() - max(l.Materialized(), l.Start()))
		}
	})
	if info.Table.Enabled {
		out.Table = e.tableStatus(ctx, s, info, behind, st)
	}
	return out
}

// tableStatus joins what the fold, the committer of this instance and the catalog
// say of a table.
func (e *Engine) tableStatus(ctx context.Context, s *shardEngine, info catalog.Stream, behind int64, st *Status) *TableStatus {
	t := &TableStatus{Name: info.Table.String(), State: string(commit.StatePending), Behind: behind, UUID: info.TableUUID}
	if info.TableUUID != "" {
		t.State = string(commit.StateRunning)
	}
	if trouble, ok := s.tableTrouble(info.ID, t.Name); ok {
		t.State, t.Reason, t.NextAction = trouble.State, trouble.Reason, trouble.NextAction
	} else if checked := s.checkTable(ctx, info); checked.State == commit.StateSuspended {
		t.State, t.Reason, t.NextAction = string(checked.State), checked.Reason, checked.NextAction
	}
	main, dead := tableIdents(info.Table)
	loaded, err := e.tables.Load(ctx, main)
	switch {
	case errors.Is(err, base.ErrNotFound):
	case err != nil:
		t.State, t.Reason, t.NextAction = string(commit.StateDegraded), err.Error(), "check the catalog"
	default:
		t.Snapshot, t.Rows, t.Location, t.Metadata = loaded.Head, loaded.Rows, loaded.Location, loaded.Metadata
	}
	if loaded, err := e.tables.Load(ctx, dead); err == nil {
		t.DeadLetters = loaded.Rows
		t.DeadLetterTable = &DeadLetterStatus{
			Name: dead.String(), Snapshot: loaded.Head, Rows: loaded.Rows,
			UUID: loaded.UUID, Location: loaded.Location, Metadata: loaded.Metadata,
		}
	}
	if t.troubled() {
		st.tableProblem(t)
	}
	if err := e.checkAhead(ctx, info); errors.Is(err, ErrTableAhead) {
		st.problem("table "+t.Name+" is ahead of its log", err, aheadAction(info.Name.String()))
	}
	return t
}

// checkTable looks at a table as its committer would, for a status that nobody's
// committer has told: no pipeline runs, or none had anything to commit since.
func (s *shardEngine) checkTable(ctx context.Context, info catalog.Stream) commit.Status {
	committer, err := commit.New(s.committerOptions(info.ID, info.Table))
	if err != nil {
		return commit.Status{}
	}
	// What cannot be read is shown by the caller, who reads the table too.
	status, _ := committer.Check(ctx)
	return status
}

func (st *Status) tableProblem(t *TableStatus) {
	st.problem("table "+t.Name+" is "+t.State, errors.New(t.Reason), t.NextAction)
}
