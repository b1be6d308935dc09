package recordbatch

import (
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Entry is a block of one log together with what the commit log says about it.
type Entry struct {
	// Base is the offset of the block's first record, Records their number.
	Base    base.Offset
	Records int
	// Revision and AppendTime are those of the commit that appended the block.
	Revision   base.Revision
	AppendTime base.Millis
	// Data is the block as stored.
	Data []byte
}

// Range returns the offsets of the entry.
func (e *Entry) Range() base.OffsetRange {
	return base.OffsetRange{Start: e.Base, End: e.Base + base.Offset(e.Records)}
}

// Reader iterates the records of entries. Every batch that it passes is checked
// against its CRC and the canonical form, and each record against its bounds.
// It allocates only to grow its buffers. It is not safe for concurrent use.
type Reader struct {
	limit int
	keep  bool

	entry    Entry
	data     []byte // what is left of the entry's block
	position int64  // of the next record in its block
	records  scanner
	batch    BatchInfo
	left     int   // records left in the batch
	failed   error // what ended the entry early
	buffer   []byte
	names    internTable
	record   Positioned
}

// NewReader returns a reader that refuses batches of more than maxBatchBytes
// before compression, before it allocates anything for them.
func NewReader(maxBatchBytes int) *Reader {
	return &Reader{limit: min(maxBatchBytes, MaxBatchBytes)}
}

// KeepBuffers makes each compressed batch decompress into a buffer of its own,
// so that keys and values stay valid for as long as they are referenced (those
// of uncompressed batches are slices of Entry.Data and always do).
func (r *Reader) KeepBuffers() { r.keep = true }

// Reset starts over at the first record of an entry.
func (r *Reader) Reset(entry Entry) {
	r.entry = entry
	r.data = entry.Data
	r.position = 0
	r.left = 0
	r.records = scanner{}
	r.failed = nil
}

// Next returns the next record, or io.EOF after the last one of the entry. The
// record and its headers are valid until the next call, its other slices until
// the next batch. Damage is base.ErrCorrupt, and the reader stays there.
func (r *Reader) Next() (*Positioned, error) {
	if r.left == 0 {
		if err := r.nextBatch(); err != nil {
			return nil, err
		}
		if err := r.openBatch(); err != nil {
			return nil, err
		}
	}
	if err := r.readRecord(); err != nil {
		return nil, err
	}
	r.position++
	r.left--
	if r.left == 0 && r.records.pos != len(r.records.data) {
		return nil, r.fail(corruptf("%d bytes after the last record of a batch", len(r.records.data)-r.records.pos))
	}
	return &r.record, nil
}

// SkipTo moves to the record at offset, which the entry must hold at or after
// the reader's position, else base.ErrInvalid. Whole batches before it are
// checked but neither decompressed nor parsed.
func (r *Reader) SkipTo(offset base.Offset) error {
	target := int64(offset - r.entry.Base)
	if target < r.position || target >= int64(r.entry.Records) {
		return fmt.Errorf("skipping to offset %d of %s: %w", offset, r.entry.Range(), base.ErrInvalid)
	}
	for r.position+int64(r.left) <= target {
		r.position += int64(r.left)
		r.left = 0
		if err := r.nextBatch(); err != nil {
			return err
		}
		if r.position+int64(r.left) > target {
			if err := r.openBatch(); err != nil {
				return err
			}
		}
	}
	for r.position < target {
		if _, err := r.Next(); err != nil {
			return err
		}
	}
	return nil
}

// nextBatch checks the batch at the front of the data and takes it off.
func (r *Reader) nextBatch() error {
	if r.failed != nil {
		return r.failed
	}
	if len(r.data) == 0 {
		if r.position != int64(r.entry.Records) {
			return r.fail(corruptf("block ends after %d of %d records", r.position, r.entry.Records))
		}
		return io.EOF
	}
	info, err := InspectBatch(r.data)
	if err != nil {
		return r.fail(err)
	}
	if int64(info.Base) != r.position {
		return r.fail(corruptf("batch has base offset %d", info.Base))
	}
	if int64(info.Records) > int64(r.entry.Records)-r.position {
		return r.fail(corruptf("block holds more than %d records", r.entry.Records))
	}
	r.records = scanner{data: r.data[HeaderBytes:info.Bytes]}
	r.data = r.data[info.Bytes:]
	r.batch, r.left = info, info.Records
	return nil
}

// openBatch makes the records of the batch readable.
func (r *Reader) openBatch() error {
	if r.batch.Compression == None {
		return nil
	}
	if r.keep {
		r.buffer = nil
	}
	data, err := decompressZstd(r.buffer, r.records.data, r.limit)
	if err != nil {
		return r.fail(err)
	}
	r.buffer = data
	r.records = scanner{data: data}
	return nil
}

func (r *Reader) readRecord() error {
	s := &r.records
	index := int64(r.batch.Records - r.left)
	length := s.varint()
	end := int64(s.pos) + length
	if s.bad || length < minRecordBytes-1 || end > int64(len(s.data)) {
		return r.fail(corruptf("record length %d", length))
	}
	attributes := s.data[s.pos]
	s.pos++
	timeDelta := s.varint()
	offsetDelta := s.varint()
	if attributes != 0 || offsetDelta != index {
		return r.fail(corruptf("record attributes %d, offset delta %d, want %d", attributes, offsetDelta, index))
	}
	r.record.Timestamp = r.batch.BaseTime + base.Millis(timeDelta)
	r.record.Offset = r.entry.Base + base.Offset(r.position)
	r.record.Revision = r.entry.Revision
	r.record.AppendTime = r.entry.AppendTime
	r.record.Key = s.octets()
	r.record.Value = s.octets()
	r.readHeaders(s)
	if s.bad || int64(s.pos) != end {
		return r.fail(corruptf("record fields do not fill its %d bytes", length))
	}
	return nil
}

func (r *Reader) readHeaders(s *scanner) {
	r.record.Headers = r.record.Headers[:0]
	count := s.varint()
	// Each header takes at least two bytes.
	if count < 0 || count > int64(len(s.data)-s.pos)/2 {
		s.bad = true
		return
	}
	for range count {
		name := s.octets()
		value := s.octets()
		if s.bad || name == nil {
			s.bad = true
			return
		}
		r.record.Headers = append(r.record.Headers, Header{Key: r.names.get(name), Value: value})
	}
}

// fail ends the entry, so that no record is read from behind the damage.
func (r *Reader) fail(err error) error {
	r.failed = fmt.Errorf("reading record %d of %s: %w", r.position, r.entry.Range(), err)
	r.left = 0
	return r.failed
}

// internTable turns header names into strings without allocating for those
// already seen. It is bounded: names beyond it are allocated each time.
type internTable struct {
	known map[string]string
}

const maxInternedNames = 256

func (t *internTable) get(name []byte) string {
	if known, ok := t.known[string(name)]; ok {
		return known
	}
	text := string(name)
	if t.known == nil {
		t.known = make(map[string]string)
	}
	if len(t.known) < maxInternedNames {
		t.known[text] = text
	}
	return text
}
