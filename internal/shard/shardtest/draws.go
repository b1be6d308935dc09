package shardtest

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (g *Generator) streamCreate() *commitpb.StreamCreate {
	p := &commitpb.StreamCreate{
		Namespace: rapid.SampledFrom([]string{"shop", "web", "", "a/b"}).Draw(g.t, "namespace"),
		Name:      rapid.SampledFrom([]string{"orders", "clicks", "users", ".."}).Draw(g.t, "name"),
	}
	p.Partitions = uint32(g.number("partitions", 0, 3)) //nolint:gosec // small
	if g.chance("many", 5) {
		p.Partitions = 4097
	}
	if g.chance("policy", 50) {
		p.Table = g.policy()
	}
	p.NamespaceId = rapid.Uint64Range(0, 4).Draw(g.t, "namespace id")
	p.Properties = g.properties()
	return p
}

func (g *Generator) policy() *commitpb.TablePolicy {
	return &commitpb.TablePolicy{Name: new(rapid.StringMatching(`[a-z]{1,5}`).Draw(g.t, "table"))}
}

func (g *Generator) streamUpdate() *commitpb.StreamUpdate {
	p := &commitpb.StreamUpdate{Stream: g.streamID(), ExpectedVersion: uint64(g.number("version", 0, 3)), Table: g.policy()} //nolint:gosec // small
	if st := g.model.Streams[base.StreamID(p.GetStream())]; st != nil && g.chance("current", 70) {
		p.ExpectedVersion = st.Version
	}
	if g.chance("no policy", 30) {
		p.Table = nil
	}
	if g.chance("properties", 40) {
		p.Properties = &commitpb.Properties{Values: g.properties(), SourceRevision: rapid.Uint64Range(0, 4).Draw(g.t, "source")}
	}
	return p
}

func (g *Generator) writerOpen() *commitpb.WriterOpen {
	g.token++
	p := &commitpb.WriterOpen{Token: slices.Repeat([]byte{g.token}, 16), Instance: "instance"}
	if g.chance("malformed", 10) {
		p.Token = p.Token[1:]
	}
	return p
}

func (g *Generator) append() *commitpb.Append {
	p := &commitpb.Append{Size: 10_000}
	p.Writer, p.Seq = g.next()
	for range g.number("blocks", 1, 4) {
		stream, partition, _ := g.log()
		p.Stream = append(p.Stream, stream)
		p.Partition = append(p.Partition, min(partition, 4095))
		p.Records = append(p.Records, uint32(g.number("records", 1, 4))) //nolint:gosec // small
		p.Pos = append(p.Pos, uint32(len(p.GetPos())*100))               //nolint:gosec // small
		p.Len = append(p.Len, 100)
		p.MinTime, p.MaxTime = append(p.MinTime, 0), append(p.MaxTime, 1)
	}
	if g.chance("producers", 40) {
		g.groups(p)
	}
	if g.chance("malformed", 10) {
		g.spoilAppend(p)
	}
	return p
}

func (g *Generator) spoilAppend(p *commitpb.Append) {
	rapid.SampledFrom([]func(){
		func() { p.Records[0] = 0 },
		func() { p.Records[0] = 1 << 31 },
		func() { p.Len[0] = 0 },
		func() { p.Pos[0] = 9_950 },
		func() { p.Pos[0] = 1<<32 - 1 },
		func() { p.Partition[0] = 4096 },
		func() { p.Size = 1 << 32 },
		func() { p.MinTime = p.MinTime[1:] },
		func() { p.Stream, p.Partition = nil, nil },
	}).Draw(g.t, "malformed")()
}

func (g *Generator) compact() *commitpb.Compact {
	p := &commitpb.Compact{ReadRevision: uint64(g.model.Revision)}
	p.Writer, p.Seq = g.next()
	if g.chance("read early", 25) {
		p.ReadRevision = rapid.Uint64Range(0, p.GetReadRevision()+2).Draw(g.t, "read revision")
	}
	for range g.number("logs", 1, 3) {
		stream, partition, l := g.log()
		start, end := g.compactRange(l)
		p.Stream = append(p.Stream, stream)
		p.Partition = append(p.Partition, min(partition, 4095))
		p.Start, p.End = append(p.Start, start), append(p.End, end)
		p.Size = append(p.Size, 1000)
	}
	if g.chance("malformed", 5) {
		rapid.SampledFrom([]func(){
			func() { p.End[0] = p.GetStart()[0] },
			func() { p.End[0] = 1 << 63 },
			func() { p.Size[0] = 1 << 63 },
			func() { p.Partition[0] = 4096 },
			func() { p.Size = nil },
		}).Draw(g.t, "malformed")()
	}
	return p
}

// compactRange is mostly a range that begins at the end of what is compacted, or
// merges compacted entries, and ends between two entries.
func (g *Generator) compactRange(l *Log) (start, end uint64) {
	if l == nil || len(l.Records) == 0 || g.chance("any range", 15) {
		start = rapid.Uint64Range(0, 12).Draw(g.t, "start")
		return start, start + rapid.Uint64Range(1, 8).Draw(g.t, "length")
	}
	var bounds []uint64
	raw := uint64(len(l.Records))
	for i := range l.Records {
		if l.boundary(base.Offset(i)) {
			bounds = append(bounds, uint64(i))
			if !l.Records[i].Compacted {
				raw = min(raw, uint64(i))
			}
		}
	}
	start = raw
	if raw == uint64(len(l.Records)) || g.chance("merge", 30) {
		start = rapid.SampledFrom(bounds).Draw(g.t, "start")
	}
	ends := slices.DeleteFunc(append(bounds, uint64(len(l.Records))), func(o uint64) bool { return o <= start })
	return start, rapid.SampledFrom(ends).Draw(g.t, "end")
}

func (g *Generator) prepare() *commitpb.Prepared {
	p := &commitpb.Prepared{}
	p.Writer, p.Seq = g.next()
	for i := range g.number("ranges", 0, 3) {
		stream, partition, l := g.log()
		r := &commitpb.PreparedRange{Stream: stream, Partition: partition, TableUuid: g.uuid("main"), DeadLetterUuid: g.uuid("dlt")}
		r.Start, r.End = rapid.Uint64Range(0, 5).Draw(g.t, "start"), rapid.Uint64Range(0, 9).Draw(g.t, "end")
		if l != nil && int(l.Prepared) < len(l.Records) && g.chance("at the mark", 85) {
			r.Start = uint64(l.Prepared)                                                //nolint:gosec // never negative
			r.End = uint64(g.number("prepared end", int(l.Prepared)+1, len(l.Records))) //nolint:gosec // never negative
		}
		name := fmt.Sprintf("f-%d-%d", g.model.Revision, i)
		r.Main = []*commitpb.DataFile{{Path: name, Rows: 1}}
		if g.chance("dead letters", 20) {
			r.DeadLetter = []*commitpb.DataFile{{Path: name + "-dlt", Rows: 1}}
		}
		r.Filtered = rapid.Uint64Range(0, 1).Draw(g.t, "filtered")
		if l != nil && len(l.Pending) > 0 && g.chance("replace", 25) {
			if lost := rapid.SampledFrom(l.Pending).Draw(g.t, "lost"); len(lost.GetMain()) > 0 {
				g.replace(r, lost)
			}
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p
}

// replace makes r a second decode of a range whose files were lost.
func (g *Generator) replace(r, lost *commitpb.PreparedRange) {
	r.Replaces, r.Start, r.End = lost.GetMain()[0].GetPath(), lost.GetStart(), lost.GetEnd()
	if g.chance("same verdicts", 80) {
		r.Filtered = lost.GetFiltered()
		r.DeadLetter = lost.GetDeadLetter()
	}
}

func (g *Generator) materialize() *commitpb.Materialized {
	p := &commitpb.Materialized{TableUuid: g.uuid("main"), DeadLetterUuid: g.uuid("dlt"), CommitId: "commit", Snapshot: int64(g.model.Revision)} //nolint:gosec // small
	for range g.number("marks", 0, 2) {
		stream, partition, l := g.log()
		end := rapid.Uint64Range(0, 9).Draw(g.t, "end")
		if l != nil && len(l.Pending) > 0 && g.chance("a range's end", 85) {
			end = rapid.SampledFrom(l.Pending).Draw(g.t, "pending").GetEnd()
		}
		p.Stream = stream
		p.Partition, p.End = append(p.Partition, partition), append(p.End, end)
	}
	if g.chance("malformed", 5) {
		p.End = append(p.End, 1)
	}
	return p
}

// reclaim names dead objects, and now and then one that lives.
func (g *Generator) reclaim() *commitpb.Reclaimed {
	candidates := slices.Sorted(maps.Keys(g.model.Dead))
	if g.chance("live", 20) {
		candidates = append(candidates, slices.Sorted(maps.Keys(g.model.Live()))...)
	}
	candidates = append(candidates, "wal/s00/1/nothing")
	return &commitpb.Reclaimed{Keys: rapid.SliceOfN(rapid.SampledFrom(candidates), 0, 3).Draw(g.t, "keys")}
}
