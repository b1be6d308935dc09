package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

func sampleReport() report {
	return report{
		Groups: []groupResult{{
			Name: "append", What: "Messages are appended.",
			Floor: ranked{Name: "sink", What: "A sink.", Wall: 300, CPU: 544, OfWall: 1, OfCPU: 1},
			Subjects: []ranked{
				{Name: "plain", What: "No table.", Bar: 0.5, Wall: 500, CPU: 700, OfWall: 0.6, OfCPU: 0.777},
				{Name: "table", What: "With a table.", Wall: 9_999, CPU: 7.25, OfWall: 0.03, OfCPU: 75.03},
			},
		}},
		Facts: []factResult{{
			Name: "reads", What: "Logs are read.", Columns: []string{"case", "GETs"}, Rows: [][]string{{"all", "12"}, {"one", "3"}},
		}},
		Machine: machine{
			System: "linux/amd64", Processor: "Some CPU", Memory: "8 GiB", FileSystem: "ext4", Go: "go1.26.8", Cores: 2,
			Modules: []string{"github.com/redpanda-data/benthos/v4 v4.60.0"},
		},
		Rounds: 5, Date: "2026-11-29", LoadBefore: "0.10", LoadAfter: "1.90",
	}
}

func TestTheReport(t *testing.T) {
	golden, path := filepath.Join("testdata", "performance.md"), filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, writeReport(path, sampleReport()))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// What a system does not tell about itself is left out.
func TestAReportOfABareMachine(t *testing.T) {
	r := sampleReport()
	r.Machine = machine{System: "windows/amd64", Cores: 4, Go: "go1.26.8"}
	path := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, writeReport(path, r))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(got), "windows/amd64, 4 cores, go1.26.8\nwith its default settings.\n")
}

func TestRates(t *testing.T) {
	for ns, want := range map[float64]string{100: "10.0 M/s", 1000: "1.0 M/s", 20_000: "50 k/s", 2_000_000: "0.5 k/s"} {
		require.Equal(t, want, rate(ns))
	}
}

func TestTheFileSystemOfADirectory(t *testing.T) {
	const mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/data xfs rw 0 0\nodd\n"
	for dir, want := range map[string]string{"/home/x": "ext4", "/tmp": "tmpfs", "/tmp/x": "tmpfs", "/tmp/data/run": "xfs", "/tmp/database": "tmpfs"} {
		require.Equal(t, want, fileSystem(mounts, dir), dir)
	}
}
