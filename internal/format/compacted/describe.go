package compacted

import (
	"bytes"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// Description is what an object says about itself and what reading all of it
// showed.
type Description struct {
	Meta Meta
	// Bytes is the size of the object; FooterBytes that of its footer and
	// checksums.
	Bytes, FooterBytes int64
	RowGroups          []RowGroupDescription
	// Tombstones counts records without a value, Headers counts headers.
	Tombstones, Headers int64
	// MinTime and MaxTime bound the record timestamps, FirstAppend and
	// LastAppend the append times, FirstRevision and LastRevision the commits.
	// All are 0 for an object without rows.
	MinTime, MaxTime            base.Millis
	FirstAppend, LastAppend     base.Millis
	FirstRevision, LastRevision base.Revision
	KeyBytes, ValueBytes        int64
}

// RowGroupDescription is one row group of an object.
type RowGroupDescription struct {
	Range base.OffsetRange
	// Bytes is its size in the object, RawBytes before compression.
	Bytes, RawBytes int64
}

// Describe reads a whole object, verifies every byte of it, and says what it
// holds. Errors are those of Open, without a check of what was meant, and of
// Scanner.Next.
func Describe(r io.ReaderAt, size int64) (*Description, error) {
	reader, err := open(r, size)
	if err != nil {
		return nil, err
	}
	if err := reader.verifyChunks(); err != nil {
		return nil, err
	}
	d := &Description{Meta: reader.meta, Bytes: size, FooterBytes: reader.FooterBytes()}
	for i := range len(reader.starts) - 1 {
		group := reader.footer.RowGroup(i)
		d.RowGroups = append(d.RowGroups, RowGroupDescription{
			Range: base.OffsetRange{
				Start: reader.meta.Range.Start + base.Offset(reader.starts[i]),
				End:   reader.meta.Range.Start + base.Offset(reader.starts[i+1]),
			},
			Bytes:    group.TotalCompressedSize(),
			RawBytes: group.TotalByteSize(),
		})
	}
	if err := reader.Each(d.add); err != nil {
		return nil, err
	}
	return d, nil
}

// verifyChunks checks every byte before the checksum block, those that no
// column uses too.
func (r *Reader) verifyChunks() error {
	source := &verifiedReader{r: r.r, sums: r.sums}
	for i := range r.sums.chunks {
		if _, err := source.chunk(int64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *Description) add(r *recordbatch.Positioned) error {
	if r.Offset == d.Meta.Range.Start {
		d.MinTime, d.MaxTime = r.Timestamp, r.Timestamp
		d.FirstAppend, d.FirstRevision = r.AppendTime, r.Revision
	}
	d.MinTime = min(d.MinTime, r.Timestamp)
	d.MaxTime = max(d.MaxTime, r.Timestamp)
	d.LastAppend, d.LastRevision = r.AppendTime, r.Revision
	d.KeyBytes += int64(len(r.Key))
	d.ValueBytes += int64(len(r.Value))
	d.Headers += int64(len(r.Headers))
	if r.Value == nil {
		d.Tombstones++
	}
	return nil
}

// Is reports whether data begins as a Parquet file does.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte("PAR1")) }
