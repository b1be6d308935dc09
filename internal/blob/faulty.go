package blob

import (
	"context"
	"fmt"
	"sync"
)

// Op is an operation of a Store or of its Writer.
type Op uint8

// The operations, in the order of the interfaces.
const (
	OpPut Op = iota + 1
	OpCreate
	OpReadRange
	OpStat
	OpList
	OpDelete
	OpWrite
	OpCommit
)

var opNames = [...]string{
	OpPut: "Put", OpCreate: "Create", OpReadRange: "ReadRange", OpStat: "Stat",
	OpList: "List", OpDelete: "Delete", OpWrite: "Write", OpCommit: "Commit",
}

// String returns the name of the method.
func (o Op) String() string {
	if o == 0 || int(o) >= len(opNames) {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return opNames[o]
}

// Call describes one call of a Store that is about to happen.
type Call struct {
	// N counts the calls of the store, from 1.
	N  int
	Op Op
	// Key is the object's key; for OpList the prefix.
	Key string
}

// Fault says what goes wrong with one call. The zero value lets it pass.
type Fault struct {
	// Wait runs first; its error is returned instead of the call's effect. It
	// delays the call, or hands control to a test.
	Wait func(context.Context) error
	// Before is returned in place of the effect: nothing happened.
	Before error
	// After is returned although the effect took place: the reply was lost.
	After error
	// Damage changes the bytes that Put stores or that ReadRange returns. It
	// may change them in place. A read that it shortens ends with
	// io.ErrUnexpectedEOF. A Put that was cut short by a crash is Damage
	// together with After.
	Damage func([]byte) []byte
}

// FlipBit returns a Damage that inverts one bit, counted from the first byte's
// lowest, modulo the length of the data.
func FlipBit(bit int) func([]byte) []byte {
	return func(data []byte) []byte {
		if len(data) > 0 {
			data[bit/8%len(data)] ^= 1 << (bit % 8)
		}
		return data
	}
}

// Truncate returns a Damage that keeps the first size bytes.
func Truncate(size int) func([]byte) []byte {
	return func(data []byte) []byte { return data[:min(size, len(data))] }
}

// Faulty is a Store that fails as it is told. It is as deterministic as the calls
// that reach it: decide runs once a call, one at a time, in the order of the calls.
type Faulty struct {
	inner Store

	mu     sync.Mutex
	decide func(Call) Fault // guarded by mu
	calls  int              // guarded by mu
}

// NewFaulty wraps inner, which it owns from now on. decide must not be nil and
// must not call the store; it says for each call what goes wrong.
func NewFaulty(inner Store, decide func(Call) Fault) *Faulty {
	return &Faulty{inner: inner, decide: decide}
}

// do runs one call with its fault. effect gets the damage to apply, never nil.
func (s *Faulty) do(
	ctx context.Context, op Op, key string, effect func(damage func([]byte) []byte) error,
) error {
	s.mu.Lock()
	s.calls++
	fault := s.decide(Call{N: s.calls, Op: op, Key: key})
	s.mu.Unlock()
	if fault.Wait != nil {
		if err := fault.Wait(ctx); err != nil {
			return err
		}
	}
	if fault.Before != nil {
		return fault.Before
	}
	if fault.Damage == nil {
		fault.Damage = func(data []byte) []byte { return data }
	}
	if err := effect(fault.Damage); err != nil {
		return err
	}
	return fault.After
}

// Put implements Store.
func (s *Faulty) Put(ctx context.Context, key string, data []byte) error {
	return s.do(ctx, OpPut, key, func(damage func([]byte) []byte) error {
		// A copy, because the caller's data is not ours to change; aligned,
		// because the wrapper should not keep the inner store from direct writes.
		own := AlignedBuffer(len(data))
		copy(own, data)
		return s.inner.Put(ctx, key, damage(own))
	})
}

// Create implements Store.
func (s *Faulty) Create(ctx context.Context, key string) (Writer, error) {
	var inner Writer
	err := s.do(ctx, OpCreate, key, func(func([]byte) []byte) (err error) {
		inner, err = s.inner.Create(ctx, key)
		return err
	})
	if err != nil {
		if inner != nil {
			inner.Abort() // the caller gets no writer to end
		}
		return nil, err
	}
	return &faultyWriter{store: s, ctx: ctx, key: key, inner: inner}, nil
}

// ReadRange implements Store.
func (s *Faulty) ReadRange(
	ctx context.Context, key string, offset, length int64, dst []byte,
) (data []byte, err error) {
	err = s.do(ctx, OpReadRange, key, func(damage func([]byte) []byte) error {
		read, err := s.inner.ReadRange(ctx, key, offset, length, dst)
		if err != nil {
			return err
		}
		if data = damage(read); int64(len(data)) < length {
			return shortObject(key, offset, length, offset+int64(len(data)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Stat implements Store.
func (s *Faulty) Stat(ctx context.Context, key string) (info Info, err error) {
	err = s.do(ctx, OpStat, key, func(func([]byte) []byte) error {
		info, err = s.inner.Stat(ctx, key)
		return err
	})
	return info, err
}

// List implements Store.
func (s *Faulty) List(ctx context.Context, prefix, after string, limit int) (found []Info, err error) {
	err = s.do(ctx, OpList, prefix, func(func([]byte) []byte) error {
		found, err = s.inner.List(ctx, prefix, after, limit)
		return err
	})
	return found, err
}

// Delete implements Store.
func (s *Faulty) Delete(ctx context.Context, key string) error {
	return s.do(ctx, OpDelete, key, func(func([]byte) []byte) error {
		return s.inner.Delete(ctx, key)
	})
}

// String implements Store.
func (s *Faulty) String() string { return s.inner.String() }

// Close implements Store. It never fails by itself.
func (s *Faulty) Close() error { return s.inner.Close() }

// faultyWriter is a Writer whose Write and Commit fail as the store is told.
type faultyWriter struct {
	store *Faulty
	ctx   context.Context
	key   string
	inner Writer
}

// Write implements io.Writer.
func (w *faultyWriter) Write(p []byte) (n int, err error) {
	err = w.store.do(w.ctx, OpWrite, w.key, func(func([]byte) []byte) error {
		n, err = w.inner.Write(p)
		return err
	})
	return n, err
}

// Commit implements Writer. A commit that fails before its effect discards the
// object, as every store does.
func (w *faultyWriter) Commit() error {
	reached := false
	err := w.store.do(w.ctx, OpCommit, w.key, func(func([]byte) []byte) error {
		reached = true
		return w.inner.Commit()
	})
	if !reached {
		w.inner.Abort()
	}
	return err
}

// Abort implements Writer.
func (w *faultyWriter) Abort() { w.inner.Abort() }
