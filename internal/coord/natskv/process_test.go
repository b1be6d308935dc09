package natskv_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// childVariable makes the test binary act as another process on the directory
// that it names.
const childVariable = "LAKESTREAM_TEST_CHILD_DIR"

// nameVariable names a child that is one of several: it takes no lease and goes on
// when a put fails, with the next number.
const nameVariable = "LAKESTREAM_TEST_CHILD_NAME"

const leaseTTL = time.Minute

// beChild takes a lease in the directory and puts numbered records for ever,
// printing each number once it is acknowledged.
func beChild(dir string) int {
	put := putForEver
	if os.Getenv(nameVariable) != "" {
		put = putInSpiteOfAll
	}
	err := put(context.Background(), dir)
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func putForEver(ctx context.Context, dir string) error {
	s, err := natskv.OpenEmbedded(ctx, embedded(dir))
	if err != nil {
		return err
	}
	_, err = coord.AcquireLease(ctx, s.Documents(), base.SystemClock{}, "lease.job", "child", leaseTTL)
	if err != nil {
		return err
	}
	log, err := s.Log(ctx, "s00")
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		if _, err := log.Put(ctx, fmt.Appendf(nil, "child %d", n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// putInSpiteOfAll puts numbered records under the child's name for ever.
func putInSpiteOfAll(ctx context.Context, dir string) error {
	s, err := natskv.OpenEmbedded(ctx, embedded(dir))
	if err != nil {
		return err
	}
	log, err := s.Log(ctx, "s00")
	if err != nil {
		return err
	}
	for n := 1; ctx.Err() == nil; n++ {
		if _, err := log.Put(ctx, fmt.Appendf(nil, "%s %d", os.Getenv(nameVariable), n)); err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		fmt.Println(n)
	}
	return ctx.Err()
}

type child struct {
	command *exec.Cmd
	output  *bufio.Scanner
	acked   []int // what was read of the output
}

func startChild(t *testing.T, dir string, environment ...string) *child {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) //nolint:gosec // ourselves
	command.Env = append(append(os.Environ(), childVariable+"="+dir), environment...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	c := &child{command: command, output: bufio.NewScanner(out)}
	t.Cleanup(func() { _ = c.command.Process.Kill() })
	return c
}

// acknowledged reads until the child has seen n acknowledged.
func (c *child) acknowledged(t *testing.T, n int) {
	t.Helper()
	for c.output.Scan() {
		got, err := strconv.Atoi(c.output.Text())
		require.NoError(t, err)
		c.acked = append(c.acked, got)
		if got >= n {
			return
		}
	}
	require.FailNow(t, "the child ended early")
}

// kill ends the child with SIGKILL and returns the last number that it saw
// acknowledged.
func (c *child) kill(t *testing.T) int {
	t.Helper()
	require.NoError(t, c.command.Process.Kill())
	last := 0
	for c.output.Scan() {
		if n, err := strconv.Atoi(c.output.Text()); err == nil {
			last = n
			c.acked = append(c.acked, n)
		}
	}
	_ = c.command.Wait() // killed
	return last
}

// lockElsewhere holds the lock of a directory without running a server.
func lockElsewhere(t *testing.T, dir string) (unlock func() error) {
	t.Helper()
	lock := flock.New(filepath.Join(dir, "LOCK"))
	locked, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	t.Cleanup(func() { _ = lock.Close() })
	return lock.Close
}

// checkChildRecords requires that records 1 to at least last are there, each
// once and in order.
func checkChildRecords(t *testing.T, texts []string, last int) {
	t.Helper()
	n := 0
	for _, text := range texts {
		if strings.HasPrefix(text, "child ") {
			n++
			require.Equal(t, fmt.Sprintf("child %d", n), text)
		}
	}
	assert.GreaterOrEqual(t, n, last, "an acknowledged record is missing")
}

// Given a process that holds the directory, when it is killed, then the next
// start finds every acknowledged record and does not wait for its lease.
func TestAKilledHolderLeavesEverythingButItsLease(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	c.acknowledged(t, 50)
	last := c.kill(t)
	require.FileExists(t, filepath.Join(dir, "port.json"), "it had no time to remove it")

	var log bytes.Buffer
	options := embedded(dir)
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err := natskv.OpenEmbedded(t.Context(), options)
	require.NoError(t, err)
	closeAtEnd(t, s)
	require.True(t, s.Holds())
	require.Empty(t, log.String(), "recovering its files is the server's everyday work")
	checkChildRecords(t, replay(t, openLog(t, s)), last)
	lease, err := coord.AcquireLease(t.Context(), s.Documents(), base.SystemClock{}, "lease.job", "parent", leaseTTL)
	require.NoError(t, err, "the lease of the killed process is gone")
	require.NoError(t, lease.Release(t.Context()))
}

// Given two processes on one directory, when the holder is killed, then the
// other goes on with the same store.
func TestAProcessTakesOverFromAKilledOne(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	c.acknowledged(t, 10)
	s := openDir(t, dir)
	require.False(t, s.Holds())
	log := openLog(t, s)
	put(t, log, "parent")
	_, err := coord.AcquireLease(t.Context(), s.Documents(), base.SystemClock{}, "lease.job", "parent", leaseTTL)
	require.ErrorIs(t, err, coord.ErrHeld)
	require.ErrorContains(t, err, "child")

	last := c.kill(t)

	eventually(t, func() bool { return s.Holds() && s.Reconnects() > 0 })
	put(t, log, "parent")
	texts := replay(t, log)
	checkChildRecords(t, texts, last)
	assert.Equal(t, "parent", texts[len(texts)-1])
}

// Given this process as the holder, then another one's records arrive here, and
// its death changes nothing.
func TestAProcessJoinsThisOne(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	log := openLog(t, s)
	put(t, log, "parent")
	c := startChild(t, dir)
	c.acknowledged(t, 20)
	last := c.kill(t)
	require.True(t, s.Holds())
	require.Zero(t, s.Reconnects())
	checkChildRecords(t, replay(t, log), last)
}

// Given several processes on one directory, when the holder of now is killed again
// and again, then one of the others takes over each time, and in the end every record
// that any of them was acknowledged is there once.
func TestProcessesTakeOverFromEachOther(t *testing.T) {
	dir := t.TempDir()
	running := map[int]*child{} // by process id
	var all []*child
	for i := range 3 { // at once: who loses the race for the lock joins
		c := startChild(t, dir, fmt.Sprintf("%s=p%d", nameVariable, i))
		running[c.command.Process.Pid] = c
		all = append(all, c)
	}
	for len(running) > 0 {
		holder := 0
		eventually(t, func() bool {
			data, err := os.ReadFile(filepath.Join(dir, "port.json"))
			var p portFile
			if err != nil || json.Unmarshal(data, &p) != nil {
				return false
			}
			holder = p.PID
			return running[holder] != nil
		})
		for _, c := range running {
			before := 0
			if len(c.acked) > 0 {
				before = c.acked[len(c.acked)-1]
			}
			c.acknowledged(t, before+20)
		}
		running[holder].kill(t)
		delete(running, holder)
	}

	count := map[string]int{}
	for _, text := range replay(t, openLog(t, openDir(t, dir))) {
		count[text]++
	}
	for i, c := range all {
		require.NotEmpty(t, c.acked)
		for _, n := range c.acked {
			require.Equal(t, 1, count[fmt.Sprintf("p%d %d", i, n)], "record %d of process %d", n, i)
		}
	}
}
