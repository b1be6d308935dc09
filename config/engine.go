package config

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// EngineFields returns the fields of an engine: those of the top-level block.
func EngineFields() []*service.ConfigField { return engineFields(engine.DefaultDataDir) }

func engineFields(dataDir string) []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fieldDataDir).Default(dataDir).
			Description("Directory for whatever has no other place below: the embedded NATS server's store, objects, the table catalog, the warehouse. It must be on a local disk. Processes on one directory share one NATS server."),
		service.NewIntField(fieldShards).Default(4).Advanced().LintRule(lintBetween(1, engine.MaxShards)).
			Description("Number of commit shards of a cluster that is created: 1 to 64. An existing cluster keeps its own."),
		natsField(), storageField(), catalogField(), namespacesField(), walField(), compactionField(),
		size(fieldCacheBytes, "Size of the cache of fetched log blocks.").Default("128MiB").Advanced(),
		duration(fieldLeaseTTL, "How long others wait for an instance that is gone before they take over its background work, at least `5s`. An instance that was paused or cut off for longer opens new writers and goes on.").
			Default("15s").Advanced(),
		duration(fieldDrainTimeout, "How long a closing pipeline waits until its tables hold everything that it wrote. Keep it below `shutdown_timeout`; raise both for batch jobs. What is left is caught up by the next engine on the cluster.").
			Default("15s").Advanced(),
	}
}

// TopLevelField returns the top-level block that sets the engine of every
// component of a process that has none of its own.
func TopLevelField() *service.ConfigField {
	return service.NewObjectField(ComponentName, EngineFields()...).
		Description("The engine of every `lakestream` input and output that has no `engine` of its own.")
}

// engineField returns the engine object of a component. Its data directory has no
// default of its own, so that an object in which anything is set can be told from
// one that Benthos made up.
func engineField() *service.ConfigField {
	return service.NewObjectField(fieldEngine, engineFields("")...).Advanced().
		Description("The engine of this component, in place of the whole top-level `lakestream` block, when anything in it is set. Its `data_dir` is `" + engine.DefaultDataDir + "` when empty. Components that name one cluster share one engine and must agree in every field.")
}

func size(name, description string) *service.ConfigField {
	return service.NewStringField(name).LintRule(lintPattern(sizePattern, wantSize)).Description(description)
}

func duration(name, description string) *service.ConfigField {
	return service.NewDurationField(name).LintRule(lintPattern(durationPattern, wantDuration)).Description(description)
}

func catalogField() *service.ConfigField {
	return service.NewObjectField(fieldCatalog,
		service.NewStringEnumField(fieldType, "sql").Default("sql").Description("Kind of the Iceberg catalog: `sql` is a SQLite file."),
		service.NewStringField(fieldURI).Default("").Description("Path of the catalog's file. Empty means `catalog.db` in `data_dir`."),
		service.NewStringField(fieldWarehouse).Default("").
			Description("Location of the tables: `s3://…`, `gs://…`, `file:///…`, reached with the credentials of `storage`. Empty means `warehouse` in `storage.url`, or in `data_dir` where that is empty; in an `azblob` store it is spelled `abfss://container@account.dfs.core.windows.net/…`, as other readers do."),
	).Advanced().Description("The catalog of the tables.")
}

func walField() *service.ConfigField {
	return service.NewObjectField(fieldWAL,
		duration(fieldLinger, "Longest wait of a record for company in its object. By default `10ms` on files, where nothing waits while the disk is idle, and `250ms` else.").Optional(),
		size(fieldMaxObjectBytes, "Size at which an object is written: 64KiB to 256MiB.").Default("8MiB"),
		size(fieldMaxBufferedBytes, "Bound of what is appended and not yet durable, by default `64MiB` on files and `128MiB` else. Beyond it writers wait.").Optional(),
		size(fieldMaxRecordBytes, "Largest record: key, value and headers together, 1KiB to 64MiB. A larger one is refused, the rest of its batch is written.").Default("16MiB"),
		service.NewIntField(fieldUploadConcurrency).Default(0).LintRule(lintBetween(0, 256)).
			Description("Objects written in parallel, at most 256. 0 means 4 on files and 16 else."),
		service.NewStringEnumField(fieldCompression, "", "zstd", "none").Default("").
			Description("Compression of records in the log: `zstd` or `none`. Empty means `none` on files, `zstd` else."),
	).Advanced().Description("The write path.")
}

func compactionField() *service.ConfigField {
	return service.NewObjectField(fieldCompaction,
		service.NewBoolField(fieldEnabled).Default(true).
			Description("Whether this process compacts logs and fills tables. Without it, another instance must."),
		duration(fieldInterval, "Greatest age of raw records of a stream without a table.").Default("60s"),
		size(fieldTargetBytes, "Raw bytes that make a pass due at once.").Default("256MiB"),
		size(fieldMaxMemoryBytes, "Bound of what one pass holds: at least 16MiB.").Default("256MiB"),
	).Advanced().Description("The passes that rewrite the log into compacted objects and tables.")
}

// ParseEngine reads the fields of EngineFields. Fields that are not set take the
// engine's defaults. Whatever is wrong is engine.ErrInvalid and named.
func ParseEngine(conf *service.ParsedConfig) (engine.Options, error) {
	v := values{conf: conf}
	opts := engine.Options{
		DataDir: v.text(fieldDataDir),
		Shards:  v.count(fieldShards),
		NATS:    parseNATS(&v),
		Storage: parseStorage(&v),
		Catalog: engine.CatalogOptions{
			Type: v.text(fieldCatalog, fieldType), URI: v.text(fieldCatalog, fieldURI), Warehouse: v.text(fieldCatalog, fieldWarehouse),
		},
		WAL: engine.WALOptions{
			Linger:            v.duration(fieldWAL, fieldLinger),
			MaxObjectBytes:    v.size(fieldWAL, fieldMaxObjectBytes),
			MaxBufferedBytes:  v.size(fieldWAL, fieldMaxBufferedBytes),
			MaxRecordBytes:    v.size(fieldWAL, fieldMaxRecordBytes),
			UploadConcurrency: read(&v, conf.FieldInt, fieldWAL, fieldUploadConcurrency),
			Compression:       v.text(fieldWAL, fieldCompression),
		},
		Compaction: engine.CompactionOptions{
			Disabled:       !v.flag(fieldCompaction, fieldEnabled),
			Interval:       v.duration(fieldCompaction, fieldInterval),
			TargetBytes:    v.size(fieldCompaction, fieldTargetBytes),
			MaxMemoryBytes: v.size(fieldCompaction, fieldMaxMemoryBytes),
		},
		Namespaces:   v.namespaces(),
		CacheBytes:   v.size(fieldCacheBytes),
		LeaseTTL:     v.duration(fieldLeaseTTL),
		DrainTimeout: v.duration(fieldDrainTimeout),
	}
	if err := v.err(); err != nil {
		return engine.Options{}, err
	}
	return opts, opts.WithDefaults().Validate()
}
