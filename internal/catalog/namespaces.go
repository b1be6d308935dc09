package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Namespace is what the streams of one namespace have in common. Its settings hold
// for streams that do not say otherwise.
type Namespace struct {
	// ID names this incarnation. It is 0, and Version too, where streams are in the
	// namespace and it was never created: they are older than namespaces.
	ID   base.NamespaceID
	Name string
	// Version counts the changes.
	Version    uint64
	Settings   Settings
	Properties map[string]string
}

// NamespaceConfig is what can be changed of a namespace.
type NamespaceConfig struct {
	// Settings are what streams inherit, but for the table's name: streams that
	// shared one would fill one table.
	Settings
	Properties map[string]string
}

func (cfg NamespaceConfig) validate() error {
	return errors.Join(cfg.Settings.validateInherited(), checkProperties(cfg.Properties))
}

// validateInherited checks settings that streams inherit.
func (s Settings) validateInherited() error {
	if s.Table.Name != "" {
		return fmt.Errorf("table name %q: streams that inherit it would fill one table: set it on a stream: %w", s.Table.Name, base.ErrInvalid)
	}
	return s.Validate()
}

// namespace returns a namespace that was created.
func (c *Catalog) namespace(name string) (found Namespace, ok bool) {
	c.meta.Inspect(func(s *shard.State) {
		var n *shard.Namespace
		if n, ok = s.Namespace(name); ok {
			found = describeNamespace(n)
		}
	})
	return found, ok
}

func describeNamespace(n *shard.Namespace) Namespace {
	return Namespace{
		ID: n.ID, Name: n.Name, Version: n.Version,
		Settings: settingsOf(n.Policy, n.Retention), Properties: decodeProperties(n.Properties),
	}
}

// LoadNamespace returns a namespace, or ErrNoSuchNamespace.
func (c *Catalog) LoadNamespace(name string) (Namespace, error) {
	if found, ok := c.namespace(name); ok {
		return found, nil
	}
	if c.streamIn(name) != "" {
		return Namespace{Name: name}, nil
	}
	return Namespace{}, fmt.Errorf("namespace %s: %w", name, ErrNoSuchNamespace)
}

// NamespaceExists reports whether there is a namespace of this name.
func (c *Catalog) NamespaceExists(name string) bool {
	_, err := c.LoadNamespace(name)
	return err == nil
}

// Namespaces returns every namespace, by name: those that were created, and those
// that streams are in.
func (c *Catalog) Namespaces() []Namespace {
	all := make(map[string]Namespace)
	for _, l := range c.shards {
		l.Inspect(func(s *shard.State) {
			for _, st := range s.Streams() {
				all[st.Name.Namespace] = Namespace{Name: st.Name.Namespace}
			}
		})
	}
	c.meta.Inspect(func(s *shard.State) {
		for _, n := range s.Namespaces() {
			all[n.Name] = describeNamespace(n)
		}
	})
	list := make([]Namespace, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}

// streamIn returns the name of some stream of a namespace, or nothing.
func (c *Catalog) streamIn(namespace string) (name string) {
	for _, l := range c.shards {
		l.Inspect(func(s *shard.State) {
			for _, st := range s.Streams() {
				if st.Name.Namespace == namespace {
					name = st.Name.String()
				}
			}
		})
	}
	return name
}

// CreateNamespace creates a namespace, or returns ErrAlreadyExists. One that only
// streams which are older than namespaces are in is created around them.
func (c *Catalog) CreateNamespace(ctx context.Context, name string, cfg NamespaceConfig) (Namespace, error) {
	fail := func(err error) (Namespace, error) { return Namespace{}, fmt.Errorf("namespace %s: %w", name, err) }
	if err := errors.Join(base.CheckName(name), cfg.validate()); err != nil {
		return fail(err)
	}
	if err := needVersion(2, c.meta); err != nil {
		return fail(err)
	}
	if err := c.checkStreams(c.Inherited().with(name, cfg.Settings)); err != nil {
		return fail(err)
	}
	out, err := c.meta.Publish(ctx, &commitpb.NamespaceCreate{
		Namespace: name, Table: cfg.Table.encode(), Retention: cfg.Retention.encode(), Properties: encodeProperties(cfg.Properties),
	})
	switch {
	case err != nil:
		return fail(err)
	case !out.OK():
		return fail(refusal(out.Rejected))
	}
	return c.LoadNamespace(name)
}

// UpdateNamespace changes a namespace as edit does, which is called again when
// someone else changed it meanwhile, and returns it as it then is. Where nothing
// changes, no record is written. Settings that would give a table that is filled
// already another identity are base.ErrInvalid and name the stream.
func (c *Catalog) UpdateNamespace(ctx context.Context, name string, edit func(*NamespaceConfig) error) (Namespace, error) {
	fail := func(err error) (Namespace, error) { return Namespace{}, fmt.Errorf("namespace %s: %w", name, err) }
	for range maxChanges {
		now, err := c.LoadNamespace(name)
		if err != nil {
			return Namespace{}, err
		}
		cfg := NamespaceConfig{Settings: now.Settings, Properties: maps.Clone(now.Properties)}
		if cfg.Properties == nil {
			cfg.Properties = make(map[string]string)
		}
		if err := edit(&cfg); err != nil {
			return fail(err)
		}
		if now.ID == 0 {
			created, err := c.CreateNamespace(ctx, name, cfg)
			if errors.Is(err, ErrAlreadyExists) {
				continue
			}
			return created, err
		}
		record, err := c.planNamespace(now, cfg)
		if err != nil {
			return fail(err)
		}
		if record == nil {
			return now, nil
		}
		out, err := c.meta.Publish(ctx, record)
		switch {
		case err != nil:
			return fail(err)
		case out.OK():
			return c.LoadNamespace(name)
		case out.Rejected != shard.VersionChanged:
			return fail(refusal(out.Rejected))
		}
	}
	return fail(fmt.Errorf("others keep changing it: %w", base.ErrConflict))
}

// planNamespace returns the record that makes a namespace what cfg says, or nil.
func (c *Catalog) planNamespace(now Namespace, cfg NamespaceConfig) (*commitpb.NamespaceUpdate, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	record := &commitpb.NamespaceUpdate{NamespaceId: uint64(now.ID), ExpectedVersion: now.Version}
	if policy := cfg.Table.encode(); !proto.Equal(policy, now.Settings.Table.encode()) {
		record.Table = policy
		if err := c.checkStreams(c.Inherited().with(now.Name, cfg.Settings)); err != nil {
			return nil, err
		}
	}
	if retention := cfg.Retention.encode(); !proto.Equal(retention, now.Settings.Retention.encode()) {
		record.Retention = retention
	}
	for _, p := range encodeProperties(cfg.Properties) {
		if value, ok := now.Properties[p.GetKey()]; !ok || value != p.GetValue() {
			record.Set = append(record.Set, p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now.Properties)) {
		if _, ok := cfg.Properties[key]; !ok {
			record.Remove = append(record.Remove, key)
		}
	}
	if record.GetTable() == nil && record.GetRetention() == nil && len(record.GetSet())+len(record.GetRemove()) == 0 {
		return nil, nil //nolint:nilnil // nothing is to be done
	}
	return record, nil
}

// checkStreams refuses what streams would inherit when it gives a table that is
// filled already another identity, or two streams one table.
func (c *Catalog) checkStreams(after Inherited) error {
	taken := make(map[string]base.StreamName)
	for _, st := range c.List() {
		table := after.table(st.Name, st.Settings.Table.encode())
		if err := checkIdentity(st, table); err != nil {
			return fmt.Errorf("stream %s: %w", st.Name, err)
		}
		if !table.Enabled {
			continue
		}
		for _, ident := range []string{table.String(), table.Namespace + "." + table.DeadLetterName()} {
			if other, ok := taken[ident]; ok {
				return fmt.Errorf("table %s would be that of streams %s and %s: %w", ident, other, st.Name, base.ErrInvalid)
			}
			taken[ident] = st.Name
		}
	}
	return nil
}

// DefineNamespace makes a namespace have what cfg sets, and creates it when it is
// absent. What cfg leaves unset stays.
func (c *Catalog) DefineNamespace(ctx context.Context, name string, cfg NamespaceConfig) error {
	if !c.NamespaceExists(name) {
		if _, err := c.CreateNamespace(ctx, name, cfg); !errors.Is(err, ErrAlreadyExists) {
			return err
		}
	}
	_, err := c.UpdateNamespace(ctx, name, func(now *NamespaceConfig) error {
		now.Settings = cfg.Settings.Over(now.Settings)
		maps.Copy(now.Properties, cfg.Properties)
		return nil
	})
	return err
}
