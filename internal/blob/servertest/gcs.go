package servertest

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/blob"
)

// GCS starts fake-gcs-server with objects in memory.
// LAKESTREAM_TEST_FAKE_GCS_SERVER names its program.
func GCS(t testing.TB) *Server {
	t.Helper()
	program := find(t, "LAKESTREAM_TEST_FAKE_GCS_SERVER", "fake-gcs-server")
	host, port := freeAddress(t)
	address := net.JoinHostPort(host, port)
	endpoint := "http://" + address
	start(t, address, program, "-backend", "memory", "-scheme", "http", "-host", host, "-port", port,
		"-external-url", endpoint, "-public-host", address, "-log-level", "warn")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/storage/v1/b?project=test",
		strings.NewReader(`{"name": "`+bucket+`"}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	return &Server{URL: "gs://" + bucket, Cloud: blob.Cloud{Endpoint: endpoint}}
}
