package icebergtables

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/lakestream-go/lakestream/internal/materialization"
)

// creationProperties are what a table gets unless its creator says otherwise.
var creationProperties = iceberg.Properties{
	table.PropertyFormatVersion: "2",
	// A commit reloads and checks again in our own loop; a retry inside the
	// library would skip the checks.
	table.CommitNumRetriesKey: "0",
	// Each commit writes a metadata file: keep the newest, delete the rest.
	table.MetadataDeleteAfterCommitEnabledKey: "true",
	table.MetadataPreviousVersionsMaxKey:      "20",
	// Each commit writes a manifest: fold many small ones into few, or the
	// manifest list grows with the number of commits.
	table.ManifestMergeEnabledKey:  "true",
	table.ManifestMinMergeCountKey: "50",
}

// Create implements materialization.Tables. The schema's field ids are assigned
// anew, from 1.
func (t *Tables) Create(ctx context.Context, ident materialization.Ident, schema *iceberg.Schema, properties map[string]string) (*materialization.Table, error) {
	err := t.catalog.CreateNamespace(ctx, table.Identifier{ident.Namespace}, nil)
	if err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		return nil, fmt.Errorf("creating namespace %s: %w", ident.Namespace, classifyRead(err))
	}
	merged := maps.Clone(creationProperties)
	maps.Copy(merged, properties)
	created, err := t.catalog.CreateTable(ctx, identifier(ident), schema, catalog.WithProperties(merged))
	if err != nil {
		return nil, fmt.Errorf("creating table %s: %w", ident, classifyWrite(err))
	}
	return view(ident, created), nil
}

// Evolve implements materialization.Tables.
func (t *Tables) Evolve(ctx context.Context, shown *materialization.Table, schema *iceberg.Schema) (*materialization.Table, error) {
	loaded, err := handle(shown)
	if err != nil {
		return nil, err
	}
	metadata := loaded.Metadata()
	current := metadata.CurrentSchema()
	if err := materialization.CheckEvolution(current, metadata.LastColumnID(), schema); err != nil {
		return nil, fmt.Errorf("evolving table %s: %w", shown.Ident, err)
	}
	if current.Equals(schema) {
		return shown, nil
	}
	// The last column id is asserted beside the schema id: a column that was
	// added and dropped since leaves the schema as it was, but its id is spent.
	_, _, err = t.catalog.CommitTable(ctx, identifier(shown.Ident),
		[]table.Requirement{
			table.AssertTableUUID(metadata.TableUUID()),
			table.AssertCurrentSchemaID(current.ID),
			table.AssertLastAssignedFieldID(metadata.LastColumnID()),
		},
		[]table.Update{
			table.NewAddSchemaUpdate(schema),
			table.NewSetCurrentSchemaUpdate(lastAddedSchema),
		})
	if err != nil {
		return nil, fmt.Errorf("evolving table %s: %w", shown.Ident, classifyWrite(err))
	}
	return t.Load(ctx, shown.Ident)
}

// lastAddedSchema stands in a set-current-schema update for the schema that the
// same transaction adds, whose id the catalog assigns.
const lastAddedSchema = -1
