package plugin

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func init() {
	if err := Register(service.GlobalEnvironment()); err != nil {
		panic(err) // a component of this name exists: two builds of this package
	}
}

// Register adds the components to an environment of the caller's. The global one
// has them already.
func Register(env *service.Environment) error {
	if err := env.RegisterBatchOutput(config.ComponentName, config.OutputSpec(), buildOutput); err != nil {
		return err
	}
	return env.RegisterBatchInput(config.ComponentName, config.InputSpec(), buildInput)
}

func buildOutput(conf *service.ParsedConfig, resources *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
	parsed, err := config.ParseOutput(conf)
	if err != nil {
		return nil, service.BatchPolicy{}, 0, err
	}
	if err := checkEngine(parsed.Engine); err != nil {
		return nil, service.BatchPolicy{}, 0, err
	}
	return newOutput(parsed, resources.Logger(), engine.SystemClock{}), parsed.Batching, parsed.MaxInFlight, nil
}

func buildInput(conf *service.ParsedConfig, resources *service.Resources) (service.BatchInput, error) {
	parsed, err := config.ParseInput(conf)
	if err != nil {
		return nil, err
	}
	if err := checkEngine(parsed.Engine); err != nil {
		return nil, err
	}
	return newInput(parsed, resources.Logger(), engine.SystemClock{}), nil
}

// checkEngine refuses, before a pipeline starts, an engine that could never open:
// Benthos repeats Connect for ever.
func checkEngine(own *engine.Options) error {
	opts := config.EngineOptions(own)
	return opts.Check()
}
