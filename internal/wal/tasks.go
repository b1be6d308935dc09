package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Retries of store and log calls wait this long, doubling, and half of it at least.
const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 5 * time.Second
	tokenBytes   = 16
)

// sleep waits before the next attempt and reports whether there may be one.
func (w *Writer) sleep(attempt int) bool {
	d := min(maxBackoff, firstBackoff<<min(attempt, 10))
	d = d/2 + time.Duration(w.opts.Jitter()*float64(d/2))
	select {
	case <-w.opts.Clock.After(d):
		return true
	case <-w.ctx.Done():
		return false
	}
}

// failed notes trouble for the warning that follows if it lasts.
func (w *Writer) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = err
}

// current reports whether an object is still to be put for this writer.
func (w *Writer) current(action *Action) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.core.Current(action.Object, action.Writer)
}

// openWriter publishes a WriterOpen record until the log has it. Its token makes
// all copies open one writer.
func (w *Writer) openWriter() {
	open := &commitpb.WriterOpen{Instance: w.opts.Instance}
	for attempt := 0; ; attempt++ {
		writer, err := w.tryOpen(open)
		if err == nil {
			w.count.writers.Add(1)
			w.subscribe(writer)
			w.event(func(c *Core) { c.WriterOpened(writer) })
			return
		}
		w.count.commitErrors.Add(1)
		w.failed(err)
		if !w.sleep(attempt) {
			return
		}
	}
}

func (w *Writer) tryOpen(open *commitpb.WriterOpen) (base.WriterID, error) {
	if open.Token == nil {
		token := make([]byte, tokenBytes)
		if _, err := io.ReadFull(w.opts.Entropy, token); err != nil {
			return 0, fmt.Errorf("drawing writer token: %w", err)
		}
		open.Token = token
	}
	out, err := w.opts.Log.Publish(w.ctx, open)
	if err != nil {
		return 0, fmt.Errorf("opening writer of %s: %w", w.opts.Shard, err)
	}
	if out.Writer == 0 {
		return 0, fmt.Errorf("opening writer of %s: %s", w.opts.Shard, out.Rejected)
	}
	return out.Writer, nil
}

// outcome runs on the goroutine that applies the log.
func (w *Writer) outcome(out shard.Outcome) {
	w.event(func(c *Core) { c.Outcome(&out) })
}

// upload builds an object and puts it until it is stored or no longer wanted.
func (w *Writer) upload(action Action) {
	data, err := action.Object.Build(&w.form, action.Writer, action.Seq, w.segments.take)
	if err != nil { // sizes are bounded: a defect, which no retry mends
		w.event(func(c *Core) { c.Fail(err) })
		return
	}
	for _, a := range action.Object.appends {
		a.releaseStaging()
	}
	started := w.opts.Clock.Now()
	key := base.WALKey(w.opts.Shard, action.Writer, action.Seq)
	for attempt := 0; w.current(&action); attempt++ {
		err := w.put(key, data)
		if err == nil {
			w.count.objects.Add(1)
			w.count.objectBytes.Add(int64(len(data)))
			w.count.putTime.Add(int64(w.opts.Clock.Now().Sub(started)))
			break
		}
		if errors.Is(err, errOccupied) {
			err = w.Fence(w.ctx)
		}
		if err != nil {
			w.count.putErrors.Add(1)
			w.failed(err)
			if !w.sleep(attempt) {
				break
			}
		}
	}
	w.event(func(c *Core) { c.Uploaded(action.Object, action.Writer) })
}

// errOccupied says that something else stands under an object's key: what a
// failed put left behind. It is never deleted, because a delete that arrives late
// could hit the object; the writer moves on instead.
var errOccupied = errors.New("the key holds other bytes")

// put stores an object. One that is there already, after a put whose outcome was
// unknown, is compared.
func (w *Writer) put(key string, data []byte) error {
	w.opts.CrashPoint(CrashBeforePut)
	err := w.opts.Store.Put(w.ctx, key, data)
	w.opts.CrashPoint(CrashAfterPut)
	if !errors.Is(err, base.ErrExists) {
		return err
	}
	info, err := w.opts.Store.Stat(w.ctx, key)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", key, err)
	}
	if info.Size != int64(len(data)) {
		return errOccupied
	}
	stored, err := w.opts.Store.ReadRange(w.ctx, key, 0, info.Size, nil)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", key, err)
	}
	if !bytes.Equal(stored, data) {
		return errOccupied
	}
	return nil
}

// commit puts an object's record until the log has it or the view has shown its
// outcome. A copy too many is a no-op: each (writer, seq) is accepted once.
func (w *Writer) commit(action Action) {
	record := action.Object.Record(action.Writer, action.Seq)
	started := w.opts.Clock.Now()
	for attempt := 0; w.current(&action); attempt++ {
		w.opts.CrashPoint(CrashBeforeCommit)
		_, err := w.opts.Log.Put(w.ctx, commitrecord.RequestID{}, record)
		w.opts.CrashPoint(CrashAfterCommit)
		if err == nil {
			w.count.commitTime.Add(int64(w.opts.Clock.Now().Sub(started)))
			break
		}
		w.count.commitErrors.Add(1)
		w.failed(err)
		if !w.sleep(attempt) {
			break
		}
	}
	w.event(func(c *Core) { c.CommitPut(action.Object) })
}

// The watch looks every watchEvery; a warning follows when nothing has moved for
// blockedAfter of its looks.
const (
	watchEvery   = time.Second
	blockedAfter = 10
)

// watch notices when the view has stopped for good, and when nothing moves.
func (w *Writer) watch() {
	var head uint64
	still := 0
	for {
		select {
		case <-w.opts.Clock.After(watchEvery):
		case <-w.ctx.Done():
			return
		}
		if err := w.opts.Log.Err(); err != nil {
			w.event(func(c *Core) { c.Fail(fmt.Errorf("appending to %s: %w", w.opts.Shard, err)) })
		}
		now, what := w.progress()
		if now == 0 || now != head {
			head, still = now, 0
			if w.count.blocked.Swap(false) {
				w.opts.Logger.Info("appends move again", "shard", w.opts.Shard.String())
			}
			continue
		}
		if still++; still == blockedAfter {
			w.count.blocked.Store(true)
			w.opts.Logger.Warn("appends are blocked", "shard", w.opts.Shard.String(), "by", what, "reason", w.reason())
		}
	}
}

// progress returns the ordinal of the object that commits next, 0 for none, and
// what it waits for.
func (w *Writer) progress() (uint64, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.core.queue) == 0 {
		return 0, ""
	}
	o := w.core.queue[0]
	if w.core.writer != 0 && o.phase == uploading {
		return o.ordinal, "the object store " + w.opts.Store.String()
	}
	return o.ordinal, "the commit log of " + w.opts.Shard.String()
}

func (w *Writer) reason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		return "no answer"
	}
	return w.trouble.Error()
}
