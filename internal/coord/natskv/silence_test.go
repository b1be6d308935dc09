package natskv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A silence is one of several requests in a row and of some time, each of which
// alone may be chance.
func TestASilenceIsLongAndUnbroken(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		asked  []time.Duration // negative where it was answered then
		silent []bool
	}{
		"one":                 {[]time.Duration{0}, []bool{false}},
		"many at once":        {[]time.Duration{0, 0, 0, 0, 0}, []bool{false, false, false, false, false}},
		"few over long":       {[]time.Duration{0, time.Minute}, []bool{false, false}},
		"several over some":   {[]time.Duration{0, time.Second, 5 * time.Second}, []bool{false, false, true}},
		"it begins anew":      {[]time.Duration{0, time.Second, 5 * time.Second, 6 * time.Second}, []bool{false, false, true, false}},
		"broken by an answer": {[]time.Duration{0, time.Second, -2 * time.Second, 5 * time.Second, 6 * time.Second}, []bool{false, false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var s silence
			for i, at := range c.asked {
				if at < 0 {
					s.answered()
					continue
				}
				assert.Equal(t, c.silent[i], s.unanswered(start.Add(at)), "request %d", i)
			}
		})
	}
}
