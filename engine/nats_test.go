package engine

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"
)

// Given components on the same servers that differ in who connects or how, then the
// second is refused by the name of the field, and nothing secret is told.
func TestComponentsAgreeInHowTheyConnect(t *testing.T) {
	load := func() (*tls.Config, error) { return nil, nil } //nolint:nilnil // the defaults
	for field, change := range map[string]func(*NATSOptions){
		"nats.auth.password":   func(o *NATSOptions) { o.Auth.Password = "sesame" },
		"nats.auth.user":       func(o *NATSOptions) { o.Auth.User = "other" },
		"nats.tls.source":      func(o *NATSOptions) { o.TLS = TLSOptions{Load: load, Source: "sesame"} },
		"nats.allow_plaintext": func(o *NATSOptions) { o.AllowPlaintext = true },
	} {
		a := Options{NATS: NATSOptions{URLs: []string{"tls://n1:4222"}, Auth: NATSAuth{User: "me", Password: "one"}}}
		b := a
		change(&b.NATS)
		difference := firstDifference(a, b)
		require.Contains(t, difference, field)
		require.NotContains(t, difference, "sesame")
		other := b
		other.NATS.TLS.Load = nil // as another parse of the same object has another
		require.Empty(t, firstDifference(b, other))
	}
}
