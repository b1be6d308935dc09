package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// machine describes where something was measured. What the system does not tell
// stays empty.
type machine struct {
	System, Processor, Memory, FileSystem, Go string
	Cores                                     int
	// Modules are the versions of what weighs most.
	Modules []string
}

// describeMachine looks at this machine and at the disk of a directory.
func describeMachine(dir string) machine {
	m := machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Cores: runtime.GOMAXPROCS(0),
		Processor: procField("/proc/cpuinfo", "model name"),
	}
	if kib, err := strconv.Atoi(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.Memory = fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
	}
	if text, err := os.ReadFile("/proc/self/mounts"); err == nil {
		m.FileSystem = fileSystem(string(text), dir)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			switch dep.Path {
			case "github.com/redpanda-data/benthos/v4", "github.com/nats-io/nats-server/v2", "github.com/apache/arrow-go/v18", "github.com/apache/iceberg-go":
				m.Modules = append(m.Modules, dep.Path+" "+dep.Version)
			}
		}
	}
	return m
}

// procField returns the value of the first line "name: value" of a file.
func procField(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the system
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fileSystem returns the type of the file system that a directory is on, from the
// system's table of mounts.
func fileSystem(mounts, dir string) string {
	best, kind := "", ""
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		at := fields[1]
		within := at == "/" || dir == at || strings.HasPrefix(dir, at+"/")
		if within && len(at) >= len(best) {
			best, kind = at, fields[2]
		}
	}
	return kind
}

// loadAverage returns how many processes ran or waited to run in the last minute,
// or "unknown".
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
