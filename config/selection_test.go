package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func TestSelectionsAreReadAsDocumented(t *testing.T) {
	at100 := &engine.Position{Kind: engine.AtOffset, Offset: 100}
	for text, want := range map[string]config.Selection{
		"github/webhooks":     {Selection: engine.Selection{Stream: "github/webhooks", All: true}},
		"orders":              {Selection: engine.Selection{Stream: "default/orders", All: true}},
		"a/b:0-3":             {Selection: engine.Selection{Stream: "a/b", First: 0, Last: 3}},
		"a/b:2":               {Selection: engine.Selection{Stream: "a/b", First: 2, Last: 2}},
		"a/b:0:100":           {Selection: engine.Selection{Stream: "a/b"}, Start: at100},
		"a/b:1-2:100":         {Selection: engine.Selection{Stream: "a/b", First: 1, Last: 2}, Start: at100},
		"a.b/c-d_e:4095-4095": {Selection: engine.Selection{Stream: "a.b/c-d_e", First: 4095, Last: 4095}},
	} {
		got, err := config.ParseSelection(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestWhatIsNoSelectionIsRefusedAndSaysWhatIsWanted(t *testing.T) {
	for _, text := range []string{"", ":", "a:", "a:b", "a:-1", "a:0-", "a:3-1", "a:0:", "a:0:x", "a:0:-1", "a:0:earliest", "a:0:1:2", "a/b/c", "a:4096", "a:99999999999", "a:+1"} {
		got, err := config.ParseSelection(text)
		require.ErrorContains(t, err, "want namespace/name", text)
		require.Zero(t, got)
	}
}

// Whatever is accepted stays within what an engine can hold.
func FuzzParseSelection(f *testing.F) {
	for _, seed := range []string{"a/b", "a/b:0-3", "a/b:0:100", "a:1", ":::", "a/b:4095-4096"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := config.ParseSelection(text)
		if err != nil {
			require.Zero(t, s)
			return
		}
		require.Contains(t, s.Stream, "/")
		require.LessOrEqual(t, s.First, s.Last)
		require.GreaterOrEqual(t, s.First, engine.Partition(0))
		require.Less(t, s.Last, engine.Partition(engine.MaxPartitions))
		require.Equal(t, !strings.Contains(text, ":"), s.All)
	})
}
