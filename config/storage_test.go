package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given every field of an S3 store, when it is parsed, then each is where the
// engine looks for it, and the secrets show nowhere.
func TestEveryFieldOfTheStoreIsRead(t *testing.T) {
	const all = `
stream: orders
engine:
  storage:
    url: s3://acme-lake/prod
    region: eu-west-1
    endpoint: https://minio.acme.internal:9000
    force_path_style_urls: true
    credentials: { id: me, secret: hunter2, token: hunter3, role: "arn:aws:iam::1:role/r", role_external_id: x }
`
	out, err := parseOutput(t, all)
	require.NoError(t, err)
	require.Equal(t, engine.StorageOptions{
		URL: "s3://acme-lake/prod", Region: "eu-west-1", Endpoint: "https://minio.acme.internal:9000", ForcePathStyleURLs: true,
		Credentials: engine.StorageCredentials{ID: "me", Secret: "hunter2", Token: "hunter3", Role: "arn:aws:iam::1:role/r", RoleExternalID: "x"},
	}, out.Engine.Storage)
	require.Empty(t, lintOf(t, linter(t), "output", all))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", *out.Engine, *out.Engine, *out.Engine), "hunter")
}

func TestAProfileIsRead(t *testing.T) {
	out, err := parseOutput(t, "stream: orders\nengine: { storage: { url: \"s3://lake\", credentials: { profile: prod } } }\n")
	require.NoError(t, err)
	require.Equal(t, "prod", out.Engine.Storage.Credentials.Profile)
}

func TestStoresThatCannotBeAreRefusedWithTheField(t *testing.T) {
	tests := map[string]struct{ storage, says string }{
		"half a key":                {`{ url: "s3://lake", credentials: { id: me } }`, "storage.credentials"},
		"a region of files":         {`{ url: "file:///lake", region: eu-west-1 }`, "for s3, gs and azblob"},
		"plaintext off loopback":    {`{ url: "s3://lake", endpoint: "http://minio:9000" }`, "storage.endpoint"},
		"an account that is nobody": {`{ url: "azblob://lake", credentials: { secret: hunter2 } }`, "storage.credentials.id"},
		"credentials in the url":    {`{ url: "s3://me:hunter2@lake" }`, "credentials"},
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseOutput(t, "stream: orders\nengine: { storage: "+test.storage+" }\n")
			require.ErrorIs(t, err, engine.ErrInvalid)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestLintKnowsTheNamesOfStores(t *testing.T) {
	tests := []struct {
		storage string
		wants   string
	}{
		{`{ url: "s3://lake/prod" }`, ""},
		{`{ url: "gs://lake" }`, ""},
		{`{ url: "azblob://lake/a/b" }`, ""},
		{`{ url: "./lake" }`, ""},
		{`{ url: "s3://lake", endpoint: "http://127.0.0.1:9000" }`, ""},
		{`{ url: "ftp://lake" }`, "want s3://bucket/prefix"},
		{`{ url: "s3://" }`, "want s3://bucket/prefix"},
		{`{ url: "s3://lake?secret=x" }`, "want s3://bucket/prefix"},
		{`{ url: "s3://me:secret@lake" }`, "want s3://bucket/prefix"},
		{`{ url: "s3://lake", endpoint: "minio:9000" }`, "want https://host"},
	}
	for _, test := range tests {
		found := lintOf(t, linter(t), "output", "stream: orders\nengine: { storage: "+test.storage+" }\n")
		if test.wants == "" {
			require.Empty(t, found, test.storage)
			continue
		}
		require.Contains(t, found, test.wants, test.storage)
	}
}
