package shard

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// LoadCheckpoint returns the state that a checkpoint holds. One of another cluster
// is base.ErrForeign, damage or another shard's base.ErrCorrupt, and what a newer
// binary or fold version wrote base.ErrNewerFormat. It does not compare the hash of
// the state, which takes longer than loading: see Verify.
func LoadCheckpoint(data []byte, cluster base.ClusterID, shard base.Shard) (Snapshot, error) {
	c, err := checkpoint.Open(data)
	if err != nil {
		return Snapshot{}, err
	}
	switch h := &c.Header; {
	case h.Cluster != cluster:
		return Snapshot{}, fmt.Errorf("loading checkpoint of %s: it is of cluster %s, want %s: %w", shard, h.Cluster, cluster, base.ErrForeign)
	case h.Shard != shard:
		return Snapshot{}, fmt.Errorf("loading checkpoint of %s: it is of %s: %w", shard, h.Shard, base.ErrCorrupt)
	}
	d := &stateDecoder{state: NewState(cluster, shard), sections: c.Sections}
	d.state.revision, d.state.time, d.state.hash = c.Header.Revision, c.Header.Time, c.Header.Chain
	for _, load := range []func(){d.shard, d.streams, d.logs, d.lists, d.producers, d.meta} {
		if load(); d.err != nil {
			return Snapshot{}, fmt.Errorf("loading checkpoint of %s: %w", shard, d.err)
		}
	}
	if len(d.sections) > 0 {
		return Snapshot{}, fmt.Errorf("loading checkpoint of %s: section %d is not known: upgrade this binary: %w",
			shard, d.sections[0].ID, base.ErrNewerFormat)
	}
	return Snapshot{State: d.state, Record: c.Header.Record}, nil
}

// VerifyCheckpoint loads a checkpoint and compares the hash of the state with the
// one that it was written for: base.ErrCorrupt when they differ.
func VerifyCheckpoint(data []byte, cluster base.ClusterID, shard base.Shard) (Snapshot, error) {
	sn, err := LoadCheckpoint(data, cluster, shard)
	if err != nil {
		return Snapshot{}, err
	}
	c, err := checkpoint.Open(data)
	if err != nil {
		return Snapshot{}, err
	}
	if hash := sn.State.Hash(); hash != c.Header.State {
		return Snapshot{}, fmt.Errorf("loading checkpoint of %s: the state has hash %s, want %s: %w", shard, hash, c.Header.State, base.ErrCorrupt)
	}
	return sn, nil
}

// stateDecoder fills a state section by section.
type stateDecoder struct {
	state    *State
	sections []checkpoint.Section
	err      error
	// byID finds live and kept streams alike; order has them as they were stored.
	byID  map[base.StreamID]*Stream
	order []*Stream
}

// rows calls row for each row of the next section, which must be this one.
func (d *stateDecoder) rows(id checkpoint.SectionID, row func(r *checkpoint.Rows)) {
	if d.err != nil {
		return
	}
	if len(d.sections) == 0 || d.sections[0].ID != id {
		d.corrupt("section %d is missing", id)
		return
	}
	s := &d.sections[0]
	d.sections = d.sections[1:]
	r, err := s.Read(sectionColumns[id]...)
	if err != nil {
		d.err = err
		return
	}
	for n := uint64(0); n < s.Rows && !r.Failed() && d.err == nil; n++ {
		row(r)
	}
	if err := r.Close(); err != nil && d.err == nil {
		d.err = err
	}
}

func (d *stateDecoder) corrupt(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{base.ErrCorrupt}, args...)...)
	}
}

// decodeMessage decodes a message that a record brought.
func decodeMessage[M proto.Message](d *stateDecoder, text string, m M) M {
	if err := proto.Unmarshal([]byte(text), m); err != nil {
		d.corrupt("a message: %v", err)
	} else if len(m.ProtoReflect().GetUnknown()) > 0 && d.err == nil {
		d.err = fmt.Errorf("a field that this binary does not know: upgrade it: %w", base.ErrNewerFormat)
	}
	return m
}

func (d *stateDecoder) shard() {
	s := d.state
	d.rows(sectionShard, func(r *checkpoint.Rows) {
		s.created = r.Number() != 0
		s.shards = int(r.Number())         //nolint:gosec // two's complement
		s.foldVersion = uint32(r.Number()) //nolint:gosec // it was one
		s.foreign = int64(r.Number())      //nolint:gosec // two's complement
		s.epoch = r.Number()
	})
	if s.foldVersion > commitrecord.FoldVersion && d.err == nil {
		d.err = newerFold(s.foldVersion)
	}
}

func (d *stateDecoder) streams() {
	s := d.state
	d.byID = make(map[base.StreamID]*Stream)
	d.rows(sectionStreams, func(r *checkpoint.Rows) {
		st, kept, partitions := d.stream(r)
		switch {
		case d.byID[st.ID] != nil, partitions == 0, partitions > MaxPartitions:
			d.corrupt("stream %d with %d partitions", st.ID, partitions)
			return
		case kept:
			s.kept[st.ID] = st
		default:
			s.streams[st.ID] = st
			s.names[st.Name] = st.ID
		}
		st.Logs = make([]*Log, 0, partitions)
		d.byID[st.ID] = st
		d.order = append(d.order, st)
		s.logs += int(partitions)
	})
	d.rows(sectionFormer, func(r *checkpoint.Rows) {
		if st, uuid := d.streamOf(r.Number()), r.Text(); st != nil {
			st.Former = append(st.Former, uuid)
		}
	})
	d.rows(sectionStreamProperties, func(r *checkpoint.Rows) {
		if st, p := d.streamOf(r.Number()), property(r); st != nil {
			st.Properties = append(st.Properties, p)
		}
	})
}

func (d *stateDecoder) stream(r *checkpoint.Rows) (st *Stream, kept bool, partitions uint64) {
	st = &Stream{ID: base.StreamID(r.Number())}
	kept = r.Number() != 0
	st.Name = base.StreamName{Namespace: r.Text(), Name: r.Text()}
	st.Version = r.Number()
	st.Namespace = base.NamespaceID(r.Number())
	st.PropertiesSource = r.Number()
	partitions = r.Number()
	st.Policy = decodeMessage(d, r.Text(), &commitpb.TablePolicy{})
	st.Retention = decodeMessage(d, r.Text(), &commitpb.Retention{})
	declared := r.Number() != 0
	if schema := decodeMessage(d, r.Text(), &commitpb.StreamSchema{}); declared {
		st.Schema = schema
	}
	st.Table.UUID = r.Text()
	st.Table.DeadLetterUUID = r.Text()
	st.Table.Snapshot = int64(r.Number())           //nolint:gosec // two's complement
	st.Table.DeadLetterSnapshot = int64(r.Number()) //nolint:gosec // two's complement
	st.Table.CommitID = r.Text()
	st.Table.DeadLetterCommitID = r.Text()
	return st, kept, partitions
}

// streamOf returns the stream that a row names.
func (d *stateDecoder) streamOf(id uint64) *Stream {
	st := d.byID[base.StreamID(id)]
	if st == nil {
		d.corrupt("no stream %d", id)
	}
	return st
}

func property(r *checkpoint.Rows) *commitpb.Property {
	return &commitpb.Property{Key: r.Text(), Value: r.Text()}
}

// logs loads what section index of the encoder wrote.
func (d *stateDecoder) logs() {
	var logs []loadedLog
	d.rows(sectionLogs, func(r *checkpoint.Rows) {
		l, st := d.log(r)
		if st == nil {
			return
		}
		if l.id.Partition != base.Partition(len(st.Logs)) || len(st.Logs) == cap(st.Logs) { //nolint:gosec // at most MaxPartitions
			d.corrupt("log %s among %d", l.id, len(st.Logs))
			return
		}
		st.Logs = append(st.Logs, l.Log)
		logs = append(logs, l)
	})
	for _, st := range d.order {
		if len(st.Logs) != cap(st.Logs) {
			d.corrupt("stream %d has %d of %d logs", st.ID, len(st.Logs), cap(st.Logs))
		}
	}
	objects := &d.state.objects
	d.rows(sectionObjects, func(r *checkpoint.Rows) {
		objects.add(object{
			writer: base.WriterID(r.Number()), seq: base.Seq(r.Number()),
			size:     int64(r.Number()),                                              //nolint:gosec // two's complement
			revision: base.Revision(r.Number()), appendTime: base.Millis(r.Number()), //nolint:gosec // two's complement
			storage: Storage(r.Number()), //nolint:gosec // it was one
		})
	})
	entries := logs
	d.rows(sectionEntries, func(r *checkpoint.Rows) {
		for len(entries) > 0 && uint64(len(entries[0].entries)) == entries[0].wantEntries {
			entries = entries[1:]
		}
		d.entry(r, entries)
	})
	pending := logs
	d.rows(sectionPending, func(r *checkpoint.Rows) {
		for len(pending) > 0 && uint64(len(pending[0].table.pending)) == pending[0].wantPending {
			pending = pending[1:]
		}
		since, text := r.Number(), r.Text()
		if len(pending) == 0 {
			d.corrupt("more prepared ranges than logs have")
			return
		}
		t := &pending[0].table
		t.pending = append(t.pending, decodeMessage(d, text, &commitpb.PreparedRange{}))
		t.pendingSince = append(t.pendingSince, base.Millis(since)) //nolint:gosec // two's complement
	})
	for _, l := range logs {
		if uint64(len(l.entries)) != l.wantEntries || uint64(len(l.table.pending)) != l.wantPending {
			d.corrupt("log %s has %d of %d entries", l.id, len(l.entries), l.wantEntries)
		}
	}
}

// loadedLog is a log whose index is being loaded.
type loadedLog struct {
	*Log
	wantEntries, wantPending uint64
}

func (d *stateDecoder) log(r *checkpoint.Rows) (loadedLog, *Stream) {
	signed := func() int64 { return int64(r.Number()) } //nolint:gosec // two's complement
	st := d.streamOf(r.Number())
	l := &Log{}
	if st != nil {
		l.id.Stream = st.ID
	}
	l.id.Partition = base.Partition(signed()) //nolint:gosec // checked by the caller
	l.start, l.floor, l.head = base.Offset(signed()), base.Offset(signed()), base.Offset(signed())
	l.bytes = signed()
	l.fence = r.Text()
	l.table.prepared, l.table.materialized = base.Offset(signed()), base.Offset(signed())
	l.table.leftOut, l.table.skipped = signed(), signed()
	return loadedLog{Log: l, wantEntries: r.Number(), wantPending: r.Number()}, st
}

// maxReserve bounds what is allocated on the word of a count alone.
const maxReserve = 4096

// entry appends an entry to the first of the logs that is not whole.
func (d *stateDecoder) entry(r *checkpoint.Rows, logs []loadedLog) {
	e := indexEntry{
		base: base.Offset(r.Number()), records: uint32(r.Number()), //nolint:gosec // two's complement, it was one
		object: objectRef(r.Number()), pos: uint32(r.Number()), len: uint32(r.Number()), //nolint:gosec // they were
	}
	if len(logs) == 0 || int(e.object) >= len(d.state.objects.all) {
		d.corrupt("an entry of no log or object")
		return
	}
	l := logs[0].Log
	if l.entries == nil {
		l.entries = make([]indexEntry, 0, min(logs[0].wantEntries, maxReserve))
	}
	if n := len(l.entries); e.records == 0 || n > 0 && l.entries[n-1].end() > e.base {
		d.corrupt("entries of log %s overlap at %d", l.id, e.base)
		return
	}
	l.entries = append(l.entries, e)
	d.state.objects.get(e.object).live++
	d.state.entries++
}

func (d *stateDecoder) lists() {
	s := d.state
	d.rows(sectionWriters, func(r *checkpoint.Rows) {
		w := &Writer{ID: base.WriterID(r.Number()), Next: base.Seq(r.Number()), Instance: r.Text(), token: r.Text()}
		s.writers[w.ID] = w
		s.tokens[w.token] = w.ID
	})
	d.rows(sectionDead, func(r *checkpoint.Rows) {
		dead := Dead{Key: r.Text(), Since: base.Revision(r.Number()), Size: int64(r.Number())} //nolint:gosec // two's complement
		s.dead[dead.Key] = dead
	})
	d.rows(sectionTombstones, func(r *checkpoint.Rows) {
		name := base.StreamName{Namespace: r.Text(), Name: r.Text()}
		s.tombstones[name] = Tombstone{ID: base.StreamID(r.Number()), Purged: r.Number() != 0}
	})
	d.rows(sectionSealed, func(r *checkpoint.Rows) {
		name := r.Text()
		s.sealed[name] = base.NamespaceID(r.Number())
	})
}

func (d *stateDecoder) producers() {
	type loaded struct {
		*window
		want uint64
	}
	var windows []loaded
	d.rows(sectionProducers, func(r *checkpoint.Rows) {
		st, name, want := d.streamOf(r.Number()), r.Text(), r.Number()
		if st == nil {
			return
		}
		if st.producers == nil {
			st.producers = make(map[string]*window)
		}
		w := &window{}
		st.producers[name] = w
		windows = append(windows, loaded{w, want})
	})
	rest := windows
	d.rows(sectionIntervals, func(r *checkpoint.Rows) {
		for len(rest) > 0 && uint64(len(rest[0].intervals)) == rest[0].want {
			rest = rest[1:]
		}
		q := interval{first: r.Number(), end: r.Number()}
		if len(rest) == 0 {
			d.corrupt("more intervals than producers have")
			return
		}
		rest[0].intervals = append(rest[0].intervals, q)
		d.state.intervals++
	})
	for _, w := range windows {
		if uint64(len(w.intervals)) != w.want {
			d.corrupt("a producer has %d of %d intervals", len(w.intervals), w.want)
		}
	}
}

func (d *stateDecoder) meta() {
	m := &d.state.meta
	d.rows(sectionCluster, func(r *checkpoint.Rows) {
		m.cluster.Version = r.Number()
		m.cluster.Policy = decodeMessage(d, r.Text(), &commitpb.TablePolicy{})
		m.cluster.Retention = decodeMessage(d, r.Text(), &commitpb.Retention{})
	})
	byID := make(map[base.NamespaceID]*Namespace)
	d.rows(sectionNamespaces, func(r *checkpoint.Rows) {
		n := &Namespace{ID: base.NamespaceID(r.Number()), Version: r.Number(), Name: r.Text()}
		n.Policy = decodeMessage(d, r.Text(), &commitpb.TablePolicy{})
		n.Retention = decodeMessage(d, r.Text(), &commitpb.Retention{})
		m.namespaces[n.Name] = n
		byID[n.ID] = n
	})
	d.rows(sectionNamespaceProperties, func(r *checkpoint.Rows) {
		id, p := r.Number(), property(r)
		n := byID[base.NamespaceID(id)]
		if n == nil {
			d.corrupt("no namespace %d", id)
			return
		}
		n.Properties = append(n.Properties, p)
	})
	d.rows(sectionCatalogs, func(r *checkpoint.Rows) {
		c := &TableCatalog{Name: r.Text(), Type: r.Text()}
		m.catalogs[c.Name] = c
	})
	d.rows(sectionCatalogProperties, func(r *checkpoint.Rows) {
		name, which, p := r.Text(), r.Number(), property(r)
		c := m.catalogs[name]
		switch {
		case c == nil:
			d.corrupt("no table catalog %q", name)
		case which == 0:
			c.Connection = append(c.Connection, p)
		default:
			c.Properties = append(c.Properties, p)
		}
	})
}
