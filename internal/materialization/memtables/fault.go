package memtables

import (
	"errors"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// OpKind names an operation of the seam.
type OpKind string

// The operations that a Hook sees.
const (
	OpLoad   OpKind = "load"
	OpCreate OpKind = "create"
	OpEvolve OpKind = "evolve"
	OpCommit OpKind = "commit"
	OpOpen   OpKind = "open"
	OpWrite  OpKind = "write"
)

// Op is one call of the seam that is about to take effect.
type Op struct {
	Kind OpKind
	// Ident is empty for files.
	Ident materialization.Ident
	// Path is empty for tables.
	Path string
}

// Fault is what happens to an operation. The zero value lets it be.
type Fault struct {
	// Meanwhile runs before the operation takes effect, as another process
	// would act between a read and the write built on it. It may call the
	// Tables.
	Meanwhile func()
	// Before fails the operation without its effect.
	Before error
	// After fails the operation after its effect: the reply was lost.
	After error
	// Hold keeps the operation back until DeliverHeld, as a network may; the
	// caller sees base.ErrUnknown now.
	Hold bool
}

// Hook decides what happens to an operation. It is called without locks held.
type Hook func(Op) Fault

// SetHook makes hook decide over each operation from now on; nil lets all be.
func (t *Tables) SetHook(hook Hook) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hook = hook
}

// Hook returns the hook that decides now, or nil.
func (t *Tables) Hook() Hook {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hook
}

// DeliverHeld lets all operations that were held back take effect, in order, if
// their assertions still hold, and returns how many did.
func (t *Tables) DeliverHeld() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	landed := 0
	for _, effect := range t.held {
		if effect() == nil {
			landed++
		}
	}
	t.held = nil
	return landed
}

// run makes an operation happen, with the faults that the hook decides. effect
// runs with the lock held.
func (t *Tables) run(op Op, effect func() error) error {
	t.mu.Lock()
	hook := t.hook
	t.mu.Unlock()
	var fault Fault
	if hook != nil {
		fault = hook(op)
	}
	if fault.Meanwhile != nil {
		fault.Meanwhile()
	}
	if fault.Before != nil {
		return fault.Before
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if fault.Hold {
		t.held = append(t.held, effect)
		return base.WithClass(base.ErrUnknown, errHeld)
	}
	if err := effect(); err != nil {
		return err
	}
	return fault.After
}

var errHeld = errors.New("no reply yet")
