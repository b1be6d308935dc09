package main

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// heapShare is the part of what the control group grants that Go may use, in
// percent: the rest is for what the runtime does not count.
const heapShare = 90

// limitMemory makes the garbage collector keep the process below what its control
// group grants, unless GOMEMLIMIT says otherwise.
func limitMemory() {
	if _, chosen := os.LookupEnv("GOMEMLIMIT"); chosen {
		return
	}
	if granted := grantedMemory(os.DirFS("/")); granted < math.MaxInt64 {
		debug.SetMemoryLimit(granted / 100 * heapShare)
	}
}

// grantedMemory returns the least memory.max, in bytes, of this process's control
// group (version 2) and those above it; math.MaxInt64 means that none is known.
func grantedMemory(root fs.FS) int64 {
	granted := int64(math.MaxInt64)
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return granted
	}
	for line := range strings.Lines(string(membership)) {
		group, isV2 := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !isV2 {
			continue
		}
		// A group outside of what the container may see reads as above the root.
		for dir := path.Join("/", group); ; dir = path.Dir(dir) {
			granted = min(granted, memoryMax(root, path.Join("sys/fs/cgroup", dir, "memory.max")))
			if dir == "/" {
				break
			}
		}
	}
	return granted
}

// memoryMax reads one limit, math.MaxInt64 where there is none.
func memoryMax(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return math.MaxInt64
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit <= 0 {
		return math.MaxInt64 // "max" is none
	}
	return limit
}
