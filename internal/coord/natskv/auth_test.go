package natskv_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// guarded is a server that lets in whom it is told to.
func guarded(t *testing.T, change func(*server.Options)) *external {
	t.Helper()
	options := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
	}
	change(options)
	return startWith(t, options)
}

// to describes the server for one that comes with these credentials.
func (e *external) to(auth natskv.Auth) natskv.External {
	return natskv.External{Options: natskv.Options{Prefix: prefix}, URLs: []string{e.server.ClientURL()}, Auth: auth}
}

// requireWorking opens a store and uses it.
func requireWorking(t *testing.T, e natskv.External) *natskv.Store {
	t.Helper()
	s, err := natskv.Open(t.Context(), e)
	require.NoError(t, err)
	closeAtEnd(t, s)
	put(t, openLog(t, s), "record")
	return s
}

// requireRefused tells that opening ends at once, by an error that needs a person,
// says which field to look at and gives no secret away.
func requireRefused(t *testing.T, e natskv.External, hints ...string) {
	t.Helper()
	var log bytes.Buffer
	e.Logger = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := natskv.Open(ctx, e)
	require.ErrorIs(t, err, base.ErrInvalid)
	require.NotErrorIs(t, err, base.ErrUnavailable)
	require.NoError(t, ctx.Err(), "it did not wait for the bound")
	for _, hint := range hints {
		require.ErrorContains(t, err, hint)
	}
	for _, secret := range []string{string(e.Auth.Password), string(e.Auth.Token)} {
		if secret != "" {
			assert.NotContains(t, err.Error()+log.String(), secret)
		}
	}
}

func TestAUserIsLetIn(t *testing.T) {
	e := guarded(t, func(o *server.Options) { o.Username, o.Password = "lake", "open sesame" })
	right := natskv.Auth{User: "lake", Password: "open sesame"}
	s := requireWorking(t, e.to(right))
	assert.NotContains(t, s.String(), "sesame")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", right, right, right), "sesame")
	requireRefused(t, e.to(natskv.Auth{User: "lake", Password: "wrong password"}), "user lake", "check nats.auth")
	requireRefused(t, e.to(natskv.Auth{User: "stranger", Password: "open sesame"}), "user stranger")
	requireRefused(t, e.to(natskv.Auth{}), "no credentials", "check nats.auth")

	address := strings.TrimPrefix(e.server.ClientURL(), "nats://")
	inURL := natskv.External{Options: natskv.Options{Prefix: prefix}, URLs: []string{"nats://lake:open%20sesame@" + address}}
	s = requireWorking(t, inURL)
	assert.NotContains(t, s.String(), "sesame")
	inURL.Auth = right
	requireRefused(t, inURL, "NATS URL number 1 holds a user, and nats.auth is set")
}

func TestATokenIsLetIn(t *testing.T) {
	e := guarded(t, func(o *server.Options) { o.Authorization = "open sesame" })
	requireWorking(t, e.to(natskv.Auth{Token: "open sesame"}))
	requireRefused(t, e.to(natskv.Auth{Token: "wrong token"}), "a token", "check nats.auth")
	assert.NotContains(t, fmt.Sprintf("%+v", natskv.Auth{Token: "open sesame"}), "sesame")
}

// newKey lays down the seed of a new user key and returns its public half.
func newKey(t *testing.T, path string) string {
	t.Helper()
	pair, public := identity(t, nkeys.CreateUser)
	seed, err := pair.Seed()
	require.NoError(t, err)
	replaceFile(t, path, seed)
	return public
}

// Given a key file that is replaced while a store is open, then the next connection
// is made under the new key.
func TestAKeyIsLetInAndCanBeReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "user.nk")
	later := newKey(t, file)
	seed, err := os.ReadFile(file)
	require.NoError(t, err)
	e := guarded(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: newKey(t, file)}} })
	s := requireWorking(t, e.to(natskv.Auth{NKeyFile: file}))
	stranger := filepath.Join(t.TempDir(), "stranger.nk")
	newKey(t, stranger)
	requireRefused(t, e.to(natskv.Auth{NKeyFile: stranger}), stranger, "check nats.auth")

	e.stop()
	e.options.Nkeys = []*server.NkeyUser{{Nkey: later}} // the server forgets the first
	e.start(t)
	replaceFile(t, file, seed)

	eventually(t, func() bool { return s.Reconnects() > 0 })
	put(t, openLog(t, s), "after")
}

// Given credentials that expire while a store is open, when others lie in the file
// by then, then the store goes on.
func TestCredentialsAreLetInAndCanBeReplaced(t *testing.T) {
	o := newOperator(t)
	e := startWith(t, o.options)
	file := filepath.Join(t.TempDir(), "user.creds")
	first := o.writeCredentials(t, file, 3*time.Second)
	s := requireWorking(t, e.to(natskv.Auth{UserCredentialsFile: file}))
	requireRefused(t, e.to(natskv.Auth{}), "no credentials")
	stranger := filepath.Join(t.TempDir(), "stranger.creds")
	newOperator(t).writeCredentials(t, stranger, time.Hour)
	requireRefused(t, e.to(natskv.Auth{UserCredentialsFile: stranger}), stranger, "check nats.auth")

	second := o.writeCredentials(t, file, time.Hour)

	eventually(t, func() bool { return s.Reconnects() > 0 })
	put(t, openLog(t, s), "after")
	users := connectedUsers(t, e.server)
	assert.Contains(t, users, second)
	assert.NotContains(t, users, first)
}

func connectedUsers(t *testing.T, s *server.Server) []string {
	t.Helper()
	connections, err := s.Connz(&server.ConnzOptions{Username: true})
	require.NoError(t, err)
	var users []string
	for _, c := range connections.Conns {
		users = append(users, c.AuthorizedUser)
	}
	return users
}

// Given credentials that expire and are not replaced, then the store says why it is
// not connected, once in the log, and goes on when they are.
func TestExpiredCredentialsAreNamedUntilReplaced(t *testing.T) {
	o := newOperator(t)
	e := startWith(t, o.options)
	file := filepath.Join(t.TempDir(), "user.creds")
	o.writeCredentials(t, file, 2*time.Second)
	options := e.to(natskv.Auth{UserCredentialsFile: file})
	log := &lines{}
	options.Logger = slog.New(slog.NewTextHandler(log, nil))
	s := requireWorking(t, options)

	refused := openLog(t, s)
	eventually(t, func() bool {
		_, err := refused.Put(t.Context(), []byte("refused"))
		return err != nil && strings.Contains(strings.ToLower(err.Error()), "auth")
	})
	eventually(t, func() bool { return strings.Contains(log.String(), "authorization violation") })
	before := log.count()
	time.Sleep(time.Second) // many attempts
	assert.Equal(t, before, log.count(), "a reason is told once: %s", log)

	o.writeCredentials(t, file, time.Hour)
	eventually(t, func() bool {
		_, err := refused.Put(t.Context(), []byte("after"))
		return err == nil
	})
}

func TestTLSChecksTheServer(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	for name, c := range map[string]struct {
		certificate tls.Certificate
		refused     string // empty where it is let in
	}{
		"of our authority":  {certificate: ours.issue(t, "server", nil)},
		"of another":        {theirs.issue(t, "server", nil), "unknown authority"},
		"of another server": {ours.issue(t, "server", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other"} }), "127.0.0.1"},
		"expired":           {ours.issue(t, "server", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			e := guarded(t, func(o *server.Options) {
				o.TLS, o.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{c.certificate}, MinVersion: tls.VersionTLS12}
				o.TLSTimeout = 5
				o.Username, o.Password = "lake", "open sesame"
			})
			options := e.to(natskv.Auth{User: "lake", Password: "open sesame"})
			options.TLS = func() (*tls.Config, error) { return &tls.Config{RootCAs: ours.pool, MinVersion: tls.VersionTLS12}, nil }
			if c.refused != "" {
				requireRefused(t, options, c.refused, "check the certificates")
				return
			}
			s := requireWorking(t, options)
			assert.True(t, s.Encrypted())
			// Without roots of its own a client takes those of the machine.
			options.TLS = func() (*tls.Config, error) { return nil, nil } //nolint:nilnil // as an empty object gives
			requireRefused(t, options, "unknown authority")
		})
	}
}

// Given a server that asks for certificates, then a client's is taken from its
// files, and from what replaced them for the next connection.
func TestMutualTLSAndItsRotation(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	trust := func(a *authority) *tls.Config {
		return &tls.Config{
			Certificates: []tls.Certificate{a.issue(t, "server", nil)}, MinVersion: tls.VersionTLS12,
			ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		}
	}
	e := guarded(t, func(o *server.Options) { o.TLS, o.TLSVerify, o.TLSTimeout, o.TLSConfig = true, true, 5, trust(first) })
	files := newCertificateFiles(t, first, first.issue(t, "client", nil))
	options := e.to(natskv.Auth{})
	options.TLS = files.load
	s := requireWorking(t, options)
	stranger := options
	stranger.TLS = newCertificateFiles(t, first, second.issue(t, "client", nil)).load
	requireRefused(t, stranger, "check the certificates")

	e.stop()
	files.write(t, second, second.issue(t, "client", nil))
	e.options.TLSConfig = trust(second)
	e.start(t)

	eventually(t, func() bool { return s.Reconnects() > 0 })
	put(t, openLog(t, s), "after")
}

func TestATLSClientIsNotTalkedOutOfIt(t *testing.T) {
	e := startExternal(t)
	options := e.to(natskv.Auth{})
	options.TLS = func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil }
	requireRefused(t, options, "do not offer TLS", "nats.tls.enabled")
}

func TestFilesThatCannotServeAreNamed(t *testing.T) {
	e := startExternal(t)
	nothing := filepath.Join(t.TempDir(), "nothing")
	rubbish := filepath.Join(t.TempDir(), "rubbish")
	require.NoError(t, os.WriteFile(rubbish, []byte("rubbish"), 0o600))
	account, _ := identity(t, nkeys.CreateAccount)
	seed, err := account.Seed()
	require.NoError(t, err)
	ofAccount := filepath.Join(t.TempDir(), "account.nk")
	require.NoError(t, os.WriteFile(ofAccount, seed, 0o600))

	for _, file := range []string{nothing, rubbish} {
		requireRefused(t, e.to(natskv.Auth{UserCredentialsFile: file}), "nats.auth.user_credentials_file")
		requireRefused(t, e.to(natskv.Auth{NKeyFile: file}), "nats.auth.nkey_file", file)
	}
	requireRefused(t, e.to(natskv.Auth{NKeyFile: ofAccount}), "not the key of a user")
	options := e.to(natskv.Auth{})
	options.TLS = certificateFiles{dir: nothing}.load
	requireRefused(t, options, "nats.tls", nothing)
}

// Behaviour of credentials and encryption together: they leave this machine in the
// clear only where that was said to be wanted.
func TestCredentialsDoNotLeaveTheMachineInTheClear(t *testing.T) {
	someone := natskv.Auth{User: "lake", Password: "open sesame"}
	secured := func() (*tls.Config, error) { return nil, nil } //nolint:nilnil // as an empty object gives
	for name, c := range map[string]struct {
		e       natskv.External
		refused bool
	}{
		"nobody, elsewhere":              {natskv.External{URLs: []string{"nats://n1:4222"}}, false},
		"a user on this machine":         {natskv.External{URLs: []string{"nats://127.0.0.1:4222", "nats://localhost:1", "nats://[::1]:1"}, Auth: someone}, false},
		"a user elsewhere":               {natskv.External{URLs: []string{"nats://n1:4222"}, Auth: someone}, true},
		"a user elsewhere too":           {natskv.External{URLs: []string{"nats://127.0.0.1:4222", "nats://n1:4222"}, Auth: someone}, true},
		"a user in the URL":              {natskv.External{URLs: []string{"nats://lake:sesame@n1:4222"}}, true},
		"a user in another URL":          {natskv.External{URLs: []string{"nats://n1:4222", "tls://lake:sesame@n2:4222"}}, true},
		"a token":                        {natskv.External{URLs: []string{"nats://n1:4222"}, Auth: natskv.Auth{Token: "sesame"}}, true},
		"a key":                          {natskv.External{URLs: []string{"nats://n1:4222"}, Auth: natskv.Auth{NKeyFile: "k"}}, true},
		"a user elsewhere, encrypted":    {natskv.External{URLs: []string{"nats://n1:4222"}, Auth: someone, TLS: secured}, false},
		"a user elsewhere, by scheme":    {natskv.External{URLs: []string{"tls://n1:4222", "wss://n2:443"}, Auth: someone}, false},
		"a user elsewhere, in the clear": {natskv.External{URLs: []string{"nats://n1:4222"}, Auth: someone, AllowPlaintext: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.e.Check()
			if !c.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, base.ErrInvalid)
			require.ErrorContains(t, err, "nats.allow_plaintext")
			require.ErrorContains(t, err, "n1:4222")
			require.NotContains(t, err.Error(), "sesame")
		})
	}
}

func TestCredentialsThatContradictEachOtherAreRefused(t *testing.T) {
	for want, auth := range map[string]natskv.Auth{
		"nkey_file and user are both set":             {NKeyFile: "k", User: "u"},
		"token and user_credentials_file are both":    {Token: "sesame", UserCredentialsFile: "c"},
		"password without user":                       {Password: "sesame"},
		"nkey_file and user_credentials_file are bot": {NKeyFile: "k", UserCredentialsFile: "c"},
	} {
		err := natskv.External{URLs: []string{"nats://127.0.0.1:1"}, Auth: auth}.Check()
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "nats.auth")
		require.NotContains(t, err.Error(), "sesame")
	}
}
