package main

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// Given control groups as a container sees them, then the least limit on the way
// to the root counts.
func TestTheLeastLimitOfTheControlGroupsCounts(t *testing.T) {
	const own, above = "proc/self/cgroup", "sys/fs/cgroup/"
	tests := map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups":    {nil, math.MaxInt64},
		"version 1":            {map[string]string{own: "4:memory:/job\n", above + "job/memory.max": "7"}, math.MaxInt64},
		"at the root":          {map[string]string{own: "0::/\n", above + "memory.max": "1073741824\n"}, 1 << 30},
		"none set":             {map[string]string{own: "0::/\n", above + "memory.max": "max\n"}, math.MaxInt64},
		"its own":              {map[string]string{own: "0::/a/b\n", above + "a/b/memory.max": "300", above + "a/memory.max": "max"}, 300},
		"the one above":        {map[string]string{own: "0::/a/b\n", above + "a/b/memory.max": "300", above + "a/memory.max": "200"}, 200},
		"both versions":        {map[string]string{own: "1:cpu:/x\n0::/a\n", above + "a/memory.max": "5"}, 5},
		"outside of the root":  {map[string]string{own: "0::/../..\n", above + "memory.max": "9"}, 9},
		"what is not a number": {map[string]string{own: "0::/\n", above + "memory.max": "much"}, math.MaxInt64},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := make(fstest.MapFS)
			for path, content := range test.files {
				root[path] = &fstest.MapFile{Data: []byte(content)}
			}
			require.Equal(t, test.want, grantedMemory(root))
		})
	}
}
