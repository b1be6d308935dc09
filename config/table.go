package config

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// tableField returns the object that says how a stream becomes a table.
func tableField() *service.ConfigField {
	name := service.NewStringField(fieldName).Default("").LintRule(lintPattern(namePattern, wantName)).
		Description("The table's name. Empty means the stream's, with dots replaced by underscores. What cannot become a row goes to the table of this name with the suffix `_dlt`.")
	return service.NewObjectField(fieldTable, tableFields(name)...).
		Description("The stream's Iceberg table. What is set here is applied when the output connects; what is not keeps what the stream has, or is inherited from its namespace. How payloads become rows: https://github.com/lakestream-go/lakestream/blob/main/docs/tables.md")
}

// tableFields returns the fields of a table, of which only a stream's has a name.
func tableFields(name ...*service.ConfigField) []*service.ConfigField {
	fields := []*service.ConfigField{
		service.NewBoolField(fieldEnabled).Optional().
			Description("Whether the stream has a table. It has one unless it is told otherwise."),
		service.NewStringField(fieldNamespace).Default("").LintRule(lintPattern(namePattern, wantName)).
			Description("The table's namespace. Empty means the stream's, with dots replaced by underscores."),
	}
	fields = append(fields, name...)
	return append(fields,
		service.NewObjectField(fieldCommit,
			duration(fieldInterval, "Time between snapshots, by default `10s`, at least `1s`.").Optional().Example("10s"),
		).Advanced().Description("When the table gets a snapshot."),
		service.NewStringListField(fieldSystemColumns).Default([]any{}).Advanced().
			LintRule(lintOneOf("partition", "offset", "timestamp", "key", "headers")).
			Description("Columns that every row has beside its own: `partition`, `offset`, `timestamp`, `key`, `headers`, named with two underscores before. Empty means the first three; the first two are always needed.").
			Example([]string{"partition", "offset", "timestamp", "key"}),
	)
}

// table reads a table object.
func (v *values) table(path string) engine.TablePolicy {
	policy := engine.TablePolicy{
		Enabled:        v.optionalFlag(path, fieldEnabled),
		Namespace:      v.text(path, fieldNamespace),
		Name:           v.text(path, fieldName),
		CommitInterval: v.duration(path, fieldCommit, fieldInterval),
		SystemColumns:  v.list(path, fieldSystemColumns),
	}
	if err := policy.Validate(); err != nil {
		v.fail(err, path)
	}
	return policy
}
