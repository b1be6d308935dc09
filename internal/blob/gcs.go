package blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cloud.google.com/go/storage"
	cloudblob "gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	"github.com/lakestream-go/lakestream/internal/base"
)

// openGCS opens a bucket of Google Cloud Storage.
func openGCS(ctx context.Context, bucket string, c Cloud) (provider, error) {
	transport := newTransport()
	client, err := clientGCS(ctx, c, transport)
	if err != nil {
		return provider{}, base.WithClass(base.ErrInvalid, fmt.Errorf("storage.credentials: %w", err))
	}
	// The other interface of the service, by which the client would read, ignores
	// the endpoint.
	options := []option.ClientOption{option.WithHTTPClient(client), storage.WithJSONReads()}
	if c.Endpoint != "" {
		options = append(options, option.WithEndpoint(c.Endpoint+"/storage/v1/"))
	}
	calls, closeCalls, err := bucketGCS(ctx, bucket, options, storage.WithPolicy(storage.RetryNever))
	if err != nil {
		return provider{}, err
	}
	streams, closeStreams, err := bucketGCS(ctx, bucket, options, storage.WithMaxAttempts(maxAttempts))
	if err != nil {
		return provider{}, errors.Join(err, closeCalls())
	}
	return provider{
		calls: calls, streams: streams, put: putGCS(calls), startAfter: startAfterGCS,
		close: func() error {
			transport.CloseIdleConnections()
			return errors.Join(closeCalls(), closeStreams())
		},
	}, nil
}

func bucketGCS(
	ctx context.Context, bucket string, options []option.ClientOption, retry storage.RetryOption,
) (*cloudblob.Bucket, func() error, error) {
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, nil, base.WithClass(base.ErrInvalid, fmt.Errorf("opening bucket %s: %w", bucket, err))
	}
	client.SetRetry(retry)
	opened, err := gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, nil, errors.Join(base.WithClass(base.ErrInvalid, fmt.Errorf("opening bucket %s: %w", bucket, err)), client.Close())
	}
	return opened, client.Close, nil
}

// clientGCS returns a client that proves who we are. A service on this machine
// without TLS is an emulator, which asks for no proof.
func clientGCS(ctx context.Context, c Cloud, transport http.RoundTripper) (*http.Client, error) {
	// Tokens are renewed for as long as the store is open.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Transport: transport})
	var tokens oauth2.TokenSource
	switch k := c.Credentials; {
	case k.Token != "":
		tokens = oauth2.StaticTokenSource(&oauth2.Token{AccessToken: string(k.Token)})
	case k.Secret != "":
		found, err := google.CredentialsFromJSONWithType(ctx, []byte(k.Secret), google.ServiceAccount, storage.ScopeReadWrite)
		if err != nil {
			return nil, errors.New("secret is not the JSON of a service account's key") // the cause could quote it
		}
		tokens = found.TokenSource
	case strings.HasPrefix(c.Endpoint, "http://"):
		return &http.Client{Transport: transport}, nil
	default:
		found, err := google.FindDefaultCredentials(ctx, storage.ScopeReadWrite)
		if err != nil {
			return nil, fmt.Errorf("looking for those of the surroundings: %w", err)
		}
		tokens = found.TokenSource
	}
	return &http.Client{Transport: &oauth2.Transport{Base: transport, Source: tokens}}, nil
}

// putGCS sends an object as one request: without a buffer the client neither cuts
// it in parts nor repeats it.
func putGCS(bucket *cloudblob.Bucket) func(context.Context, string, []byte) error {
	return func(ctx context.Context, name string, data []byte) error {
		options := createOnly()
		options.BufferSize = -1
		return bucket.WriteAll(ctx, name, data, options)
	}
}

// startAfterGCS begins with the name itself, which the store leaves out.
func startAfterGCS(as func(any) bool, name string) {
	var query *storage.Query
	if as(&query) {
		query.StartOffset = name
	}
}
