package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// maxChanges bounds how often a change is tried again after someone else's.
const maxChanges = 16

// Ledger is what the catalog needs of a log's view: to look at its state and to
// publish a record and learn its outcome.
type Ledger interface {
	Inspect(fn func(*shard.State))
	Publish(ctx context.Context, payload commitrecord.Payload) (shard.Outcome, error)
}

// Catalog is the namespaces, streams and table catalogs of a cluster. It is safe
// for concurrent use.
type Catalog struct {
	shards    []Ledger
	meta      Ledger
	inherited inheritance
	logger    *slog.Logger
}

// New returns the catalog over the views of all shards, in their order, and of the
// log meta.
func New(shards []Ledger, meta Ledger, logger *slog.Logger) *Catalog {
	return &Catalog{shards: shards, meta: meta, inherited: inheritance{meta: meta}, logger: logger}
}

// Inherited returns what streams inherit now.
func (c *Catalog) Inherited() Inherited { return c.inherited.read() }

// shardOf returns the shard and the ledger of a stream.
func (c *Catalog) shardOf(name base.StreamName) (base.Shard, Ledger) {
	sh := base.ShardOf(name, len(c.shards))
	return sh, c.shards[sh]
}

// Lifecycle tells what a stream is there for.
type Lifecycle string

// The lifecycles of a stream. Creating, growing and purging one takes a single
// commit record, so that none is ever seen half done.
const (
	// Active streams take appends.
	Active Lifecycle = "ACTIVE"
	// Sealed streams have all their logs fenced.
	Sealed Lifecycle = "SEALED"
	// Deleting streams were deleted without a purge: only their data is kept.
	Deleting Lifecycle = "DELETING"
)

// Stream is a stream as one read of its shard showed it.
type Stream struct {
	// ID names this incarnation, within its shard.
	ID    base.StreamID
	Shard base.Shard
	Name  base.StreamName
	// Version counts the changes.
	Version    uint64
	Lifecycle  Lifecycle
	Partitions int
	// Settings are the stream's own, Table and Kept what they resolve to.
	Settings Settings
	Table    Table
	Kept     LogRetention
	// Schema is zero when none was declared.
	Schema Schema
	// Properties are the user's, as of PropertiesSource, a revision of theirs.
	Properties       map[string]string
	PropertiesSource uint64
	// TableUUID is empty until the table's first range was prepared.
	TableUUID string
}

// Settings are what can be changed of a stream, a namespace, or the defaults of a
// cluster.
type Settings struct {
	Table     TablePolicy
	Retention Retention
}

// Over returns the settings with what they leave unset taken from others.
func (s Settings) Over(under Settings) Settings {
	return Settings{Table: s.Table.Over(under.Table), Retention: s.Retention.Over(under.Retention)}
}

// Validate checks each field and names the one that is wrong.
func (s Settings) Validate() error {
	if err := s.Table.Validate(); err != nil {
		return err
	}
	return s.Retention.Validate()
}

func settingsOf(policy *commitpb.TablePolicy, retention *commitpb.Retention) Settings {
	return Settings{Table: policyOf(policy), Retention: retentionOf(retention)}
}

// Schema declares what a stream's values are.
type Schema struct {
	// Type is AVRO, JSON, PROTOBUF or NONE.
	Type       string
	Definition []byte
	Properties map[string]string
}

func (s Schema) isZero() bool {
	return s.Type == "" && len(s.Definition) == 0 && len(s.Properties) == 0
}

func (s Schema) encode() *commitpb.StreamSchema {
	if s.isZero() {
		return nil
	}
	return &commitpb.StreamSchema{Type: s.Type, Definition: s.Definition, Properties: encodeProperties(s.Properties)}
}

func describe(sh base.Shard, st *shard.Stream, inherited Inherited) Stream {
	s := Stream{
		ID: st.ID, Shard: sh, Name: st.Name, Version: st.Version, Lifecycle: Active, Partitions: len(st.Logs),
		Settings: settingsOf(st.Policy, st.Retention), Table: inherited.Table(st), Kept: inherited.Retention(st),
		Properties: decodeProperties(st.Properties), PropertiesSource: st.PropertiesSource, TableUUID: st.Table.UUID,
	}
	if !slices.ContainsFunc(st.Logs, func(l *shard.Log) bool { return l.Fence() == "" }) {
		s.Lifecycle = Sealed
	}
	if st.Schema != nil {
		s.Schema = Schema{
			Type: st.Schema.GetType(), Definition: st.Schema.GetDefinition(), Properties: decodeProperties(st.Schema.GetProperties()),
		}
	}
	return s
}

// decodeProperties returns nil for none.
func decodeProperties(list []*commitpb.Property) map[string]string {
	if len(list) == 0 {
		return nil
	}
	properties := make(map[string]string, len(list))
	for _, p := range list {
		properties[p.GetKey()] = p.GetValue()
	}
	return properties
}

// encodeProperties sorts by key, as records must.
func encodeProperties(properties map[string]string) []*commitpb.Property {
	list := make([]*commitpb.Property, 0, len(properties))
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, &commitpb.Property{Key: key, Value: properties[key]})
	}
	return list
}

// checkProperties refuses what no record may hold.
func checkProperties(properties map[string]string) error {
	if len(properties) > shard.MaxProperties {
		return fmt.Errorf("%d properties: at most %d can be: %w", len(properties), shard.MaxProperties, base.ErrInvalid)
	}
	for key, value := range properties {
		if key == "" || len(key)+len(value) > shard.MaxPropertyBytes {
			return fmt.Errorf("property %q: want a key, and at most %d bytes with the value: %w", key, shard.MaxPropertyBytes, base.ErrInvalid)
		}
	}
	return nil
}

// Load returns a stream. One that is not there is ErrNoSuchStream, one that was
// deleted ErrStreamPermanentlyDeleted.
func (c *Catalog) Load(name base.StreamName) (Stream, error) {
	sh, ledger := c.shardOf(name)
	inherited := c.Inherited()
	var found Stream
	err := fmt.Errorf("stream %s: %w", name, ErrNoSuchStream)
	ledger.Inspect(func(s *shard.State) {
		if st, ok := s.StreamByName(name); ok {
			found, err = describe(sh, st, inherited), nil
		} else if _, deleted := s.Tombstone(name); deleted {
			err = fmt.Errorf("stream %s: %w", name, ErrStreamPermanentlyDeleted)
		}
	})
	return found, err
}

// Refresh returns the same incarnation of a stream as it is now. When it was
// deleted that is ErrStreamPermanentlyDeleted.
func (c *Catalog) Refresh(st Stream) (Stream, error) {
	err := base.WithClass(ErrNoSuchStream, fmt.Errorf("stream %s: %w", st.Name, ErrStreamPermanentlyDeleted))
	inherited := c.Inherited()
	c.shards[st.Shard].Inspect(func(s *shard.State) {
		if found, ok := s.Stream(st.ID); ok {
			st, err = describe(st.Shard, found, inherited), nil
		}
	})
	return st, err
}

// Exists reports whether there is a stream of this name.
func (c *Catalog) Exists(name base.StreamName) bool {
	_, err := c.Load(name)
	return err == nil
}

// List returns every stream, by name. Deleted ones are not among them.
func (c *Catalog) List() []Stream {
	return c.list(func(s *shard.State) []*shard.Stream { return s.Streams() })
}

// Kept returns the streams that were deleted without a purge, by name: of them only
// the data is there, until they are dropped with a purge.
func (c *Catalog) Kept() []Stream {
	all := c.list(func(s *shard.State) []*shard.Stream { return s.Kept() })
	for i := range all {
		all[i].Lifecycle = Deleting
	}
	return all
}

func (c *Catalog) list(of func(*shard.State) []*shard.Stream) []Stream {
	var all []Stream
	inherited := c.Inherited()
	for sh, l := range c.shards {
		l.Inspect(func(s *shard.State) {
			for _, st := range of(s) {
				all = append(all, describe(base.Shard(sh), st, inherited)) //nolint:gosec // at most MaxShards
			}
		})
	}
	slices.SortFunc(all, func(a, b Stream) int { return a.Name.Compare(b.Name) })
	return all
}

// Materialization is what becomes of a stream as a table, and why.
type Materialization struct {
	Table Table
	// Reason says why the stream has no table; empty when it has one.
	Reason string
}

// ResolveMaterialization tells how a stream becomes a table. It opens nothing: that
// a table is named does not mean that it exists.
func (c *Catalog) ResolveMaterialization(name base.StreamName) (Materialization, error) {
	st, err := c.Load(name)
	if err != nil {
		return Materialization{}, err
	}
	m := Materialization{Table: st.Table}
	if st.Table.Enabled {
		return m, nil
	}
	inherited := c.Inherited()
	switch {
	case st.Settings.Table.Enabled != nil:
		m.Reason = "table.enabled is false on the stream"
	case policyOf(inherited.namespaces[name.Namespace].policy).Enabled != nil:
		m.Reason = fmt.Sprintf("table.enabled is false on namespace %s", name.Namespace)
	default:
		m.Reason = "table.enabled is false in the cluster's defaults"
	}
	return m, nil
}
