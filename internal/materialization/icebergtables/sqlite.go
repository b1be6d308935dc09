package icebergtables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/iceberg-go"
	sqlcatalog "github.com/apache/iceberg-go/catalog/sql"
	_ "modernc.org/sqlite" // the driver that openSQL names

	"github.com/lakestream-go/lakestream/internal/base"
)

// busyTimeoutMillis is how long a SQLite transaction waits for another process
// before it is base.ErrUnavailable.
const busyTimeoutMillis = "10000"

// maxConnections bounds the connections to one SQLite file. Writers wait for
// each other anyway.
const maxConnections = 4

func openSQL(ctx context.Context, config Config) (*Tables, error) {
	path := strings.TrimPrefix(config.URI, "sqlite://")
	if path == "" || strings.Contains(path, "://") {
		return nil, fmt.Errorf("%w: sql catalog uri %q: want the path of a SQLite file", base.ErrInvalid, config.URI)
	}
	if err := createPrivate(path); err != nil {
		return nil, fmt.Errorf("creating catalog %s: %w", path, fileError(err))
	}
	db, err := sql.Open("sqlite", dataSource(path))
	if err != nil {
		return nil, fmt.Errorf("opening catalog %s: %w", path, err)
	}
	db.SetMaxOpenConns(maxConnections)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening catalog %s: %w", path, classifyRead(err)), db.Close())
	}
	name := config.Name
	if name == "" {
		name = DefaultName
	}
	properties := iceberg.Properties{}
	maps.Copy(properties, config.Properties)
	properties["warehouse"] = config.Warehouse
	opened, err := sqlcatalog.NewCatalog(name, db, sqlcatalog.SQLite, properties)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening catalog %s: %w", path, classifyRead(err)), db.Close())
	}
	return &Tables{catalog: opened, properties: properties, close: db}, nil
}

// dataSource names the file and how each connection uses it: a write-ahead log,
// so that readers and a writer do not wait for each other; an fsync for each
// commit; the write lock taken when a transaction begins, so that two writers
// wait instead of failing when the second upgrades.
func dataSource(path string) string {
	options := url.Values{}
	options.Add("_pragma", "busy_timeout("+busyTimeoutMillis+")")
	options.Add("_pragma", "journal_mode(WAL)")
	options.Add("_pragma", "synchronous(FULL)")
	options.Set("_txlock", "immediate")
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}).String()
}

// createPrivate makes the database file, readable by its owner only, before
// SQLite would make it with the process's mask. Its log files inherit the mode.
func createPrivate(path string) error {
	if err := makeDirectories(filepath.Dir(path), privateDirectory); err != nil {
		return err
	}
	created, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, privateFile) //nolint:gosec // the path is the operator's
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(created.Close(), syncDirectory(filepath.Dir(path)))
}
