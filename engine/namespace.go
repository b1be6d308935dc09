package engine

import (
	"context"

	"github.com/lakestream-go/lakestream/internal/catalog"
)

// Types that describe what belongs to no stream.
type (
	// Namespace is what the streams of one namespace have in common.
	Namespace = catalog.Namespace
	// NamespaceConfig is what can be changed of a namespace: settings that its
	// streams inherit, and properties.
	NamespaceConfig = catalog.NamespaceConfig
	// TableCatalog is an Iceberg catalog that policies may name. It holds no
	// secrets.
	TableCatalog = catalog.TableCatalog
)

// CreateNamespace creates a namespace, or returns ErrAlreadyExists. Streams create
// theirs themselves; this is for one that is to have settings before.
func (e *Engine) CreateNamespace(ctx context.Context, name string, cfg NamespaceConfig) (Namespace, error) {
	n, err := e.catalog.CreateNamespace(ctx, name, cfg)
	return n, e.explain(ctx, err)
}

// Namespace returns a namespace, or ErrNoSuchNamespace.
func (e *Engine) Namespace(name string) (Namespace, error) { return e.catalog.LoadNamespace(name) }

// NamespaceExists reports whether there is a namespace of this name.
func (e *Engine) NamespaceExists(name string) bool { return e.catalog.NamespaceExists(name) }

// Namespaces returns every namespace, by name.
func (e *Engine) Namespaces() []Namespace { return e.catalog.Namespaces() }

// UpdateNamespace changes a namespace as edit does, which is called again when
// someone else changed it meanwhile, and returns it as it then is. Streams that do
// not say otherwise follow at once. A change that would give a table that is filled
// already another name or other system columns is ErrInvalid and names the stream.
func (e *Engine) UpdateNamespace(ctx context.Context, name string, edit func(*NamespaceConfig) error) (Namespace, error) {
	n, err := e.catalog.UpdateNamespace(ctx, name, edit)
	return n, e.explain(ctx, err)
}

// DropNamespace drops a namespace that no stream is in; ErrNamespaceNotEmpty
// otherwise. While it runs the namespace takes no streams. When it was broken off,
// call it again.
func (e *Engine) DropNamespace(ctx context.Context, name string) error {
	return e.explain(ctx, e.catalog.DropNamespace(ctx, name))
}

// Defaults returns what namespaces and streams inherit from the cluster.
func (e *Engine) Defaults() Settings { return e.catalog.Defaults() }

// UpdateDefaults changes what namespaces and streams inherit from the cluster, as
// UpdateNamespace does for one namespace.
func (e *Engine) UpdateDefaults(ctx context.Context, edit func(*Settings) error) (Settings, error) {
	settings, err := e.catalog.UpdateDefaults(ctx, edit)
	return settings, e.explain(ctx, err)
}

// RegisterTableCatalog names a table catalog, or returns ErrAlreadyExists.
func (e *Engine) RegisterTableCatalog(ctx context.Context, t TableCatalog) error {
	return e.explain(ctx, e.catalog.RegisterTableCatalog(ctx, t))
}

// UnregisterTableCatalog forgets a table catalog, or returns ErrNoSuchTableCatalog.
func (e *Engine) UnregisterTableCatalog(ctx context.Context, name string) error {
	return e.explain(ctx, e.catalog.UnregisterTableCatalog(ctx, name))
}

// TableCatalog returns a table catalog, or ErrNoSuchTableCatalog.
func (e *Engine) TableCatalog(name string) (TableCatalog, error) { return e.catalog.TableCatalog(name) }

// TableCatalogs returns every table catalog, by name.
func (e *Engine) TableCatalogs() []TableCatalog { return e.catalog.TableCatalogs() }

// defineNamespaces applies the settings of namespaces that the options name.
func (e *Engine) defineNamespaces(ctx context.Context) error {
	for name, cfg := range e.opts.Namespaces {
		if err := e.explain(ctx, e.catalog.DefineNamespace(ctx, name, cfg)); err != nil {
			return err
		}
	}
	return nil
}
