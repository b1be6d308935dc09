package config

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// maxPipelineBytes bounds what is read as a configuration file.
const maxPipelineBytes = 16 << 20

// variable is a reference to the environment as Benthos writes it: ${NAME} or
// ${NAME:default}.
var variable = regexp.MustCompile(`\$\{([0-9A-Za-z_.]+)(:((?:\$\{[^}]+\}|[^}])*))?\}`)

// LoadPipeline reads a pipeline's configuration file and returns the options of
// the engine that its lakestream components use: their own, else that of the
// top-level block, else the default. A file that cannot be read or names several
// engines is engine.ErrInvalid.
func LoadPipeline(path string) (engine.Options, error) {
	info, err := os.Stat(path)
	if err != nil {
		return engine.Options{}, fmt.Errorf("%w: %w", engine.ErrInvalid, err)
	}
	if info.Size() > maxPipelineBytes {
		return engine.Options{}, fmt.Errorf("%w: the file has %d bytes: want at most %d", engine.ErrInvalid, info.Size(), maxPipelineBytes)
	}
	data, err := os.ReadFile(path) //nolint:gosec // the path is the user's
	if err != nil {
		return engine.Options{}, fmt.Errorf("%w: %w", engine.ErrInvalid, err)
	}
	return ParsePipeline(data)
}

// ParsePipeline is LoadPipeline for the content of a file. Lakestream's components
// must be registered with Benthos.
func ParsePipeline(data []byte) (engine.Options, error) {
	data, err := expand(data, os.LookupEnv)
	if err != nil {
		return engine.Options{}, err
	}
	main, err := service.NewConfigSpec().Field(TopLevelField()).ParseYAML(string(data), nil)
	if err != nil {
		return engine.Options{}, fmt.Errorf("%w: %w", engine.ErrInvalid, err)
	}
	shared, err := parseTopLevel(main)
	if err != nil {
		return engine.Options{}, err
	}
	found, err := componentEngines(data, shared)
	switch {
	case err != nil:
		return engine.Options{}, err
	case len(found) == 0:
		return shared, nil
	case len(found) > 1:
		return engine.Options{}, fmt.Errorf("%w: its components use %d engines: name the one that is meant by its data directory, or in a file of its own",
			engine.ErrInvalid, len(found))
	}
	return found[0], nil
}

// componentEngines returns the different engines of a pipeline's components.
func componentEngines(data []byte, shared engine.Options) (found []engine.Options, err error) {
	walker := service.GlobalEnvironment().FullConfigSchema("", "").NewStreamConfigWalker()
	spec := service.NewConfigSpec().Field(service.NewObjectField(ComponentName, engineField()))
	err = walker.WalkComponentsYAML(data, func(w *service.WalkedComponent) error {
		if w.Name != ComponentName {
			return nil
		}
		conf, err := spec.ParseYAML(w.ConfigYAML(), nil)
		if err != nil {
			return fmt.Errorf("%s: %w", w.Path, err)
		}
		own, err := parseEngineOf(conf.Namespace(ComponentName))
		if err != nil {
			return fmt.Errorf("%s: %w", w.Path, err)
		}
		opts := shared
		if own != nil {
			opts = *own
		}
		for _, known := range found {
			if reflect.DeepEqual(known, opts) {
				return nil
			}
		}
		found = append(found, opts)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", engine.ErrInvalid, err)
	}
	return found, nil
}

// expand replaces references to the environment. One that is not set and has no
// default is an error: what it names would silently be something else.
func expand(data []byte, lookup func(string) (string, bool)) ([]byte, error) {
	var missing []string
	expanded := variable.ReplaceAllFunc(data, func(reference []byte) []byte {
		parts := variable.FindSubmatch(reference)
		value, ok := lookup(string(parts[1]))
		switch {
		case len(parts[2]) > 0 && value == "":
			return parts[3]
		case !ok:
			missing = append(missing, string(parts[1]))
		}
		return bytes.ReplaceAll([]byte(value), []byte("\n"), []byte(`\n`))
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: environment variables that it refers to are not set: %s", engine.ErrInvalid, strings.Join(missing, ", "))
	}
	return expanded, nil
}
