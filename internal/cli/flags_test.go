package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"
	"pgregory.net/rapid"
)

// given are flags of each kind, and what they were set to.
type given struct {
	text   string
	number int
	on     bool
}

func (g *given) flags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "text", Aliases: []string{"t"}, Destination: &g.text},
		&ucli.IntFlag{Name: "n", Value: 10, Destination: &g.number},
		&ucli.BoolFlag{Name: "on", Destination: &g.on},
		ucli.HelpFlag,
	}
}

// Wherever flags stand among arguments, they are read alike, and the arguments keep
// their order.
func TestFlagsStandAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9./@][a-z0-9./@-]{0,5}`), 0, 4).Draw(t, "arguments")
		groups := rapid.Permutation([][]string{{"--text", "-x"}, {"-n=3"}, {"--on"}}).Draw(t, "flags")
		args := slices.Clone(want)
		for _, group := range groups {
			at := rapid.IntRange(0, len(args)).Draw(t, "at")
			for slices.Contains(args[:at], "--text") && args[at-1] == "--text" {
				at--
			}
			args = slices.Insert(args, at, group...)
		}
		var g given
		got, help, err := parse(g.flags(), args)
		require.NoError(t, err, "%q", args)
		require.False(t, help)
		require.Equal(t, strings.Join(want, " "), strings.Join(got, " "), "%q", args)
		require.Equal(t, given{text: "-x", number: 3, on: true}, g, "%q", args)
	})
}

func TestArgumentsAreParsed(t *testing.T) {
	tests := map[string]struct {
		args, want []string
		given      given
		help       bool
		wrong      string
	}{
		"none":                  {given: given{number: 10}},
		"an alias":              {args: []string{"a", "-t", "x"}, want: []string{"a"}, given: given{text: "x", number: 10}},
		"the last one counts":   {args: []string{"-n", "1", "a", "-n", "2"}, want: []string{"a"}, given: given{number: 2}},
		"no flags after --":     {args: []string{"a", "--", "--on", "-n"}, want: []string{"a", "--on", "-n"}, given: given{number: 10}},
		"a dash is an argument": {args: []string{"-", "--on"}, want: []string{"-"}, given: given{number: 10, on: true}},
		"help":                  {args: []string{"a", "--help"}, help: true},
		"help in short":         {args: []string{"-h", "--nonsense"}, help: true},
		"an unknown flag":       {args: []string{"a", "--none"}, wrong: "-none"},
		"no value":              {args: []string{"a", "--text"}, wrong: "needs an argument"},
		"a wrong value":         {args: []string{"-n", "x"}, wrong: `invalid value "x"`},
		"a wrong switch":        {args: []string{"--on=perhaps"}, wrong: "invalid boolean"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var g given
			got, help, err := parse(g.flags(), test.args)
			if test.wrong != "" {
				require.ErrorContains(t, err, test.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.help, help)
			if !help {
				require.Equal(t, test.want, got)
				require.Equal(t, test.given, g)
			}
		})
	}
}

// Columns line up by what people see, and no cell breaks a line.
func TestTablesAlign(t *testing.T) {
	var p page
	p.table([]string{"NAME", "COUNT#"}, [][]string{{"Zürich", "7"}, {"a\nb", "1234"}, {strings.Repeat("x", 60), "0"}})
	require.Equal(t, strings.Join([]string{
		"NAME" + strings.Repeat(" ", 36) + "  COUNT",
		"Zürich" + strings.Repeat(" ", 34) + "      7",
		"a b" + strings.Repeat(" ", 37) + "   1234",
		strings.Repeat("x", 39) + "…" + "      0",
		"",
	}, "\n"), p.String())
}

func TestSizesAreRead(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 30: "1.0 GiB", 1 << 50: "1024.0 TiB",
	} {
		require.Equal(t, want, size(bytes))
	}
}
