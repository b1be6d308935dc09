package main

import (
	"bytes"
	_ "embed" // the template
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
)

// page is what the template shows.
type page struct {
	Title, Summary, Description string
	Common, Advanced            string
	Fields                      []service.TemplateDataPluginField
	Examples                    []service.TemplatDataPluginExample
}

//go:embed page.md.tmpl
var pageTemplate string

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"trim": strings.TrimSpace, "type": fieldType, "text": plain, "yaml": withoutZeros,
}).Parse(pageTemplate))

// fieldType says what a field takes.
func fieldType(f service.TemplateDataPluginField) string {
	if f.IsInterpolated {
		return f.Type + ", interpolated"
	}
	return f.Type
}

var (
	benthosLink = regexp.MustCompile(`xref:[^\[]*\[([^\]]*)\]`)
	unset       = regexp.MustCompile(`(?m)^( *)([a-z_]+):.*# No default \(optional\)$`)
)

// plain leaves of Benthos's references to its own documents their text.
func plain(text string) string {
	return strings.TrimSpace(benthosLink.ReplaceAllString(text, "$1"))
}

// withoutZeros comments out fields that have no default: Benthos shows them with a
// zero value, which is not what holds without them.
func withoutZeros(text string) string {
	return strings.TrimSpace(unset.ReplaceAllString(text, "$1# $2:"))
}

// render returns every page by its file name.
func render() (map[string][]byte, error) {
	env := service.NewEnvironment()
	if err := register(env); err != nil {
		return nil, err
	}
	out, err := component(env.WalkOutputs, config.ComponentName)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	in, err := component(env.WalkInputs, config.ComponentName)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	kafka, err := component(env.WalkInputs, config.KafkaComponentName)
	if err != nil {
		return nil, fmt.Errorf("input kafka: %w", err)
	}
	block, err := engineBlock(env)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	texts := make(map[string][]byte)
	for name, p := range map[string]page{"output.md": out, "input.md": in, "kafka.md": kafka, "engine.md": block} {
		var text bytes.Buffer
		if err := pages.Execute(&text, p); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		texts[name] = text.Bytes()
	}
	return texts, nil
}

// register gives the specs to an environment in which nothing can run.
func register(env *service.Environment) error {
	err := env.RegisterBatchOutput(config.ComponentName, config.OutputSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			return nil, service.BatchPolicy{}, 0, fmt.Errorf("an output of documentation")
		})
	if err != nil {
		return err
	}
	input := func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
		return nil, fmt.Errorf("an input of documentation")
	}
	if err := env.RegisterBatchInput(config.ComponentName, config.InputSpec(), input); err != nil {
		return err
	}
	return env.RegisterBatchInput(config.KafkaComponentName, config.KafkaInputSpec(), input)
}

// component makes the page of the input or output of a name, found among those that
// walk shows. The fields of the engine have a page of their own.
func component(walk func(func(string, *service.ConfigView)), name string) (page, error) {
	var view *service.ConfigView
	walk(func(one string, v *service.ConfigView) {
		if one == name {
			view = v
		}
	})
	data, err := view.TemplateData()
	if err != nil {
		return page{}, err
	}
	p := page{
		Title: data.Type + ": " + data.Name, Summary: data.Summary, Description: data.Description,
		Common: data.CommonConfigYAML, Advanced: data.AdvancedConfigYAML, Examples: data.Examples,
	}
	for _, f := range data.Fields {
		if !strings.HasPrefix(f.FullName, "engine.") {
			p.Fields = append(p.Fields, f)
		}
	}
	return p, nil
}

const engineDescription = "The block stands at the top level of a pipeline's file for the `lakestream` binary; in streams mode, in the file that `-o` names. The same object may stand in a component as `engine`, in any distribution of Benthos that has the components, and then replaces the block whole. Without either the defaults hold: everything is in one directory."

// engineBlock makes the page of the top-level block.
func engineBlock(env *service.Environment) (page, error) {
	schema := env.CoreConfigSchema("", "").Field(service.NewObjectField(config.ComponentName, config.EngineFields()...))
	data, err := schema.TemplateData(config.ComponentName)
	if err != nil {
		return page{}, err
	}
	return page{
		Title: "engine", Summary: "Where an engine keeps its data and what it may use.", Description: engineDescription,
		Common: data.CommonConfigYAML, Advanced: data.AdvancedConfigYAML, Fields: data.Fields,
	}, nil
}
