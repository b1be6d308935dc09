package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// fact is something that is measured by itself, with no floor to compare with.
type fact struct {
	name, what string
	columns    []string
	measure    func(ctx context.Context, b *bench) ([][]string, error)
}

// factResult is what was measured: a table.
type factResult struct {
	Name, What string
	Columns    []string
	Rows       [][]string
}

// facts returns everything of that kind.
func facts() []fact { return []fact{sharing(), delivery()} }

// fact measures one, once: it counts, or is a distribution already.
func (b *bench) fact(ctx context.Context, f fact) (factResult, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	_, _ = fmt.Fprintf(b.progress, "%s\n", f.name) // a failure loses only progress
	rows, err := f.measure(ctx, b)
	return factResult{Name: f.name, What: f.what, Columns: f.columns, Rows: rows}, err
}

// facts measures those whose name contains a text, and prints them.
func (b *bench) facts(ctx context.Context, only string, out io.Writer) (found []factResult, err error) {
	for _, f := range facts() {
		if !strings.Contains(f.name, only) {
			continue
		}
		result, err := b.fact(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", f.name, err)
		}
		found = append(found, result)
		if err := writeFact(out, result); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// writeFact prints a fact for people.
func writeFact(out io.Writer, f factResult) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%s\t%s\n", f.Name, strings.Join(f.Columns[1:], "\t")) // Flush returns the error
	for _, row := range f.Rows {
		_, _ = fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	_, _ = fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing %s: %w", f.Name, err)
	}
	return nil
}

// row makes a line of a document's table.
func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// percentiles returns the middle and the 99th of a hundred of at least one duration.
func percentiles(of []time.Duration) (p50, p99 string) {
	slices.Sort(of)
	at := func(percent int) string {
		return of[min(len(of)-1, len(of)*percent/100)].Round(10 * time.Microsecond).String()
	}
	return at(50), at(99)
}
