package config

// ComponentName is the name of the input, of the output and of the top-level
// block.
const ComponentName = "lakestream"

// Names of the fields of an engine.
const (
	fieldDataDir           = "data_dir"
	fieldShards            = "shards"
	fieldNATS              = "nats"
	fieldURLs              = "urls"
	fieldStorage           = "storage"
	fieldURL               = "url"
	fieldCatalog           = "catalog"
	fieldType              = "type"
	fieldURI               = "uri"
	fieldWarehouse         = "warehouse"
	fieldWAL               = "wal"
	fieldLinger            = "linger"
	fieldMaxObjectBytes    = "max_object_bytes"
	fieldMaxBufferedBytes  = "max_buffered_bytes"
	fieldMaxRecordBytes    = "max_record_bytes"
	fieldUploadConcurrency = "upload_concurrency"
	fieldCompression       = "compression"
	fieldCompaction        = "compaction"
	fieldInterval          = "interval"
	fieldTargetBytes       = "target_bytes"
	fieldMaxMemoryBytes    = "max_memory_bytes"
	fieldCacheBytes        = "cache_bytes"
	fieldLeaseTTL          = "lease_ttl"
	fieldDrainTimeout      = "drain_timeout"
	fieldNamespaces        = "namespaces"
)

// Names of the fields of the output and of its table.
const (
	fieldStream        = "stream"
	fieldMaxStreams    = "max_streams"
	fieldPartitions    = "partitions"
	fieldKey           = "key"
	fieldPartition     = "partition"
	fieldTimestampMS   = "timestamp_ms"
	fieldMetadata      = "metadata"
	fieldMaxInFlight   = "max_in_flight"
	fieldBatching      = "batching"
	fieldTable         = "table"
	fieldEnabled       = "enabled"
	fieldNamespace     = "namespace"
	fieldName          = "name"
	fieldCommit        = "commit"
	fieldSystemColumns = "system_columns"
	fieldIdempotency   = "idempotency"
	fieldMode          = "mode"
	fieldSource        = "source"
	fieldProducer      = "producer"
	fieldSequence      = "sequence"
)

// Names of the fields of a retention.
const (
	fieldRetention     = "retention"
	fieldTime          = "time"
	fieldBytes         = "bytes"
	fieldWaitForTables = "wait_for_tables"
	fieldWaitForGroups = "wait_for_groups"
)

// Names of the fields of the input.
const (
	fieldStreams               = "streams"
	fieldStartOffset           = "start_offset"
	fieldStopAtEnd             = "stop_at_end"
	fieldMaxYieldBatchBytes    = "max_yield_batch_bytes"
	fieldMaxYieldBatchMessages = "max_yield_batch_messages"
	fieldAutoReplayNacks       = "auto_replay_nacks"
	fieldRegexpStreams         = "regexp_streams"
	fieldUnorderedProcessing   = "unordered_processing"
)

// Names of the fields of membership in a group.
const (
	fieldConsumerGroup     = "consumer_group"
	fieldInstanceID        = "instance_id"
	fieldCommitPeriod      = "commit_period"
	fieldSessionTimeout    = "session_timeout"
	fieldRebalanceTimeout  = "rebalance_timeout"
	fieldHeartbeatInterval = "heartbeat_interval"
)

// fieldEngine names the engine of one component.
const fieldEngine = "engine"
