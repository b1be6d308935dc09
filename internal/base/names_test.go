package base_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestAStreamNameIsANamespaceAndAName(t *testing.T) {
	longest := strings.Repeat("x", base.MaxNameBytes)
	for text, want := range map[string]base.StreamName{
		"github/webhooks":       {Namespace: "github", Name: "webhooks"},
		"orders":                {Namespace: "default", Name: "orders"},
		"a.b/c-d_E9":            {Namespace: "a.b", Name: "c-d_E9"},
		"-/_":                   {Namespace: "-", Name: "_"},
		"...":                   {Namespace: "default", Name: "..."},
		longest + "/" + longest: {Namespace: longest, Name: longest},
	} {
		got, err := base.ParseStreamName(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
}

func TestANameOutsideTheGrammarIsRefusedAndSaysWhatIsAllowed(t *testing.T) {
	for _, text := range []string{
		"", "/", "a/", "/a", "a/b/c", ".", "..", "a/..", "./a", "a b", "a\x00b", "ä", "a:0", "a*", "a\n",
		strings.Repeat("x", base.MaxNameBytes+1), "a/" + strings.Repeat("x", base.MaxNameBytes+1),
	} {
		got, err := base.ParseStreamName(text)
		require.ErrorIs(t, err, base.ErrInvalid, text)
		require.ErrorContains(t, err, "A-Z a-z 0-9 . _ -", text)
		require.Zero(t, got)
	}
}

func TestAStreamNameReadsBackFromItsText(t *testing.T) {
	part := rapid.StringMatching(`[A-Za-z0-9._-]{1,128}`).Filter(func(s string) bool { return s != "." && s != ".." })
	rapid.Check(t, func(t *rapid.T) {
		name := base.StreamName{Namespace: part.Draw(t, "namespace"), Name: part.Draw(t, "name")}
		read, err := base.ParseStreamName(name.String())
		require.NoError(t, err)
		require.Equal(t, name, read)
	})
}

// The values stand for the format: a stream whose shard moved is lost.
func TestTheShardOfAStreamNeverChanges(t *testing.T) {
	for _, c := range []struct {
		name   base.StreamName
		shards int
		want   base.Shard
	}{
		{base.StreamName{Namespace: "default", Name: "orders"}, 4, 2},
		{base.StreamName{Namespace: "github", Name: "webhooks"}, 1, 0},
		{base.StreamName{Namespace: "github", Name: "webhooks"}, 4, 1},
		{base.StreamName{Namespace: "github", Name: "webhooks"}, 64, 9},
		{base.StreamName{Namespace: "shop", Name: "orders"}, 4, 3},
		{base.StreamName{Namespace: "a.b", Name: "c-d_E9"}, 7, 6},
	} {
		require.Equal(t, c.want, base.ShardOf(c.name, c.shards), "%s of %d", c.name, c.shards)
	}
}

func TestStreamsSpreadOverTheShards(t *testing.T) {
	const shards, streams = 16, 1600
	var filled [shards]int
	for i := range streams {
		name := base.StreamName{Namespace: "tenant", Name: "stream-" + strings.Repeat("i", i%40) + string(rune('a'+i/40%26)) + string(rune('a'+i%26))}
		filled[base.ShardOf(name, shards)]++
	}
	for shard, n := range filled {
		require.Positive(t, n, "shard %d", shard)
		require.Less(t, n, 4*streams/shards, "shard %d", shard)
	}
}
