package engine

import (
	"crypto/tls"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// Secret is text that shows as stars wherever it is printed, logged or encoded.
type Secret = base.Secret

// NATSAuth says who connects to NATS servers: by one of a key file, a credentials
// file, a user or a token. Files are read again for each connection.
type NATSAuth = natskv.Auth

// NATSOptions say which NATS servers coordinate the cluster.
type NATSOptions struct {
	// URLs of the servers. None means a server inside this process, shared by
	// all processes on the data directory.
	URLs []string
	// Bucket is the prefix of the KV buckets; "lakestream" by default.
	Bucket string
	// Replicas of each bucket on external servers; 0 means 3 on a cluster of
	// servers, else 1.
	Replicas int
	// Auth says who connects to external servers; the zero value is nobody.
	Auth NATSAuth
	// TLS encrypts the connections to external servers.
	TLS TLSOptions
	// AllowPlaintext lets credentials go unencrypted to other machines.
	AllowPlaintext bool
}

// TLSOptions say how connections are encrypted. The zero value means that they are
// not, but where an address asks for it.
type TLSOptions struct {
	// Load returns the configuration; nil from it means the defaults. It is
	// called for each connection, by several goroutines at once, so that what
	// its files hold can be replaced meanwhile.
	Load func() (*tls.Config, error)
	// Source is from what Load loads: components whose sources are equal may
	// share an engine.
	Source Secret
}

// maxNATSReplicas is the most that servers keep of a bucket.
const maxNATSReplicas = 5

// check validates the fields, without connecting.
func (o NATSOptions) check() error {
	if err := coord.CheckLogName(o.Bucket); err != nil {
		return fmt.Errorf("nats.bucket: %w", err)
	}
	if err := between("nats.replicas", int64(o.Replicas), 0, maxNATSReplicas); err != nil {
		return err
	}
	if len(o.URLs) > 0 {
		return o.external(natskv.Options{}).Check()
	}
	if o.Auth != (NATSAuth{}) || o.TLS.Load != nil {
		return fmt.Errorf("nats.urls: name the servers that nats.auth and nats.tls are for; the server inside the process needs neither: %w",
			base.ErrInvalid)
	}
	return nil
}

// external describes the servers.
func (o NATSOptions) external(options natskv.Options) natskv.External {
	return natskv.External{
		Options: options, URLs: o.URLs, Replicas: o.Replicas,
		Auth: o.Auth, TLS: o.TLS.Load, AllowPlaintext: o.AllowPlaintext,
	}
}
