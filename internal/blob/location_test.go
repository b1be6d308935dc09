package blob_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/blob"
)

// Given a store, when tables are kept in it, then their locations are spelled as
// other readers of tables resolve them.
func TestTablesAreLocatedAsOtherReadersSpellIt(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	account := blob.Cloud{Credentials: blob.Credentials{ID: "acme"}}
	tests := []struct {
		name, rawURL string
		cloud        blob.Cloud
		want         string
	}{
		{"s3", "s3://lake/prod/", blob.Cloud{}, "s3://lake/prod"},
		{"a whole bucket", "s3://lake", blob.Cloud{}, "s3://lake"},
		{"gs", "gs://lake/a/b", blob.Cloud{}, "gs://lake/a/b"},
		{"azure", "azblob://lake/prod", account, "abfss://lake@acme.dfs.core.windows.net/prod"},
		{"a whole container", "azblob://lake/", account, "abfss://lake@acme.dfs.core.windows.net"},
		{"an account by its address", "azblob://lake", blob.Cloud{Endpoint: "https://acme.blob.core.windows.net"}, "abfss://lake@acme.dfs.core.windows.net"},
		{"an account that nobody names", "azblob://lake", blob.Cloud{}, ""},
		{"a folder", "file:///lake", blob.Cloud{}, ""},
		{"a path", "/lake", blob.Cloud{}, ""},
		{"memory", "mem://", blob.Cloud{}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, blob.TableLocation(test.rawURL, test.cloud))
		})
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "other")
	require.Equal(t, "abfss://lake@other.dfs.core.windows.net", blob.TableLocation("azblob://lake", blob.Cloud{}))
}
