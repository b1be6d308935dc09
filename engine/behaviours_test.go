package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guaranteesPage lists what this software promises, and the tests of it.
const guaranteesPage = "../docs/guarantees.md"

var (
	// labels are how the comment of a test says which behaviours it asserts:
	// "Behaviour 7." or "Behaviours 1, 2 and 18".
	labels = regexp.MustCompile(`\bBehaviours? (\d+(?:(?:, | and )\d+)*)\b`)
	number = regexp.MustCompile(`\d+`)
	// rows are the rows of the page's tables whose first cell is a behaviour.
	rows = regexp.MustCompile(`(?m)^\| (\d+) \|(.*)\|$`)
	// named is how the page names a test.
	named = regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z]+)`")
)

// claim is one test and the behaviours that its comment says it asserts.
type claim struct {
	folder, test string
	numbers      []int
}

// claims reads every test of the repository.
func claims(t *testing.T) (all []claim) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".."):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			all = append(all, claimsOf(t, path)...)
		}
		return nil
	}))
	return all
}

// claimsOf reads the tests of one file.
func claimsOf(t *testing.T, path string) (all []claim) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	require.NoError(t, err)
	folder, err := filepath.Rel("..", filepath.Dir(path))
	require.NoError(t, err)
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
			all = append(all, claim{filepath.ToSlash(folder), fn.Name.Name, labelled(fn.Doc.Text())})
		}
	}
	return all
}

// labelled returns the numbers in the comment of a test.
func labelled(comment string) (all []int) {
	for _, label := range labels.FindAllStringSubmatch(strings.Join(strings.Fields(comment), " "), -1) {
		for _, digits := range number.FindAllString(label[1], -1) {
			n, _ := strconv.Atoi(digits)
			all = append(all, n)
		}
	}
	return all
}

// Given the page of guarantees, then every behaviour that it numbers has tests which say
// so above them, no test claims another, and every test that it names is there.
func TestEveryGuaranteeHasItsTest(t *testing.T) {
	asserted := make(map[string][]int) // by folder and name, as the page has it
	claimed := make(map[int]bool)
	for _, c := range claims(t) {
		asserted[c.folder+"."+c.test] = c.numbers
		for _, n := range c.numbers {
			claimed[n] = true
		}
	}
	data, err := os.ReadFile(guaranteesPage)
	require.NoError(t, err)
	var listed []int
	for _, row := range rows.FindAllStringSubmatch(string(data), -1) {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		require.NotContains(t, listed, n, "it stands twice")
		listed = append(listed, n)
		names := named.FindAllStringSubmatch(row[2], -1)
		require.NotEmpty(t, names, "the row of behaviour %d names no test", n)
		for _, name := range names {
			require.Contains(t, asserted[name[1]], n, "the comment of %s does not say \"Behaviour %d\"", name[1], n)
		}
	}
	slices.Sort(listed)
	require.Equal(t, listed, slices.Sorted(maps.Keys(claimed)), "what tests claim is what the page numbers")
	for n := 1; n <= 51; n++ {
		require.Equal(t, n <= 37 || n >= 48, slices.Contains(listed, n), "behaviour %d", n)
	}
	for _, name := range named.FindAllStringSubmatch(string(data), -1) {
		require.Contains(t, asserted, name[1], "there is no such test")
	}
}

func TestLabelsAreReadAsTheyAreWritten(t *testing.T) {
	for comment, want := range map[string][]int{
		"Behaviour 7.":                              {7},
		"Given x, then y. Behaviours 10 and 11.":    {10, 11},
		"Behaviours 1,\n2 and 18: by hand.":         {1, 2, 18},
		"Behaviours 3, 4, 5 and 6. Behaviour 9, so": {3, 4, 5, 6, 9},
		"Behaviour of credentials":                  nil,
	} {
		require.Equal(t, want, labelled(comment), comment)
	}
}
