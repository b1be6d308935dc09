package blob

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	"gocloud.dev/blob/memblob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Schemes of the URLs of stores.
const (
	schemeFile   = "file"
	schemeMemory = "mem"
	schemeS3     = "s3"
	schemeGS     = "gs"
	schemeAzure  = "azblob"
)

// Options tune Open. The zero value is what an engine uses.
type Options struct {
	// MustExist refuses to create the folder of a file store, for callers
	// that only look: a mistyped path is then ErrNotFound.
	MustExist bool
	// Cloud says how to reach a bucket of a provider.
	Cloud Cloud
	// Clock spaces retries; the machine's by default.
	Clock base.Clock
}

// Open returns the store that rawURL names:
//
//   - file:///absolute/path or a plain path: a folder whose writes are durable
//     when they return; created when absent.
//   - mem:// or mem://name: an empty store in memory, new at each call.
//   - s3://bucket/prefix, gs://bucket/prefix, azblob://container/prefix: a bucket
//     of a provider, or what is below a prefix in it.
//
// Anything else is ErrInvalid, as are options that the store cannot have. A bucket
// that cannot be listed, because it does not answer, is not there or does not know
// us, is ErrUnavailable. No error holds a password of the URL or of the options.
// The caller closes the store.
func Open(ctx context.Context, rawURL string, opts Options) (Store, error) {
	if err := opts.Cloud.Validate(rawURL); err != nil {
		return nil, err
	}
	if !strings.Contains(rawURL, "://") {
		return openFile(rawURL, opts)
	}
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case schemeFile:
		return openFileURL(u, opts)
	case schemeMemory:
		return openMem(u, opts)
	default:
		return openCloud(ctx, u, opts)
	}
}

// parseURL parses the URL of a store. No message repeats the URL or the parser's
// error, which quotes it: where a URL is malformed, a secret may stand anywhere in
// it.
func parseURL(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("storage url: %w: it cannot be parsed: want scheme://host/path, or a plain path",
			base.ErrInvalid)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("storage url %s://…: %w: credentials, query and fragment have no place in it",
			u.Scheme, base.ErrInvalid)
	}
	if u.Scheme != schemeFile && u.Scheme != schemeMemory && !IsCloud(rawURL) {
		return nil, fmt.Errorf("storage url: %w: scheme %q is not supported: want file, mem, s3, gs, azblob or a plain path",
			base.ErrInvalid, u.Scheme)
	}
	return u, nil
}

func openFileURL(u *url.URL, opts Options) (Store, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("storage url file://…: %w: want file:///absolute/path; write a relative path without file://",
			base.ErrInvalid)
	}
	return openFile(u.Path, opts)
}

func openMem(u *url.URL, opts Options) (Store, error) {
	if strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("storage url mem://…: %w: mem takes no path", base.ErrInvalid)
	}
	bucket := memblob.OpenBucket(&memblob.Options{NoMD5: true})
	return newBucketStore(provider{calls: bucket, streams: bucket}, "", "mem://"+u.Host, opts), nil
}

// maxPrefixBytes leaves room for our keys in what providers take as a name.
const maxPrefixBytes = 512

// openCloud opens a bucket and looks into it: what is wrong with the configuration
// is better told at once than by the first write.
func openCloud(ctx context.Context, u *url.URL, opts Options) (Store, error) {
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := checkKey(prefix); err != nil || len(prefix) > maxPrefixBytes {
			return nil, fmt.Errorf("storage url %s://…: %w: its path must be an object key of at most %d bytes",
				u.Scheme, base.ErrInvalid, maxPrefixBytes)
		}
		prefix += "/"
	}
	if u.Host == "" || u.Port() != "" {
		return nil, fmt.Errorf("storage url %s://…: %w: want %s://bucket/prefix", u.Scheme, base.ErrInvalid, u.Scheme)
	}
	opts.Cloud.Endpoint = strings.TrimRight(opts.Cloud.Endpoint, "/")
	openers := map[string]func(context.Context, string, Cloud) (provider, error){
		schemeS3: openS3, schemeGS: openGCS, schemeAzure: openAzure,
	}
	opened, err := openers[u.Scheme](ctx, u.Host, opts.Cloud)
	if err != nil {
		return nil, err
	}
	s := newBucketStore(opened, prefix, strings.TrimRight(u.Scheme+"://"+u.Host+"/"+prefix, "/"), opts)
	if _, err := s.List(ctx, "", "", 1); err != nil {
		return nil, errors.Join(fmt.Errorf("opening store %s: %w", s, err), s.Close())
	}
	return s, nil
}

func newBucketStore(p provider, prefix, name string, opts Options) *bucketStore {
	s := &bucketStore{provider: p, prefix: prefix, name: name, retry: retrier{clock: opts.Clock, jitter: rand.Float64}}
	if s.retry.clock == nil {
		s.retry.clock = base.SystemClock{}
	}
	if s.put == nil {
		s.put = func(ctx context.Context, name string, data []byte) error {
			return p.calls.WriteAll(ctx, name, data, createOnly())
		}
	}
	if s.remove == nil {
		s.remove = p.calls.Delete
	}
	for _, secret := range []base.Secret{opts.Cloud.Credentials.Secret, opts.Cloud.Credentials.Token} {
		if secret != "" {
			s.secrets = append(s.secrets, string(secret))
		}
	}
	return s
}
