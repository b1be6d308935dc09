package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"
)

// dataDirVariable names the data directory where neither a flag nor a
// configuration file does.
const dataDirVariable = "LAKESTREAM_DATA_DIR"

// commonFlags are those that every command takes.
type commonFlags struct {
	config, dataDir string
	json            bool
	timeout         time.Duration
}

func (f *commonFlags) flags(timeout time.Duration) []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{
			Name: "config", Aliases: []string{"c"}, Destination: &f.config,
			Usage: "take the engine from a pipeline's configuration `FILE`",
		},
		&ucli.StringFlag{
			Name: "data-dir", Destination: &f.dataDir,
			Usage: "data directory `DIR`; without it and -c, that of " + dataDirVariable + " or ./lakestream-data",
		},
		&ucli.BoolFlag{Name: "json", Destination: &f.json, Usage: "print the result as JSON"},
		&ucli.DurationFlag{
			Name: "timeout", Destination: &f.timeout, Value: timeout,
			Usage: "give up after `DURATION`; 0 never does",
		},
	}
}

// inherit takes what was given before the command's name, and refuses what would
// have no effect there.
func (f *commonFlags) inherit(c *ucli.Context) error {
	lineage := c.Lineage()
	for _, ancestor := range lineage[1:] {
		if ancestor.Command == nil {
			continue
		}
		for _, name := range ancestor.LocalFlagNames() {
			switch name {
			case "config", "c":
				if f.config == "" {
					f.config = ancestor.String(name)
				}
			case "env-file", "e":
			default:
				return usagef("flag -%s before the command has no effect on it", name)
			}
		}
	}
	if f.timeout < 0 {
		return usagef("--timeout %s: want 0 or more", f.timeout)
	}
	return nil
}

// parse reads flags wherever they stand and returns what is none. After "--"
// nothing is a flag.
func parse(flags []ucli.Flag, args []string) (positional []string, help bool, err error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range flags {
		if err := f.Apply(set); err != nil {
			return nil, false, fmt.Errorf("applying flag %v: %w", f.Names(), err)
		}
	}
	for len(args) > 0 {
		err := set.Parse(args)
		if errors.Is(err, flag.ErrHelp) || isTrue(set, "help") || isTrue(set, "h") {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		rest := set.Args()
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(positional, rest...), false, nil
		}
		if len(rest) == 0 {
			break
		}
		positional, args = append(positional, rest[0]), rest[1:]
	}
	return positional, false, nil
}

func isTrue(set *flag.FlagSet, name string) bool {
	f := set.Lookup(name)
	return f != nil && f.Value.String() == "true"
}
