// Command bench measures the paths that messages take, each beside its floor: the
// same work without Lakestream, run in turns with it in the same process, so that
// a busy or slow machine weighs on both alike. What counts is the ratio.
//
//	go run ./internal/bench                  # all of it, as a table
//	go run ./internal/bench -only replay     # the groups whose name contains this
//	go run ./internal/bench -write docs/performance.md
//	go run ./internal/bench -short           # a check: few messages, no times
//
// CPU time is what the whole process used, in user and system mode, so that work
// in the background and garbage collection count. To add a case, add a contender
// to a group in groups.go; a group has one floor.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// settings are the command line.
type settings struct {
	rounds  int
	short   bool
	only    string
	write   string
	profile string
	dir     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func parse(args []string, errors io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.IntVar(&s.rounds, "rounds", 5, "how often everything is measured; medians are reported")
	flags.BoolVar(&s.short, "short", false, "few messages, and fail where a ratio is absurdly low")
	flags.StringVar(&s.only, "only", "", "the groups whose name contains this")
	flags.StringVar(&s.write, "write", "", "write the report to this file")
	flags.StringVar(&s.profile, "cpuprofile", "", "write a CPU profile of everything to this file")
	flags.StringVar(&s.dir, "dir", "", "where to keep data meanwhile: the disk that is measured")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.rounds < 1 || flags.NArg() > 0 {
		return s, fmt.Errorf("usage: bench [flags], with at least one round: %w", base.ErrInvalid)
	}
	return s, nil
}

// run carries out a command line.
func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "lakestream-bench-")
	if err != nil {
		return fmt.Errorf("making a directory for data: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is in the system's temporary directory
	if s.profile != "" {
		stop, err := startProfile(s.profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	b := &bench{dir: dir, clock: base.SystemClock{}, progress: progress, rounds: s.rounds, scale: 1}
	if s.short {
		b.scale = shortScale
	}
	load := loadAverage()
	var results []groupResult
	for _, g := range groups() {
		if !strings.Contains(g.name, s.only) {
			continue
		}
		result, err := b.group(ctx, g)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", g.name, err)
		}
		results = append(results, result)
		if err := writeTable(out, result); err != nil {
			return err
		}
	}
	found, err := b.facts(ctx, s.only, out)
	if err != nil {
		return err
	}
	if s.short {
		return checkSane(results)
	}
	if s.write == "" {
		return nil
	}
	return writeReport(s.write, report{
		Groups: results, Facts: found, Machine: describeMachine(dir), Rounds: s.rounds,
		Date: b.clock.Now().UTC().Format("2006-01-02"), LoadBefore: load, LoadAfter: loadAverage(),
	})
}

func startProfile(path string) (stop func(), err error) {
	file, err := os.Create(path) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("making the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		_ = file.Close() // it is empty
		return nil, fmt.Errorf("starting the profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // the profile is for the one who asked
	}, nil
}
