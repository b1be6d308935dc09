package cli

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitCheck       = 3
	exitUnavailable = 4
)

// errCheck says that a check was made and failed.
var errCheck = errors.New("check failed")

// usageError is a wrong use of a command.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// ExitCode returns how a process should end after err: 0 done, 1 failed, 2 wrong
// usage or configuration, 3 a check that failed, 4 unavailable for now: trying
// again may succeed.
func ExitCode(err error) int {
	var (
		coded ucli.ExitCoder
		usage *usageError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.ExitCode()
	case errors.As(err, &usage):
		return exitUsage
	case isAny(err, errCheck, engine.ErrNotProven, engine.ErrIncomplete, engine.ErrRecoverIncomplete):
		return exitCheck
	case isAny(err, engine.ErrCorrupt, engine.ErrForeign, engine.ErrNewerFormat, engine.ErrNotFound):
		return exitFailed
	case isAny(err, engine.ErrUnavailable, engine.ErrTablesBehind, context.DeadlineExceeded):
		return exitUnavailable
	case isAny(err, engine.ErrInvalid):
		return exitUsage
	default:
		return exitFailed
	}
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// hint adds to an error of a class what to do next.
func hint(err, class error, next string) error {
	if errors.Is(err, class) {
		return fmt.Errorf("%w; %s", err, next)
	}
	return err
}

// explain adds what the user can do about an error that only this package knows.
func explain(err error, common *commonFlags) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && common.timeout > 0:
		return fmt.Sprintf("it took longer than --timeout %s: %v", common.timeout, err)
	case errors.Is(err, context.Canceled):
		return fmt.Sprintf("interrupted: %v", err)
	default:
		return err.Error()
	}
}
