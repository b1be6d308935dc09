package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// MemberStatus is one process of the cluster that lives.
type MemberStatus struct {
	ID string `json:"id"`
	// Label is the instance_id that the process was given.
	Label string    `json:"label,omitempty"`
	Host  string    `json:"host,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// FoldVersion is the newest one that the process folds.
	FoldVersion uint32 `json:"fold_version"`
	// Jobs are the background jobs that the process does for the cluster.
	Jobs []string `json:"jobs"`
}

// FoldStatus tells which rules the cluster's logs are folded by. Operations that a
// newer release added are refused until every instance runs it.
type FoldStatus struct {
	// Version is the lowest of all logs, Newest what this engine could fold.
	Version uint32 `json:"version"`
	Newest  uint32 `json:"newest"`
	// HeldBackBy are the ids of the instances that fold nothing newer.
	HeldBackBy []string `json:"held_back_by,omitempty"`
	NextAction string   `json:"next_action,omitempty"`
}

// addMembers shows who lives and what they do.
func (st *Status) addMembers(ctx context.Context, e *Engine) {
	documents := e.coordination.Documents()
	instances, err := worker.Instances(ctx, documents)
	jobs, jobsErr := worker.Jobs(ctx, documents)
	if err := cmp.Or(err, jobsErr); err != nil {
		st.problem("coordination "+st.Coordination, err, "check that NATS runs and can be reached")
	}
	for _, i := range instances {
		st.Instances = append(st.Instances, i.ID)
		st.Members = append(st.Members, MemberStatus{
			ID: i.ID, Label: i.Label, Host: i.Host, Since: i.Since, FoldVersion: i.FoldVersion, Jobs: append([]string{}, jobs[i.ID]...),
		})
	}
	st.FoldVersion = e.foldStatus(instances, err == nil)
}

// foldStatus says how far the cluster's fold version is, and what it waits for.
func (e *Engine) foldStatus(instances []worker.Instance, known bool) FoldStatus {
	fold := FoldStatus{Newest: e.opts.hooks.newestFold()}
	fold.Version = fold.Newest
	for _, ledger := range e.allLedgers() {
		fold.Version = min(fold.Version, worker.FoldVersion(ledger))
	}
	if fold.Version == fold.Newest || !known {
		return fold
	}
	supported, oldest := worker.Supported(instances)
	switch {
	case len(instances) == 0:
		fold.NextAction = fmt.Sprintf("run a pipeline with this release: the cluster moves on after lease_ttl (%s)", e.opts.LeaseTTL)
	case supported <= fold.Version:
		fold.HeldBackBy = oldest
		fold.NextAction = "upgrade " + strings.Join(oldest, ", ")
	default:
		fold.NextAction = fmt.Sprintf("wait: every instance folds it, and the cluster moves on after lease_ttl (%s)", e.opts.LeaseTTL)
	}
	return fold
}

// refuseNewerFold keeps an engine from following a log that it cannot fold.
func (e *Engine) refuseNewerFold(view *shard.View) error {
	if at, newest := worker.FoldVersion(view), e.opts.hooks.newestFold(); at > newest {
		return fmt.Errorf("the cluster is at fold version %d, this release knows %d: upgrade it: %w", at, newest, base.ErrNewerFormat)
	}
	return nil
}

// describe returns what this process tells the others of itself.
func (e *Engine) describe() worker.Instance {
	host, _ := os.Hostname() // without one, the label has to do
	return worker.Instance{
		ID: e.instance, Label: e.opts.InstanceID, Host: host, Since: e.started.UTC(), FoldVersion: e.opts.hooks.newestFold(),
	}
}

// keepAlive tells the others that this process lives, until ctx ends.
func (e *Engine) keepAlive(ctx context.Context) {
	e.leases().KeepAlive(ctx, e.describe(), e.fenceSelf)
}

// fenceSelf closes every writer that this instance has open, and returns when the
// views have applied that. What the log has not accepted by then moves to new
// writers. A shard that has stopped takes nothing from this process any more.
func (e *Engine) fenceSelf(ctx context.Context) error {
	return e.eachShard(func(s *shardEngine) error {
		opened := worker.Opened(s.view, e.instance)
		err := errors.Join(s.fenceWriter(ctx), worker.Fence(ctx, s.view, opened))
		if s.view.Err() != nil {
			return nil //nolint:nilerr // its reason is the shard's, and is shown
		}
		return err
	})
}

// shardLedgers are those of the shards, allLedgers have that of meta as the last.
func (e *Engine) shardLedgers() []worker.Ledger {
	ledgers := make([]worker.Ledger, 0, len(e.shards)+1)
	for _, s := range e.shards {
		ledgers = append(ledgers, s.view)
	}
	return ledgers
}

func (e *Engine) allLedgers() []worker.Ledger { return append(e.shardLedgers(), e.meta) }
