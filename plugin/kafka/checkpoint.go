package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// checkpoint follows which records of one partition were accepted. Extents are
// added in the order of their offsets and done in any order; next is before
// everything that is not done. It is not safe for concurrent use.
type checkpoint struct {
	// open are the extents from the first that is not done, in order.
	open []extent
	// first is the number of open[0]; numbers count up from 0.
	first int
}

// extent is one batch of records.
type extent struct {
	next kgo.EpochOffset // after its last record
	done bool
}

// add appends an extent that ends before next, and returns its number.
func (c *checkpoint) add(next kgo.EpochOffset) int {
	c.open = append(c.open, extent{next: next})
	return c.first + len(c.open) - 1
}

// finish marks an extent as done. It returns the offset to commit and true when
// that moved.
func (c *checkpoint) finish(number int) (kgo.EpochOffset, bool) {
	c.open[number-c.first].done = true
	var next kgo.EpochOffset
	moved := false
	for len(c.open) > 0 && c.open[0].done {
		next, moved = c.open[0].next, true
		c.open = c.open[1:]
		c.first++
	}
	return next, moved
}
