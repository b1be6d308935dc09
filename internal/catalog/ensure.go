package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// StreamConfig is what a caller wants of a stream. The zero value wants the
// defaults at creation and changes nothing later.
type StreamConfig struct {
	// Partitions is the number of logs; 0 means 1 at creation and whatever
	// the stream has later.
	Partitions int
	Table      TablePolicy
	Retention  Retention
	// Schema and Properties are those of a stream that is created.
	Schema     Schema
	Properties map[string]string
}

func (cfg *StreamConfig) settings() Settings {
	return Settings{Table: cfg.Table, Retention: cfg.Retention}
}

func (cfg *StreamConfig) validate(name base.StreamName) error {
	for _, part := range []string{name.Namespace, name.Name} {
		if err := base.CheckName(part); err != nil {
			return err
		}
	}
	if cfg.Partitions < 0 || cfg.Partitions > shard.MaxPartitions {
		return fmt.Errorf("partitions %d: want 1 to %d: %w", cfg.Partitions, shard.MaxPartitions, base.ErrInvalid)
	}
	if len(cfg.Schema.Definition) > shard.MaxSchemaBytes {
		return fmt.Errorf("schema of %d bytes: at most %d can be: %w", len(cfg.Schema.Definition), shard.MaxSchemaBytes, base.ErrInvalid)
	}
	if !cfg.Schema.isZero() && !slices.Contains([]string{"AVRO", "JSON", "PROTOBUF", "NONE"}, cfg.Schema.Type) {
		return fmt.Errorf("schema type %q: want AVRO, JSON, PROTOBUF or NONE: %w", cfg.Schema.Type, base.ErrInvalid)
	}
	return errors.Join(cfg.settings().Validate(), checkProperties(cfg.Properties), checkProperties(cfg.Schema.Properties))
}

// needsVersion2 reports whether the configuration sets what fold version 2 added.
func (cfg *StreamConfig) needsVersion2() bool {
	return cfg.Retention != (Retention{}) || !cfg.Schema.isZero() || len(cfg.Properties) > 0
}

// Ensure returns a stream of this name that satisfies cfg: it creates the stream,
// and its namespace, or adopts the one that exists and applies the table and
// retention fields that cfg sets. Fewer partitions than the stream has, or a table
// identity that can no longer change, is base.ErrInvalid; more partitions than it
// has are ignored with a warning. A name that was used before is
// ErrStreamPermanentlyDeleted, a namespace that is being dropped
// ErrNamespaceDropping. Of instances that create at once one wins and the others
// adopt.
func (c *Catalog) Ensure(ctx context.Context, name base.StreamName, cfg StreamConfig) (Stream, error) {
	return c.create(ctx, name, cfg, c.adopt)
}

// Create is Ensure that changes nothing of a stream that exists: one whose
// partitions, schema, and whatever else cfg sets, are the same is returned, any
// other is ErrAlreadyExists.
func (c *Catalog) Create(ctx context.Context, name base.StreamName, cfg StreamConfig) (Stream, error) {
	return c.create(ctx, name, cfg, checkSame)
}

// adoption decides what becomes of a stream that exists: the settings that it
// shall have, or an error.
type adoption func(st Stream, cfg StreamConfig) (Settings, error)

func (c *Catalog) create(ctx context.Context, name base.StreamName, cfg StreamConfig, adopt adoption) (Stream, error) {
	if err := cfg.validate(name); err != nil {
		return Stream{}, fmt.Errorf("stream %s: %w", name, err)
	}
	_, ledger := c.shardOf(name)
	creation := creation{catalog: c, ledger: ledger, name: name, cfg: cfg}
	for range maxChanges {
		st, err := c.Load(name)
		switch {
		case err == nil:
			settings, err := adopt(st, cfg)
			if err != nil {
				return Stream{}, fmt.Errorf("stream %s: %w", name, err)
			}
			return c.Update(ctx, st, func(s *Settings) error {
				*s = settings.Over(*s)
				return nil
			})
		case errors.Is(err, ErrStreamPermanentlyDeleted):
			return Stream{}, err
		}
		created, err := creation.try(ctx)
		if err != nil {
			return Stream{}, fmt.Errorf("stream %s: %w", name, err)
		}
		if created {
			return c.Load(name)
		}
	}
	return Stream{}, fmt.Errorf("stream %s: others keep changing it: %w", name, base.ErrConflict)
}

// creation is one call that wants a stream to be there.
type creation struct {
	catalog *Catalog
	ledger  Ledger
	name    base.StreamName
	cfg     StreamConfig
	// refused is the incarnation of the namespace that took no streams.
	refused base.NamespaceID
}

// try publishes the record that creates the stream. False means that someone else
// did, or that the namespace was dropped meanwhile.
func (n *creation) try(ctx context.Context) (created bool, err error) {
	c := n.catalog
	if n.cfg.needsVersion2() {
		if err := needVersion(2, n.ledger); err != nil {
			return false, err
		}
	}
	policy := n.cfg.Table.encode()
	if err := c.checkCollision(n.name, c.Inherited().table(n.name, policy)); err != nil {
		return false, err
	}
	namespace, err := n.namespace(ctx)
	if err != nil {
		return false, err
	}
	record := &commitpb.StreamCreate{
		Namespace: n.name.Namespace, Name: n.name.Name, Table: policy, NamespaceId: uint64(namespace),
		Partitions: uint32(max(1, n.cfg.Partitions)), //nolint:gosec // validated
		Schema:     n.cfg.Schema.encode(), Properties: encodeProperties(n.cfg.Properties),
	}
	if n.cfg.Retention != (Retention{}) {
		record.Retention = n.cfg.Retention.encode()
	}
	out, err := n.ledger.Publish(ctx, record)
	switch {
	case err != nil:
		return false, err
	case out.Rejected == shard.StreamExists:
		return false, nil
	case out.Rejected == shard.NamespaceSealed && n.refused != namespace:
		n.refused = namespace
		return false, nil
	case !out.OK():
		return false, refusal(out.Rejected)
	}
	return true, nil
}

// namespace returns the incarnation of the namespace, and creates it when it is
// absent: 0 while the cluster knows none. After a refusal it asks the log, which
// may know that another took its place.
func (n *creation) namespace(ctx context.Context) (base.NamespaceID, error) {
	c := n.catalog
	if needVersion(2, n.ledger, c.meta) != nil {
		return 0, nil //nolint:nilerr // streams were created without before
	}
	if found, ok := c.namespace(n.name.Namespace); ok && n.refused == 0 {
		return found.ID, nil
	}
	out, err := c.meta.Publish(ctx, &commitpb.NamespaceCreate{Namespace: n.name.Namespace})
	switch {
	case err != nil:
		return 0, fmt.Errorf("namespace %s: %w", n.name.Namespace, err)
	case out.OK(), out.Rejected == shard.NamespaceExists:
		return out.Namespace, nil
	}
	return 0, fmt.Errorf("namespace %s: %w", n.name.Namespace, refusal(out.Rejected))
}

// adopt takes what cfg sets over to a stream that exists.
func (c *Catalog) adopt(st Stream, cfg StreamConfig) (Settings, error) {
	switch has := st.Partitions; {
	case cfg.Partitions == 0, cfg.Partitions == has:
	case cfg.Partitions < has:
		return Settings{}, fmt.Errorf("partitions %d: the stream has %d and never shrinks; set partitions to %d or leave it out: %w",
			cfg.Partitions, has, has, base.ErrInvalid)
	default:
		c.logger.Warn("the stream keeps its partitions", "stream", st.Name.String(), "partitions", has, "configured", cfg.Partitions)
	}
	return cfg.settings(), nil
}

// checkSame refuses a stream that is not as cfg wants it.
func checkSame(st Stream, cfg StreamConfig) (Settings, error) {
	differs := ""
	switch {
	case cfg.Partitions != 0 && cfg.Partitions != st.Partitions:
		differs = fmt.Sprintf("it has %d partitions", st.Partitions)
	case !reflect.DeepEqual(cfg.Table.Over(st.Settings.Table), st.Settings.Table):
		differs = "its table policy is another"
	case !proto.Equal(cfg.Retention.Over(st.Settings.Retention).encode(), st.Settings.Retention.encode()):
		differs = "its retention is another"
	case !cfg.Schema.isZero() && !proto.Equal(cfg.Schema.encode(), st.Schema.encode()):
		differs = "its schema is another"
	case cfg.Properties != nil && !maps.Equal(cfg.Properties, st.Properties):
		differs = "its properties are others"
	}
	if differs != "" {
		return Settings{}, fmt.Errorf("%s: %w", differs, ErrAlreadyExists)
	}
	return Settings{}, nil
}

// Update changes the settings of a stream, of this incarnation, as edit does, which
// is called again when someone else changed them meanwhile. It returns the stream as
// it then is; where nothing changes, no record is written. A table identity that can
// no longer change is base.ErrInvalid.
func (c *Catalog) Update(ctx context.Context, st Stream, edit func(*Settings) error) (Stream, error) {
	for range maxChanges {
		record, err := c.planUpdate(st, edit)
		if err != nil {
			return Stream{}, fmt.Errorf("stream %s: %w", st.Name, err)
		}
		if record == nil {
			return c.Refresh(st)
		}
		out, err := c.shards[st.Shard].Publish(ctx, record)
		switch {
		case err != nil:
			return Stream{}, fmt.Errorf("stream %s: %w", st.Name, err)
		case out.OK():
			return c.Refresh(st)
		case out.Rejected != shard.VersionChanged:
			return Stream{}, fmt.Errorf("stream %s: %w", st.Name, refusal(out.Rejected))
		}
	}
	return Stream{}, fmt.Errorf("stream %s: others keep changing it: %w", st.Name, base.ErrConflict)
}

// planUpdate returns the record that makes a stream what edit wants, or nil.
func (c *Catalog) planUpdate(st Stream, edit func(*Settings) error) (commitrecord.Payload, error) {
	now, err := c.Refresh(st)
	if err != nil {
		return nil, err
	}
	settings := now.Settings
	if err := edit(&settings); err != nil {
		return nil, err
	}
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	record := &commitpb.StreamUpdate{Stream: uint64(st.ID), ExpectedVersion: now.Version}
	if policy := settings.Table.encode(); !proto.Equal(policy, now.Settings.Table.encode()) {
		record.Table = policy
		table := c.Inherited().table(now.Name, policy)
		if err := checkIdentity(now, table); err != nil {
			return nil, err
		}
		if err := c.checkCollision(now.Name, table); err != nil {
			return nil, err
		}
	}
	if retention := settings.Retention.encode(); !proto.Equal(retention, now.Settings.Retention.encode()) {
		record.Retention = retention
		if err := needVersion(2, c.shards[st.Shard]); err != nil {
			return nil, err
		}
	}
	if record.GetTable() == nil && record.GetRetention() == nil {
		return nil, nil //nolint:nilnil // nothing is to be done
	}
	return record, nil
}

// checkIdentity refuses another name or other system columns for a table that is
// filled already.
func checkIdentity(st Stream, after Table) error {
	before := st.Table
	if st.TableUUID == "" || before.String() == after.String() && slices.Equal(before.SystemColumns, after.SystemColumns) {
		return nil
	}
	return fmt.Errorf("table %s with system columns %v is filled already and cannot become %s with %v: %w",
		before, before.SystemColumns, after, after.SystemColumns, base.ErrInvalid)
}

// checkCollision refuses a table name that another stream's table or dead-letter
// table has: one source stream a table. Streams created at the same moment in two shards can
// pass; the second then finds a table that is not its own and is suspended.
func (c *Catalog) checkCollision(name base.StreamName, table Table) (err error) {
	if !table.Enabled {
		return nil
	}
	inherited := c.Inherited()
	for _, l := range c.shards {
		l.Inspect(func(s *shard.State) {
			for _, other := range s.Streams() {
				if t := inherited.Table(other); other.Name != name && t.Enabled && table.overlaps(t) {
					err = fmt.Errorf("table %s, or its dead-letter table, is that of stream %s already; set table.name: %w", table, other.Name, base.ErrInvalid)
				}
			}
		})
	}
	return err
}
