package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Checkpoint is a verified object. It keeps the object's bytes.
type Checkpoint struct {
	Header   Header
	Sections []Section
}

// Section is one table of a checkpoint.
type Section struct {
	ID   SectionID
	Rows uint64
	// Bytes is the size of the section in the object, RawBytes that of its values.
	Bytes, RawBytes int64

	columns []column
}

type column struct {
	kind   Kind
	chunks []byte // headers and frames, back to back
}

// Is reports whether bytes begin as a checkpoint does.
func Is(data []byte) bool { return len(data) >= len(magic) && string(data[:len(magic)]) == magic }

// Open verifies the checksum and the structure of an object and returns it; data is
// kept, not copied. Damage is base.ErrCorrupt, a newer version base.ErrNewerFormat.
// It decompresses nothing: the number of rows of a section never exceeds the bytes
// that its columns claim to hold.
func Open(data []byte) (*Checkpoint, error) {
	c, err := open(data)
	if err != nil {
		return nil, fmt.Errorf("reading checkpoint: %w", err)
	}
	return c, nil
}

func open(data []byte) (*Checkpoint, error) {
	if len(data) < prefixBytes+trailerBytes || !Is(data) {
		return nil, corruptf("no checkpoint")
	}
	body := data[:len(data)-trailerBytes]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(data[len(body):]) {
		return nil, corruptf("its checksum does not match")
	}
	if version := binary.BigEndian.Uint16(data[4:]); version > Version {
		return nil, fmt.Errorf("checkpoint version %d, this binary knows %d: upgrade it: %w", version, Version, base.ErrNewerFormat)
	} else if version == 0 || len(body) < headerBytes || len(data) > MaxBytes {
		return nil, corruptf("version %d in %d bytes", version, len(data))
	}
	header, sections, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Header: header}
	rest := body[headerBytes:]
	for range sections {
		var s Section
		if s, rest, err = parseSection(rest); err != nil {
			return nil, err
		}
		c.Sections = append(c.Sections, s)
	}
	if len(rest) > 0 {
		return nil, corruptf("%d bytes after the last section", len(rest))
	}
	return c, nil
}

func parseSection(data []byte) (Section, []byte, error) {
	if len(data) < sectionBytes {
		return Section{}, nil, corruptf("a section is cut")
	}
	be := binary.BigEndian
	s := Section{ID: SectionID(be.Uint16(data)), Rows: be.Uint64(data[8:])}
	columns := int(be.Uint16(data[2:]))
	if columns == 0 || columns > MaxColumns || be.Uint32(data[4:]) != 0 || s.Rows > maxRowsPerSection {
		return Section{}, nil, corruptf("section %d has %d columns and %d rows", s.ID, columns, s.Rows)
	}
	rest := data[sectionBytes:]
	for i := range columns {
		c, raw, next, err := parseColumn(rest)
		if err != nil {
			return Section{}, nil, err
		}
		if s.Rows > uint64(raw) { //nolint:gosec // not negative
			return Section{}, nil, corruptf("column %d of section %d holds %d bytes for %d rows", i, s.ID, raw, s.Rows)
		}
		s.columns = append(s.columns, c)
		s.RawBytes += raw
		rest = next
	}
	s.Bytes = int64(len(data) - len(rest))
	return s, rest, nil
}

// parseColumn returns a column and how many bytes its values have.
func parseColumn(data []byte) (c column, raw int64, rest []byte, err error) {
	if len(data) < columnBytes {
		return c, 0, nil, corruptf("a column is cut")
	}
	kind, chunks := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	c.kind = Kind(min(kind, 0xff))
	if (c.kind != Numbers && c.kind != Texts) || chunks > maxColumnChunks {
		return c, 0, nil, corruptf("a column of kind %d has %d chunks", kind, chunks)
	}
	data = data[columnBytes:]
	at := 0
	for range chunks {
		size, stored, ok := parseChunk(data[at:])
		if !ok {
			return c, 0, nil, corruptf("a chunk is cut or too large")
		}
		raw += int64(size)
		at += chunkHeaderBytes + stored
	}
	c.chunks = data[:at]
	return c, raw, data[at:], nil
}

// parseChunk returns how many bytes a chunk holds and how many it takes.
func parseChunk(data []byte) (raw, stored int, ok bool) {
	if len(data) < chunkHeaderBytes {
		return 0, 0, false
	}
	raw, stored = int(binary.BigEndian.Uint32(data)), int(binary.BigEndian.Uint32(data[4:]))
	return raw, stored, raw > 0 && raw <= maxChunkBytes && stored <= len(data)-chunkHeaderBytes
}
