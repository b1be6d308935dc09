package config

import (
	"fmt"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// topLevel is what the process's own block says; the zero value is the default.
// Benthos hands the main configuration to the program and not to components, so
// that what they share must be kept for the process.
var topLevel struct {
	mu sync.Mutex
	// opts is guarded by mu.
	opts engine.Options
}

// SetTopLevel takes the top-level block from a process's main configuration, whose
// schema has TopLevelField. Without the block the defaults hold.
func SetTopLevel(main *service.ParsedConfig) error {
	opts, err := parseTopLevel(main)
	if err != nil {
		return err
	}
	topLevel.mu.Lock()
	defer topLevel.mu.Unlock()
	topLevel.opts = opts
	return nil
}

func parseTopLevel(main *service.ParsedConfig) (opts engine.Options, err error) {
	if !isSet(main, ComponentName) {
		return opts, nil
	}
	if opts, err = ParseEngine(main.Namespace(ComponentName)); err != nil {
		return opts, fmt.Errorf("%s: %w", ComponentName, err)
	}
	return opts, nil
}

// isSet reports whether an object is in the configuration. Benthos makes up an
// object that is absent from the defaults of its fields, unless its own is null.
func isSet(conf *service.ParsedConfig, field string) bool {
	object, err := conf.FieldAny(field)
	return err == nil && object != nil
}

// parseEngineOf returns the options of a component's own engine, or nil when it
// takes the top-level one.
func parseEngineOf(conf *service.ParsedConfig) (*engine.Options, error) {
	if !isSet(conf, fieldEngine) {
		return nil, nil //nolint:nilnil // no engine of its own is no error
	}
	opts, err := ParseEngine(conf.Namespace(fieldEngine))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fieldEngine, err)
	}
	return &opts, nil
}

// EngineOptions returns a component's own options, or those of the top-level
// block. Call it when connecting: the block is known by then.
func EngineOptions(own *engine.Options) engine.Options {
	if own != nil {
		return *own
	}
	topLevel.mu.Lock()
	defer topLevel.mu.Unlock()
	return topLevel.opts
}
