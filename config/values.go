package config

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// values reads fields of a parsed configuration and gathers what is wrong, so that
// a user learns of every mistake at once. A field that is not set reads as zero.
type values struct {
	conf *service.ParsedConfig
	errs []error
}

func (v *values) fail(err error, path ...string) {
	v.errs = append(v.errs, fmt.Errorf("%s: %w", strings.Join(path, "."), err))
}

// err returns everything that was wrong, as engine.ErrInvalid.
func (v *values) err() error {
	if len(v.errs) == 0 {
		return nil
	}
	return invalid{errors.Join(v.errs...)}
}

// invalid marks an error as one of configuration, keeping its text.
type invalid struct{ error }

func (e invalid) Unwrap() []error { return []error{engine.ErrInvalid, e.error} }

// read reads one field with a method of the configuration.
func read[T any](v *values, field func(...string) (T, error), path ...string) T {
	var zero T
	if !v.conf.Contains(path...) {
		return zero
	}
	value, err := field(path...)
	if err != nil {
		v.fail(err, path...)
		return zero
	}
	return value
}

func (v *values) text(path ...string) string { return read(v, v.conf.FieldString, path...) }
func (v *values) flag(path ...string) bool   { return read(v, v.conf.FieldBool, path...) }
func (v *values) list(path ...string) []string {
	return read(v, v.conf.FieldStringList, path...)
}

func (v *values) interpolated(path ...string) *service.InterpolatedString {
	return read(v, v.conf.FieldInterpolatedString, path...)
}

// count reads a whole number from 1 on.
func (v *values) count(path ...string) int {
	n := read(v, v.conf.FieldInt, path...)
	if n < 1 && v.conf.Contains(path...) {
		v.fail(fmt.Errorf("%d: want at least 1", n), path...)
	}
	return n
}

// size reads a number of bytes, more than none.
func (v *values) size(path ...string) int64 {
	text := v.text(path...)
	if text == "" {
		return 0
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		v.fail(fmt.Errorf("%q: %s", text, wantSize), path...)
		return 0
	}
	return int64(n)
}

// duration reads a time span, longer than none.
func (v *values) duration(path ...string) time.Duration {
	text := v.text(path...)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		v.fail(fmt.Errorf("%q: %s", text, wantDuration), path...)
		return 0
	}
	return d
}
