package gc_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/gc"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// busy is a world that many use at once. It is the collectors' view.
type busy struct {
	*world

	mu sync.Mutex // guards the world's state
}

func (b *busy) Inspect(fn func(*shard.State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(b.state)
}

func (b *busy) Publish(_ context.Context, p commitrecord.Payload) (shard.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Apply(b.state.Revision()+1, base.MillisOf(b.server.Now()), shardtest.Encode(b.t, p))
}

// publish is Publish that cannot fail.
func (b *busy) publish(p commitrecord.Payload) shard.Outcome {
	out, err := b.Publish(context.Background(), p)
	if err != nil {
		b.t.Error(err)
	}
	return out
}

// hand is someone who writes objects and commits them, as a writer of its own. When
// somebody closes that it opens another; what it uploaded before is left behind.
type hand struct {
	*busy

	random *rand.Rand
	token  *atomic.Uint64
	writer base.WriterID
	seq    base.Seq
}

func (h *hand) open() {
	token := make([]byte, 16)
	binary.BigEndian.PutUint64(token, h.token.Add(1))
	h.writer, h.seq = h.publish(&commitpb.WriterOpen{Token: token}).Writer, 0
}

// commit uploads an object and then publishes the record that names it.
func (h *hand) commit(key string, p commitrecord.Payload) {
	if err := h.objects.Put(context.Background(), key, []byte("object")); err != nil {
		h.t.Error(err)
	}
	if h.random.IntN(10) == 0 {
		h.open() // it died with the upload; the writer may be closed by now, or later
		return
	}
	if h.publish(p).Rejected == shard.WriterClosed {
		h.open()
	}
}

func (h *hand) append() {
	h.seq++
	p := &commitpb.Append{Writer: uint64(h.writer), Seq: uint64(h.seq), Size: 1000}
	for i, partition := range [][]uint32{{0}, {1}, {0, 1}}[h.random.IntN(3)] {
		p.Stream, p.Partition, p.Records = append(p.Stream, uint64(orders)), append(p.Partition, partition), append(p.Records, 10)
		p.Pos, p.Len = append(p.Pos, uint32(100*i)), append(p.Len, 100)
		p.MinTime, p.MaxTime = append(p.MinTime, 0), append(p.MaxTime, 0)
	}
	h.commit(base.WALKey(testShard, h.writer, h.seq), p)
}

// pass rewrites what is raw of a partition as one object. Others may do the same, or
// trim it, in between: then the record is refused and its object is dead.
func (h *hand) pass() {
	id := base.LogID{Stream: orders, Partition: base.Partition(h.random.Int32N(2))}
	var r base.OffsetRange
	var read base.Revision
	h.Inspect(func(s *shard.State) {
		l, _ := s.Log(id)
		r, read = base.OffsetRange{Start: s.RawStart(l), End: l.Head()}, s.Revision()
		if e, ok := s.Find(l, r.Start); ok {
			r.Start = e.Range.Start
		}
	})
	if r.Start >= r.End {
		return
	}
	h.seq++
	h.commit(base.CompactedKey(testShard, h.writer, id, r, h.seq), &commitpb.Compact{
		Writer: uint64(h.writer), Seq: uint64(h.seq), ReadRevision: uint64(read), Stream: []uint64{uint64(orders)},
		Partition: []uint32{uint32(id.Partition)}, Start: []uint64{uint64(r.Start)}, End: []uint64{uint64(r.End)}, Size: []uint64{500}, //nolint:gosec // not negative
	})
}

func (h *hand) trim() {
	partition := h.random.Uint32N(2)
	var to base.Offset
	h.Inspect(func(s *shard.State) {
		l, _ := s.Log(base.LogID{Stream: orders, Partition: base.Partition(partition)}) //nolint:gosec // small
		to = l.Start() + base.Offset(h.random.Int64N(int64(l.Head()-l.Start())+1))
	})
	h.publish(&commitpb.Trim{
		Stream: uint64(orders), Partition: []uint32{partition}, Offset: []uint64{uint64(to)}, Hard: h.random.IntN(2) == 0, //nolint:gosec // not negative
	})
}

// closeSomeone closes any writer, as whoever takes a dead instance's place does.
func (h *hand) closeSomeone() {
	var open []base.WriterID
	h.Inspect(func(s *shard.State) {
		for _, w := range s.Writers() {
			open = append(open, w.ID)
		}
	})
	if len(open) > 0 {
		h.publish(&commitpb.WriterFence{Writers: []uint64{uint64(open[h.random.IntN(len(open))])}})
	}
}

// requireLive checks that the object of each entry is there, while nobody can commit.
func (b *busy) requireLive() {
	b.Inspect(func(s *shard.State) {
		stored := make(map[string]bool)
		for _, key := range b.stored() {
			stored[key] = true
		}
		for key := range s.LiveObjects() {
			if !stored[key] {
				b.t.Errorf("%s is gone and an entry lies in it", key)
			}
		}
	})
}

// Behaviour 48. Given appends, passes, trims, and writers that die and are closed, all at
// once beside two collectors for which hours pass, then no object that an entry lies in
// is deleted; and when all is quiet nothing is left but those.
func TestNothingReferencedIsDeletedWhileAllGoOn(t *testing.T) {
	b := &busy{world: newWorld(t)}
	var token atomic.Uint64
	var working, collecting sync.WaitGroup
	for n := range uint64(4) {
		working.Go(func() {
			h := &hand{busy: b, random: rand.New(rand.NewPCG(48, n)), token: &token}
			h.open()
			for range 150 {
				switch h.random.IntN(8) {
				case 0, 1, 2, 3:
					h.append()
				case 4, 5:
					h.pass()
				case 6:
					h.trim()
				default:
					h.closeSomeone()
				}
				b.requireLive()
			}
		})
	}
	quiet := make(chan struct{})
	var deleted, orphans atomic.Int64
	for range 2 {
		collecting.Go(func() {
			c := b.collectorOf(b)
			for !closed(quiet) {
				round, err := c.Round(context.Background())
				if err != nil {
					t.Error(err)
				}
				deleted.Add(int64(len(round.Deleted)))
				orphans.Add(int64(len(round.Orphans)))
				b.clock.Advance(grace)
			}
		})
	}
	working.Wait()
	close(quiet)
	collecting.Wait()
	require.Positive(t, deleted.Load())
	require.Positive(t, orphans.Load())

	h := &hand{busy: b, random: rand.New(rand.NewPCG(48, 48)), token: &token}
	for len(b.state.Writers()) > 0 {
		h.closeSomeone()
	}
	last := b.collectorOf(b)
	for range 2 {
		_, err := last.Round(t.Context())
		require.NoError(t, err)
		b.clock.Advance(2 * time.Hour)
	}
	_, err := last.Round(t.Context())
	require.NoError(t, err)
	var live []string
	for key := range b.state.LiveObjects() {
		live = append(live, key)
	}
	require.ElementsMatch(t, live, b.stored())
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var _ gc.View = (*busy)(nil)
