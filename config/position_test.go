package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func TestPositionsAreReadAsDocumented(t *testing.T) {
	for text, want := range map[string]config.Position{
		"earliest":                     {Kind: config.Earliest},
		"latest":                       {Kind: config.Latest},
		"0":                            {Kind: config.AtOffset},
		"1234567890123":                {Kind: config.AtOffset, Offset: 1234567890123},
		"@2026-11-01T00:00:00Z":        {Kind: config.AtTime, Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		"@2026-11-01T02:00:00.5+02:00": {Kind: config.AtTime, Time: time.Date(2026, 11, 1, 0, 0, 0, 5e8, time.UTC)},
		"@1793491200000":               {Kind: config.AtTime, Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		"@-1h":                         {Kind: config.Ago, Ago: time.Hour},
		"@-1h30m":                      {Kind: config.Ago, Ago: 90 * time.Minute},
	} {
		got, err := config.ParsePosition(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestWhatIsNoPositionIsRefusedAndSaysWhatIsWanted(t *testing.T) {
	for _, text := range []string{"", "first", "committed", "-1", "1.5", "@", "@-", "@-0s", "@--1h", "@-1", "@1h", "@2026-13-01T00:00:00Z", "99999999999999999999", " 1"} {
		got, err := config.ParsePosition(text)
		require.ErrorContains(t, err, "want earliest, latest", text)
		require.Zero(t, got)
	}
}

func TestSelectionsAreReadAsDocumented(t *testing.T) {
	at100 := &config.Position{Kind: config.AtOffset, Offset: 100}
	for text, want := range map[string]config.Selection{
		"github/webhooks":     {Stream: "github/webhooks", All: true},
		"orders":              {Stream: "default/orders", All: true},
		"a/b:0-3":             {Stream: "a/b", First: 0, Last: 3},
		"a/b:2":               {Stream: "a/b", First: 2, Last: 2},
		"a/b:0:100":           {Stream: "a/b", Start: at100},
		"a/b:1-2:100":         {Stream: "a/b", First: 1, Last: 2, Start: at100},
		"a.b/c-d_e:4095-4095": {Stream: "a.b/c-d_e", First: 4095, Last: 4095},
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

func FuzzParsePosition(f *testing.F) {
	for _, seed := range []string{"earliest", "latest", "17", "@17", "@-1h", "@2026-11-01T00:00:00Z", "@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := config.ParsePosition(text)
		if err != nil {
			require.Zero(t, p)
			return
		}
		require.GreaterOrEqual(t, p.Offset, engine.Offset(0))
		require.GreaterOrEqual(t, p.Ago, time.Duration(0))
	})
}
