package materialization

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// EndOffsets says, per partition, where a table ends: it holds all that the
// partition's log feeds it below that offset, and nothing from there on.
type EndOffsets map[base.Partition]base.Offset

// String packs the offsets by partition, as PropertyEndOffsets holds them:
// "0:120,3:7". No partition is the empty text.
func (e EndOffsets) String() string {
	var text strings.Builder
	for _, partition := range slices.Sorted(maps.Keys(e)) {
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%d:%d", partition, e[partition])
	}
	return text.String()
}

// ParseEndOffsets reads what String writes and nothing else: a property that
// someone edited by hand is ErrCorrupt rather than guessed at.
func ParseEndOffsets(text string) (EndOffsets, error) {
	ends := EndOffsets{}
	if text == "" {
		return ends, nil
	}
	for field := range strings.SplitSeq(text, ",") {
		partitionText, offsetText, found := strings.Cut(field, ":")
		partition, partitionErr := strconv.ParseInt(partitionText, 10, 32)
		offset, offsetErr := strconv.ParseInt(offsetText, 10, 64)
		if !found || partitionErr != nil || offsetErr != nil || partition < 0 || offset < 0 {
			return nil, fmt.Errorf("%w: end offsets %q: want partition:offset,…", base.ErrCorrupt, text)
		}
		ends[base.Partition(partition)] = base.Offset(offset)
	}
	if ends.String() != text {
		return nil, fmt.Errorf("%w: end offsets %q: partitions repeat or are out of order", base.ErrCorrupt, text)
	}
	return ends, nil
}

// EndOffsets returns the end offsets that the table's properties hold, empty
// when the engine never committed to it.
func (t *Table) EndOffsets() (EndOffsets, error) {
	return ParseEndOffsets(t.Properties[PropertyEndOffsets])
}
