package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxCell bounds a cell of a printed table, in characters.
const maxCell = 40

// printJSON writes one document.
func (in *invocation) printJSON(document any) error {
	encoder := json.NewEncoder(in.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// print writes the result that text makes for people, or document as JSON.
func (in *invocation) print(document any, text func(*page)) error {
	if in.common.json {
		return in.printJSON(document)
	}
	var p page
	text(&p)
	if _, err := io.WriteString(in.stdout, p.String()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// page is text for people that is being written.
type page struct{ strings.Builder }

func (p *page) linef(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...) // a builder takes everything
}

// pairs writes names and their values, the values aligned. Empty values are left
// out.
func (p *page) pairs(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, utf8.RuneCountInString(pairs[i]))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			p.linef("%-*s  %s", width, pairs[i], pairs[i+1])
		}
	}
}

// table writes rows under a header, columns aligned: numbers to the right. A
// column counts as numbers when its header ends in "#", which is not printed.
func (p *page) table(header []string, rows [][]string) {
	numbers := make([]bool, len(header))
	widths := make([]int, len(header))
	for i, title := range header {
		header[i], numbers[i] = strings.CutSuffix(title, "#")
	}
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			row[i] = shorten(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			if gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)); numbers[i] {
				cells[i] = gap + cell
			} else {
				cells[i] = cell + gap
			}
		}
		p.linef("%s", strings.TrimRight(strings.Join(cells, "  "), " "))
	}
}

// shorten makes a cell fit, on one line.
func shorten(cell string) string {
	cell = strings.Join(strings.Fields(cell), " ")
	if utf8.RuneCountInString(cell) <= maxCell {
		return cell
	}
	return string([]rune(cell)[:maxCell-1]) + "…"
}

func number[T ~int | ~int32 | ~int64 | ~uint64](n T) string { return fmt.Sprintf("%d", n) }

// size renders a number of bytes.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit]
}
