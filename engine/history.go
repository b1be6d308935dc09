package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/worker"
)

const (
	// archiveEvery is how much of the commit log's time a recovery may lack.
	archiveEvery = 5 * time.Second
	// checkpointLook is how often it is asked whether a checkpoint is due.
	checkpointLook = 10 * time.Second
)

// Records and bytes bound the history that the coordination store holds, which is
// twice this at most, and what a start has to fold.
const (
	checkpointRecords = 20_000
	checkpointBytes   = 64 << 20
)

// loader finds the checkpoints of a shard.
func (e *Engine) loader(sh base.Shard) history.Loader {
	return history.Loader{
		Cluster: e.identity.Cluster, Shard: sh, Documents: e.coordination.Documents(), Objects: e.objects, Logger: e.logger,
	}
}

// startHistory makes checkpoints of every shard and archives its commit log, until
// running ends.
func (e *Engine) startHistory(running context.Context, leases worker.Leases) {
	for _, sh := range e.identity.Logs() {
		e.jobs.Go(func() { leases.Run(running, "archive."+sh.String(), e.archive(sh)) })
		e.jobs.Go(func() { leases.Run(running, "checkpoint."+sh.String(), e.checkpoint(sh)) })
	}
}

// viewOf returns the view of any log, meta included.
func (e *Engine) viewOf(sh base.Shard) *shard.View {
	if sh == base.MetaShard {
		return e.meta
	}
	return e.shards[sh].view
}

func (e *Engine) archive(sh base.Shard) func(context.Context) {
	return func(ctx context.Context) {
		commits, err := e.coordination.Log(ctx, sh.String())
		if err != nil {
			e.logger.Debug("archiving is begun again", "shard", sh.String(), "reason", err.Error())
			return
		}
		archiver := history.NewArchiver(history.ArchiverOptions{
			Cluster: e.identity.Cluster, Shard: sh, Log: commits, Objects: e.objects, View: e.viewOf(sh),
			Interval: archiveEvery, Clock: e.clock, Logger: e.logger,
		})
		defer e.history.watch("archive of "+sh.String(), archiver.Trouble, "see the reason; what is appended until it is gone could not be recovered if the commit log were lost")()
		archiver.Run(ctx)
	}
}

func (e *Engine) checkpoint(sh base.Shard) func(context.Context) {
	return func(ctx context.Context) {
		checkpointer, err := e.checkpointer(ctx, sh)
		if err != nil {
			e.logger.Debug("making checkpoints is begun again", "shard", sh.String(), "reason", err.Error())
			return
		}
		defer e.history.watch("checkpoints of "+sh.String(), checkpointer.Trouble, "see the reason; the commit log grows and starts take longer until it is gone")()
		checkpointer.Run(ctx)
	}
}

func (e *Engine) checkpointer(ctx context.Context, sh base.Shard) (*history.Checkpointer, error) {
	commits, err := e.coordination.Log(ctx, sh.String())
	if err != nil {
		return nil, err
	}
	return history.NewCheckpointer(history.CheckpointerOptions{
		Loader: e.loader(sh), Log: commits, View: e.viewOf(sh), Instance: e.instance,
		Due:      history.Due{Records: checkpointRecords, Bytes: checkpointBytes, Age: e.opts.Reclaim.CheckpointEvery},
		Interval: min(checkpointLook, e.opts.Reclaim.CheckpointEvery), Clock: e.clock,
	}), nil
}

// checkpointNow makes a checkpoint of a shard, whether one is due or not.
func (e *Engine) checkpointNow(ctx context.Context, sh base.Shard) error {
	checkpointer, err := e.checkpointer(ctx, sh)
	if err != nil {
		return err
	}
	return checkpointer.Checkpoint(ctx)
}

// historyJobs are the archivers and checkpointers that this instance runs. The zero
// value has none; it is safe for concurrent use.
type historyJobs struct {
	mu sync.Mutex
	// running, guarded by mu, has the jobs by what they are of.
	running map[string]historyJob
}

// historyJob tells why a job does not get on, nil while it does, and what to do.
type historyJob struct {
	trouble func() error
	next    string
}

// watch shows the trouble of a job until done is called.
func (h *historyJobs) watch(what string, trouble func() error, next string) (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		h.running = make(map[string]historyJob)
	}
	h.running[what] = historyJob{trouble: trouble, next: next}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, what)
	}
}

// problems returns the trouble of the jobs, in the order of what they are of.
func (h *historyJobs) problems() (all []Problem) {
	h.mu.Lock()
	running := maps.Clone(h.running)
	h.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(running)) {
		if err := running[what].trouble(); err != nil {
			all = append(all, Problem{What: what, Reason: err.Error(), NextAction: running[what].next})
		}
	}
	return all
}

// HistoryStatus is what a shard could be rebuilt from if its commit log were lost.
type HistoryStatus struct {
	// Checkpoint is the revision of the newest checkpoint, 0 for none;
	// CheckpointTime is when its last record was accepted.
	Checkpoint     uint64    `json:"checkpoint"`
	CheckpointTime time.Time `json:"checkpoint_time,omitzero"`
	// Archived is the newest archived revision; Lag is how many records after it
	// would be lost with the log.
	Archived uint64 `json:"archived"`
	Lag      uint64 `json:"archive_lag"`
}

// historyStatus returns nil when a store does not answer: others tell of that.
func (e *Engine) historyStatus(ctx context.Context, s *shardEngine) *HistoryStatus {
	p, _, err := history.ReadPointer(ctx, e.coordination.Documents(), s.shard)
	if err != nil {
		return nil
	}
	stored, err := history.List(ctx, e.objects, s.shard)
	if err != nil {
		return nil
	}
	h := &HistoryStatus{Archived: uint64(stored.Archived())}
	if p != nil {
		h.Checkpoint, h.CheckpointTime = uint64(p.Current.Revision), p.Current.Time.Time()
	}
	safe, now := max(h.Archived, h.Checkpoint), uint64(s.view.Revision())
	if now > safe {
		h.Lag = now - safe
	}
	return h
}
