package blob

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"gocloud.dev/blob/memblob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Options tune Open. The zero value is what an engine uses.
type Options struct {
	// MustExist refuses to create the folder of a file store, for callers
	// that only look: a mistyped path is then ErrNotFound.
	MustExist bool
}

// Open returns the store that rawURL names:
//
//   - file:///absolute/path or a plain path: a folder whose writes are durable
//     when they return; created when absent.
//   - mem:// or mem://name: an empty store in memory, new at each call.
//
// Anything else is ErrInvalid. No error holds a password of the URL. The caller
// closes the store.
func Open(_ context.Context, rawURL string, opts Options) (Store, error) {
	if !strings.Contains(rawURL, "://") {
		return openFile(rawURL, opts)
	}
	// No message repeats the URL or the parser's error, which quotes it: where a
	// URL is malformed, a secret may stand anywhere in it.
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("storage url: %w: it cannot be parsed: want scheme://host/path, or a plain path",
			base.ErrInvalid)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("storage url %s://…: %w: credentials, query and fragment have no place in it",
			u.Scheme, base.ErrInvalid)
	}
	switch u.Scheme {
	case "file":
		return openFileURL(u, opts)
	case "mem":
		return openMem(u)
	default:
		return nil, fmt.Errorf("storage url: %w: scheme %q is not supported: want file, mem or a plain path",
			base.ErrInvalid, u.Scheme)
	}
}

func openFileURL(u *url.URL, opts Options) (Store, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("storage url file://…: %w: want file:///absolute/path; write a relative path without file://",
			base.ErrInvalid)
	}
	return openFile(u.Path, opts)
}

func openMem(u *url.URL) (Store, error) {
	if strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("storage url mem://…: %w: mem takes no path", base.ErrInvalid)
	}
	return newBucketStore(memblob.OpenBucket(&memblob.Options{NoMD5: true}), "mem://"+u.Host), nil
}
