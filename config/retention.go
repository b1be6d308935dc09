package config

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// unlimited is what keeps everything.
const unlimited = "unlimited"

// retentionField returns the object that says what the logs of a stream, or of a
// namespace's streams, keep.
func retentionField(description string) *service.ConfigField {
	return service.NewObjectField(fieldRetention,
		service.NewStringField(fieldTime).Optional().LintRule(lintPattern(spanPattern, wantSpan)).
			Description("How old a record may get before its log may give it up: a duration, or `unlimited`, which it is unless it is told otherwise.").Example("168h"),
		service.NewStringField(fieldBytes).Optional().LintRule(lintPattern(amountPattern, wantAmount)).
			Description("How much a partition keeps at least, as stored; what is older may go. A size, or `unlimited`, which it is unless it is told otherwise.").Example("10GiB"),
		duration(fieldWaitForTables, "How much longer records are kept because their table lacks them, by default `168h`. Beyond that they go, and the table has a gap, which is told.").Optional(),
		service.NewBoolField(fieldWaitForGroups).Optional().Advanced().
			Description("Whether records are kept until every consumer group of the stream has read them."),
	).Advanced().Description(description)
}

// retention reads a retention object.
func (v *values) retention(path string) engine.Retention {
	return engine.Retention{
		Time: v.span(path, fieldTime), Bytes: v.amount(path, fieldBytes),
		WaitForTables: v.optionalDuration(path, fieldWaitForTables), WaitForGroups: v.optionalFlag(path, fieldWaitForGroups),
	}
}

// span reads how long something is kept; nil when it is not set.
func (v *values) span(path ...string) *time.Duration {
	text := v.text(path...)
	switch text {
	case "":
		return nil
	case unlimited:
		return new(time.Duration(engine.Unlimited))
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 0 && d < time.Millisecond {
		v.fail(fmt.Errorf("%q: %s", text, wantSpan), path...)
		return nil
	}
	return &d
}

// amount reads how much is kept; nil when it is not set.
func (v *values) amount(path ...string) *int64 {
	text := v.text(path...)
	switch text {
	case "":
		return nil
	case unlimited:
		return new(int64(engine.Unlimited))
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		v.fail(fmt.Errorf("%q: %s", text, wantAmount), path...)
		return nil
	}
	return new(int64(n))
}

// optionalDuration reads a time span; nil when it is not set.
func (v *values) optionalDuration(path ...string) *time.Duration {
	text := v.text(path...)
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		v.fail(fmt.Errorf("%q: %s", text, wantDuration), path...)
	}
	return &d
}

// optionalFlag reads a flag; nil when it is not set.
func (v *values) optionalFlag(path ...string) *bool {
	if !v.conf.Contains(path...) {
		return nil
	}
	return new(v.flag(path...))
}
