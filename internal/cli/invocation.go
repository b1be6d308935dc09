package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// closeTimeout bounds the leave of an engine.
const closeTimeout = 10 * time.Second

// invocation is one run of a command.
type invocation struct {
	app    app
	args   []string
	common *commonFlags

	stdin          io.Reader
	stdout, stderr io.Writer
}

// options returns where the engine is. A flag is stronger than the configuration
// file, the file stronger than the environment.
func (in *invocation) options() (engine.Options, error) {
	var opts engine.Options
	if path := in.common.config; path != "" {
		var err error
		if opts, err = in.app.load(path); err != nil {
			return opts, usagef("reading configuration %s: %w", path, err)
		}
	}
	switch {
	case in.common.dataDir != "":
		opts.DataDir = in.common.dataDir
	case in.common.config == "":
		opts.DataDir = os.Getenv(dataDirVariable)
	}
	opts.Observe = true
	opts.Logger = slog.New(slog.NewTextHandler(in.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return opts, nil
}

// withEngine opens the engine, does something and leaves. All but leaving is
// bounded by --timeout.
func (in *invocation) withEngine(ctx context.Context, do func(context.Context, *engine.Engine) error) (err error) {
	opts, err := in.options()
	if err != nil {
		return err
	}
	ctx, cancel := in.bounded(ctx)
	defer cancel()
	e, err := engine.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, e.Close(closing))
	}()
	return do(ctx, e)
}

// bounded bounds ctx by --timeout.
func (in *invocation) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if in.common.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, in.common.timeout)
}

// note tells people something that is no result.
func (in *invocation) note(format string, args ...any) {
	_, _ = fmt.Fprintf(in.stderr, format+"\n", args...) // there is nobody else to tell
}

// confirm asks a person before something is destroyed. Where nobody can be asked,
// --yes is needed.
func (in *invocation) confirm(question string) error {
	if file, ok := in.stdin.(*os.File); !ok || !isTerminal(file) {
		return usagef("%s pass --yes to confirm", question)
	}
	in.note("%s Type yes to go on:", question)
	// An input that ends or fails has not confirmed.
	answer, _ := bufio.NewReader(in.stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return usagef("not confirmed; nothing was changed; pass --yes to confirm without being asked")
	}
	return nil
}

// isTerminal reports whether someone may sit at the other end.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
