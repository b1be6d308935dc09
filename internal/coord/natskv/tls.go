package natskv

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats.go"

	"github.com/lakestream-go/lakestream/internal/base"
)

// loadTLS returns the configuration of encrypted connections, from files read now.
type loadTLS func() (*tls.Config, error)

// options makes connections encrypted, under certificates that are loaded anew for
// each. A configuration that cannot be loaded is ErrInvalid.
func (load loadTLS) options() ([]nats.Option, error) {
	if load == nil {
		return nil, nil
	}
	config, err := load()
	if err != nil {
		return nil, base.WithClass(base.ErrInvalid, fmt.Errorf("nats.tls: %w", err))
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.Certificates, config.GetClientCertificate = nil, load.clientCertificate
	return []nats.Option{nats.Secure(config), nats.ClientTLSConfig(nil, load.roots)}, nil
}

func (load loadTLS) roots() (*x509.CertPool, error) {
	config, err := load()
	if err != nil || config == nil {
		return nil, err
	}
	return config.RootCAs, nil
}

// clientCertificate returns the first certificate that the server accepts, or an
// empty one, as the interface wants it where there is none.
func (load loadTLS) clientCertificate(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	config, err := load()
	if err != nil {
		return nil, err
	}
	none := &tls.Certificate{}
	if config == nil {
		return none, nil
	}
	if config.GetClientCertificate != nil {
		return config.GetClientCertificate(request)
	}
	for i := range config.Certificates {
		if request.SupportsCertificate(&config.Certificates[i]) == nil {
			return &config.Certificates[i], nil
		}
	}
	return none, nil
}

// dialAttempts is how often in a row servers must hang up on a handshake, which
// they also do as they shut down, until they are taken to refuse it.
const dialAttempts = 3

// dial connects, and tries again what a server may have hung up on by chance.
func dial(addresses string, settings []nats.Option) (conn *nats.Conn, err error) {
	for range dialAttempts {
		conn, err = nats.Connect(addresses, settings...)
		if !errors.Is(err, nats.ErrTLS) || isTimeout(err) {
			return conn, err
		}
	}
	return nil, err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// connectError classes why servers did not let the client in. What they refuse
// stays refused until somebody changes it: ErrInvalid. All else may pass.
func connectError(label string, auth Auth, err error) error {
	switch err = fmt.Errorf("connecting to %s: %w", label, err); {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported):
		return base.WithClass(base.ErrInvalid, fmt.Errorf("%w; the servers refuse %s: check nats.auth", err, auth))
	case errors.Is(err, nats.ErrSecureConnWanted):
		return base.WithClass(base.ErrInvalid, fmt.Errorf("%w; the servers do not offer TLS: unset nats.tls.enabled, or set up theirs", err))
	case isHandshakeError(err) && !isTimeout(err):
		return base.WithClass(base.ErrInvalid, fmt.Errorf("%w; check the certificates of the servers and of nats.tls", err))
	}
	return base.WithClass(base.ErrUnavailable, err)
}

// isHandshakeError reports that one side did not take the other's certificate. A
// server tells so by an alert, which may come after the handshake.
func isHandshakeError(err error) bool {
	var remote *net.OpError
	return errors.Is(err, nats.ErrTLS) || errors.As(err, &remote) && remote.Op == "remote error"
}
