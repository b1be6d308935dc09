package natskv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// The bucket and the users of the documented configuration.
const documentedBucket = "lakestream"

var (
	documentedUser  = natskv.Auth{User: "lakestream", Password: "change-me-too"}
	documentedAdmin = nats.UserInfo("admin", "change-me")
)

// documentedConfiguration returns the server's configuration in docs/nats.md.
func documentedConfiguration(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/nats.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```\n(jetstream .*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	return string(block[1])
}

// startConfigured runs a server under a configuration file's text.
func startConfigured(t *testing.T, text string) *external {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	options, err := server.ProcessConfigFile(path)
	require.NoError(t, err)
	options.Host, options.Port, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true
	options.StoreDir = t.TempDir()
	return startWith(t, options)
}

// violations gathers what a server did not permit.
type violations struct {
	server.Logger

	mu    sync.Mutex
	texts []string // guarded by mu
}

func (v *violations) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if text := fmt.Sprintf(format, args...); strings.Contains(text, "Violation") {
		v.texts = append(v.texts, text)
	}
}
func (*violations) Noticef(string, ...any) {}
func (*violations) Warnf(string, ...any)   {}
func (*violations) Fatalf(string, ...any)  {}
func (*violations) Debugf(string, ...any)  {}
func (*violations) Tracef(string, ...any)  {}

// A user with the documented permissions, and no other, does all that a store does.
func TestAcceptanceWithLeastPrivilege(t *testing.T) {
	configuration := documentedConfiguration(t)
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster {
		e := startConfigured(t, configuration)
		refused := &violations{}
		e.server.SetLoggerV2(refused, false, false, false)
		t.Cleanup(func() { assert.Empty(t, refused.texts) })
		return coordtest.Cluster{
			Open: func(t *testing.T) coord.Store {
				s, err := natskv.Open(t.Context(), natskv.External{
					Options: natskv.Options{Prefix: documentedBucket}, URLs: []string{e.server.ClientURL()}, Auth: documentedUser,
				})
				require.NoError(t, err)
				closeAtEnd(t, s)
				return s
			},
			Interrupt: func(t *testing.T) {
				e.stop()
				e.start(t)
				e.server.SetLoggerV2(refused, false, false, false)
			},
			Pass: pass,
			Stray: func(t *testing.T, log string, data []byte) {
				strayIn(t, foreign(t, e.server, documentedAdmin), documentedBucket+"-"+log, data)
			},
		}
	})
}

// Every subject that the documentation lists is needed: without it some part of a
// store's life fails.
func TestNoDocumentedPermissionIsSuperfluous(t *testing.T) {
	configuration := documentedConfiguration(t)
	kinds := map[string]string{
		"answers":          `"_INBOX.lakestream.>"`,
		"documents":        `"$KV.lakestream.>",`,
		"reading":          `"$JS.API.STREAM.MSG.GET.KV_lakestream",`,
		"bucket":           `"$JS.API.STREAM.INFO.KV_lakestream",`,
		"creating":         `"$JS.API.STREAM.CREATE.KV_lakestream",`,
		"commits":          `"$KV.lakestream-s00.commit",`,
		"log":              `"$JS.API.STREAM.INFO.KV_lakestream-s00",`,
		"creating a log":   `"$JS.API.STREAM.CREATE.KV_lakestream-s00",`,
		"purging":          `"$JS.API.STREAM.PURGE.KV_lakestream-s00",`,
		"following":        `"$JS.API.CONSUMER.CREATE.KV_lakestream-s00.>",`,
		"ending to follow": `"$JS.API.CONSUMER.DELETE.KV_lakestream-s00.>",`,
	}
	for name, subject := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			narrower := strings.Replace(configuration, subject, "", 1)
			require.NotEqual(t, configuration, narrower)
			e := startConfigured(t, strings.Replace(narrower, "subscribe: [  ]", `subscribe: "none"`, 1))
			refused := &violations{}
			e.server.SetLoggerV2(refused, false, false, false)
			_ = liveAsAStore(t.Context(), e.server.ClientURL())
			e.stop()
			assert.NotEmpty(t, refused.texts)
		})
	}
}

// liveAsAStore does everything once.
func liveAsAStore(ctx context.Context, url string) error {
	s, err := natskv.Open(ctx, natskv.External{
		Options: natskv.Options{Prefix: documentedBucket, Timeout: 300 * time.Millisecond}, URLs: []string{url}, Auth: documentedUser,
	})
	if err != nil {
		return err
	}
	defer s.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the first error counts
	log, err := s.Log(ctx, "s00")
	if err != nil {
		return err
	}
	for range 2 {
		if _, err = log.Put(ctx, []byte("record")); err != nil {
			return err
		}
	}
	w, err := log.Watch(ctx, 1)
	if err != nil {
		return err
	}
	<-w.Entries()
	w.Stop()
	for range w.Entries() { // ends once the consumer is being deleted
	}
	if err := log.Purge(ctx, 2); err != nil {
		return err
	}
	if _, err := s.Documents().Create(ctx, "k", nil, 0); err != nil {
		return err
	}
	_, err = s.Documents().Get(ctx, "k")
	return err
}

// Given a user who may not do what a store needs, then opening ends with an error
// that names the subject and where to read on.
func TestAMissingPermissionIsNamed(t *testing.T) {
	narrower := strings.Replace(documentedConfiguration(t), `"$JS.API.STREAM.INFO.KV_lakestream",`, "", 1)
	e := startConfigured(t, narrower)
	_, err := natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: documentedBucket, Timeout: time.Second}, URLs: []string{e.server.ClientURL()}, Auth: documentedUser,
	})
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "$JS.API.STREAM.INFO.KV_lakestream")
	require.ErrorContains(t, err, "docs/nats.md")
	assert.NotContains(t, err.Error(), string(documentedUser.Password))
}
