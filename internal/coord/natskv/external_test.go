package natskv_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// Given a bucket of our name that differs in one thing that matters, then it is
// refused, the error says in what, and the bucket stays as it was.
func TestABucketConfiguredOtherwiseIsRefused(t *testing.T) {
	ours := jetstream.StreamConfig{
		Name: "KV_lake-s00", Subjects: []string{"$KV.lake-s00.>"}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1 << 40, DenyDelete: true,
	}
	for want, change := range map[string]func(*jetstream.StreamConfig){
		"allow_direct is true, want false":               func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"allow_rollup_hdrs is true, want false":          func(c *jetstream.StreamConfig) { c.AllowRollup = true },
		"deny_delete is false, want true":                func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"max_msgs_per_subject is 64, want 1099511627776": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 64 },
		"storage is Memory, want File":                   func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"discard is DiscardOld, want DiscardNew":         func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"max_age is 1h0m0s, want 0s":                     func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"max_bytes is 1000000, want -1":                  func(c *jetstream.StreamConfig) { c.MaxBytes = 1_000_000 },
		"allow_msg_ttl is true, want false":              func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"no_ack is true, want false":                     func(c *jetstream.StreamConfig) { c.NoAck = true },
		"subjects is $KV.lake-s00.> more, want":          func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "more") },
	} {
		t.Run(want, func(t *testing.T) {
			e := startExternal(t)
			s, js := e.open(t), e.connect(t)
			config := ours
			config.Subjects = append([]string(nil), ours.Subjects...)
			change(&config)
			before, err := js.CreateStream(t.Context(), config)
			require.NoError(t, err)
			_, err = s.Log(t.Context(), "s00")
			require.ErrorIs(t, err, base.ErrInvalid)
			require.ErrorContains(t, err, want)
			after, err := js.Stream(t.Context(), config.Name)
			require.NoError(t, err)
			assert.Equal(t, before.CachedInfo().Config, after.CachedInfo().Config)
		})
	}
}

// Given an ordinary bucket under our documents' name, as the client makes it.
func TestAnOrdinaryBucketIsNoDocumentsBucket(t *testing.T) {
	e := startExternal(t)
	_, err := e.connect(t).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: prefix})
	require.NoError(t, err)
	_, err = natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: prefix}, URLs: []string{e.server.ClientURL()},
	})
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "allow_direct")
}

func TestARecordUnderAnotherKeyIsAnEmptyEntry(t *testing.T) {
	e := startExternal(t)
	log := openLog(t, e.open(t))
	put(t, log, "one")
	kv, err := e.connect(t).KeyValue(t.Context(), prefix+"-s00")
	require.NoError(t, err)
	_, err = kv.Put(t.Context(), "another", []byte("foreign"))
	require.NoError(t, err)
	put(t, log, "three")
	assert.Equal(t, []string{"one", "", "three"}, replay(t, log))
}

func TestTheHistoryCannotBeRolledUp(t *testing.T) {
	e := startExternal(t)
	log := openLog(t, e.open(t))
	put(t, log, "one")
	kv, err := e.connect(t).KeyValue(t.Context(), prefix+"-s00")
	require.NoError(t, err)
	require.Error(t, kv.Purge(t.Context(), "commit"))
	assert.Equal(t, []string{"one"}, replay(t, log))
}

// Given a prefix that was purged, then the bounds tell and a watch starts at
// what is left.
func TestAPurgedPrefixShowsInTheBounds(t *testing.T) {
	e := startExternal(t)
	log := openLog(t, e.open(t))
	for range 5 {
		put(t, log, "record")
	}
	stream, err := e.connect(t).Stream(t.Context(), "KV_"+prefix+"-s00")
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)))
	first, last, err := log.Bounds(t.Context())
	require.NoError(t, err)
	assert.Equal(t, [2]base.Revision{4, 5}, [2]base.Revision{first, last})
	w, err := log.Watch(t.Context(), 1)
	require.NoError(t, err)
	defer w.Stop()
	assert.Equal(t, base.Revision(4), (<-w.Entries()).Revision)
}

func TestMoreReplicasThanServersIsExplained(t *testing.T) {
	e := startExternal(t)
	_, err := natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: prefix}, URLs: []string{e.server.ClientURL()}, Replicas: 3,
	})
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "as many replicas as there are servers")
}

func TestOptionsAreChecked(t *testing.T) {
	valid := natskv.External{Options: natskv.Options{Prefix: prefix}, URLs: []string{"nats://127.0.0.1:1"}}
	for name, change := range map[string]func(*natskv.External){
		"no prefix":         func(e *natskv.External) { e.Prefix = "" },
		"a dotted prefix":   func(e *natskv.External) { e.Prefix = "a.b" },
		"no URL":            func(e *natskv.External) { e.URLs = nil },
		"a URL that is not": func(e *natskv.External) { e.URLs = []string{"nats://[secret"} },
		"no host":           func(e *natskv.External) { e.URLs = []string{"secret"} },
		"negative replicas": func(e *natskv.External) { e.Replicas = -1 },
		"negative timeout":  func(e *natskv.External) { e.Timeout = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			e := valid
			change(&e)
			_, err := natskv.Open(t.Context(), e)
			require.ErrorIs(t, err, base.ErrInvalid)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestServersThatCannotBeReachedAreUnavailable(t *testing.T) {
	_, err := natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: prefix}, URLs: []string{"nats://user:secret@127.0.0.1:1"},
	})
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.ErrorContains(t, err, "nats://127.0.0.1:1")
	assert.NotContains(t, err.Error(), "secret")
}

// Given a server that is down, then operations fail at once and for certain,
// and nothing of them arrives when it is back.
func TestWithoutAServerNothingHappens(t *testing.T) {
	e := startExternal(t)
	s := e.open(t)
	log := openLog(t, s)
	put(t, log, "one")
	e.stop()
	eventually(t, func() bool {
		_, err := log.Put(t.Context(), []byte("lost"))
		return errors.Is(err, base.ErrUnavailable) && strings.Contains(err.Error(), "not connected")
	})
	_, _, err := log.Bounds(t.Context())
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, err = log.Watch(t.Context(), 1)
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, err = s.Documents().Get(t.Context(), "k")
	require.ErrorIs(t, err, base.ErrUnavailable)
	e.start(t)
	eventually(t, func() bool { return s.Reconnects() > 0 })
	put(t, log, "two")
	assert.Equal(t, []string{"one", "two"}, replay(t, log))
}

// Given a server whose answer is lost, then the outcome is unknown, though the
// record is there.
func TestALostAnswerIsUnknown(t *testing.T) {
	for name, lose := range map[string]func(*proxy){
		"the server falls silent":   (*proxy).silence,
		"the connection is dropped": (*proxy).dropOnNextRequest,
	} {
		t.Run(name, func(t *testing.T) {
			e := startExternal(t)
			p := startProxy(t, e.server.Addr().String())
			s, err := natskv.Open(t.Context(), natskv.External{
				Options: natskv.Options{Prefix: prefix}, URLs: []string{"nats://" + p.address()},
			})
			require.NoError(t, err)
			closeAtEnd(t, s)
			log := openLog(t, s)
			put(t, log, "one")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			lose(p)
			_, err = log.Put(ctx, []byte("two"))
			require.ErrorIs(t, err, base.ErrUnknown)
			direct := openLog(t, e.open(t))
			eventually(t, func() bool {
				_, last, err := direct.Bounds(t.Context())
				return err == nil && last == 2
			})
			assert.Equal(t, []string{"one", "two"}, replay(t, direct))
		})
	}
}
