package materialization

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Row is one row of a table for people to read: each column's value as JSON.
type Row map[string]json.RawMessage

// Head returns up to limit rows of a loaded table, in no promised order. columns
// are chosen as in Scanner.Scan. limit must be above 0.
func Head(ctx context.Context, scanner Scanner, table *Table, columns []string, limit int) ([]Row, error) {
	var rows []Row
	for batch, err := range scanner.Scan(ctx, table, columns, int64(limit)) {
		if err != nil {
			return nil, err
		}
		if rows, err = appendRows(rows, batch); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// appendRows renders the rows of a batch. The text is a copy: the batch is gone
// when the iteration moves on.
func appendRows(rows []Row, batch arrow.RecordBatch) ([]Row, error) {
	for i := range int(batch.NumRows()) {
		row := make(Row, batch.NumCols())
		for c, column := range batch.Columns() {
			text, err := json.Marshal(column.GetOneForMarshal(i))
			if err != nil {
				return nil, fmt.Errorf("rendering column %s: %w", batch.ColumnName(c), err)
			}
			row[batch.ColumnName(c)] = text
		}
		rows = append(rows, row)
	}
	return rows, nil
}
