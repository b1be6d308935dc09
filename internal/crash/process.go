package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// modulePath is in the stack of every function of this module.
const modulePath = "github.com/lakestream-go/lakestream/"

// Process is a child process that was started. Wait must be called once.
type Process struct {
	command *exec.Cmd
	output  tail
}

// Ending is how a process ended.
type Ending struct {
	// Killed is set when SIGKILL ended it; else Code is its exit code.
	Killed bool
	Code   int
	// Raced is set when the race detector found a race in this module's code.
	Raced bool
	// Output is the end of what it had to say.
	Output string
}

// Start begins a life in a process of its own, which is this program again.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("starting life %s: %w", spec.Life, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting life %s: %w", spec.Life, err)
	}
	return Run(ctx, []string{self}, specVariable+"="+string(text))
}

// Run starts a command with more in its environment. The end of ctx kills it.
func Run(ctx context.Context, args []string, environment ...string) (*Process, error) {
	p := &Process{command: exec.CommandContext(ctx, args[0], args[1:]...)} //nolint:gosec // named by the test
	// Under the race detector a library that races while it starts would turn
	// each exit code into one of failure; Ending.Raced tells of races of ours.
	p.command.Env = append(append(os.Environ(), "GORACE=exitcode=0"), environment...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	return p, nil
}

// PID returns the process's id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Kill ends the process at once, whatever it is doing.
func (p *Process) Kill() error { return p.command.Process.Kill() }

// Pause stops the process until Resume: it does nothing, and does not know.
func (p *Process) Pause() error { return p.command.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.command.Process.Signal(syscall.SIGCONT) }

// Terminate asks the process to end.
func (p *Process) Terminate() error { return p.command.Process.Signal(syscall.SIGTERM) }

// Wait returns how the process ended.
func (p *Process) Wait() Ending {
	_ = p.command.Wait() // its state says all
	state := p.command.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	output := p.output.String()
	return Ending{
		Killed: status.Signaled() && status.Signal() == syscall.SIGKILL, Code: state.ExitCode(),
		Raced: strings.Contains(output, "WARNING: DATA RACE") && strings.Contains(output, modulePath), Output: output,
	}
}

// Live starts a life and returns how it ended.
func Live(ctx context.Context, spec Spec) (Ending, error) {
	p, err := Start(ctx, spec)
	if err != nil {
		return Ending{}, err
	}
	return p.Wait(), nil
}

// pollEvery is how often a file that another process writes is looked at.
const pollEvery = 5 * time.Millisecond

// AwaitAcks waits until a life's ledger holds at least n acknowledgements.
func AwaitAcks(ctx context.Context, spec *Spec, n int) error {
	return await(ctx, func() (bool, error) {
		acks, err := ReadLedger(spec.LedgerPath())
		return len(acks) >= n, err
	})
}

// await looks every now and then until ok holds, fails, or ctx ends.
func await(ctx context.Context, ok func() (bool, error)) error {
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-base.SystemClock{}.After(pollEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu sync.Mutex
	// kept is guarded by mu.
	kept bytes.Buffer
}

// maxTailBytes bounds what a tail keeps, about.
const maxTailBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if over := t.kept.Len() - maxTailBytes; over > 0 {
		t.kept.Next(over)
	}
	return t.kept.Write(p)
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}
