package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/lakestream-go/lakestream/engine"
)

// Selection is what to read of one stream, or of all whose names match.
type Selection struct {
	engine.Selection

	// Start overrides where to begin; nil means no override.
	Start *engine.Position
}

// ParseSelection reads namespace/name, namespace/name:0-3 or namespace/name:0:100;
// one partition may be written alone, and a range may have a start offset.
func ParseSelection(text string) (Selection, error) {
	parts := strings.Split(text, ":")
	wrong := fmt.Errorf("%q: %s", text, wantSelector)
	if len(parts) > 3 {
		return Selection{}, wrong
	}
	name, err := engine.ParseStreamName(parts[0])
	if err != nil {
		return Selection{}, wrong
	}
	s := Selection{Selection: engine.Selection{Stream: name, All: len(parts) == 1}}
	if len(parts) > 1 {
		first, last, isRange := strings.Cut(parts[1], "-")
		if !isRange {
			last = first
		}
		var errs [2]error
		s.First, errs[0] = parsePartition(first)
		s.Last, errs[1] = parsePartition(last)
		if errors.Join(errs[:]...) != nil || s.First > s.Last {
			return Selection{}, wrong
		}
	}
	if len(parts) > 2 {
		start, err := engine.ParsePosition(parts[2])
		if err != nil || start.Kind != engine.AtOffset {
			return Selection{}, wrong
		}
		s.Start = &start
	}
	return s, nil
}

func parsePartition(text string) (engine.Partition, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err == nil && n >= engine.MaxPartitions {
		err = strconv.ErrRange
	}
	return engine.Partition(n), err
}

// parsePatterns reads regular expressions that match whole full names.
func parsePatterns(texts []string) ([]Selection, error) {
	if len(texts) == 0 {
		return nil, errors.New("empty: want regular expressions that match full names, namespace/name")
	}
	selections := make([]Selection, len(texts))
	for i, text := range texts {
		pattern, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			return nil, err
		}
		selections[i] = Selection{Selection: engine.Selection{Pattern: pattern, All: true}}
	}
	return selections, nil
}

// parseSelections reads a list and refuses what would deliver a record twice.
func parseSelections(texts []string) ([]Selection, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("empty: %s", wantSelector)
	}
	selections := make([]Selection, len(texts))
	for i, text := range texts {
		s, err := ParseSelection(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		for j, other := range selections[:i] {
			if s.overlaps(other) {
				return nil, fmt.Errorf("%q and %q: name each partition once", texts[j], text)
			}
		}
		selections[i] = s
	}
	return selections, nil
}

func (s Selection) overlaps(o Selection) bool {
	return s.Stream == o.Stream && (s.All || o.All || s.First <= o.Last && o.First <= s.Last)
}
