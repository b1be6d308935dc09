package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
)

const (
	// reportPrefix starts the key of the document in which an instance tells
	// the others its problems.
	reportPrefix = "status."
	// reportEvery is how often it is written anew; reportTTL how long it
	// outlives its instance.
	reportEvery = 5 * time.Second
	reportTTL   = 3 * reportEvery
	// Bounds of a report: the document stays far below what coordination takes.
	maxReportItems     = 50
	maxReportTextBytes = 512
)

// report is what an instance alone knows to be wrong: it runs the committers and
// the passes. Only what is wrong is told.
type report struct {
	Tables   []tableTrouble `json:"tables,omitempty"`
	Problems []Problem      `json:"problems,omitempty"`
	// Omitted counts what the bound left out.
	Omitted int `json:"omitted,omitempty"`
}

// tableTrouble is why a table is not running.
type tableTrouble struct {
	Table      string `json:"table"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	NextAction string `json:"next_action"`
}

// publishProblems tells the other instances what is wrong here while anything
// is, until ctx ends.
func (e *Engine) publishProblems(ctx context.Context) {
	p := publisher{documents: e.coordination.Documents(), key: reportPrefix + e.instance}
	for {
		select {
		case <-e.clock.After(reportEvery):
		case <-ctx.Done():
			e.publishReport(context.WithoutCancel(ctx), &p, report{})
			return
		}
		e.publishReport(ctx, &p, e.report())
	}
}

func (e *Engine) publishReport(ctx context.Context, p *publisher, r report) {
	ctx, cancel := context.WithTimeout(ctx, reportEvery)
	defer cancel()
	if err := p.publish(ctx, r); err != nil && ctx.Err() == nil {
		e.logger.Debug("other instances were not told of problems", "reason", err.Error())
	}
}

// report looks at what this instance runs.
func (e *Engine) report() (r report) {
	for _, s := range e.shards {
		for _, p := range s.problems() {
			r.addProblem(p)
		}
	}
	for _, p := range e.history.problems() {
		r.addProblem(p)
	}
	for _, info := range e.catalog.List() {
		if t, ok := e.shards[info.Shard].tableTrouble(info.ID, info.Table.String()); ok {
			r.addTable(t)
		}
	}
	return r
}

func (r *report) full() bool {
	if len(r.Tables)+len(r.Problems) < maxReportItems {
		return false
	}
	r.Omitted++
	return true
}

func (r *report) addProblem(p Problem) {
	if !r.full() {
		r.Problems = append(r.Problems, Problem{What: clip(p.What), Reason: clip(p.Reason), NextAction: clip(p.NextAction)})
	}
}

func (r *report) addTable(t tableTrouble) {
	if !r.full() {
		t.Reason, t.NextAction = clip(t.Reason), clip(t.NextAction)
		r.Tables = append(r.Tables, t)
	}
}

func (r *report) empty() bool { return len(r.Tables)+len(r.Problems) == 0 }

// clip bounds a text without breaking a character.
func clip(text string) string {
	if len(text) <= maxReportTextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxReportTextBytes], "") + "…"
}

// publisher keeps one document. It is for one goroutine.
type publisher struct {
	documents coord.Documents
	key       string
	// told is set while the document may exist.
	told bool
}

// publish makes the document say r, from now on for reportTTL. Without anything
// to say there is no document.
func (p *publisher) publish(ctx context.Context, r report) error {
	if r.empty() && !p.told {
		return nil
	}
	found, err := p.documents.Get(ctx, p.key)
	absent := errors.Is(err, base.ErrNotFound)
	switch {
	case err != nil && !absent:
		return fmt.Errorf("reading %s: %w", p.key, err)
	case r.empty() && absent:
		p.told = false
		return nil
	case r.empty():
		if err := p.documents.Delete(ctx, p.key, found.Revision); err != nil {
			return fmt.Errorf("deleting %s: %w", p.key, err)
		}
		p.told = false
		return nil
	}
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", p.key, err)
	}
	p.told = true
	if absent {
		_, err = p.documents.Create(ctx, p.key, value, reportTTL)
	} else {
		_, err = p.documents.Update(ctx, p.key, value, found.Revision, reportTTL)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.key, err)
	}
	return nil
}

// mergeReports adds what the other living instances tell to a status. What an
// instance told before it went away is not true any more.
func (st *Status) mergeReports(ctx context.Context, documents coord.Documents, self string) {
	found, err := documents.List(ctx, reportPrefix)
	if err != nil {
		st.problem("coordination "+st.Coordination, err, "check that NATS runs and can be reached")
		return
	}
	for _, d := range found {
		instance := strings.TrimPrefix(d.Key, reportPrefix)
		if instance == self || !slices.Contains(st.Instances, instance) {
			continue
		}
		var r report
		if err := json.Unmarshal(d.Value, &r); err != nil {
			st.problem("instance "+instance, fmt.Errorf("reading what it reports: %w", err), "see the log of that instance")
			continue
		}
		st.merge(instance, r)
	}
}

func (st *Status) merge(instance string, r report) {
	for _, p := range r.Problems {
		p.What += " (instance " + instance + ")"
		st.Problems = append(st.Problems, p)
	}
	for _, t := range r.Tables {
		st.mergeTable(t)
	}
	if r.Omitted > 0 {
		st.problem("instance "+instance, fmt.Errorf("it has %d more problems", r.Omitted), "see the log of that instance")
	}
}

// mergeTable shows a table's trouble unless this instance knows of its own.
func (st *Status) mergeTable(t tableTrouble) {
	for _, stream := range st.Streams {
		table := stream.Table
		if table == nil || table.Name != t.Table || table.troubled() {
			continue
		}
		table.State, table.Reason, table.NextAction = t.State, t.Reason, t.NextAction
		st.tableProblem(table)
	}
}

func (t *TableStatus) troubled() bool {
	return t.State == string(commit.StateDegraded) || t.State == string(commit.StateSuspended)
}

// problems are those of a shard that this instance knows of.
func (s *shardEngine) problems() (all []Problem) {
	if err := s.view.Err(); err != nil && !errors.Is(err, base.ErrClosed) {
		all = append(all, Problem{
			What: "shard " + s.shard.String(), Reason: err.Error(),
			NextAction: "see the reason; appends and reads of its streams wait",
		})
	}
	if by := s.blockedBy(); by != "" {
		all = append(all, Problem{
			What: "appends of shard " + s.shard.String(), Reason: by,
			NextAction: "see the reason; they wait, and go on by themselves when it is gone",
		})
	}
	if n := s.waiting.Load(); n > 0 {
		all = append(all, Problem{
			What: "appends of shard " + s.shard.String(), Reason: fmt.Sprintf("%d wait because the index of its logs is full", n),
			NextAction: "see why compaction is behind; they go on by themselves",
		})
	}
	all = append(all, s.collectionProblems()...)
	_, logs := s.driver.Troubles()
	for _, id := range slices.SortedFunc(maps.Keys(logs), base.LogID.Compare) {
		all = append(all, Problem{
			What: "log " + id.String() + " of shard " + s.shard.String(), Reason: logs[id].Err.Error(),
			NextAction: "restore the object; other logs go on",
		})
	}
	unmerged := s.driver.Unmerged()
	for _, id := range slices.SortedFunc(maps.Keys(unmerged), base.LogID.Compare) {
		all = append(all, Problem{
			What: "compacted objects of log " + id.String() + " of shard " + s.shard.String(), Reason: unmerged[id].Err.Error(),
			NextAction: "restore the object; appends, and reads of other offsets, go on",
		})
	}
	return all
}

// tableTrouble returns why a table is not running, as far as this instance runs
// its committer or its passes. What only a person can end comes first.
func (s *shardEngine) tableTrouble(id base.StreamID, table string) (tableTrouble, bool) {
	status, _ := s.tableStatus(id)
	tables, _ := s.driver.Troubles()
	t := tableTrouble{Table: table}
	switch failed := tables[id].Err; {
	case errors.Is(failed, errTableReplaced):
		t.State, t.Reason = string(commit.StateSuspended), failed.Error()
		t.NextAction = fmt.Sprintf("restore table %s, or drop what has its name and run `lakestream table reset %s --yes` to fill a new one from the log", t.Table, t.Table)
	case failed != nil && status.State != commit.StateSuspended:
		t.State, t.Reason = string(commit.StateDegraded), failed.Error()
		t.NextAction = "the log is kept and the table is tried again; see the reason"
	case status.State == commit.StateDegraded, status.State == commit.StateSuspended:
		t.State, t.Reason, t.NextAction = string(status.State), status.Reason, status.NextAction
	default:
		return tableTrouble{}, false
	}
	return t, true
}
