package compaction

import (
	"context"
	"maps"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// merge merges small compacted objects, unless the engine is draining: then it is
// left to later.
func (d *Driver) merge(ctx context.Context) (worked bool, err error) {
	plan := d.planMerge(d.now())
	if plan.Empty() {
		return false, nil
	}
	var m *Merge
	err = d.work(ctx, func(env Env) machine {
		m = NewMerge(env, plan, d.opts.Open)
		return m
	})
	if m == nil {
		return true, err
	}
	d.allMerged = 0
	d.noteUnmerged(m.Unmerged())
	stats := m.Stats()
	d.stats.Merges.Add(1)
	d.stats.MergedObjects.Add(int64(stats.Objects))
	d.stats.MergedBytes.Add(stats.ReadBytes)
	return true, err
}

// mergeDue returns when something is to be merged: at once, or when what could not
// be merged is to be tried again.
func (d *Driver) mergeDue(now base.Millis) (wait time.Duration, some bool) {
	if plan := d.planMerge(now); !plan.Empty() {
		return 0, true
	}
	for _, t := range d.Unmerged() {
		left := time.Duration(max(0, t.Until-now)) * time.Millisecond
		if !some || left < wait {
			wait, some = left, true
		}
	}
	return wait, some
}

// planMerge plans the next merge. It looks again only at logs that were compacted
// since it found nothing to do.
func (d *Driver) planMerge(now base.Millis) (plan MergePlan) {
	if d.opts.TargetBytes == 0 || d.hurry.Load() {
		return MergePlan{}
	}
	limits := MergeLimits{TargetBytes: d.opts.TargetBytes, FanIn: MergeFanIn, Unreadable: d.stillUnmerged(now)}
	if len(limits.Unreadable) == 0 {
		limits.Since = d.allMerged
	}
	d.opts.View.Inspect(func(s *shard.State) { plan = NewMergePlan(s, limits) })
	if plan.Empty() && len(limits.Unreadable) == 0 {
		d.allMerged = plan.Read
	}
	return plan
}

// stillUnmerged returns the logs that are to be left alone now, and forgets those
// whose time is over.
func (d *Driver) stillUnmerged(now base.Millis) map[base.LogID]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.unmerged, func(_ base.LogID, t Trouble) bool { return t.Until <= now })
	left := make(map[base.LogID]bool, len(d.unmerged))
	for id := range d.unmerged {
		left[id] = true
	}
	return left
}

func (d *Driver) noteUnmerged(failed map[base.LogID]error) {
	until := d.now() + base.Millis(quarantineTime.Milliseconds())
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, err := range failed {
		d.unmerged[id] = Trouble{Err: err, Until: until}
		d.opts.Logger.Error("the objects of a log cannot be read and are not merged; others go on",
			"log", id.String(), "reason", err.Error(), "retry_in", quarantineTime.String())
	}
}
