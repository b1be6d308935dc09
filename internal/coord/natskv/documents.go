package natskv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

type documents struct {
	bucket    *bucket
	sightings sightings
}

var _ coord.Documents = (*documents)(nil)

func (d *documents) Get(ctx context.Context, key string) (coord.Document, error) {
	if err := d.check(ctx, key); err != nil {
		return coord.Document{}, fmt.Errorf("reading document %s: %w", key, err)
	}
	ctx, cancel := d.bucket.store.request(ctx)
	defer cancel()
	doc, err := d.get(ctx, key)
	if err != nil {
		return coord.Document{}, fmt.Errorf("reading document %s: %w", key, err)
	}
	return doc, nil
}

// get asks the leader, since the bucket does not allow direct reads. A value that
// should have expired long ago is deleted, as the server should have done.
func (d *documents) get(ctx context.Context, key string) (coord.Document, error) {
	message, err := d.bucket.stream.GetLastMsgForSubject(ctx, d.bucket.subject(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		d.sightings.forget(key)
		return coord.Document{}, base.ErrNotFound
	}
	if err := d.bucket.store.read(ctx, err); err != nil {
		return coord.Document{}, err
	}
	if isMarker(message.Header) {
		d.sightings.forget(key)
		return coord.Document{}, base.ErrNotFound
	}
	doc := coord.Document{Key: key, Value: message.Data, Revision: base.Revision(message.Sequence)}
	ttl := ttlOf(message.Header)
	if ttl == 0 || !d.sightings.overdue(key, doc.Revision, ttl, d.bucket.store.options.Clock.Now()) {
		return doc, nil
	}
	d.bucket.store.options.Logger.Debug("a document outlived its time to live and is deleted", "key", key, "revision", uint64(doc.Revision))
	if err := d.Delete(ctx, key, doc.Revision); err != nil {
		return doc, nil //nolint:nilerr // it stands, and is looked at again
	}
	d.sightings.forget(key)
	return coord.Document{}, base.ErrNotFound
}

func (d *documents) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (base.Revision, error) {
	if err := d.checkWrite(ctx, key, value, ttl); err != nil {
		return 0, fmt.Errorf("creating document %s: %w", key, err)
	}
	ctx, cancel := d.bucket.store.request(ctx)
	defer cancel()
	var options []jetstream.KVCreateOpt
	if ttl > 0 {
		options = append(options, jetstream.KeyTTL(ttl))
	}
	revision, err := d.bucket.kv.Create(ctx, key, value, options...)
	if isConflict(err) {
		return 0, fmt.Errorf("creating document %s: %w", key, base.ErrExists)
	}
	if err := d.bucket.store.wrote(ctx, err); err != nil {
		return 0, fmt.Errorf("creating document %s: %w", key, err)
	}
	return base.Revision(revision), nil
}

// Update publishes by itself, because the client's update would drop the time
// to live.
func (d *documents) Update(
	ctx context.Context, key string, value []byte, revision base.Revision, ttl time.Duration,
) (base.Revision, error) {
	if err := d.checkWrite(ctx, key, value, ttl); err != nil {
		return 0, fmt.Errorf("updating document %s: %w", key, err)
	}
	if revision == 0 { // which a server takes for "must not exist"
		return 0, fmt.Errorf("updating document %s at revision 0: %w", key, base.ErrConflict)
	}
	ctx, cancel := d.bucket.store.request(ctx)
	defer cancel()
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(uint64(revision))}
	if ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(ttl))
	}
	message := &nats.Msg{Subject: d.bucket.subject(key), Data: value, Header: nats.Header{}}
	ack, err := d.bucket.store.js.PublishMsg(ctx, message, options...)
	if isConflict(err) {
		return 0, fmt.Errorf("updating document %s at revision %d: %w", key, revision, base.ErrConflict)
	}
	if err := d.bucket.store.wrote(ctx, err); err != nil {
		return 0, fmt.Errorf("updating document %s: %w", key, err)
	}
	return base.Revision(ack.Sequence), nil
}

func (d *documents) Delete(ctx context.Context, key string, revision base.Revision) error {
	if err := d.check(ctx, key); err != nil {
		return fmt.Errorf("deleting document %s: %w", key, err)
	}
	if revision == 0 { // which a server takes for "whatever it is"
		return fmt.Errorf("deleting document %s at revision 0: %w", key, base.ErrConflict)
	}
	ctx, cancel := d.bucket.store.request(ctx)
	defer cancel()
	err := d.bucket.kv.Purge(ctx, key, jetstream.LastRevision(uint64(revision)), jetstream.PurgeTTL(markerTTL))
	if isConflict(err) {
		return fmt.Errorf("deleting document %s at revision %d: %w", key, revision, base.ErrConflict)
	}
	if err := d.bucket.store.wrote(ctx, err); err != nil {
		return fmt.Errorf("deleting document %s: %w", key, err)
	}
	return nil
}

// List asks the leader for the keys and then for each document. The client's
// own listing reads through a consumer, which a lagging replica may serve.
func (d *documents) List(ctx context.Context, prefix string) ([]coord.Document, error) {
	if err := d.bucket.store.ready(ctx); err != nil {
		return nil, fmt.Errorf("listing documents %s: %w", prefix, err)
	}
	keys, err := d.keys(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("listing documents %s: %w", prefix, err)
	}
	d.sightings.keep(prefix, keys)
	found := make([]coord.Document, 0, len(keys))
	for _, key := range keys {
		doc, err := d.Get(ctx, key)
		if errors.Is(err, base.ErrNotFound) {
			continue // a deletion marker, or gone since the keys were listed
		}
		if err != nil {
			return nil, fmt.Errorf("listing documents %s: %w", prefix, err)
		}
		found = append(found, doc)
	}
	return found, nil
}

func (d *documents) keys(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := d.bucket.store.request(ctx)
	defer cancel()
	// Whole tokens narrow the question to the server, the rest is cut here.
	tokens := prefix[:strings.LastIndexByte(prefix, '.')+1]
	if tokens != "" {
		if err := coord.CheckKey(strings.TrimSuffix(tokens, ".")); err != nil {
			return nil, err
		}
	}
	info, err := d.bucket.stream.Info(ctx, jetstream.WithSubjectFilter(d.bucket.subject(tokens+">")))
	if err := d.bucket.store.read(ctx, err); err != nil {
		return nil, err
	}
	var keys []string
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if key := strings.TrimPrefix(subject, d.bucket.subject("")); strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (d *documents) check(ctx context.Context, key string) error {
	if err := coord.CheckKey(key); err != nil {
		return err
	}
	return d.bucket.store.ready(ctx)
}

func (d *documents) checkWrite(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := coord.CheckKey(key); err != nil {
		return err
	}
	if err := coord.CheckTTL(ttl); err != nil {
		return err
	}
	return d.bucket.store.readyToWrite(ctx, value)
}
