package blob

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	cloudblob "gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// openAzure opens a container of Azure Blob Storage.
func openAzure(ctx context.Context, name string, c Cloud) (provider, error) {
	c.Credentials = surroundingsAzure(c.Credentials)
	transport := newTransport()
	repeatNothing := policy.RetryOptions{MaxRetries: -1}
	calls, err := bucketAzure(ctx, name, c, transport, repeatNothing)
	if err != nil {
		return provider{}, err
	}
	streams, err := bucketAzure(ctx, name, c, transport, policy.RetryOptions{
		MaxRetries: maxAttempts - 1, RetryDelay: firstBackoff, MaxRetryDelay: maxBackoff,
	})
	if err != nil {
		return provider{}, err
	}
	return provider{
		calls: calls, streams: streams, put: putAzure(calls), startAfter: startAfterAzure, close: closeIdle(transport),
	}, nil
}

// surroundingsAzure fills in what the environment says where we were told nothing.
func surroundingsAzure(k Credentials) Credentials {
	if k.ID != "" {
		return k
	}
	return Credentials{
		ID: os.Getenv("AZURE_STORAGE_ACCOUNT"), Secret: base.Secret(os.Getenv("AZURE_STORAGE_KEY")),
		Token: base.Secret(os.Getenv("AZURE_STORAGE_SAS_TOKEN")),
	}
}

func bucketAzure(
	ctx context.Context, name string, c Cloud, transport http.RoundTripper, retry policy.RetryOptions,
) (*cloudblob.Bucket, error) {
	client, err := clientAzure(name, c, container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: &http.Client{Transport: transport}, Retry: retry,
	}})
	if err != nil {
		return nil, err
	}
	bucket, err := azureblob.OpenBucket(ctx, client, &azureblob.Options{})
	if err != nil {
		return nil, base.WithClass(base.ErrInvalid, fmt.Errorf("opening container %s: %w", name, err))
	}
	return bucket, nil
}

func clientAzure(name string, c Cloud, options container.ClientOptions) (*container.Client, error) {
	endpoint, k := c.Endpoint, c.Credentials
	if endpoint == "" && k.ID == "" {
		return nil, refused("credentials.id", "name the storage account, here or as AZURE_STORAGE_ACCOUNT")
	}
	if endpoint == "" {
		endpoint = "https://" + k.ID + ".blob.core.windows.net"
	}
	address := endpoint + "/" + name
	switch {
	case k.Secret != "":
		key, err := container.NewSharedKeyCredential(k.ID, string(k.Secret))
		if err != nil {
			return nil, refused("credentials.secret", "want the key of the storage account, in base64") // the cause could quote it
		}
		return invalidAzure(container.NewClientWithSharedKeyCredential(address, key, &options))
	case k.Token != "":
		return invalidAzure(container.NewClientWithNoCredential(address+"?"+strings.TrimPrefix(string(k.Token), "?"), &options))
	default:
		identity, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
			ClientOptions: policy.ClientOptions{Transport: options.Transport},
		})
		if err != nil {
			return nil, base.WithClass(base.ErrInvalid, fmt.Errorf("storage.credentials: looking for those of the surroundings: %w", err))
		}
		return invalidAzure(container.NewClient(address, identity, &options))
	}
}

func invalidAzure(client *container.Client, err error) (*container.Client, error) {
	if err != nil {
		return nil, refused("endpoint", "the address of the service cannot be used") // the cause could quote a token
	}
	return client, nil
}

// putAzure sends an object as one request: the client cuts in parts what does not
// fit its buffer.
func putAzure(bucket *cloudblob.Bucket) func(context.Context, string, []byte) error {
	return func(ctx context.Context, name string, data []byte) error {
		options := createOnly()
		options.BufferSize, options.MaxConcurrency = len(data)+1, 1
		return bucket.WriteAll(ctx, name, data, options)
	}
}

// startAfterAzure begins with the name itself, which the store leaves out. A
// service too old to know how lists from the prefix on.
func startAfterAzure(as func(any) bool, name string) {
	var options *container.ListBlobsHierarchyOptions
	if as(&options) {
		options.StartFrom = &name
	}
}
