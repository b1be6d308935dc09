package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// ErrRecoverIncomplete says that a part of a cluster could not be recovered: the
// report says which.
var ErrRecoverIncomplete = history.ErrIncomplete

// RecoverOptions says how to recover.
type RecoverOptions struct {
	// DryRun only tells what would be recovered.
	DryRun bool
	// Progress, unless nil, is told what is being done.
	Progress func(text string)
}

// RecoverReport is what a recovery found, and did unless it was a dry run. Its JSON
// is stable: fields are added, never renamed.
type RecoverReport struct {
	Cluster string          `json:"cluster"`
	DryRun  bool            `json:"dry_run"`
	Shards  []RecoverShard  `json:"shards"`
	Ahead   []RecoverFenced `json:"tables_ahead"`
	// Whole is false when records are known to be missing beyond the newest
	// archived one, a shard is lost, or a table is ahead of its log.
	Whole bool `json:"whole"`
}

// RecoverShard is one shard of a report.
type RecoverShard struct {
	Shard      string `json:"shard"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Segments   int    `json:"segments"`
	// Revision is the newest that was rebuilt, First where the new log begins.
	Revision uint64 `json:"revision"`
	First    uint64 `json:"first"`
	// LastRecord is when the newest rebuilt record was accepted: what came later
	// is missing.
	LastRecord time.Time `json:"last_record"`
	// Writers were open and are closed.
	Writers int `json:"writers_closed"`
	// MissingFrom is the first revision of a hole in the archive, 0 for none.
	MissingFrom uint64   `json:"missing_from,omitempty"`
	Damaged     []string `json:"damaged,omitempty"`
	// Beyond are WAL objects that no rebuilt record names and a lost one may have:
	// the first of BeyondObjects.
	Beyond        []string `json:"beyond,omitempty"`
	BeyondObjects int      `json:"beyond_objects"`
	BeyondBytes   int64    `json:"beyond_bytes"`
	// Lost tells that nothing of the shard can be rebuilt.
	Lost bool `json:"lost,omitempty"`
}

// RecoverFenced is a log that takes no appends, because its table holds offsets that
// the log would give again.
type RecoverFenced struct {
	Stream     string `json:"stream"`
	Partition  int32  `json:"partition"`
	Head       int64  `json:"head"`
	TableEnd   int64  `json:"table_end"`
	NextAction string `json:"next_action"`
}

// Recover rebuilds the coordination of a cluster that lost it, from the checkpoints
// and the commit archive in its object store. A cluster whose coordination is there
// is ErrExists, and nothing is done. A shard that cannot be rebuilt at all is
// ErrRecoverIncomplete, with a report, and nothing is changed. Stop every instance
// first: whoever comes back from before stops by itself, but may be told of records
// that are gone.
func Recover(ctx context.Context, opts Options, how RecoverOptions) (*RecoverReport, error) {
	opts = opts.WithDefaults()
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("recovering: %w", err)
	}
	opts.Observe = true // the objects must be there
	clock := base.SystemClock{}
	e := &Engine{opts: opts, clock: clock, logger: opts.Logger, started: clock.Now(), instance: ulid.Make().String(), stop: func() {}}
	report, err := e.recover(ctx, how)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return report, errors.Join(err, e.release(closing))
}

func (e *Engine) recover(ctx context.Context, how RecoverOptions) (*RecoverReport, error) {
	if _, err := os.Stat(e.opts.DataDir); len(e.opts.NATS.URLs) == 0 && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("data directory %s does not exist: name another with --data-dir: %w", e.opts.DataDir, base.ErrNotFound)
	}
	if err := e.openStores(ctx); err != nil {
		return nil, err
	}
	if err := e.openTables(ctx); err != nil {
		return nil, err
	}
	if how.Progress == nil {
		how.Progress = func(string) {}
	}
	r := history.Recovery{
		Coordination: e.coordination, Objects: e.objects, Ends: e.tableEnds,
		Instance: e.instance, Clock: e.clock, Logger: e.logger, Progress: how.Progress,
	}
	do := r.Run
	if how.DryRun {
		do = r.Plan
	}
	found, err := do(ctx)
	if found == nil {
		return nil, err
	}
	return describeRecovery(found, how.DryRun), err
}

// tableEnds returns where the tables of a stream end, by partition: the main table or
// that of its dead letters, which are committed first and may be ahead of it.
func (e *Engine) tableEnds(ctx context.Context, meta *shard.State, st *shard.Stream) (map[base.Partition]base.Offset, error) {
	table := catalog.TableOf(meta, st)
	if !table.Enabled && st.Table.UUID == "" {
		return nil, nil
	}
	main, dead := tableIdents(table)
	return furthestEnds(ctx, e.tables, main, dead)
}

// furthestEnds returns where the furthest of some tables ends, by partition. Tables
// that do not exist count for nothing.
func furthestEnds(ctx context.Context, tables materialization.Tables, idents ...materialization.Ident) (map[base.Partition]base.Offset, error) {
	furthest := make(map[base.Partition]base.Offset)
	for _, ident := range idents {
		table, err := tables.Load(ctx, ident)
		if errors.Is(err, base.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ends, err := table.EndOffsets()
		if err != nil {
			return nil, fmt.Errorf("reading the end of table %s: %w", ident, err)
		}
		for partition, end := range ends {
			furthest[partition] = max(furthest[partition], end)
		}
	}
	return furthest, nil
}

func describeRecovery(found *history.Report, dryRun bool) *RecoverReport {
	report := &RecoverReport{Cluster: found.Identity.Cluster.String(), DryRun: dryRun, Whole: found.Whole(), Shards: []RecoverShard{}, Ahead: []RecoverFenced{}}
	for _, s := range found.Shards {
		report.Shards = append(report.Shards, RecoverShard{
			Shard: s.Shard.String(), Checkpoint: s.Checkpoint, Segments: s.Segments,
			Revision: uint64(s.Revision), First: uint64(s.First), LastRecord: s.LastRecord.Time(),
			Writers: s.Writers, MissingFrom: uint64(s.Gap), Damaged: s.Damaged,
			Beyond: s.Beyond, BeyondObjects: s.BeyondCount, BeyondBytes: s.BeyondBytes, Lost: s.Lost,
		})
	}
	for _, a := range found.Ahead {
		report.Ahead = append(report.Ahead, RecoverFenced{
			Stream: a.Stream.String(), Partition: int32(a.Log.Partition), Head: int64(a.Head), TableEnd: int64(a.End),
			NextAction: aheadAction(a.Stream.String()),
		})
	}
	return report
}
