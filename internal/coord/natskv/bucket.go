package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lakestream-go/lakestream/internal/base"
)

const (
	// keepAll is the history of a log: more than can ever be written.
	keepAll = 1 << 40
	// markerTTL is how long the marker of a deleted or expired document stays.
	markerTTL = time.Minute
	// dedupWindow is the server's default, stated so that it is compared.
	dedupWindow = 2 * time.Minute
)

// bucket is one KV bucket bound to a Store.
type bucket struct {
	store  *Store
	name   string
	kv     jetstream.KeyValue
	stream jetstream.Stream
}

// subject is where the server stores the values of key.
func (b *bucket) subject(key string) string { return "$KV." + b.name + "." + key }

// logBucket describes the stream under a commit log. The client's own way to
// create a bucket caps the history at 64 and allows what would lose records:
// roll-ups erase the history, direct reads come from replicas that lag.
func logBucket(prefix, log string, replicas int) jetstream.StreamConfig {
	config := emptyBucket(prefix+"-"+log, replicas)
	config.MaxMsgsPerSubject = keepAll
	return config
}

// documentsBucket describes the stream under the documents: the last value of
// each key, with a time to live per value. Such streams must allow roll-ups.
func documentsBucket(prefix string, replicas int) jetstream.StreamConfig {
	config := emptyBucket(prefix, replicas)
	config.MaxMsgsPerSubject = 1
	config.AllowRollup = true
	config.AllowMsgTTL = true
	config.SubjectDeleteMarkerTTL = markerTTL
	return config
}

// emptyBucket describes what all buckets have in common. They have no limit of
// their own: what bounds them is the purge of logs and the time to live or the
// number of documents. A limit of the account or the disk that is reached refuses
// records, since the streams discard what is new; nothing old is dropped for it.
func emptyBucket(name string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:         "KV_" + name,
		Subjects:     []string{"$KV." + name + ".>"},
		Retention:    jetstream.LimitsPolicy,
		Discard:      jetstream.DiscardNew,
		Storage:      jetstream.FileStorage,
		Replicas:     replicas,
		MaxConsumers: -1,
		MaxMsgs:      -1,
		MaxBytes:     -1,
		MaxMsgSize:   -1,
		Duplicates:   dedupWindow,
		DenyDelete:   true,
	}
}

// bind opens the bucket that config describes, creating it when absent.
func (s *Store) bind(ctx context.Context, config jetstream.StreamConfig) (*bucket, error) {
	name := strings.TrimPrefix(config.Name, "KV_")
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", name, err)
	}
	ctx, cancel := s.request(ctx)
	defer cancel()
	stream, err := s.js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = s.create(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", name, s.read(ctx, err))
	}
	if wrong := differences(stream.CachedInfo().Config, config); len(wrong) > 0 {
		return nil, fmt.Errorf("%w: bucket %s is not configured as a bucket of ours (%s); "+
			"use another bucket prefix, or restore its configuration",
			base.ErrInvalid, name, strings.Join(wrong, ", "))
	}
	s.tellWeakness(stream.CachedInfo())
	kv, err := s.js.KeyValue(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", name, s.read(ctx, err))
	}
	return &bucket{store: s, name: name, kv: kv, stream: stream}, nil
}

// create makes the stream. Losing a race to another instance is no error: what
// stands is examined by the caller.
func (s *Store) create(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := s.js.CreateStream(ctx, config)
	switch {
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		return s.js.Stream(ctx, config.Name)
	case hasCode(err, codeReplicas, codeNoPeers):
		return nil, base.WithClass(base.ErrInvalid, fmt.Errorf(
			"creating it with %d replicas: %w; configure as many replicas as there are servers with JetStream",
			config.Replicas, err))
	}
	return stream, err
}

// differences lists where a stream's configuration departs from what the rules
// of a bucket need. The number of replicas, placement and compression are the
// operator's to change.
func differences(have, want jetstream.StreamConfig) []string {
	var wrong []string
	differs := func(field string, have, want any) {
		if have != want {
			wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", field, have, want))
		}
	}
	differs("subjects", strings.Join(slices.Sorted(slices.Values(have.Subjects)), " "), strings.Join(want.Subjects, " "))
	differs("max_msgs_per_subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	differs("retention", have.Retention, want.Retention)
	differs("discard", have.Discard, want.Discard)
	differs("discard_new_per_subject", have.DiscardNewPerSubject, want.DiscardNewPerSubject)
	differs("storage", have.Storage, want.Storage)
	differs("persist_mode", have.PersistMode, want.PersistMode)
	differs("max_age", have.MaxAge, want.MaxAge)
	differs("max_msgs", have.MaxMsgs, want.MaxMsgs)
	differs("max_bytes", have.MaxBytes, want.MaxBytes)
	differs("max_msg_size", have.MaxMsgSize, want.MaxMsgSize)
	differs("max_consumers", have.MaxConsumers, want.MaxConsumers)
	differs("sealed", have.Sealed, want.Sealed)
	differs("no_ack", have.NoAck, want.NoAck)
	differs("deny_delete", have.DenyDelete, want.DenyDelete)
	differs("deny_purge", have.DenyPurge, want.DenyPurge)
	differs("allow_rollup_hdrs", have.AllowRollup, want.AllowRollup)
	differs("allow_direct", have.AllowDirect, want.AllowDirect)
	differs("allow_msg_ttl", have.AllowMsgTTL, want.AllowMsgTTL)
	differs("mirrored", have.Mirror != nil, false)
	differs("sources", len(have.Sources), 0)
	differs("subject_transform", have.SubjectTransform != nil, false)
	return wrong
}
