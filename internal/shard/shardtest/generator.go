package shardtest

import (
	"bytes"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Cluster is the cluster whose records a Generator writes.
var Cluster = base.ClusterID{0xc1, 15: 0x01}

// Step is one record of a generated history.
type Step struct {
	Entry coord.Entry
	// Payload is nil for a record that is not ours.
	Payload commitrecord.Payload
}

// Generator draws a history, record by record. It keeps a Model to know what a
// correct writer would do next, and mostly does something close to it.
type Generator struct {
	t     *rapid.T
	model *Model
	steps []Step
	token byte
}

// Draw returns a history of the shard. It begins with a ClusterCreate record,
// perhaps after records that come too early, and holds no record that stops a
// shard.
func Draw(t *rapid.T, shard base.Shard, length int) []Step {
	g := &Generator{t: t, model: NewModel(shard)}
	for range rapid.IntRange(0, 2).Draw(t, "early") {
		g.draw()
	}
	g.add(&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	for range length {
		g.draw()
	}
	return g.steps
}

// Encode returns the record of a payload whose publisher claims to have seen
// nothing, which agrees with every history.
func Encode(t require.TestingT, payload commitrecord.Payload) []byte {
	data, err := commitrecord.Encode(commitrecord.Envelope{Cluster: Cluster}, payload)
	require.NoError(t, err)
	return data
}

func (g *Generator) draw() {
	weighted := map[string]int{
		"stream": 2, "update": 1, "open": 2, "fence": 1, "append": 12, "compact": 8, "prepare": 7, "materialize": 7,
		"reset": 1, "reclaim": 2, "cluster": 1, "foreign": 2, "again": 5,
		"grow": 1, "delete": 1, "seal": 1, "log fence": 1, "trim": 4, "skip": 3, "recover": 1, "meta": 1,
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(weighted)) {
		names = append(names, slices.Repeat([]string{name}, weighted[name])...)
	}
	n := g.even("record", len(names))
	switch names[n] {
	case "stream":
		g.add(g.streamCreate())
	case "update":
		g.add(g.streamUpdate())
	case "open":
		g.add(g.writerOpen())
	case "fence":
		g.add(&commitpb.WriterFence{Writers: []uint64{g.writerID(), g.writerID()}[:g.number("fenced", 0, 2)]})
	case "append":
		g.add(g.append())
	case "compact":
		g.add(g.compact())
	case "prepare":
		g.add(g.prepare())
	case "materialize":
		g.add(g.materialize())
	case "reset":
		g.add(&commitpb.TableReset{Stream: g.streamID(), TableUuid: g.uuid("main")})
	case "reclaim":
		g.add(g.reclaim())
	case "cluster":
		g.add(rapid.SampledFrom([]commitrecord.Payload{
			&commitpb.ClusterCreate{Shards: 8, FoldVersion: 0}, &commitpb.ClusterCreate{Shards: 0, FoldVersion: commitrecord.FoldVersion},
			&commitpb.FoldVersion{}, &commitpb.FoldVersion{Version: 1}, &commitpb.FoldVersion{Version: 7},
		}).Draw(g.t, "settings"))
	case "foreign":
		g.foreign()
	case "again":
		g.again()
	default:
		g.drawVersion2(names[n])
	}
}

// add appends the record of a payload. The server's clock steps back now and then.
func (g *Generator) add(payload commitrecord.Payload) {
	g.deliver(Encode(g.t, payload), payload)
}

func (g *Generator) deliver(data []byte, payload commitrecord.Payload) {
	at := max(0, g.model.Time+base.Millis(rapid.IntRange(-50, 100).Draw(g.t, "clock")))
	g.model.Apply(at, payload)
	g.steps = append(g.steps, Step{Entry: coord.Entry{Revision: g.model.Revision, Time: at, Data: data}, Payload: payload})
}

// foreign puts bytes that are no record of this cluster.
func (g *Generator) foreign() {
	ours := Encode(g.t, &commitpb.StreamCreate{Namespace: "a", Name: "b", Partitions: 1})
	theirs, err := commitrecord.Encode(commitrecord.Envelope{Cluster: base.ClusterID{0xff}}, &commitpb.ClusterCreate{Shards: 1, FoldVersion: 99})
	require.NoError(g.t, err)
	damaged := bytes.Clone(ours)
	damaged[g.number("damaged", 0, len(damaged)-1)] ^= 1
	g.deliver(rapid.SampledFrom([][]byte{
		nil, {}, []byte("hello"), ours[:len(ours)-1], damaged, theirs,
	}).Draw(g.t, "bytes"), nil)
}

// again delivers an earlier record once more: a put whose reply was lost and that
// was put again, or one that was held up on its way.
func (g *Generator) again() {
	if len(g.steps) == 0 {
		return
	}
	old := g.steps[g.number("earlier", 0, len(g.steps)-1)]
	payload := old.Payload
	if payload != nil {
		payload = proto.Clone(payload)
	}
	g.deliver(old.Entry.Data, payload)
}

func (g *Generator) number(label string, low, high int) int {
	return rapid.IntRange(low, high).Draw(g.t, label)
}

// chance is true in about percent of a hundred draws.
func (g *Generator) chance(label string, percent int) bool { return g.even(label, 100) >= 100-percent }

// even returns one of n numbers with about the same chance: the library's own
// draws prefer small ones, and mishaps would crowd out all else.
func (g *Generator) even(label string, n int) int {
	const spread = 2_654_435_761 // odd and near 2^32 divided by the golden ratio
	return int(rapid.Uint32().Draw(g.t, label)*spread>>8) % n
}

// streamID is mostly that of a stream.
func (g *Generator) streamID() uint64 {
	if len(g.model.Streams) == 0 || g.chance("no stream", 5) {
		return rapid.Uint64().Draw(g.t, "stream")
	}
	return uint64(rapid.SampledFrom(slices.Sorted(maps.Keys(g.model.Streams))).Draw(g.t, "stream"))
}

// writerID is mostly that of an open writer, and never one that a later record
// will open.
func (g *Generator) writerID() uint64 {
	if len(g.model.Writers) == 0 || g.chance("no writer", 5) {
		return rapid.Uint64Range(0, uint64(g.model.Revision)).Draw(g.t, "writer")
	}
	return uint64(rapid.SampledFrom(slices.Sorted(maps.Keys(g.model.Writers))).Draw(g.t, "writer"))
}

// next is a writer and mostly the seq that it must publish now, never a later one.
func (g *Generator) next() (writer, seq uint64) {
	writer = g.writerID()
	w := g.model.Writers[base.WriterID(writer)]
	if w == nil {
		return writer, rapid.Uint64Range(0, 5).Draw(g.t, "seq")
	}
	if g.chance("stale", 10) {
		return writer, rapid.Uint64Range(0, uint64(w.Next)-1).Draw(g.t, "seq")
	}
	return writer, uint64(w.Next)
}

// log is mostly a log that exists, and its model, or nil.
func (g *Generator) log() (stream uint64, partition uint32, l *Log) {
	stream = g.streamID()
	st := g.model.Streams[base.StreamID(stream)]
	partitions := 1
	if st != nil {
		partitions = len(st.Logs)
	}
	partition = uint32(g.number("partition", 0, partitions-1)) //nolint:gosec // small
	if g.chance("no partition", 5) {
		partition = rapid.Uint32().Draw(g.t, "partition")
	}
	return stream, partition, g.model.Log(stream, partition)
}

func (g *Generator) uuid(table string) string {
	return rapid.SampledFrom([]string{table + "-1", table + "-1", table + "-1", table + "-2", table + "-2", table + "-3", ""}).Draw(g.t, "uuid")
}
