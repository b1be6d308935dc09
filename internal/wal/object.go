package wal

import (
	"iter"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
)

// phase is how far an object has come.
type phase uint8

const (
	filling phase = iota // takes appends
	sealed               // waits for an upload
	uploading
	uploaded
	committing // its record was put, or is being put
	resolved
)

// Object is one flush: the blocks of many logs and the appends that wait for it.
type Object struct {
	phase phase
	// busy is set while the driver works on it, perhaps for a writer that was
	// fenced meanwhile.
	busy bool
	// published is set once a record of the object was put under any writer.
	published bool
	ordinal   uint64
	// writer and seq are the identity under which it is to be committed.
	writer base.WriterID
	seq    base.Seq

	// waiting is what the open object waits for, lingered that it did so long
	// enough.
	waiting  ActionKind
	lingered bool

	bytes int // bound of the encoded records
	// groupBytes bounds what the producers' groups add to the commit record.
	groupBytes int
	urgent     bool
	appends    []*Append
	blocks     []block
	byLog      map[base.LogID]int

	// data is the built object and index its blocks; nil before Build.
	data  []byte
	index []walobject.Block
}

// block is the parts of one log in arrival order; of a producer's group, one part.
type block struct {
	log        base.LogID
	head, tail *part
	records    int
	group      *producerGroup
}

func newObject(ordinal uint64) *Object {
	return &Object{ordinal: ordinal, byLog: make(map[base.LogID]int)}
}

// isFullFor reports whether an append has no place in the object any more.
func (o *Object) isFullFor(a *Append, maxBytes int) bool {
	return o.bytes+a.bytes > maxBytes || len(o.blocks)+len(a.parts) > MaxBlocks || o.groupBytes+a.groupBytes > maxGroupBytes
}

// add takes an append in.
func (o *Object) add(a *Append) {
	for i := range a.parts {
		p := &a.parts[i]
		b := o.blockOf(p)
		p.first = b.records
		b.records += p.records
		if b.tail == nil {
			b.head = p
		} else {
			b.tail.next = p
		}
		b.tail = p
	}
	o.appends = append(o.appends, a)
	o.bytes += a.bytes
	o.groupBytes += a.groupBytes
	o.urgent = o.urgent || a.urgent
}

// blockOf returns the block that a part goes to. The fold takes or refuses a block
// whole, so that a producer's part shares its with nobody, and what comes later for
// the log stands behind it.
func (o *Object) blockOf(p *part) *block {
	if n := len(o.blocks); n > 0 && p.group == nil && o.blocks[n-1].group == nil && o.blocks[n-1].log == p.log {
		return &o.blocks[n-1] // mostly one log: no lookup
	}
	i, ok := o.byLog[p.log]
	if !ok || p.group != nil || o.blocks[i].group != nil {
		i = len(o.blocks)
		o.byLog[p.log] = i
		o.blocks = append(o.blocks, block{log: p.log, group: p.group})
	}
	return &o.blocks[i]
}

// seal fixes the order of the blocks: by log, so that the partitions of a stream
// are read with one request, and within a log by arrival.
func (o *Object) seal() {
	o.phase = sealed
	o.byLog = nil
	slices.SortStableFunc(o.blocks, func(a, b block) int { return a.log.Compare(b.log) })
}

func (b *block) runs() iter.Seq[recordbatch.Run] {
	return func(yield func(recordbatch.Run) bool) {
		for p := b.head; p != nil; p = p.next {
			for _, run := range p.runs {
				if !yield(run) {
					return
				}
			}
		}
	}
}

// Form is how objects are built.
type Form struct {
	Cluster     base.ClusterID
	Shard       base.Shard
	Compression recordbatch.Compression
	// Alignment is what an object's length is a multiple of, at least 1.
	Alignment int
}

// header returns the header of an object of a writer.
func (f *Form) header(writer base.WriterID, seq base.Seq) walobject.Header {
	return walobject.Header{Cluster: f.Cluster, Shard: f.Shard, Writer: writer, Seq: seq}
}

// Build makes the bytes of a sealed object for a writer and returns them: from
// its appends the first time, and by giving it to the other writer afterwards. A
// nil take allocates. It must not run twice at once for one object.
func (o *Object) Build(form *Form, writer base.WriterID, seq base.Seq, take func(capacity int) []byte) ([]byte, error) {
	header := form.header(writer, seq)
	if o.data != nil {
		walobject.Restamp(o.data, header)
		return o.data, nil
	}
	bound := 0
	for i := range o.blocks {
		bound += recordbatch.BlockBound(o.blocks[i].runs())
	}
	bound = walobject.Bound(len(o.blocks), bound, form.Alignment)
	var segment []byte
	if take != nil {
		segment = take(bound)
	}
	var builder walobject.Builder
	builder.Reset(segment, header, form.Alignment)
	for i := range o.blocks {
		builder.Add(o.blocks[i].log, o.blocks[i].runs(), form.Compression)
	}
	data, index, err := builder.Finish()
	if err != nil {
		return nil, err
	}
	o.data, o.index = data, index
	return data, nil
}

// Record returns the commit record of a built object for a writer.
func (o *Object) Record(writer base.WriterID, seq base.Seq) *commitpb.Append {
	n := len(o.index)
	record := &commitpb.Append{
		Writer: uint64(writer), Seq: uint64(seq), Size: uint64(len(o.data)),
		Stream: make([]uint64, n), Partition: make([]uint32, n), Records: make([]uint32, n),
		Pos: make([]uint32, n), Len: make([]uint32, n),
		MinTime: make([]int64, n), MaxTime: make([]int64, n),
	}
	for i := range o.index {
		b := &o.index[i]
		record.Stream[i] = uint64(b.Log.Stream)
		record.Partition[i] = uint32(b.Log.Partition) //nolint:gosec // not negative
		record.Records[i] = uint32(b.Records)         //nolint:gosec // bounded by the object's size
		record.Pos[i] = uint32(b.Pos)                 //nolint:gosec // an object is below 4 GiB
		record.Len[i] = uint32(b.Len)                 //nolint:gosec // an object is below 4 GiB
		record.MinTime[i] = int64(b.MinTime)
		record.MaxTime[i] = int64(b.MaxTime)
	}
	record.Groups = o.groups()
	return record
}
