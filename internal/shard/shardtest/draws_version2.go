package shardtest

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (g *Generator) drawVersion2(record string) {
	switch record {
	case "grow":
		g.add(&commitpb.PartitionsAdd{Stream: g.streamID(), Partitions: rapid.SampledFrom([]uint32{0, 1, 2, 3, 4, 4097}).Draw(g.t, "grow to")})
	case "delete":
		g.add(g.streamDelete())
	case "seal":
		g.add(&commitpb.NamespaceSeal{
			Namespace:   rapid.SampledFrom([]string{"shop", "web", "empty", ""}).Draw(g.t, "namespace"),
			NamespaceId: rapid.Uint64Range(0, 4).Draw(g.t, "namespace id"), Undo: g.chance("undo", 40),
		})
	case "log fence":
		g.add(g.logFence())
	case "trim":
		g.add(g.trim())
	case "skip":
		g.add(g.skip())
	case "recover":
		if g.chance("recover", 20) {
			g.add(&commitpb.Recovered{Epoch: g.model.Epoch + rapid.Uint64Range(0, 2).Draw(g.t, "epoch")})
		}
	case "meta":
		g.add(rapid.SampledFrom([]commitrecord.Payload{
			&commitpb.NamespaceCreate{Namespace: "shop"}, &commitpb.NamespaceDrop{NamespaceId: 1}, &commitpb.CatalogUnregister{Name: "c"},
		}).Draw(g.t, "meta"))
	}
}

func (g *Generator) properties() (all []*commitpb.Property) {
	for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2).Draw(g.t, "properties") {
		all = append(all, &commitpb.Property{Key: key, Value: "v"})
	}
	if g.chance("sorted", 90) {
		slices.SortFunc(all, func(a, b *commitpb.Property) int { return int(a.GetKey()[0]) - int(b.GetKey()[0]) })
		all = slices.CompactFunc(all, func(a, b *commitpb.Property) bool { return a.GetKey() == b.GetKey() })
	}
	return all
}

// streamDelete now and then names a stream that was deleted and whose data is kept.
func (g *Generator) streamDelete() *commitpb.StreamDelete {
	p := &commitpb.StreamDelete{Stream: g.streamID(), Purge: g.chance("purge", 50)}
	if len(g.model.Kept) > 0 && g.chance("kept", 50) {
		p.Stream = uint64(rapid.SampledFrom(slices.Sorted(maps.Keys(g.model.Kept))).Draw(g.t, "kept stream"))
	}
	return p
}

func (g *Generator) logFence() commitrecord.Payload {
	stream, partition, _ := g.log()
	partitions := []uint32{partition, 0}[:g.number("fenced logs", 0, 2)]
	if g.chance("lift", 60) {
		return &commitpb.LogUnfence{Stream: stream, Partition: partitions}
	}
	return &commitpb.LogFence{Stream: stream, Partition: partitions, Reason: rapid.SampledFrom([]string{"why", "why", "why", ""}).Draw(g.t, "reason")}
}

func (g *Generator) trim() *commitpb.Trim {
	stream, partition, l := g.log()
	to := rapid.Uint64Range(0, 9).Draw(g.t, "trim to")
	if l != nil && g.chance("within", 85) {
		to = uint64(g.number("trim within", 0, len(l.Records))) //nolint:gosec // never negative
	}
	p := &commitpb.Trim{Stream: stream, Partition: []uint32{partition}, Offset: []uint64{to}, Hard: g.chance("hard", 60)}
	if g.chance("malformed", 5) {
		p.Offset = nil
	}
	return p
}

func (g *Generator) skip() *commitpb.Skip {
	stream, partition, l := g.log()
	p := &commitpb.Skip{Stream: stream, Partition: partition, Reason: rapid.SampledFrom([]string{"trimmed", "trimmed", "trimmed", ""}).Draw(g.t, "reason")}
	p.Start, p.End = rapid.Uint64Range(0, 3).Draw(g.t, "start"), rapid.Uint64Range(0, 6).Draw(g.t, "end")
	if l != nil && g.chance("at the mark", 85) {
		p.Start, p.End = uint64(l.Prepared), uint64(l.Floor) //nolint:gosec // never negative
	}
	return p
}

// groups gives some blocks of an append a producer.
func (g *Generator) groups(p *commitpb.Append) {
	for b := range p.GetStream() {
		if g.chance("no producer", 20) {
			continue
		}
		first := rapid.SampledFrom([]uint64{0, 1, 2, 3, 5, 8, 20, 65_530, 65_540, 131_080}).Draw(g.t, "first")
		group := &commitpb.ProducerGroup{
			Producer: rapid.SampledFrom([]string{"p", "q"}).Draw(g.t, "producer"),
			First:    []uint64{first}, Count: []uint64{rapid.Uint64Range(1, 4).Draw(g.t, "count")}, Block: []uint32{uint32(b)},
		}
		if g.chance("two intervals", 30) {
			group.First, group.Count = append(group.First, first+5), append(group.Count, 1)
		}
		if b > 0 && g.chance("two blocks", 30) {
			group.Block = append(group.Block, uint32(b-1))
		}
		if g.chance("malformed", 3) {
			group.Count[0] = 0
		}
		p.Groups = append(p.Groups, group)
	}
}
