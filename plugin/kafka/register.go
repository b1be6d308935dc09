package kafka

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func init() {
	if err := Register(service.GlobalEnvironment()); err != nil {
		panic(err) // an input of this name exists: two builds of this package
	}
}

// Register adds the input to an environment of the caller's. The global one has it
// already.
func Register(env *service.Environment) error {
	return env.RegisterBatchInput(config.KafkaComponentName, config.KafkaInputSpec(),
		func(conf *service.ParsedConfig, resources *service.Resources) (service.BatchInput, error) {
			parsed, err := config.ParseKafkaInput(conf)
			if err != nil {
				return nil, err
			}
			return newInput(parsed, resources.Logger(), engine.SystemClock{})
		})
}
