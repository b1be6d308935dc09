package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// namespacesField returns the map of what the streams of namespaces inherit.
func namespacesField() *service.ConfigField {
	return service.NewObjectMapField(fieldNamespaces,
		service.NewObjectField(fieldTable, tableFields()...).Description("How their streams become tables."),
		retentionField("What the logs of their streams keep."),
	).Optional().Advanced().
		Description("What the streams of a namespace inherit where they do not say otherwise, by the namespace's name. It is applied when the engine starts: a namespace is created when it is absent, and what is not set keeps what it has.").
		Example(map[string]any{"shop": map[string]any{"table": map[string]any{"namespace": "lake"}, "retention": map[string]any{"time": "168h"}}})
}

// namespaces reads the map of namespacesField.
func (v *values) namespaces() map[string]engine.NamespaceConfig {
	objects := read(v, v.conf.FieldObjectMap, fieldNamespaces)
	if len(objects) == 0 {
		return nil
	}
	namespaces := make(map[string]engine.NamespaceConfig, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if _, err := engine.ParseStreamName(name + "/x"); err != nil {
			v.fail(fmt.Errorf("%q: %s", name, wantName), fieldNamespaces)
			continue
		}
		inner := values{conf: objects[name]}
		cfg := engine.NamespaceConfig{Settings: engine.Settings{Table: inner.table(fieldTable), Retention: inner.retention(fieldRetention)}}
		for _, err := range inner.errs {
			v.fail(err, fieldNamespaces, name)
		}
		namespaces[name] = cfg
	}
	return namespaces
}
