package natskv

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Auth says who connects to external servers: by one of a key file, a credentials
// file, a user or a token. The zero value is nobody. Files are read again for each
// connection, so that what they hold can be replaced while a Store is open.
type Auth struct {
	// NKeyFile is the path of a file with the seed of a user's nkey.
	NKeyFile string
	// UserCredentialsFile is the path of a file with a user's JWT and seed, as
	// servers with operators and accounts ask for.
	UserCredentialsFile string
	// User and Password, of which the latter may be empty.
	User     string
	Password base.Secret
	// Token is what servers with a single token ask for.
	Token base.Secret
}

// kinds names the fields in use.
func (a Auth) kinds() []string {
	var kinds []string
	for name, value := range map[string]string{
		"nkey_file": a.NKeyFile, "user_credentials_file": a.UserCredentialsFile,
		"user": a.User, "token": string(a.Token),
	} {
		if value != "" {
			kinds = append(kinds, name)
		}
	}
	return slices.Sorted(slices.Values(kinds))
}

func (a Auth) check() error {
	switch kinds := a.kinds(); {
	case len(kinds) > 1:
		return fmt.Errorf("nats.auth: %w: %s and %s are both set: want one", base.ErrInvalid, kinds[0], kinds[1])
	case a.Password != "" && a.User == "":
		return fmt.Errorf("nats.auth: %w: password without user", base.ErrInvalid)
	}
	return nil
}

// String tells who connects, without secrets.
func (a Auth) String() string {
	switch {
	case a.NKeyFile != "":
		return "the key in " + a.NKeyFile
	case a.UserCredentialsFile != "":
		return "the credentials in " + a.UserCredentialsFile
	case a.User != "":
		return "user " + a.User
	case a.Token != "":
		return "a token"
	}
	return "no credentials"
}

// options returns those that make a connection carry the credentials. Files that
// cannot be read are ErrInvalid.
func (a Auth) options(timeout time.Duration) ([]nats.Option, *keyDialer, error) {
	switch {
	case a.NKeyFile != "":
		d := &keyDialer{Dialer: net.Dialer{Timeout: timeout}, file: a.NKeyFile}
		key, err := d.publicKey()
		if err != nil {
			return nil, nil, base.WithClass(base.ErrInvalid, fmt.Errorf("nats.auth.nkey_file: %w", err))
		}
		return []nats.Option{nats.Nkey(key, d.sign), nats.SetCustomDialer(d)}, d, nil
	case a.UserCredentialsFile != "":
		option := nats.UserCredentials(a.UserCredentialsFile)
		if err := trySigning(option); err != nil {
			return nil, nil, base.WithClass(base.ErrInvalid, fmt.Errorf("nats.auth.user_credentials_file: %w", err))
		}
		return []nats.Option{option}, nil, nil
	case a.User != "":
		return []nats.Option{nats.UserInfo(a.User, string(a.Password))}, nil, nil
	case a.Token != "":
		return []nats.Option{nats.Token(string(a.Token))}, nil, nil
	}
	return nil, nil, nil
}

// trySigning has the client read a credentials file, both of its parts.
func trySigning(credentials nats.Option) error {
	var trial nats.Options
	if err := credentials(&trial); err != nil {
		return err
	}
	_, err := trial.SignatureCB([]byte("nonce"))
	return err
}

// keyDialer makes each connection under the key that its file holds by then. The
// client keeps the public key for good; it reads it after it has dialed, under the
// same lock that it holds while dialing, so this is the place to replace it.
type keyDialer struct {
	net.Dialer

	file string
	conn atomic.Pointer[nats.Conn] // nil during the first connection
}

// Dial connects, as the client asks for.
func (d *keyDialer) Dial(network, address string) (net.Conn, error) {
	if conn := d.conn.Load(); conn != nil {
		key, err := d.publicKey()
		if err != nil {
			return nil, err
		}
		conn.Opts.Nkey = key
	}
	return d.Dialer.Dial(network, address)
}

func (d *keyDialer) publicKey() (key string, err error) {
	err = d.withPair(func(pair nkeys.KeyPair) (err error) {
		if key, err = pair.PublicKey(); err == nil && !nkeys.IsValidPublicUserKey(key) {
			err = errors.New("it is not the key of a user")
		}
		return err
	})
	return key, err
}

func (d *keyDialer) sign(nonce []byte) (signature []byte, err error) {
	err = d.withPair(func(pair nkeys.KeyPair) (err error) {
		signature, err = pair.Sign(nonce)
		return err
	})
	return signature, err
}

// withPair lends the key of the file, and wipes it from memory afterwards.
func (d *keyDialer) withPair(use func(nkeys.KeyPair) error) error {
	content, err := os.ReadFile(d.file)
	if err != nil {
		return fmt.Errorf("reading key: %w", err)
	}
	defer clear(content)
	pair, err := nkeys.ParseDecoratedNKey(content)
	if err != nil {
		return fmt.Errorf("reading key from %s: %w", d.file, err)
	}
	defer pair.Wipe()
	if err := use(pair); err != nil {
		return fmt.Errorf("using key from %s: %w", d.file, err)
	}
	return nil
}

// carriesCredentials reports whether somebody who listens would learn something.
func (e External) carriesCredentials() bool {
	return len(e.Auth.kinds()) > 0 || slices.ContainsFunc(e.URLs, func(raw string) bool {
		u, err := url.Parse(raw)
		return err == nil && u.User != nil
	})
}

// checkCredentials refuses credentials that contradict each other, or that would
// cross a network in the clear.
func (e External) checkCredentials() error {
	if err := e.Auth.check(); err != nil {
		return err
	}
	for i, raw := range e.URLs {
		u, err := url.Parse(raw)
		if err != nil {
			continue // publicURLs tells
		}
		if u.User != nil && len(e.Auth.kinds()) > 0 {
			return fmt.Errorf("%w: NATS URL number %d holds a user, and nats.auth is set: want one of them", base.ErrInvalid, i+1)
		}
		if e.carriesCredentials() && !e.AllowPlaintext && !e.encrypted(u) && !isLoopback(u.Hostname()) {
			return fmt.Errorf("%w: credentials would go to %s unencrypted: set nats.tls.enabled, or, "+
				"where the network is trusted, nats.allow_plaintext", base.ErrInvalid, u.Host)
		}
	}
	return nil
}

func (e External) encrypted(u *url.URL) bool {
	return e.TLS != nil || u.Scheme == "tls" || u.Scheme == "wss"
}

func (e External) allEncrypted() bool {
	return !slices.ContainsFunc(e.URLs, func(raw string) bool {
		u, err := url.Parse(raw)
		return err != nil || !e.encrypted(u)
	})
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
