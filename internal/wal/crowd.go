package wal

const (
	// smallCrowd callers are not worth waiting for.
	smallCrowd = 32
	// fullBytes in an object are worth a flush, however many callers they are of.
	fullBytes = 128 << 10
)

// crowd estimates how many callers append at once, and so how many more appends
// there can be beside those that wait. The zero value is empty.
type crowd struct {
	waiting int // appends that are unresolved
	size    int
	// peak is the most that waited at one time since the last renewal.
	peak int
}

func (c *crowd) came() {
	c.waiting++
	c.peak = max(c.peak, c.waiting)
}

func (c *crowd) left(n int) { c.waiting -= n }

// renew takes a new estimate, which grows at once and shrinks by an eighth.
func (c *crowd) renew() {
	c.size = max(c.peak, c.size-(c.size+7)/8)
	c.peak = c.waiting
}

// half returns how many callers are half of them, and 0 where that is not worth
// waiting for. An object that has half of them is full: the other half fill the next
// one meanwhile.
func (c *crowd) half() int {
	if c.size < smallCrowd {
		return 0
	}
	return c.size / 2
}

// IsCompanyDue reports whether an open object that could be flushed, being alone, had
// better wait for more of the callers that were seen.
func (c *Core) IsCompanyDue(ordinal uint64) bool {
	o := c.open
	return o != nil && o.ordinal == ordinal && len(c.queue) == 0 && !o.urgent &&
		o.bytes < fullBytes && len(o.appends) < c.callers.half()
}

// isHalf reports whether the open object has half of the callers, while the others
// wait for those in flight: nobody is left to wait for.
func (c *Core) isHalf() bool {
	half := c.callers.half()
	return half > 0 && len(c.queue) > 0 && len(c.open.appends) >= half
}
