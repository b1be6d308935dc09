package blob

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestOpenNamesEachKindOfStore(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	t.Chdir(dir)
	tests := []struct {
		name, rawURL, want string
	}{
		{"file url", "file://" + dir + "/a", "file://" + dir + "/a"},
		{"file url of this host", "file://localhost" + dir + "/b", "file://" + dir + "/b"},
		{"escaped file url", "file://" + dir + "/a%20b", "file://" + dir + "/a b"},
		{"plain path", dir + "/c/d/e", "file://" + dir + "/c/d/e"},
		{"relative path", "./f", "file://" + dir + "/f"},
		{"memory", "mem://", "mem://"},
		{"named memory", "mem://tests", "mem://tests"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Open(t.Context(), test.rawURL, Options{})
			require.NoError(t, err)
			require.Equal(t, test.want, s.String())
			require.NoError(t, s.Put(t.Context(), "a", []byte("x")))
			require.NoError(t, s.Close())
		})
	}
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	tests := []struct {
		name, rawURL, says string
	}{
		{"nothing", "", "empty"},
		{"unsupported scheme", "ftp://host/a", `scheme "ftp" is not supported: want file, mem, s3, gs, azblob`},
		{"credentials", "file://user:hunter2@host/a", "credentials"},
		{"credentials in the query", "mem://?secret=hunter2", "credentials"},
		{"fragment", "mem://#hunter2", "fragment"},
		{"relative file url", "file://folder/a", "write a relative path without file://"},
		{"memory with a path", "mem://name/a", "mem takes no path"},
		{"not a url", "s3://us%zz:hunter2@host", "cannot be parsed"},
		{"a secret where a port should be", "s3://user:hunter2/x@host", "cannot be parsed"},
		{"a secret behind the path", "mem:/://user:hunter2@", "mem takes no path"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Open(t.Context(), test.rawURL, Options{})
			require.ErrorIs(t, err, base.ErrInvalid)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter2")
			require.Nil(t, s)
		})
	}
}

func TestOpenOfAnAbsentFolderCreatesNothingWhenItMustExist(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "typo")
	_, err := Open(t.Context(), dir, Options{MustExist: true})
	require.ErrorIs(t, err, base.ErrNotFound)
	require.NoDirExists(t, dir)
}

func TestOpenOfAFileIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{file, filepath.Join(file, "below")} {
		_, err := Open(t.Context(), path, Options{})
		require.Error(t, err, path)
	}
}

// A password in a URL shows up neither in an error nor in a store's name.
func FuzzOpenKeepsSecrets(f *testing.F) {
	for _, seed := range []string{"mem://", "file://host/a", "s3://bucket/%zz", "gs://b?x=y", "mem://:0x/"} {
		f.Add(seed)
	}
	const secret = "hunter2correcthorse"
	f.Fuzz(func(t *testing.T, rawURL string) {
		scheme, rest, found := strings.Cut(rawURL, "://")
		if !found || scheme == "file" {
			t.Skip("would create folders")
		}
		if u, err := url.Parse(rawURL); err == nil && u.Scheme == "file" {
			t.Skip("would create folders")
		}
		s, err := Open(t.Context(), scheme+"://user:"+secret+"@"+rest, Options{})
		if err == nil {
			require.NotContains(t, s.String(), secret)
			require.NoError(t, s.Close())
			return
		}
		require.NotContains(t, err.Error(), secret)
	})
}
