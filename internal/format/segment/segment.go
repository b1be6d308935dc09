package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/frame"
)

// Version is the version that this package writes and the newest it reads.
const Version = 1

// MaxRawBytes is the most that the entries of a segment may take before they are
// compressed: EntryBytes and the record for each.
const MaxRawBytes = frame.MaxBytes

// EntryBytes is what an entry takes beside its record.
const EntryBytes = 12

const (
	headerBytes  = 116
	trailerBytes = 4
	lengthOffset = 104
	rawOffset    = 112
	prefixBytes  = 6
	magic        = "LSCS"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Entry is one record of a commit log as the log delivered it.
type Entry struct {
	Revision base.Revision
	// Time is the clock of the server that accepted the record.
	Time base.Millis
	// Data is the record, or empty for a delete marker.
	Data []byte
}

// Extend returns the running hash after the entry, from the one before it.
func (e *Entry) Extend(before base.Hash) (after base.Hash) {
	h := sha256.New()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(e.Revision))
	binary.BigEndian.PutUint64(b[8:], uint64(e.Time)) //nolint:gosec // two's complement
	h.Write(before[:])
	h.Write(b[:])
	h.Write(e.Data)
	h.Sum(after[:0])
	return after
}

// Header says whose entries a segment holds.
type Header struct {
	Cluster base.ClusterID
	Shard   base.Shard
	// From and To are the first and the last revision; every one between is there.
	From, To base.Revision
	// Start is the running hash before From, zeros where an archive begins; End
	// is the one after To.
	Start, End base.Hash
}

// Segment is a verified segment.
type Segment struct {
	Header
	Entries []Entry
}

// Encode returns the object that holds the entries, and its header. cluster, shard
// and the running hash before the first entry are the caller's. Entries that are
// not consecutive, none, or more than MaxRawBytes are base.ErrInvalid.
func Encode(cluster base.ClusterID, shard base.Shard, start base.Hash, entries []Entry) ([]byte, Header, error) {
	h := Header{Cluster: cluster, Shard: shard, Start: start, End: start}
	if len(entries) == 0 {
		return nil, h, fmt.Errorf("encoding segment: no entries: %w", base.ErrInvalid)
	}
	h.From, h.To = entries[0].Revision, entries[len(entries)-1].Revision
	var raw []byte
	for i := range entries {
		e := &entries[i]
		if e.Revision != h.From+base.Revision(i) || e.Revision == 0 {
			return nil, h, fmt.Errorf("encoding segment: revision %d at place %d after %d: %w", e.Revision, i, h.From, base.ErrInvalid)
		}
		raw = binary.BigEndian.AppendUint64(raw, uint64(e.Time))      //nolint:gosec // two's complement
		raw = binary.BigEndian.AppendUint32(raw, uint32(len(e.Data))) //nolint:gosec // bounded below
		if raw = append(raw, e.Data...); len(raw) > MaxRawBytes {
			return nil, h, fmt.Errorf("encoding segment: more than %d bytes: %w", MaxRawBytes, base.ErrInvalid)
		}
		h.End = e.Extend(h.End)
	}
	return h.seal(raw), h, nil
}

func (h *Header) seal(raw []byte) []byte {
	be := binary.BigEndian
	data := append([]byte(nil), magic...)
	data = be.AppendUint16(data, Version)
	data = be.AppendUint16(data, uint16(h.Shard))
	data = append(data, h.Cluster[:]...)
	data = be.AppendUint64(data, uint64(h.From))
	data = be.AppendUint64(data, uint64(h.To))
	data = append(data, h.Start[:]...)
	data = append(data, h.End[:]...)
	data = be.AppendUint64(data, 0)
	data = be.AppendUint32(data, uint32(len(raw))) //nolint:gosec // at most MaxRawBytes
	data = frame.Append(data, raw)
	be.PutUint64(data[lengthOffset:], uint64(len(data)+trailerBytes))
	return be.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// Is reports whether bytes begin as a segment does.
func Is(data []byte) bool { return len(data) >= len(magic) && string(data[:len(magic)]) == magic }

// Decode verifies every byte of a segment, the running hash included, and returns
// it. Its entries do not refer to data. Damage is base.ErrCorrupt, a newer version
// base.ErrNewerFormat.
func Decode(data []byte) (*Segment, error) {
	s, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading commit log segment: %w", err)
	}
	return s, nil
}

func decode(data []byte) (*Segment, error) {
	if len(data) < prefixBytes+trailerBytes || !Is(data) {
		return nil, corruptf("no commit log segment")
	}
	be := binary.BigEndian
	body := data[:len(data)-trailerBytes]
	if crc32.Checksum(body, castagnoli) != be.Uint32(data[len(body):]) {
		return nil, corruptf("its checksum does not match")
	}
	if version := be.Uint16(data[4:]); version > Version {
		return nil, fmt.Errorf("segment version %d, this binary knows %d: upgrade it: %w", version, Version, base.ErrNewerFormat)
	} else if version == 0 || len(body) < headerBytes {
		return nil, corruptf("version %d in %d bytes", version, len(data))
	}
	if length := be.Uint64(data[lengthOffset:]); length != uint64(len(data)) {
		return nil, corruptf("it has %d bytes and declares %d", len(data), length)
	}
	s := &Segment{Header: Header{
		Shard: base.Shard(be.Uint16(data[6:])),
		From:  base.Revision(be.Uint64(data[24:])), To: base.Revision(be.Uint64(data[32:])),
	}}
	copy(s.Cluster[:], data[8:])
	copy(s.Start[:], data[40:])
	copy(s.End[:], data[72:])
	raw, err := frame.Decode(nil, body[headerBytes:], int(be.Uint32(data[rawOffset:])))
	if err != nil {
		return nil, err
	}
	return s, s.read(raw)
}

// read splits what the frame held into entries.
func (s *Segment) read(raw []byte) error {
	if s.From == 0 || s.To < s.From || uint64(s.To-s.From) >= uint64(len(raw)/EntryBytes) {
		return corruptf("revisions %d to %d in %d bytes", s.From, s.To, len(raw))
	}
	hash := s.Start
	s.Entries = make([]Entry, 0, s.To-s.From+1)
	for revision := s.From; revision <= s.To; revision++ {
		if len(raw) < EntryBytes {
			return corruptf("it ends before revision %d", revision)
		}
		length := binary.BigEndian.Uint32(raw[8:])
		if int64(length) > int64(len(raw)-EntryBytes) {
			return corruptf("revision %d is cut", revision)
		}
		e := Entry{Revision: revision, Time: base.Millis(binary.BigEndian.Uint64(raw))} //nolint:gosec // two's complement
		end := EntryBytes + int(length)
		e.Data = raw[EntryBytes:end:end]
		raw = raw[end:]
		hash = e.Extend(hash)
		s.Entries = append(s.Entries, e)
	}
	if len(raw) > 0 {
		return corruptf("%d bytes after revision %d", len(raw), s.To)
	}
	if hash != s.End {
		return corruptf("its entries do not lead from hash %s to %s", s.Start, s.End)
	}
	return nil
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{base.ErrCorrupt}, args...)...)
}
