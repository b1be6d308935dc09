package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/cluster"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	// revisionGap is how many revisions a recovered log leaves out, beyond all that
	// objects of the shard name: lost records had revisions, and with them ids.
	revisionGap = 1 << 20
	// maxListed bounds the objects that a report names; it counts all.
	maxListed = 100
)

// Recovery says where a cluster is whose coordination was lost. All fields are
// required.
type Recovery struct {
	Coordination coord.Store
	Objects      blob.Store
	// Ends returns where the table of a stream ends, by partition: nil when it has
	// none. meta is the log meta, which settings are inherited from.
	Ends     func(ctx context.Context, meta *shard.State, st *shard.Stream) (map[base.Partition]base.Offset, error)
	Instance string
	Clock    base.Clock
	Logger   *slog.Logger
	// Progress is told what is being done.
	Progress func(text string)
}

// Report is what a recovery found, and did unless it was a dry run.
type Report struct {
	Identity cluster.Identity
	Shards   []ShardReport
	// Ahead are the logs whose table holds more than what was recovered. They take
	// no appends until someone decides.
	Ahead []Ahead
}

// Whole reports whether every shard could be rebuilt without a known hole, and no
// table is ahead of its log.
func (r *Report) Whole() bool {
	return len(r.Ahead) == 0 && !slices.ContainsFunc(r.Shards, func(s ShardReport) bool { return s.Gap > 0 || s.Lost })
}

// ShardReport is what was found of one shard.
type ShardReport struct {
	Shard base.Shard
	Rebuilt
	// Revision is the newest that could be rebuilt, and First the one that the new
	// log begins with.
	Revision, First base.Revision
	// Writers were open, and are closed by the recovery.
	Writers int
	// Beyond are WAL objects that no recovered record names and that a lost one may
	// have: at most maxListed of BeyondCount objects of BeyondBytes.
	Beyond      []string
	BeyondCount int
	BeyondBytes int64
	// Lost tells that the shard has objects and no history at all.
	Lost bool
}

// Ahead is a log whose table ends beyond its head.
type Ahead struct {
	Shard     base.Shard
	Stream    base.StreamName
	Log       base.LogID
	Head, End base.Offset
}

// ErrIncomplete says that a shard cannot be rebuilt at all. Nothing was changed.
var ErrIncomplete = errors.New("the history of a shard is lost")

// Plan finds what can be recovered and changes nothing. A cluster whose coordination
// is there is base.ErrExists.
func (r Recovery) Plan(ctx context.Context) (*Report, error) {
	id, err := cluster.Lost(ctx, r.Coordination, r.Objects)
	if err != nil {
		return nil, fmt.Errorf("recovering: %w", err)
	}
	report := &Report{Identity: id}
	meta := shard.NewState(id.Cluster, base.MetaShard)
	for _, sh := range id.Logs() {
		r.Progress("rebuilding " + sh.String())
		s, err := r.planShard(ctx, id, sh)
		if err != nil {
			return nil, fmt.Errorf("recovering: %w", err)
		}
		report.Shards = append(report.Shards, s)
		if s.Snapshot.State == nil {
			continue
		}
		if sh == base.MetaShard { // the first
			meta = s.Snapshot.State
		}
		ahead, err := r.ahead(ctx, meta, s.Snapshot.State)
		if err != nil {
			return nil, fmt.Errorf("recovering: %w", err)
		}
		report.Ahead = append(report.Ahead, ahead...)
	}
	return report, nil
}

func (r Recovery) planShard(ctx context.Context, id cluster.Identity, sh base.Shard) (ShardReport, error) {
	rebuilt, err := Rebuild(ctx, r.Objects, id.Cluster, sh)
	if err != nil {
		return ShardReport{}, err
	}
	s := ShardReport{Shard: sh, Rebuilt: rebuilt}
	state := rebuilt.Snapshot.State
	if state == nil {
		state = shard.NewState(id.Cluster, sh)
	}
	s.Revision, s.Writers = state.Revision(), len(state.Writers())
	newest, err := s.listBeyond(ctx, r.Objects, state)
	if err != nil {
		return ShardReport{}, err
	}
	s.Lost = rebuilt.Snapshot.State == nil && (newest > 0 || len(rebuilt.Damaged) > 0)
	s.First = max(s.Revision, newest, rebuilt.Newest) + revisionGap + 1
	return s, nil
}

// listBeyond looks for WAL objects that a lost record may have named, and returns
// the newest revision that any object of the shard was named by.
func (s *ShardReport) listBeyond(ctx context.Context, objects blob.Store, state *shard.State) (newest base.Revision, err error) {
	for _, prefix := range []string{base.WALPrefix, base.CompactedPrefix} {
		err := eachObject(ctx, objects, prefix+s.Shard.String()+"/", func(info blob.Info) {
			_, writer, err := base.WriterOfKey(info.Key)
			if err != nil {
				return
			}
			newest = max(newest, base.Revision(writer))
			if prefix == base.WALPrefix && isBeyond(state, writer, info.Key) {
				s.BeyondCount++
				s.BeyondBytes += info.Size
				if len(s.Beyond) < maxListed {
					s.Beyond = append(s.Beyond, info.Key)
				}
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return newest, nil
}

// isBeyond reports whether a record that the state has not folded may name an
// object: its writer is open and has not come to its seq, or is not known yet.
func isBeyond(state *shard.State, writer base.WriterID, key string) bool {
	if base.Revision(writer) > state.Revision() {
		return true
	}
	w, open := state.Writer(writer)
	if !open {
		return false
	}
	name := strings.TrimSuffix(key[strings.LastIndexByte(key, '/')+1:], ".wal")
	seq, err := strconv.ParseUint(name, 10, 64)
	return err == nil && base.Seq(seq) >= w.Next
}

// ahead finds the logs whose table ends beyond their head: an offset below it must
// not be given to another record.
func (r Recovery) ahead(ctx context.Context, meta, s *shard.State) (found []Ahead, err error) {
	for _, st := range s.Streams() {
		ends, err := r.Ends(ctx, meta, st)
		if err != nil {
			return nil, fmt.Errorf("looking for the end of the table of %s: %w", st.Name, err)
		}
		for _, l := range st.Logs {
			if end := ends[l.ID().Partition]; end > l.Head() {
				found = append(found, Ahead{Shard: s.Shard(), Stream: st.Name, Log: l.ID(), Head: l.Head(), End: end})
			}
		}
	}
	return found, nil
}

// Run carries out what Plan found: it makes each log anew, beyond every revision
// that was lost, closes every writer, fences the logs whose table is ahead, makes a
// checkpoint of each shard, and last writes the identity, so that no instance opens
// the cluster before. Interrupted, it can be run again. A shard that is lost as a
// whole is ErrIncomplete; nothing is changed then.
func (r Recovery) Run(ctx context.Context) (*Report, error) {
	report, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range report.Shards {
		if s.Lost {
			return report, fmt.Errorf("recovering %s: %w: no checkpoint and no archive of it can be read", s.Shard, ErrIncomplete)
		}
	}
	for i := range report.Shards {
		s := &report.Shards[i]
		if s.Snapshot.State == nil {
			continue // it never had a record; whoever opens the cluster begins it
		}
		r.Progress("restoring the log of " + s.Shard.String())
		if err := r.restore(ctx, s, report.Ahead); err != nil {
			return nil, fmt.Errorf("recovering %s: %w", s.Shard, err)
		}
	}
	r.Progress("restoring the identity of the cluster")
	if err := cluster.Restore(ctx, r.Coordination, report.Identity); err != nil {
		return nil, fmt.Errorf("recovering: %w", err)
	}
	return report, nil
}

// restore makes one log anew, or finishes what an earlier attempt began.
func (r Recovery) restore(ctx context.Context, s *ShardReport, ahead []Ahead) error {
	log, first, last, err := r.logFrom(ctx, s)
	if err != nil {
		return err
	}
	sn, epoch := s.Snapshot, s.Snapshot.State.Epoch()
	if first > s.Revision+1 {
		if sn, err = sn.Renumber(first - 1); err != nil {
			return err
		}
		epoch++
	}
	w := &restorer{follower: shard.NewFollowerAt(sn), log: log, clock: r.Clock}
	// The record at the newest revision is compared where the log has it.
	if err := replay(ctx, r.Clock, log, max(first, sn.State.Revision()), last, w.follower.Apply); err != nil {
		return err
	}
	if err := w.begin(ctx, epoch); err != nil {
		return err
	}
	if err := w.fence(ctx, ahead); err != nil {
		return err
	}
	return r.checkpoint(ctx, s.Shard, w.follower.Snapshot())
}

// spareSuffix ends the instance in the key of a second copy.
const spareSuffix = "-spare"

// checkpoint stores the state of a log made anew, twice: until the next checkpoint
// nothing else bridges the revisions that the log leaves out.
func (r Recovery) checkpoint(ctx context.Context, of base.Shard, sn shard.Snapshot) error {
	var refs [2]Ref
	for i, suffix := range []string{"", spareSuffix} {
		ref, err := write(ctx, r.Objects, sn, r.Instance+suffix)
		if err != nil {
			return err
		}
		refs[i] = ref
	}
	if err := name(ctx, r.Coordination.Documents(), of, Pointer{Current: refs[0], Previous: &refs[1]}); err != nil && !errors.Is(err, errBehind) {
		return err
	}
	return nil
}

// logFrom creates the log, or opens the one that an earlier attempt created, or that
// was never lost: such a log goes on from its own records.
func (r Recovery) logFrom(ctx context.Context, s *ShardReport) (log coord.CommitLog, first, last base.Revision, err error) {
	log, err = r.Coordination.LogFrom(ctx, s.Shard.String(), s.First)
	if err == nil {
		return log, s.First, s.First - 1, nil
	}
	if !errors.Is(err, base.ErrExists) {
		return nil, 0, 0, err
	}
	if log, err = r.Coordination.Log(ctx, s.Shard.String()); err != nil {
		return nil, 0, 0, err
	}
	if first, last, err = log.Bounds(ctx); err != nil {
		return nil, 0, 0, err
	}
	if last < s.Revision {
		return nil, 0, 0, fmt.Errorf("the coordination store %s has a log that ends at revision %d, before the archive, which ends at %d: "+
			"nothing was changed in it; remove it or name another store: %w", r.Coordination, last, s.Revision, base.ErrForeign)
	}
	return log, first, last, nil
}

// restorer puts records into a log that nobody else uses.
type restorer struct {
	follower *shard.Follower
	log      coord.CommitLog
	clock    base.Clock
}

// put appends a record and folds it. An outcome that is not known is an error: the
// next attempt finds it in the log.
func (w *restorer) put(ctx context.Context, payload commitrecord.Payload) error {
	data, err := commitrecord.Encode(w.follower.Envelope(commitrecord.RequestID{}), payload)
	if err != nil {
		return err
	}
	revision, err := w.log.Put(ctx, data)
	if err != nil {
		return err
	}
	return replay(ctx, w.clock, w.log, w.follower.Revision()+1, revision, w.follower.Apply)
}

// begin raises the epoch, which closes every writer. Only fold version 2 knows it.
func (w *restorer) begin(ctx context.Context, epoch uint64) error {
	var foldVersion uint32
	var at uint64
	look := func(s *shard.State) { foldVersion, at = s.FoldVersion(), s.Epoch() }
	for w.follower.Inspect(look); foldVersion < recoveredSince; w.follower.Inspect(look) {
		if err := w.put(ctx, &commitpb.FoldVersion{Version: foldVersion + 1}); err != nil {
			return err
		}
	}
	if at >= epoch {
		return nil
	}
	return w.put(ctx, &commitpb.Recovered{Epoch: epoch})
}

// recoveredSince is the fold version that brought the Recovered record.
const recoveredSince = 2

// fence closes the logs of this shard whose table is ahead.
func (w *restorer) fence(ctx context.Context, ahead []Ahead) error {
	for _, a := range ahead {
		due := false
		w.follower.Inspect(func(s *shard.State) {
			l, ok := s.Log(a.Log)
			due = ok && s.Shard() == a.Shard && l.Fence() == ""
		})
		if !due {
			continue
		}
		reason := fmt.Sprintf("recovered up to offset %d, and the table holds offsets up to %d", a.Head, a.End)
		err := w.put(ctx, &commitpb.LogFence{
			Stream: uint64(a.Log.Stream), Partition: []uint32{uint32(a.Log.Partition)}, Reason: reason, //nolint:gosec // not negative
		})
		if err != nil {
			return err
		}
	}
	return nil
}
