package natskv_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// operator is who runs servers with accounts and users that are known by JWT.
type operator struct {
	account nkeys.KeyPair
	options *server.Options
}

// identity draws a key pair and its public key.
func identity(t *testing.T, draw func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string) {
	t.Helper()
	pair, err := draw()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	return pair, public
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	signer, name := identity(t, nkeys.CreateOperator)
	claims := jwt.NewOperatorClaims(name)
	resolver := &server.MemAccResolver{}
	add := func(limits jwt.JetStreamLimits) (nkeys.KeyPair, string) {
		pair, public := identity(t, nkeys.CreateAccount)
		account := jwt.NewAccountClaims(public)
		account.Limits.JetStreamLimits = limits
		token, err := account.Encode(signer)
		require.NoError(t, err)
		require.NoError(t, resolver.Store(public, token))
		return pair, public
	}
	account, _ := add(jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1})
	_, system := add(jwt.JetStreamLimits{})
	claims.SystemAccount = system
	token, err := claims.Encode(signer)
	require.NoError(t, err)
	trusted, err := jwt.DecodeOperatorClaims(token)
	require.NoError(t, err)
	return &operator{account: account, options: &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		TrustedOperators: []*jwt.OperatorClaims{trusted}, SystemAccount: system, AccountResolver: resolver,
	}}
}

// writeCredentials lays down the credentials of a new user, who is let in for so
// long, and returns his name.
func (o *operator) writeCredentials(t *testing.T, path string, valid time.Duration) string {
	t.Helper()
	pair, public := identity(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public)
	claims.Expires = time.Now().Add(valid).Unix()
	token, err := claims.Encode(o.account)
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	content, err := jwt.FormatUserConfig(token, seed)
	require.NoError(t, err)
	replaceFile(t, path, content)
	return public
}

// replaceFile puts a file in the place of another in one step, as one who rotates
// credentials does.
func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	temporary := filepath.Join(t.TempDir(), "new")
	require.NoError(t, os.WriteFile(temporary, content, 0o600))
	require.NoError(t, os.Rename(temporary, path))
}
