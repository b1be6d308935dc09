package icebergtables

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Commit implements materialization.Tables. It reads the footer of each added
// file, for the column statistics that the manifest carries; what the table
// holds already is not looked at.
func (t *Tables) Commit(ctx context.Context, shown *materialization.Table, update materialization.Update) (*materialization.Table, error) {
	loaded, err := handle(shown)
	if err != nil {
		return nil, err
	}
	tx, err := t.stage(ctx, loaded, update)
	if err != nil {
		// Nothing reached the catalog yet.
		return nil, fmt.Errorf("preparing commit to table %s: %w", shown.Ident, classifyRead(err))
	}
	committed, err := tx.Commit(ctx)
	if err != nil {
		return nil, fmt.Errorf("committing to table %s: %w", shown.Ident, classifyWrite(err))
	}
	return view(shown.Ident, committed), nil
}

// stage builds the one transaction of a commit: files, summary, properties and
// the assertion of the head that all this was decided on.
func (t *Tables) stage(ctx context.Context, loaded *table.Table, update materialization.Update) (*table.Transaction, error) {
	tx := loaded.NewTransaction()
	if err := tx.AssertRefSnapshotID(table.MainBranch); err != nil {
		return nil, err
	}
	if len(update.Properties) > 0 {
		if err := tx.SetProperties(update.Properties); err != nil {
			return nil, err
		}
	}
	if len(update.Files) == 0 {
		return tx, appendNothing(ctx, tx, loaded, update.Summary)
	}
	files := make([]iceberg.DataFile, 0, len(update.Files))
	for _, added := range update.Files {
		described, err := t.describe(ctx, loaded, added)
		if err != nil {
			return nil, fmt.Errorf("reading statistics of %s: %w", added.Path, err)
		}
		files = append(files, described)
	}
	return tx, tx.AddDataFiles(ctx, files, update.Summary, table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping())
}

// appendNothing stages a snapshot without files. AddDataFiles would stage none,
// and AddFiles would set a name mapping that no one keeps up to date.
func appendNothing(ctx context.Context, tx *table.Transaction, loaded *table.Table, summary map[string]string) error {
	schema, err := table.SchemaToArrowSchema(loaded.Schema(), nil, true, false)
	if err != nil {
		return err
	}
	nothing, err := array.NewRecordReader(schema, nil)
	if err != nil {
		return err
	}
	defer nothing.Release()
	return tx.Append(ctx, nothing, summary)
}

// describe makes the manifest entry of a file from its footer.
func (t *Tables) describe(ctx context.Context, loaded *table.Table, added materialization.DataFile) (iceberg.DataFile, error) {
	footer, size, err := t.footer(ctx, added.Path)
	if err != nil {
		return nil, err
	}
	if size != added.Size || footer.NumRows != added.Rows {
		return nil, fmt.Errorf("%w: the file has %d bytes and %d rows, its record says %d and %d",
			base.ErrCorrupt, size, footer.NumRows, added.Size, added.Rows)
	}
	return table.DataFileFromMetadata(table.DataFileArgs{
		Schema:        loaded.Schema(),
		Spec:          loaded.Spec(),
		Format:        iceberg.ParquetFile,
		Metadata:      footer,
		FilePath:      added.Path,
		FileSize:      added.Size,
		Content:       iceberg.EntryContentData,
		SortOrderID:   loaded.SortOrder().OrderID(),
		Properties:    loaded.Properties(),
		FormatVersion: loaded.Metadata().Version(),
	})
}

func (t *Tables) footer(ctx context.Context, path string) (_ *metadata.FileMetaData, size int64, err error) {
	opened, err := t.OpenFile(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	reader, err := file.NewParquetReader(opened)
	if err != nil {
		return nil, 0, base.WithClass(base.ErrCorrupt, err)
	}
	return reader.MetaData(), opened.Size(), nil
}

// fileSystem returns the library's file system for a location.
func (t *Tables) fileSystem(ctx context.Context, path string) (iceio.IO, error) {
	files, err := iceio.LoadFS(ctx, t.properties, path)
	if err != nil {
		return nil, base.WithClass(base.ErrInvalid, err)
	}
	return files, nil
}

// fileError marks an error of a file system with the class that it belongs to.
func fileError(err error) error {
	switch {
	case err == nil:
		return nil
	case classed(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return base.WithClass(base.ErrNotFound, err)
	case errors.Is(err, fs.ErrExist):
		return base.WithClass(base.ErrExists, err)
	default:
		return base.WithClass(base.ErrUnavailable, err)
	}
}

// isRequirement reports whether a catalog refused a transaction because one of
// its assertions does not hold. The library has no sentinel for it.
func isRequirement(err error) bool {
	return strings.Contains(strings.ToLower(err.Error()), "requirement failed")
}
