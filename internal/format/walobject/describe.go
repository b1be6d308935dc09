package walobject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// Description is what an object holds, for people and for JSON. Its field names
// are part of the command line's interface.
type Description struct {
	Version int                `json:"version"`
	Cluster string             `json:"cluster"`
	Shard   string             `json:"shard"`
	Writer  uint64             `json:"writer"`
	Seq     uint64             `json:"seq"`
	Bytes   int                `json:"bytes"`
	Padding int                `json:"padding_bytes"`
	Records int                `json:"records"`
	Blocks  []BlockDescription `json:"blocks"`
}

// BlockDescription is what one block holds.
type BlockDescription struct {
	Stream    uint64    `json:"stream_id"`
	Partition int32     `json:"partition"`
	Records   int       `json:"records"`
	Pos       int       `json:"pos"`
	Bytes     int       `json:"bytes"`
	MinTime   time.Time `json:"min_time"`
	MaxTime   time.Time `json:"max_time"`
	// Batches counts the record batches, by how they are compressed.
	Batches map[string]int `json:"batches"`
}

// Describe verifies an object down to each record and says what it holds. Errors
// are those of Parse.
func Describe(data []byte) (Description, error) {
	o, err := Parse(data)
	if err != nil {
		return Description{}, err
	}
	d := Description{
		Version: Version,
		Cluster: o.Header.Cluster.String(),
		Shard:   o.Header.Shard.String(),
		Writer:  uint64(o.Header.Writer),
		Seq:     uint64(o.Header.Seq),
		Bytes:   len(data),
		Padding: o.Padding,
		Blocks:  []BlockDescription{},
	}
	for i := range o.Blocks {
		b := &o.Blocks[i]
		batches, err := describeBatches(o.Block(i), b)
		if err != nil {
			return Description{}, fmt.Errorf("reading block %d of log %s: %w", i, b.Log, err)
		}
		d.Records += b.Records
		d.Blocks = append(d.Blocks, BlockDescription{
			Stream: uint64(b.Log.Stream), Partition: int32(b.Log.Partition), Records: b.Records,
			Pos: b.Pos, Bytes: b.Len, MinTime: b.MinTime.Time(), MaxTime: b.MaxTime.Time(), Batches: batches,
		})
	}
	return d, nil
}

// describeBatches counts the batches of a block and checks its records against
// the index.
func describeBatches(data []byte, b *Block) (map[string]int, error) {
	reader := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	reader.Reset(recordbatch.Entry{Records: b.Records, Data: data})
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if record.Timestamp < b.MinTime || record.Timestamp > b.MaxTime {
			return nil, fmt.Errorf("%w: a record's time is outside the index's", base.ErrCorrupt)
		}
	}
	batches := make(map[string]int)
	for len(data) > 0 {
		info, err := recordbatch.InspectBatch(data)
		if err != nil {
			return nil, err
		}
		batches[info.Compression.String()]++
		data = data[info.Bytes:]
	}
	return batches, nil
}

// Is reports whether data begins as a WAL object does.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }
