package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// category is the heading under which help lists the commands.
const category = "Lakestream"

// LoadConfig reads a pipeline's configuration file and returns the options of the
// engine that it names, in its top-level block or in a component. What is wrong
// with the file is engine.ErrInvalid and names the field.
type LoadConfig func(path string) (engine.Options, error)

// app is what every command is made with.
type app struct {
	load  LoadConfig
	clock engine.Clock
}

// Commands returns the admin commands. load serves their flag -c. Errors that
// they return are printed and carry their exit code, as ucli.ExitCoder.
func Commands(load LoadConfig) []*ucli.Command {
	a := app{load: load, clock: engine.SystemClock{}}
	return []*ucli.Command{
		a.status(),
		group("stream", "Create, change, look at and delete streams", a.streamCommands()...),
		group("namespace", "Create, change, look at and delete namespaces",
			a.namespaceCreate(), a.namespaceList(), a.namespaceDescribe(), a.namespaceSet(), a.namespaceDelete()),
		group("group", "Look at consumer groups, seek and delete them", a.groupList(), a.groupDescribe(), a.groupSeek(), a.groupDelete()),
		group("table", "Look at tables, prove and reset them", a.tableList(), a.tableDescribe(), a.tableHead(), a.tableVerify(), a.tableReset()),
		a.inspect(), a.recover(),
		a.compact(),
		a.gc(),
	}
}

// spec is what tells one command from another.
type spec struct {
	name, usage, args, description string
	// min and max bound the number of arguments.
	min, max int
	flags    []ucli.Flag
	// timeout is the default of --timeout; 0 means 30 s.
	timeout time.Duration
	run     func(ctx context.Context, in *invocation) error
}

const defaultTimeout = 30 * time.Second

// command makes a command whose flags are parsed here, wherever they stand.
func (a app) command(s spec) *ucli.Command {
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	common := &commonFlags{}
	return &ucli.Command{
		Name: s.name, Usage: s.usage, ArgsUsage: s.args, Description: s.description, Category: category,
		Flags: append(s.flags, common.flags(s.timeout)...), SkipFlagParsing: true, HideHelpCommand: true,
		Action: func(c *ucli.Context) error {
			err := a.run(c, s, common)
			if err == nil {
				return nil
			}
			return ucli.Exit("error: "+explain(err, common), ExitCode(err))
		},
	}
}

// run parses the arguments and runs the command until it ends or the process is
// told to.
func (a app) run(c *ucli.Context, s spec, common *commonFlags) error {
	args, help, err := parse(c.Command.Flags, c.Args().Slice())
	if err != nil {
		return usagef("%s: %w; see %s --help", s.name, err, c.Command.HelpName)
	}
	if help {
		ucli.HelpPrinter(c.App.Writer, ucli.CommandHelpTemplate, c.Command)
		return nil
	}
	if len(args) < s.min || len(args) > s.max {
		return usagef("%s: %s given, want %s; see %s --help", s.name, plural(len(args), "argument"), wantArgs(s), c.Command.HelpName)
	}
	if err := common.inherit(c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return s.run(ctx, &invocation{
		app: a, args: args, common: common, stdin: c.App.Reader, stdout: c.App.Writer, stderr: c.App.ErrWriter,
	})
}

func wantArgs(s spec) string {
	if s.args == "" {
		return "none"
	}
	return s.args
}

// group makes a command that only holds others.
func group(name, usage string, commands ...*ucli.Command) *ucli.Command {
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = c.Name
	}
	want := fmt.Sprintf("want %s and one of %s", name, strings.Join(names, ", "))
	refuse := func(err error) error { return ucli.Exit("error: "+err.Error(), exitUsage) }
	return &ucli.Command{
		Name: name, Usage: usage, Subcommands: commands, Category: category,
		Action: func(c *ucli.Context) error {
			if !c.Args().Present() {
				return refuse(usagef("%s: no command given: %s", name, want))
			}
			return refuse(usagef("%s: unknown command %q: %s", name, c.Args().First(), want))
		},
		OnUsageError: func(_ *ucli.Context, err error, _ bool) error {
			return refuse(usagef("%s: %w: %s, then flags", name, err, want))
		},
	}
}
