package config

import (
	"fmt"
	"reflect"
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
	if opts, err = ParseEngine(main.Namespace(ComponentName)); err != nil {
		return opts, fmt.Errorf("%s: %w", ComponentName, err)
	}
	return opts, nil
}

// unsetEngine is the engine object that Benthos makes up for a component without one.
var unsetEngine = sync.OnceValues(func() (any, error) {
	conf, err := service.NewConfigSpec().Field(engineField()).ParseYAML("{}", nil)
	if err != nil {
		return nil, fmt.Errorf("parsing an empty engine: %w", err)
	}
	return conf.FieldAny(fieldEngine)
})

// hasEngine reports whether anything is set in a component's engine object.
func hasEngine(conf *service.ParsedConfig) (bool, error) {
	unset, err := unsetEngine()
	if err != nil {
		return false, err
	}
	object, err := conf.FieldAny(fieldEngine)
	return !reflect.DeepEqual(object, unset), err
}

// parseEngineOf returns the options of a component's own engine, or nil when it
// takes the top-level one.
func parseEngineOf(conf *service.ParsedConfig) (*engine.Options, error) {
	set, err := hasEngine(conf)
	if err != nil || !set {
		return nil, err
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
