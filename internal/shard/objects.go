package shard

import "github.com/lakestream-go/lakestream/internal/base"

// objectRef is the place of an object in a state's table. Places are used again,
// so a ref means nothing outside the index that holds it.
type objectRef uint32

// object is a stored object that index entries reference.
type object struct {
	writer     base.WriterID
	seq        base.Seq
	size       int64
	revision   base.Revision
	appendTime base.Millis
	live       int32
	storage    Storage
}

// key returns the object's key. A compacted object has one entry, whose log and
// range are part of its key.
func (o *object) key(shard base.Shard, log base.LogID, r base.OffsetRange) string {
	if o.storage == Compacted {
		return base.CompactedKey(shard, o.writer, log, r, o.seq)
	}
	return base.WALKey(shard, o.writer, o.seq)
}

// objectTable holds the objects by reference, without pointers between them.
type objectTable struct {
	all  []object
	free []objectRef
}

func (t *objectTable) get(ref objectRef) *object { return &t.all[ref] }

func (t *objectTable) add(o object) objectRef {
	if n := len(t.free); n > 0 {
		ref := t.free[n-1]
		t.free = t.free[:n-1]
		t.all[ref] = o
		return ref
	}
	t.all = append(t.all, o)
	return objectRef(len(t.all) - 1) //nolint:gosec // a shard's index is far below 2^32 objects
}

func (t *objectTable) remove(ref objectRef) {
	t.all[ref] = object{}
	t.free = append(t.free, ref)
}

// count returns the number of objects that something references.
func (t *objectTable) count() int { return len(t.all) - len(t.free) }

// release takes one reference from an object and, with the last one, moves it to
// the dead list.
func (s *State) release(ref objectRef, log base.LogID, r base.OffsetRange) {
	o := s.objects.get(ref)
	if o.live--; o.live > 0 {
		return
	}
	s.bury(o.key(s.shard, log, r), o.size)
	s.objects.remove(ref)
}

func (s *State) bury(key string, size int64) {
	s.dead[key] = Dead{Key: key, Since: s.revision, Size: size}
}

// Objects returns how many objects live entries reference.
func (s *State) Objects() int { return s.objects.count() }

// ObjectBytes returns the size of the objects that live entries reference, and of
// those that nothing does and that were not reclaimed yet.
func (s *State) ObjectBytes() (live, dead int64) {
	for i := range s.objects.all {
		live += s.objects.all[i].size // 0 where the place is free
	}
	for _, d := range s.dead {
		dead += d.Size
	}
	return live, dead
}

// RawObjectBytes returns the size of the WAL objects that live entries reference.
// It costs time in the number of objects, not of entries.
func (s *State) RawObjectBytes() (bytes int64) {
	for i := range s.objects.all {
		if o := &s.objects.all[i]; o.storage == Raw { // 0 where the place is free
			bytes += o.size
		}
	}
	return bytes
}
