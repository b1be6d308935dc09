package blob

import (
	"net"
	"net/http"
	"time"
)

// Bounds of connections to one service.
const (
	dialTimeout       = 5 * time.Second
	handshakeTimeout  = 5 * time.Second
	idleConnections   = 64
	idleTimeout       = 60 * time.Second
	connectionsAtMost = 256
)

// newTransport returns the connections of one store. They keep idle ones for as
// many parallel calls as a busy engine makes, and are closed with the store.
func newTransport() *http.Transport {
	t := &http.Transport{}
	tuneTransport(t)
	return t
}

func tuneTransport(t *http.Transport) {
	t.Proxy = http.ProxyFromEnvironment
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	t.TLSHandshakeTimeout = handshakeTimeout
	t.MaxIdleConns = idleConnections
	t.MaxIdleConnsPerHost = idleConnections
	t.MaxConnsPerHost = connectionsAtMost
	t.IdleConnTimeout = idleTimeout
	t.ForceAttemptHTTP2 = true
}

// sameMethod follows the redirects that repeat a request as it was, and hands over
// the answer of the others: what is signed for one address fails at another.
func sameMethod(request *http.Request, _ []*http.Request) error {
	switch request.Response.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return nil
	default:
		return http.ErrUseLastResponse
	}
}
