package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"text/template"
)

// report is what docs/performance.md says.
type report struct {
	Groups                []groupResult
	Facts                 []factResult
	Machine               machine
	Rounds                int
	Date                  string
	LoadBefore, LoadAfter string
}

//go:embed performance.md.tmpl
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"ratio": func(r float64) string { return fmt.Sprintf("%.2f", r) },
	"bar":   bar,
	"ns":    nanoseconds,
	"rate":  rate,
	"join":  strings.Join,
	"row":   row,
}).Parse(reportText))

// bar says what the project wants of a ratio.
func bar(r float64) string {
	if r == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", r)
}

func nanoseconds(ns float64) string {
	if ns < 10 {
		return fmt.Sprintf("%.1f", ns)
	}
	return fmt.Sprintf("%.0f", ns)
}

// rate says how many messages a second so many nanoseconds each are.
func rate(ns float64) string {
	switch perSecond := 1e9 / ns; {
	case perSecond >= 1e6:
		return fmt.Sprintf("%.1f M/s", perSecond/1e6)
	case perSecond >= 1e4:
		return fmt.Sprintf("%.0f k/s", perSecond/1e3)
	default:
		return fmt.Sprintf("%.1f k/s", perSecond/1e3)
	}
}

// writeTable prints a group for people.
func writeTable(out io.Writer, g groupResult) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%s\tof floor, CPU\tof floor, wall\tbar\tCPU ns\twall ns\n", g.Name) // Flush returns the error
	for _, r := range append([]ranked{g.Floor}, g.Subjects...) {
		_, _ = fmt.Fprintf(w, "  %s\t%.2f\t%.2f\t%s\t%s\t%s\n", r.Name, r.OfCPU, r.OfWall, bar(r.Bar), nanoseconds(r.CPU), nanoseconds(r.Wall))
	}
	_, _ = fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing %s: %w", g.Name, err)
	}
	return nil
}

// writeReport writes the report to a file.
func writeReport(path string, r report) error {
	var text strings.Builder
	if err := reportTemplate.Execute(&text, r); err != nil {
		return fmt.Errorf("making the report: %w", err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil { //nolint:gosec // a document
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
