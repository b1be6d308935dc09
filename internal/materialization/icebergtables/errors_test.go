package icebergtables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestOnlyAnErrorThatProvesItIsDefinite(t *testing.T) {
	requirement := table.AssertTableUUID(uuid.New()).Validate(nil)
	for name, story := range map[string]struct{ err, write, read error }{
		"the head moved":             {table.ErrCommitFailed, base.ErrConflict, base.ErrConflict},
		"an assertion does not hold": {requirement, base.ErrConflict, base.ErrConflict},
		"no table":                   {catalog.ErrNoSuchTable, base.ErrNotFound, base.ErrNotFound},
		"no namespace":               {catalog.ErrNoSuchNamespace, base.ErrNotFound, base.ErrNotFound},
		"a table is there":           {catalog.ErrTableAlreadyExists, base.ErrExists, base.ErrExists},
		"a bad name":                 {catalog.ErrInvalidIdentifier, base.ErrInvalid, base.ErrInvalid},
		"the database is locked":     {busy(t), base.ErrUnavailable, base.ErrUnavailable},
		"the time ran out":           {context.DeadlineExceeded, base.ErrUnknown, base.ErrUnavailable},
		"the connection broke":       {errors.New("unexpected EOF"), base.ErrUnknown, base.ErrUnavailable},
	} {
		wrapped := fmt.Errorf("doing something: %w", story.err)
		require.ErrorIs(t, classifyWrite(wrapped), story.write, name)
		require.ErrorIs(t, classifyRead(wrapped), story.read, name)
		require.ErrorIs(t, classifyWrite(wrapped), story.err, "the cause stays")
	}
	require.NotErrorIs(t, classifyRead(base.ErrCorrupt), base.ErrUnavailable, "what has a class keeps it")
}

// busy makes SQLite refuse a lock.
func busy(t *testing.T) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "busy.db")
	holder, err := sql.Open("sqlite", dataSource(path))
	require.NoError(t, err)
	waiter, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(0)&_txlock=immediate")
	require.NoError(t, err)
	tx, err := holder.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, refused := waiter.BeginTx(t.Context(), nil)
	require.Error(t, refused)
	require.NoError(t, tx.Rollback())
	require.NoError(t, errors.Join(holder.Close(), waiter.Close()))
	return refused
}
