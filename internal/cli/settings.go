package cli

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/lakestream-go/lakestream/engine"
)

// propertyPrefix begins the keys of properties.
const propertyPrefix = "property."

// assignment is one KEY=VALUE of a command. No value makes the key unset.
type assignment struct{ key, value string }

// setters make what a key says hold.
var setters = map[string]func(s *engine.Settings, value string) error{
	"retention.time": func(s *engine.Settings, v string) (err error) {
		s.Retention.Time, err = optional(v, parseSpan)
		return err
	},
	"retention.bytes": func(s *engine.Settings, v string) (err error) {
		s.Retention.Bytes, err = optional(v, parseSize)
		return err
	},
	"retention.wait_for_tables": func(s *engine.Settings, v string) (err error) {
		s.Retention.WaitForTables, err = optional(v, time.ParseDuration)
		return err
	},
	"retention.wait_for_groups": func(s *engine.Settings, v string) (err error) {
		s.Retention.WaitForGroups, err = optional(v, strconv.ParseBool)
		return err
	},
	"table.enabled": func(s *engine.Settings, v string) (err error) {
		s.Table.Enabled, err = optional(v, strconv.ParseBool)
		return err
	},
	"table.namespace": func(s *engine.Settings, v string) error {
		s.Table.Namespace = v
		return nil
	},
	"table.name": func(s *engine.Settings, v string) error {
		s.Table.Name = v
		return nil
	},
	"table.commit.interval": func(s *engine.Settings, v string) error {
		interval, err := optional(v, time.ParseDuration)
		s.Table.CommitInterval = 0
		if interval != nil {
			s.Table.CommitInterval = *interval
		}
		return err
	},
	"table.system_columns": func(s *engine.Settings, v string) error {
		s.Table.SystemColumns = nil
		if v != "" {
			s.Table.SystemColumns = strings.Split(v, ",")
		}
		return nil
	},
}

// settingsHelp lists the keys for the help of a command.
func settingsHelp() string {
	return "Keys: " + strings.Join(slices.Sorted(maps.Keys(setters)), ", ") + ", and property.NAME. " +
		"Times are like 168h and sizes like 10GiB, or unlimited. A key without a value (KEY=) is inherited again."
}

// optional parses a value, none of an empty one.
func optional[T any](value string, parse func(string) (T, error)) (*T, error) {
	if value == "" {
		return nil, nil //nolint:nilnil // unset
	}
	parsed, err := parse(value)
	if err != nil {
		return nil, err
	}
	return &parsed, nil
}

// parseSpan reads how long something is kept.
func parseSpan(text string) (time.Duration, error) {
	if text == "unlimited" {
		return engine.Unlimited, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want a duration like 168h, or unlimited", text)
	}
	return d, nil
}

// parseSize reads how much is kept.
func parseSize(text string) (int64, error) {
	if text == "unlimited" {
		return engine.Unlimited, nil
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q: want a size like 10GiB, or unlimited", text)
	}
	return int64(n), nil
}

// parseAssignments reads KEY=VALUE arguments, each key once.
func parseAssignments(args []string) ([]assignment, error) {
	var all []assignment
	for _, arg := range args {
		key, value, found := strings.Cut(arg, "=")
		property, isProperty := strings.CutPrefix(key, propertyPrefix)
		switch {
		case !found:
			return nil, usagef("%q: want KEY=VALUE", arg)
		case !isProperty && setters[key] == nil, isProperty && property == "":
			return nil, usagef("%q is no key. %s", key, settingsHelp())
		case slices.ContainsFunc(all, func(a assignment) bool { return a.key == key }):
			return nil, usagef("%s is given twice", key)
		}
		all = append(all, assignment{key, value})
	}
	return all, nil
}

// applySettings makes the assignments hold, but for those of properties.
func applySettings(all []assignment, s *engine.Settings) error {
	for _, a := range all {
		if set := setters[a.key]; set != nil {
			if err := set(s, a.value); err != nil {
				return usagef("%s: %w", a.key, err)
			}
		}
	}
	return nil
}

// applyProperties makes the assignments of properties hold, and reports whether
// there are any.
func applyProperties(all []assignment, properties map[string]string) (some bool) {
	for _, a := range all {
		name, isProperty := strings.CutPrefix(a.key, propertyPrefix)
		switch {
		case !isProperty:
		case a.value == "":
			some = true
			delete(properties, name)
		default:
			some = true
			properties[name] = a.value
		}
	}
	return some
}

// settingsOf lists what is set, as set takes it, in pairs.
func settingsOf(s engine.Settings, properties map[string]string) []string {
	var pairs []string
	add := func(key, value string) { pairs = append(pairs, key, value) }
	if s.Retention.Time != nil {
		add("retention.time", span(*s.Retention.Time))
	}
	if s.Retention.Bytes != nil {
		add("retention.bytes", limit(*s.Retention.Bytes))
	}
	if s.Retention.WaitForTables != nil {
		add("retention.wait_for_tables", s.Retention.WaitForTables.String())
	}
	if s.Retention.WaitForGroups != nil {
		add("retention.wait_for_groups", strconv.FormatBool(*s.Retention.WaitForGroups))
	}
	if s.Table.Enabled != nil {
		add("table.enabled", strconv.FormatBool(*s.Table.Enabled))
	}
	add("table.namespace", s.Table.Namespace)
	add("table.name", s.Table.Name)
	if s.Table.CommitInterval != 0 {
		add("table.commit.interval", s.Table.CommitInterval.String())
	}
	add("table.system_columns", strings.Join(s.Table.SystemColumns, ","))
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		add(propertyPrefix+key, properties[key])
	}
	return pairs
}

// settingsMap is settingsOf for JSON.
func settingsMap(s engine.Settings, properties map[string]string) map[string]string {
	all := make(map[string]string)
	pairs := settingsOf(s, properties)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all[pairs[i]] = pairs[i+1]
		}
	}
	return all
}

// span renders how long something is kept.
func span(d time.Duration) string {
	if d < 0 {
		return "unlimited"
	}
	return d.String()
}

// limit renders how much is kept.
func limit(bytes int64) string {
	if bytes < 0 {
		return "unlimited"
	}
	return size(bytes)
}
