package document_test

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/materialization/document"
)

func TestLongHoldsExactlyTheIntegersOf64Bits(t *testing.T) {
	for literal, want := range map[string]int64{
		"0": 0, "7": 7, "-7": -7,
		"1731508712229224":     1731508712229224,
		"9223372036854775807":  math.MaxInt64,
		"-9223372036854775808": math.MinInt64,
	} {
		got, ok := document.Long([]byte(literal))
		require.True(t, ok, literal)
		require.Equal(t, want, got)
	}
	for _, literal := range []string{
		"9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999999",
	} {
		_, ok := document.Long([]byte(literal))
		require.False(t, ok, literal)
	}
}

func TestDoubleTakesOnlyWhatItGivesBack(t *testing.T) {
	for _, literal := range []string{
		"0", "-0", "0.0", "0e5", "1.5", "1.50", "-0.1", "100", "1e22", "1E+2", "123456789012345",
		"3.141592653589793", "0.30000000000000004", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308",
		"9007199254740992", "9007199254740994", "1152921504606846976", "-1152921504606846976",
		"10000000000000000000000", "0.000001", "1000000.000", "12.5e-3",
	} {
		v, ok := document.Double([]byte(literal))
		require.True(t, ok, literal)
		want, err := strconv.ParseFloat(literal, 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(want), math.Float64bits(v), literal)
	}
	for _, literal := range []string{
		"9007199254740993", "9223372036854775807", "3.14159265358979323846", "0.1000000000000000055511151231257827",
		"1e400", "-1e400", "1e-400", "4e-324", "1234567890123456789", "1.00000000000000000001", "1e999999999999",
	} {
		_, ok := document.Double([]byte(literal))
		require.False(t, ok, literal)
	}
}

// Given any number, Double says that it fits exactly when big arithmetic does.
func TestDoubleAgreesWithBigArithmetic(t *testing.T) {
	literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		text := literal.Draw(t, "literal")
		v, ok := document.Double([]byte(text))

		exact, valid := new(big.Rat).SetString(text)
		if !valid {
			t.Fatalf("%s is no number", text)
		}
		f, err := strconv.ParseFloat(text, 64)
		want := err == nil
		if want {
			shortest, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
			isInteger := !strings.ContainsAny(text, ".eE")
			want = shortest.Cmp(exact) == 0 || (isInteger && new(big.Rat).SetFloat64(f).Cmp(exact) == 0)
		}
		if ok != want || (ok && v != f) {
			t.Fatalf("%s: got %v %v, want %v %v", text, v, ok, f, want)
		}
	})
}

// Given any double, its shortest text fits and reads back the same.
func TestDoubleReadsBackEveryDouble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		if math.IsNaN(f) || math.IsInf(f, 0) {
			t.Skip("no JSON number")
		}
		v, ok := document.Double(strconv.AppendFloat(nil, f, 'g', -1, 64))
		if !ok || math.Float64bits(v) != math.Float64bits(f) {
			t.Fatalf("%v became %v, %v", f, v, ok)
		}
	})
}
