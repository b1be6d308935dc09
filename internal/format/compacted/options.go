package compacted

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
)

// MaxRecordBytes bounds key, value and headers of one record together.
const MaxRecordBytes = 64 << 20

// Options bound what a Writer holds in memory and how finely an object can be
// read. The zero value means the defaults.
type Options struct {
	// RowGroupBytes closes a row group when keys, values and headers reach
	// it, uncompressed; a Writer holds about this much. Default 16 MiB, at
	// most 1 GiB.
	RowGroupBytes int64
	// RowGroupRows closes a row group when it has this many rows. Default
	// 131,072, at most 1,048,576.
	RowGroupRows int
	// PageBytes closes a page at this size, uncompressed: the least that a
	// reader decodes. Default 128 KiB, at most 16 MiB.
	PageBytes int64
}

// withDefaults fills in the defaults and refuses what is out of bounds with
// base.ErrInvalid.
func (o Options) withDefaults() (Options, error) {
	const (
		defaultGroupBytes, maxGroupBytes = 16 << 20, 1 << 30
		defaultGroupRows, maxGroupRows   = 128 << 10, 1 << 20
		defaultPageBytes, maxPageBytes   = 128 << 10, 16 << 20
	)
	if o.RowGroupBytes == 0 {
		o.RowGroupBytes = defaultGroupBytes
	}
	if o.RowGroupRows == 0 {
		o.RowGroupRows = defaultGroupRows
	}
	if o.PageBytes == 0 {
		o.PageBytes = defaultPageBytes
	}
	switch {
	case o.RowGroupBytes < 0 || o.RowGroupBytes > maxGroupBytes:
		return o, fmt.Errorf("%w: row group bytes %d: want 1 to %d", base.ErrInvalid, o.RowGroupBytes, maxGroupBytes)
	case o.RowGroupRows < 0 || o.RowGroupRows > maxGroupRows:
		return o, fmt.Errorf("%w: row group rows %d: want 1 to %d", base.ErrInvalid, o.RowGroupRows, maxGroupRows)
	case o.PageBytes < 0 || o.PageBytes > maxPageBytes:
		return o, fmt.Errorf("%w: page bytes %d: want 1 to %d", base.ErrInvalid, o.PageBytes, maxPageBytes)
	}
	return o, nil
}
