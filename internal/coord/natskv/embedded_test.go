package natskv_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

func embedded(dir string) natskv.Embedded {
	return natskv.Embedded{Options: natskv.Options{Prefix: prefix}, Dir: dir}
}

// openDir opens a data directory until the test ends.
func openDir(t *testing.T, dir string) *natskv.Store {
	t.Helper()
	s, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
	require.NoError(t, err)
	closeAtEnd(t, s)
	return s
}

type portFile struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	PID   int    `json:"pid"`
}

func readPort(t *testing.T, dir string) portFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "port.json"))
	require.NoError(t, err)
	var p portFile
	require.NoError(t, json.Unmarshal(data, &p))
	return p
}

// joinAsForeigner connects to the embedded server with its token.
func joinAsForeigner(t *testing.T, dir string) jetstream.JetStream {
	t.Helper()
	p := readPort(t, dir)
	conn, err := nats.Connect(p.URL, nats.Token(p.Token))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	return js
}

func openLog(t *testing.T, s coord.Store) coord.CommitLog {
	t.Helper()
	log, err := s.Log(t.Context(), "s00")
	require.NoError(t, err)
	return log
}

func put(t *testing.T, log coord.CommitLog, text string) base.Revision {
	t.Helper()
	at, err := log.Put(t.Context(), []byte(text))
	require.NoError(t, err)
	return at
}

// replay reads the log from the first revision to the last.
func replay(t *testing.T, log coord.CommitLog) []string {
	t.Helper()
	_, last, err := log.Bounds(t.Context())
	require.NoError(t, err)
	w, err := log.Watch(t.Context(), 1)
	require.NoError(t, err)
	defer w.Stop()
	var texts []string
	for range last {
		select {
		case entry, ok := <-w.Entries():
			require.True(t, ok, "the watch ended")
			require.Equal(t, base.Revision(len(texts)+1), entry.Revision)
			texts = append(texts, string(entry.Data))
		case <-time.After(20 * time.Second):
			require.FailNow(t, "no entry arrived")
		}
	}
	return texts
}

func TestWhatWasPutIsThereAfterReopening(t *testing.T) {
	dir := t.TempDir()
	s, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
	require.NoError(t, err)
	put(t, openLog(t, s), "one")
	put(t, openLog(t, s), "two")
	require.NoError(t, s.Close(t.Context()))
	require.NoFileExists(t, filepath.Join(dir, "port.json"), "nobody is to be led to a server that is gone")

	again := openDir(t, dir)
	assert.Equal(t, []string{"one", "two"}, replay(t, openLog(t, again)))
	assert.Equal(t, base.Revision(3), put(t, openLog(t, again), "three"))
}

func TestThePortFileIsForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	openDir(t, dir)
	info, err := os.Stat(filepath.Join(dir, "port.json"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	assert.Equal(t, os.Getpid(), readPort(t, dir).PID)
	left, err := filepath.Glob(filepath.Join(dir, "port.json.*"))
	require.NoError(t, err)
	assert.Empty(t, left, "no temporary file stays")
}

func TestNobodyEntersWithoutTheToken(t *testing.T) {
	dir := t.TempDir()
	first, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
	require.NoError(t, err)
	p := readPort(t, dir)
	for _, options := range [][]nats.Option{nil, {nats.Token("guess")}, {nats.UserInfo("user", "password")}} {
		_, err := nats.Connect(p.URL, options...)
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
	require.NoError(t, first.Close(t.Context()))

	openDir(t, dir)
	assert.NotEqual(t, p.Token, readPort(t, dir).Token, "each start has its own token")
}

func TestASecondInstanceJoinsTheFirst(t *testing.T) {
	dir := t.TempDir()
	first, second := openDir(t, dir), openDir(t, dir)
	require.True(t, first.Holds())
	require.False(t, second.Holds())
	put(t, openLog(t, first), "one")
	put(t, openLog(t, second), "two")
	assert.Equal(t, []string{"one", "two"}, replay(t, openLog(t, first)))
	assert.Equal(t, []string{"one", "two"}, replay(t, openLog(t, second)))
}

// Given two instances, when the holder closes, then the other takes the server
// over and its log and documents go on.
func TestAJoinerTakesTheServerOver(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *natskv.Store){
		"after a close": func(t *testing.T, s *natskv.Store) { require.NoError(t, s.Close(t.Context())) },
		"after a crash": func(t *testing.T, s *natskv.Store) { require.NoError(t, s.ServerGone()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
			require.NoError(t, err)
			second := openDir(t, dir)
			log := openLog(t, second)
			put(t, log, "one")
			w, err := log.Watch(t.Context(), 1)
			require.NoError(t, err)
			_, err = second.Documents().Create(t.Context(), "lease.job", []byte("first"), time.Minute)
			require.NoError(t, err)
			kept, err := second.Documents().Create(t.Context(), "cursor.job", []byte("kept"), 0)
			require.NoError(t, err)
			before := readPort(t, dir)

			leave(t, first)

			eventually(t, func() bool { return second.Holds() && second.Reconnects() > 0 })
			for range w.Entries() { // it ends
			}
			assert.Equal(t, base.Revision(2), put(t, log, "two"))
			assert.Equal(t, []string{"one", "two"}, replay(t, log))
			_, err = second.Documents().Get(t.Context(), "lease.job")
			require.ErrorIs(t, err, base.ErrNotFound, "a lease of before the start")
			doc, err := second.Documents().Get(t.Context(), "cursor.job")
			require.NoError(t, err)
			assert.Equal(t, kept, doc.Revision)
			assert.NotEqual(t, before.Token, readPort(t, dir).Token)

			third := openDir(t, dir)
			require.False(t, third.Holds())
			assert.Equal(t, []string{"one", "two"}, replay(t, openLog(t, third)))
			require.NoError(t, first.Close(t.Context()))
		})
	}
}

func TestOfManyJoinersOneTakesOver(t *testing.T) {
	dir := t.TempDir()
	first, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
	require.NoError(t, err)
	joiners := []*natskv.Store{openDir(t, dir), openDir(t, dir), openDir(t, dir)}
	require.NoError(t, first.Close(t.Context()))
	eventually(t, func() bool {
		for _, s := range joiners {
			if s.Reconnects() == 0 {
				return false
			}
		}
		return true
	})
	holders := 0
	for _, s := range joiners {
		if s.Holds() {
			holders++
		}
		put(t, openLog(t, s), "record")
	}
	assert.Equal(t, 1, holders)
	assert.Len(t, replay(t, openLog(t, joiners[0])), len(joiners))
}

// Given a lock whose holder does not answer, then opening ends within its bound
// and says what to do.
func TestAHolderThatDoesNotAnswerIsNamed(t *testing.T) {
	for name, port := range map[string]string{
		"stale port file": `{"url":"nats://127.0.0.1:1","token":"x","pid":4242}`,
		"broken file":     `{"url":`,
		"empty file":      `{}`,
		"no file":         "",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lockElsewhere(t, dir)
			if port != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "port.json"), []byte(port), 0o600))
			}
			e := embedded(dir)
			e.JoinWait = 200 * time.Millisecond
			_, err := natskv.OpenEmbedded(t.Context(), e)
			require.ErrorIs(t, err, base.ErrUnavailable)
			require.ErrorContains(t, err, dir)
			require.ErrorContains(t, err, "use another directory")
			if name == "stale port file" {
				require.ErrorContains(t, err, "process 4242")
			}
		})
	}
}

// Given a holder whose port file appears late, then a joiner waits for it.
func TestAJoinerWaitsForTheHolderToStart(t *testing.T) {
	dir := t.TempDir()
	unlock := lockElsewhere(t, dir)
	opened := make(chan *natskv.Store, 1)
	go func() {
		s, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
		if assert.NoError(t, err) {
			opened <- s
		}
	}()
	time.Sleep(100 * time.Millisecond)
	require.Empty(t, opened)
	require.NoError(t, unlock())
	s := <-opened
	closeAtEnd(t, s)
	assert.True(t, s.Holds(), "the lock came free, so it starts the server itself")
}

func TestADirectoryThatCannotServeIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	for name, dir := range map[string]string{
		"none":              "",
		"a file":            file,
		"below a file":      filepath.Join(file, "data"),
		"on a read-only fs": "/proc/lakestream-data",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
			require.ErrorIs(t, err, base.ErrInvalid)
			require.ErrorContains(t, err, "opening data directory "+dir)
		})
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(content))
}

func TestAReadOnlyDirectoryIsLeftAsItWas(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500)) //nolint:gosec // that is the point
	_, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
	require.ErrorIs(t, err, base.ErrInvalid)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestTheReserveOfTheDiskIsKept(t *testing.T) {
	s := openDir(t, t.TempDir())
	log := openLog(t, s)
	put(t, log, "one")
	s.SetFree(func() (uint64, error) { return 1 << 20, nil })
	_, err := log.Put(t.Context(), []byte("two"))
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.ErrorContains(t, err, "1 MiB free, the reserve is 64 MiB")
	_, err = s.Documents().Create(t.Context(), "k", nil, 0)
	require.ErrorIs(t, err, base.ErrUnavailable)
	s.SetFree(func() (uint64, error) { return 0, errors.New("no such disk") })
	_, err = log.Put(t.Context(), []byte("two"))
	require.ErrorIs(t, err, base.ErrUnavailable)

	s.SetFree(func() (uint64, error) { return 1 << 40, nil })
	assert.Equal(t, base.Revision(2), put(t, log, "two"))
}

func TestClosingTwiceIsNoError(t *testing.T) {
	s, err := natskv.OpenEmbedded(t.Context(), embedded(t.TempDir()))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, s.Close(t.Context()))
}

// Given a context that has ended, then closing returns at once, and the
// directory comes free all the same.
func TestCloseIsBoundedByItsContext(t *testing.T) {
	dir := t.TempDir()
	s, err := natskv.OpenEmbedded(t.Context(), embedded(dir))
	require.NoError(t, err)
	put(t, openLog(t, s), "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); err != nil { // or it was quick enough
		require.ErrorContains(t, err, "still shutting down")
	}
	next := openDir(t, dir) // maybe by way of the server that is going away
	eventually(t, func() bool {
		log, err := next.Log(t.Context(), "s00")
		if err != nil || !next.Holds() {
			return false
		}
		// The connection moves to the new server a moment after it started.
		_, _, err = log.Bounds(t.Context())
		return err == nil
	})
	assert.Equal(t, []string{"one"}, replay(t, openLog(t, next)))
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 5*time.Millisecond)
}
