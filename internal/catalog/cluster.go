package catalog

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Defaults returns what namespaces and streams inherit from the cluster.
func (c *Catalog) Defaults() Settings {
	now := c.clusterPolicy()
	return settingsOf(now.Policy, now.Retention)
}

func (c *Catalog) clusterPolicy() (now shard.ClusterPolicy) {
	c.meta.Inspect(func(s *shard.State) { now = s.ClusterPolicy() })
	return now
}

// UpdateDefaults changes what namespaces and streams inherit from the cluster, as
// edit does, which is called again when someone else changed it meanwhile. It is
// refused as UpdateNamespace is.
func (c *Catalog) UpdateDefaults(ctx context.Context, edit func(*Settings) error) (Settings, error) {
	fail := func(err error) (Settings, error) { return Settings{}, fmt.Errorf("cluster defaults: %w", err) }
	if err := needVersion(2, c.meta); err != nil {
		return fail(err)
	}
	for range maxChanges {
		now := c.clusterPolicy()
		settings := settingsOf(now.Policy, now.Retention)
		if err := edit(&settings); err != nil {
			return fail(err)
		}
		if err := settings.validateInherited(); err != nil {
			return fail(err)
		}
		policy, retention := settings.Table.encode(), settings.Retention.encode()
		if proto.Equal(policy, now.Policy) && proto.Equal(retention, now.Retention) {
			return settings, nil
		}
		if err := c.checkStreams(c.Inherited().withDefaults(settings)); err != nil {
			return fail(err)
		}
		out, err := c.meta.Publish(ctx, &commitpb.ClusterUpdate{ExpectedVersion: now.Version, Table: policy, Retention: retention})
		switch {
		case err != nil:
			return fail(err)
		case out.OK():
			return c.Defaults(), nil
		case out.Rejected != shard.VersionChanged:
			return fail(refusal(out.Rejected))
		}
	}
	return fail(fmt.Errorf("others keep changing them: %w", base.ErrConflict))
}

// TableCatalog is an Iceberg catalog that policies may name. It holds no secrets.
type TableCatalog struct {
	Name, Type             string
	Connection, Properties map[string]string
}

// RegisterTableCatalog names a table catalog, or returns ErrAlreadyExists.
func (c *Catalog) RegisterTableCatalog(ctx context.Context, t TableCatalog) error {
	for _, properties := range []map[string]string{t.Connection, t.Properties} {
		if err := checkProperties(properties); err != nil {
			return fmt.Errorf("table catalog %s: %w", t.Name, err)
		}
	}
	if err := base.CheckName(t.Type); err != nil {
		return fmt.Errorf("table catalog %s: type: %w", t.Name, err)
	}
	return c.publishTableCatalog(ctx, t.Name, &commitpb.CatalogRegister{
		Name: t.Name, Type: t.Type, Connection: encodeProperties(t.Connection), Properties: encodeProperties(t.Properties),
	})
}

// UnregisterTableCatalog forgets a table catalog, or returns ErrNoSuchTableCatalog.
func (c *Catalog) UnregisterTableCatalog(ctx context.Context, name string) error {
	return c.publishTableCatalog(ctx, name, &commitpb.CatalogUnregister{Name: name})
}

func (c *Catalog) publishTableCatalog(ctx context.Context, name string, record proto.Message) error {
	err := base.CheckName(name)
	if err == nil {
		err = needVersion(2, c.meta)
	}
	if err == nil {
		var out shard.Outcome
		if out, err = c.meta.Publish(ctx, record); err == nil && !out.OK() {
			err = refusal(out.Rejected)
		}
	}
	if err != nil {
		return fmt.Errorf("table catalog %s: %w", name, err)
	}
	return nil
}

// TableCatalog returns a table catalog, or ErrNoSuchTableCatalog.
func (c *Catalog) TableCatalog(name string) (TableCatalog, error) {
	for _, t := range c.TableCatalogs() {
		if t.Name == name {
			return t, nil
		}
	}
	return TableCatalog{}, fmt.Errorf("table catalog %s: %w", name, ErrNoSuchTableCatalog)
}

// TableCatalogs returns every table catalog, by name.
func (c *Catalog) TableCatalogs() []TableCatalog {
	var all []TableCatalog
	c.meta.Inspect(func(s *shard.State) {
		for _, t := range s.TableCatalogs() {
			all = append(all, TableCatalog{
				Name: t.Name, Type: t.Type, Connection: decodeProperties(t.Connection), Properties: decodeProperties(t.Properties),
			})
		}
	})
	return all
}
