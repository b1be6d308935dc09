package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// parseNATSOf reads the NATS object of an engine with a shared store.
func parseNATSOf(t *testing.T, nats string) (engine.NATSOptions, error) {
	t.Helper()
	out, err := parseOutput(t, "stream: a\nengine:\n  storage: { url: file:///tmp/shared }\n  nats: "+nats)
	if err != nil {
		return engine.NATSOptions{}, err
	}
	require.NotNil(t, out.Engine)
	return out.Engine.NATS, nil
}

func TestWhoConnectsToNATS(t *testing.T) {
	for name, c := range map[string]struct {
		auth string
		want engine.NATSAuth
	}{
		"a key":       {"nkey_file: /k", engine.NATSAuth{NKeyFile: "/k"}},
		"credentials": {"user_credentials_file: /c", engine.NATSAuth{UserCredentialsFile: "/c"}},
		"a user":      {"user: me, password: sesame", engine.NATSAuth{User: "me", Password: "sesame"}},
		"a token":     {"token: sesame", engine.NATSAuth{Token: "sesame"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseNATSOf(t, "{ urls: [ tls://n1:4222 ], bucket: mine, replicas: 3, auth: { "+c.auth+" } }")
			require.NoError(t, err)
			require.Equal(t, engine.NATSOptions{URLs: []string{"tls://n1:4222"}, Bucket: "mine", Replicas: 3, Auth: c.want}, got)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", got, got, got), "sesame")
		})
	}
}

func TestWhatIsWrongAboutNATSIsNamed(t *testing.T) {
	for nats, want := range map[string]string{ //nolint:gosec // no password is real
		"{ urls: [ nats://n1:4222 ], auth: { token: sesame } }":                        "nats.allow_plaintext",
		"{ urls: [ tls://n1:4222 ], auth: { token: sesame, nkey_file: k } }":           "nats.auth",
		"{ urls: [ tls://n1:4222 ], auth: { password: sesame } }":                      "password without user",
		"{ auth: { user: me, password: sesame } }":                                     "nats.urls",
		"{ urls: [ tls://n1:4222 ], replicas: 6 }":                                     "nats.replicas",
		"{ urls: [ tls://n1:4222 ], bucket: a.b }":                                     "nats.bucket",
		"{ urls: [ 'nats://sesame' , 'sesame' ] }":                                     "NATS URL number 2",
		"{ urls: [ tls://n1:4222 ], tls: { enabled: true, root_cas_file: /nowhere } }": "nats.tls: open /nowhere",
	} {
		t.Run(nats, func(t *testing.T) {
			_, err := parseNATSOf(t, nats)
			require.ErrorIs(t, err, engine.ErrInvalid)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "sesame")
		})
	}
	_, err := parseNATSOf(t, "{ urls: [ nats://n1:4222 ], allow_plaintext: true, auth: { token: sesame } }")
	require.NoError(t, err)
}

// writeRoot lays down a root certificate of this name.
func writeRoot(t *testing.T, path, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), RawSubject: []byte{0x30, 0}, DNSNames: []string{name}, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
}

// Given certificates that are replaced, then what is loaded next holds the new ones;
// options that were parsed twice still mean one engine.
func TestCertificatesAreReadAtEachConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	writeRoot(t, file, "first")
	object := "{ urls: [ nats://n1:4222 ], auth: { token: sesame }, tls: { enabled: true, root_cas_file: " + file + " } }"
	first, err := parseNATSOf(t, object)
	require.NoError(t, err)
	before, err := first.TLS.Load()
	require.NoError(t, err)

	writeRoot(t, file, "second")

	after, err := first.TLS.Load()
	require.NoError(t, err)
	assert.False(t, before.RootCAs.Equal(after.RootCAs))
	second, err := parseNATSOf(t, object)
	require.NoError(t, err)
	assert.Equal(t, first.TLS.Source, second.TLS.Source)
	off, err := parseNATSOf(t, "{ urls: [ tls://n1:4222 ], tls: { root_cas_file: "+file+" } }")
	require.NoError(t, err)
	assert.Nil(t, off.TLS.Load)

	require.NoError(t, os.Remove(file))
	_, err = first.TLS.Load()
	require.ErrorContains(t, err, file)
}

func TestNATSFieldsAreLinted(t *testing.T) {
	l := linter(t)
	for nats, want := range map[string]string{
		"{ bucket: a.b }": "want A-Z a-z 0-9",
		"{ replicas: 6 }": "0 to 5",
		"{ replicas: 3, auth: { user: me, password: sesame }, tls: { enabled: true } }": "",
	} {
		got := lintOf(t, l, "output", "stream: a\nengine: { nats: "+nats+" }")
		if want == "" {
			require.Empty(t, got)
			continue
		}
		require.Contains(t, got, want)
	}
}
