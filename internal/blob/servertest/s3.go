package servertest

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/blob"
)

// The user of each server that asks for one.
const (
	accessKey = "lakestream"
	secretKey = "lakestream-secret" //nolint:gosec // of a server that lives as long as a test
	region    = "eu-central-1"
	bucket    = "lake"
)

// S3 starts versitygw over a temporary directory. LAKESTREAM_TEST_VERSITYGW names
// its program.
func S3(t testing.TB) *Server {
	t.Helper()
	program := find(t, "LAKESTREAM_TEST_VERSITYGW", "versitygw")
	dir, sidecar := t.TempDir(), t.TempDir()
	host, port := freeAddress(t)
	address := net.JoinHostPort(host, port)
	start(t, address, program, "--access", accessKey, "--secret", secretKey, "--region", region,
		"--port", address, "--quiet", "--keep-alive", "posix", "--sidecar", sidecar, filepath.Clean(dir))
	s := &Server{
		URL: "s3://" + bucket,
		Cloud: blob.Cloud{
			Endpoint: "http://" + address, Region: region, ForcePathStyleURLs: true,
			Credentials: blob.Credentials{ID: accessKey, Secret: secretKey},
		},
	}
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(s.Cloud.Endpoint), Region: region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	return s
}
