package blobtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// awkward keys, in byte order: characters below and above the slash decide
// whether a folder or an object comes first.
var awkward = []string{
	"a", "a b", "a+1", "a-1/z", "a.b/c", "a0", "aa", "b/a+b", "b/a-b/c", "b/a.b", "b/a/b/c", "b/a0",
	"b/aa/0", "c+/x", "c/y", "z",
}

func keysOf(infos []blob.Info) []string {
	keys := make([]string, len(infos))
	for i, info := range infos {
		keys[i] = info.Key
	}
	return keys
}

// listAll reads pages of the given size until one is short.
func listAll(t require.TestingT, s blob.Store, list listFunc, prefix string, limit int) []string {
	var keys []string
	after := ""
	for {
		page, err := list(prefix, after, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), limit, "store %s", s)
		keys = append(keys, keysOf(page)...)
		if len(page) < limit {
			return keys
		}
		after = page[len(page)-1].Key
	}
}

type listFunc func(prefix, after string, limit int) ([]blob.Info, error)

func listOf(t *testing.T, s blob.Store) listFunc {
	return func(prefix, after string, limit int) ([]blob.Info, error) {
		return s.List(t.Context(), prefix, after, limit)
	}
}

func lists(t *testing.T, s blob.Store) {
	require.Empty(t, listAll(t, s, listOf(t, s), "", 10), "an empty store")
	for i, key := range slices.Backward(awkward) {
		put(t, s, key, make([]byte, i))
	}
	require.True(t, slices.IsSorted(awkward))
	for limit := 1; limit <= len(awkward)+1; limit++ {
		require.Equal(t, awkward, listAll(t, s, listOf(t, s), "", limit), "pages of %d", limit)
	}
	page, err := s.List(t.Context(), "", "b/a", 3)
	require.NoError(t, err)
	require.Equal(t, []string{"b/a+b", "b/a-b/c", "b/a.b"}, keysOf(page), "after a key that is not there")
	require.Equal(t, []int64{7, 8, 9}, []int64{page[0].Size, page[1].Size, page[2].Size})
	_, err = s.List(t.Context(), "", "", 0)
	require.ErrorIs(t, err, base.ErrInvalid)
}

func listPrefixes(t *testing.T, s blob.Store) {
	for _, key := range awkward {
		put(t, s, key, nil)
	}
	tests := []struct {
		prefix, after string
		want          []string
	}{
		{"b/", "", []string{"b/a+b", "b/a-b/c", "b/a.b", "b/a/b/c", "b/a0", "b/aa/0"}},
		{"b/a/", "", []string{"b/a/b/c"}},
		{"b/a/b/c", "", []string{"b/a/b/c"}},
		{"b/aa", "", []string{"b/aa/0"}},
		{"b/a", "b/a.b", []string{"b/a/b/c", "b/a0", "b/aa/0"}},
		{"b/a", "b/a/b", []string{"b/a/b/c", "b/a0", "b/aa/0"}},
		{"b/a", "b/a/b/c", []string{"b/a0", "b/aa/0"}},
		{"b/", "z", nil},
		{"c", "", []string{"c+/x", "c/y"}},
		{"c/", "a", []string{"c/y"}},
		{"b/b", "", nil},
		{"z/", "", nil},
		{"zz/top/", "", nil},
	}
	for _, test := range tests {
		found, err := s.List(t.Context(), test.prefix, test.after, 100)
		require.NoError(t, err)
		require.ElementsMatch(t, test.want, keysOf(found), "prefix %q after %q", test.prefix, test.after)
		require.True(t, slices.IsSorted(keysOf(found)), "prefix %q after %q", test.prefix, test.after)
	}
}

// listAgreesWithModel puts and deletes at random and lists with random arguments.
func listAgreesWithModel(t *testing.T, s blob.Store) {
	list := listOf(t, s)
	model := map[string]bool{}
	// An object's last part starts with o and a folder's with f, so that no key
	// is the folder of another.
	object := rapid.StringMatching(`(f([-0]|\.0)?/){0,3}o([-.0a]?[-0a])?`)
	start := rapid.StringMatching(`((f([-0]|\.0)?/){0,3}[of]?[-.0]?)?`)
	rapid.Check(t, func(rt *rapid.T) {
		key := object.Draw(rt, "key")
		if rapid.Bool().Draw(rt, "put") && !model[key] {
			require.NoError(rt, s.Put(t.Context(), key, nil))
			model[key] = true
		} else {
			require.NoError(rt, s.Delete(t.Context(), key))
			delete(model, key)
		}
		prefix := start.Filter(validPrefix).Draw(rt, "prefix")
		after := start.Draw(rt, "after")
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		found, err := list(prefix, after, limit)
		require.NoError(rt, err)
		require.Equal(rt, modelList(model, prefix, after, limit), keysOf(found))
	})
}

// validPrefix refuses a last part that starts with a dot.
func validPrefix(prefix string) bool {
	return !strings.HasPrefix(prefix, ".") && !strings.Contains(prefix, "/.")
}

func modelList(model map[string]bool, prefix, after string, limit int) []string {
	want := []string{}
	for key := range model {
		if strings.HasPrefix(key, prefix) && key > after {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	return want[:min(limit, len(want))]
}
