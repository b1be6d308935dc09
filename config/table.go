package config

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// tableField returns the object that says how a stream becomes a table.
func tableField() *service.ConfigField {
	return service.NewObjectField(fieldTable,
		service.NewBoolField(fieldEnabled).Default(true).
			Description("Whether the stream has a table."),
		service.NewStringField(fieldNamespace).Default("").LintRule(lintPattern(namePattern, wantName)).
			Description("The table's namespace. Empty means the stream's, with dots replaced by underscores."),
		service.NewStringField(fieldName).Default("").LintRule(lintPattern(namePattern, wantName)).
			Description("The table's name. Empty means the stream's, with dots replaced by underscores. What cannot become a row goes to the table of this name with the suffix `_dlt`."),
		service.NewObjectField(fieldCommit,
			duration(fieldInterval, "Time between snapshots, by default `10s`, at least `1s`.").Optional().Example("10s"),
		).Advanced().Description("When the table gets a snapshot."),
		service.NewStringListField(fieldSystemColumns).Default([]any{}).Advanced().
			LintRule(lintOneOf("partition", "offset", "timestamp", "key", "headers")).
			Description("Columns that every row has beside its own: `partition`, `offset`, `timestamp`, `key`, `headers`, named with two underscores before. Empty means the first three; the first two are always needed.").
			Example([]string{"partition", "offset", "timestamp", "key"}),
	).Description("The stream's Iceberg table. What is set here is applied when the output connects; what is not keeps what the stream has. How payloads become rows: https://github.com/lakestream-go/lakestream/blob/main/docs/tables.md")
}

// table reads a table object.
func (v *values) table(path string) engine.TablePolicy {
	enabled := v.flag(path, fieldEnabled)
	policy := engine.TablePolicy{
		Enabled:        &enabled,
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
