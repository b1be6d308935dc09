package blob_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

func TestCloudOptionsAreCheckedAgainstTheStore(t *testing.T) {
	key := blob.Credentials{ID: "me", Secret: "hunter2"}
	tests := []struct {
		name, rawURL string
		cloud        blob.Cloud
		says         string // empty where the options are good
	}{
		{"nothing said", "s3://lake", blob.Cloud{}, ""},
		{"a key", "s3://lake", blob.Cloud{Credentials: key}, ""},
		{"a profile with a role", "s3://lake", blob.Cloud{Credentials: blob.Credentials{Profile: "p", Role: "r", RoleExternalID: "x"}}, ""},
		{"half a key", "s3://lake", blob.Cloud{Credentials: blob.Credentials{Secret: "hunter2"}}, "both id and secret"},
		{"a session of nobody", "s3://lake", blob.Cloud{Credentials: blob.Credentials{Token: "hunter2"}}, "credentials.token"},
		{"a key and a profile", "s3://lake", blob.Cloud{Credentials: blob.Credentials{ID: "me", Secret: "hunter2", Profile: "p"}}, "credentials.profile"},
		{"an external id without a role", "s3://lake", blob.Cloud{Credentials: blob.Credentials{RoleExternalID: "x"}}, "role_external_id"},
		{"tls elsewhere", "s3://lake", blob.Cloud{Endpoint: "https://minio.acme.internal:9000"}, ""},
		{"plaintext here", "s3://lake", blob.Cloud{Endpoint: "http://127.0.0.1:9000"}, ""},
		{"plaintext here by name", "gs://lake", blob.Cloud{Endpoint: "http://localhost:9000"}, ""},
		{"plaintext here by the newer protocol", "gs://lake", blob.Cloud{Endpoint: "http://[::1]:9000"}, ""},
		{"plaintext elsewhere", "s3://lake", blob.Cloud{Endpoint: "http://minio:9000"}, "https://"},
		{"a name that only looks like here", "s3://lake", blob.Cloud{Endpoint: "http://localhost.evil.example"}, "https://"},
		{"no address", "s3://lake", blob.Cloud{Endpoint: "minio:9000"}, "want https://host"},
		{"credentials in the address", "s3://lake", blob.Cloud{Endpoint: "https://" + "me:hunter2@minio"}, "no place in it"},
		{"a query in the address", "azblob://lake", blob.Cloud{Endpoint: "https://a.blob.core.windows.net?sig=hunter2"}, "no place in it"},
		{"google by a token", "gs://lake", blob.Cloud{Credentials: blob.Credentials{Token: "hunter2"}}, ""},
		{"google by two", "gs://lake", blob.Cloud{Credentials: blob.Credentials{Token: "hunter2", Secret: "hunter3"}}, "either secret or token"},
		{"google by a key of s3", "gs://lake", blob.Cloud{Credentials: key}, "service account"},
		{"google in a region", "gs://lake", blob.Cloud{Region: "eu"}, "for s3"},
		{"azure by a key", "azblob://lake", blob.Cloud{Credentials: key}, ""},
		{"azure by the surroundings", "azblob://lake", blob.Cloud{}, ""},
		{"azure by a key of nobody", "azblob://lake", blob.Cloud{Credentials: blob.Credentials{Secret: "hunter2"}}, "credentials.id"},
		{"azure by two", "azblob://lake", blob.Cloud{Credentials: blob.Credentials{ID: "a", Secret: "hunter2", Token: "hunter3"}}, "either secret or token"},
		{"azure by a role", "azblob://lake", blob.Cloud{Credentials: blob.Credentials{Role: "r"}}, "shared access signature"},
		{"azure with a path style", "azblob://lake", blob.Cloud{ForcePathStyleURLs: true}, "for s3"},
		{"a folder with a region", "/lake", blob.Cloud{Region: "eu"}, "for s3, gs and azblob"},
		{"memory with a key", "mem://", blob.Cloud{Credentials: key}, "for s3, gs and azblob"},
		{"credentials in the url", "s3://me:hunter2@lake", blob.Cloud{}, "no place in it"},
		{"a scheme that nobody knows", "ftp://lake", blob.Cloud{}, `scheme "ftp"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.cloud.Validate(test.rawURL)
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, base.ErrInvalid)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter")
			_, err = blob.Open(t.Context(), test.rawURL, blob.Options{Cloud: test.cloud})
			require.ErrorIs(t, err, base.ErrInvalid, "opening says the same")
		})
	}
}

func TestCredentialsShowNoSecret(t *testing.T) {
	cloud := blob.Cloud{Credentials: blob.Credentials{ID: "me", Secret: "hunter2", Token: "hunter3"}}
	shown := fmt.Sprintf("%v %+v %#v %v", cloud, cloud, cloud, &cloud)
	require.NotContains(t, shown, "hunter")
	require.Contains(t, shown, "me")
}

// Given a secret that a provider's client cannot use, when the store is opened,
// then the error names the field and does not quote it.
func TestSecretsThatCannotBeUsedAreNotQuoted(t *testing.T) {
	for name, test := range map[string]struct {
		rawURL      string
		credentials blob.Credentials
		says        string
	}{
		"google": {"gs://lake", blob.Credentials{Secret: `{ hunter2`}, "JSON of a service account"},
		"azure":  {"azblob://lake", blob.Credentials{ID: "acme", Secret: "hunter2!"}, "storage.credentials.secret"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := blob.Open(t.Context(), test.rawURL, blob.Options{Cloud: blob.Cloud{Credentials: test.credentials}})
			require.ErrorIs(t, err, base.ErrInvalid)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestURLsOfBucketsThatCannotBe(t *testing.T) {
	for name, rawURL := range map[string]string{
		"no bucket": "s3:///prefix", "a port": "s3://lake:9000/x", "a hidden prefix": "s3://lake/.x",
		"a prefix outside the grammar": "gs://lake/a%2Fb/%25", "a prefix with a hole": "s3://lake/a//b",
	} {
		_, err := blob.Open(t.Context(), rawURL, blob.Options{})
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}
