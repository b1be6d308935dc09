package servertest

import (
	"net"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// The account that every Azurite has; its key is public.
const (
	azureAccount = "devstoreaccount1"
	azureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Azure starts Azurite with objects in memory. LAKESTREAM_TEST_AZURITE names its
// program azurite-blob.
func Azure(t testing.TB) *Server {
	t.Helper()
	program := find(t, "LAKESTREAM_TEST_AZURITE", "azurite-blob")
	host, port := freeAddress(t)
	address := net.JoinHostPort(host, port)
	start(t, address, program, "--blobHost", host, "--blobPort", port, "--inMemoryPersistence",
		"--silent", "--skipApiVersionCheck", "--disableTelemetry")
	endpoint := "http://" + address + "/" + azureAccount
	key, err := container.NewSharedKeyCredential(azureAccount, azureKey)
	require.NoError(t, err)
	client, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+bucket, key, &container.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}},
	})
	require.NoError(t, err)
	_, err = client.Create(t.Context(), nil)
	require.NoError(t, err)
	return &Server{URL: "azblob://" + bucket, Cloud: blob.Cloud{
		Endpoint: endpoint, Credentials: blob.Credentials{ID: azureAccount, Secret: base.Secret(azureKey)},
	}}
}
