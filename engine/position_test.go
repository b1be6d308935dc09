package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

func TestPositionsAreReadAsDocumented(t *testing.T) {
	for text, want := range map[string]engine.Position{
		"earliest":                     {Kind: engine.Earliest},
		"latest":                       {Kind: engine.Latest},
		"committed":                    {Kind: engine.Committed},
		"0":                            {Kind: engine.AtOffset},
		"1234567890123":                {Kind: engine.AtOffset, Offset: 1234567890123},
		"@2026-11-01T00:00:00Z":        {Kind: engine.AtTime, Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		"@2026-11-01T02:00:00.5+02:00": {Kind: engine.AtTime, Time: time.Date(2026, 11, 1, 0, 0, 0, 5e8, time.UTC)},
		"@1793491200000":               {Kind: engine.AtTime, Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		"@-1h":                         {Kind: engine.Ago, Ago: time.Hour},
		"@-1h30m":                      {Kind: engine.Ago, Ago: 90 * time.Minute},
	} {
		got, err := engine.ParsePosition(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestWhatIsNoPositionIsRefusedAndSaysWhatIsWanted(t *testing.T) {
	for _, text := range []string{"", "first", "-1", "1.5", "@", "@-", "@-0s", "@--1h", "@-1", "@1h", "@2026-13-01T00:00:00Z", "99999999999999999999", " 1"} {
		got, err := engine.ParsePosition(text)
		require.ErrorIs(t, err, engine.ErrInvalid, text)
		require.ErrorContains(t, err, "want earliest, latest", text)
		require.Zero(t, got)
	}
}

func FuzzParsePosition(f *testing.F) {
	for _, seed := range []string{"earliest", "latest", "17", "@17", "@-1h", "@2026-11-01T00:00:00Z", "@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := engine.ParsePosition(text)
		if err != nil {
			require.Zero(t, p)
			return
		}
		require.GreaterOrEqual(t, p.Offset, engine.Offset(0))
		require.GreaterOrEqual(t, p.Ago, time.Duration(0))
	})
}
