package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	cloudblob "gocloud.dev/blob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// bucketStore is a Store over any bucket of gocloud.dev/blob. Create-only writes
// are the bucket's own conditional writes, so they hold between machines.
type bucketStore struct {
	bucket *cloudblob.Bucket
	name   string // for people: the URL without secrets
	closed atomic.Bool
}

func newBucketStore(bucket *cloudblob.Bucket, name string) *bucketStore {
	return &bucketStore{bucket: bucket, name: name}
}

// createOnly are the options of every write. The fixed content type spares the
// library from sniffing it.
func createOnly() *cloudblob.WriterOptions {
	return &cloudblob.WriterOptions{IfNotExist: true, ContentType: "application/octet-stream"}
}

// Put implements Store. A bucket shows an object only when it is whole. Where the
// provider's client repeats a request whose answer was lost, the ErrExists that it
// then reports may mean the caller's own object.
func (s *bucketStore) Put(ctx context.Context, key string, data []byte) error {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return err
	}
	if err := s.bucket.WriteAll(ctx, key, data, createOnly()); err != nil {
		return s.writeError("putting object "+key, err)
	}
	return nil
}

// Create implements Store.
func (s *bucketStore) Create(ctx context.Context, key string) (Writer, error) {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return nil, err
	}
	// Cancelling before Close is the only way to abort an upload.
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.bucket.NewWriter(ctx, key, createOnly())
	if err != nil {
		cancel()
		return nil, s.readError("creating object "+key, err)
	}
	return &bucketWriter{store: s, key: key, ctx: ctx, cancel: cancel, w: w}, nil
}

// ReadRange implements Store.
func (s *bucketStore) ReadRange(
	ctx context.Context, key string, offset, length int64, dst []byte,
) ([]byte, error) {
	if err := s.begin(ctx, key, checkRange(key, offset, length)); err != nil {
		return nil, err
	}
	if length == 0 { // providers disagree about empty ranges
		return s.readNothing(ctx, key, offset, dst)
	}
	r, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		return nil, s.readRangeError(ctx, key, offset, err)
	}
	defer func() { _ = r.Close() }() // nothing to lose: the bytes were read or the read failed
	if length > r.Size()-offset {
		return nil, shortObject(key, offset, length, r.Size())
	}
	dst = slices.Grow(dst[:0], int(length))[:length]
	if _, err := io.ReadFull(r, dst); err != nil {
		return nil, s.readError("reading object "+key, err)
	}
	return dst, nil
}

func (s *bucketStore) readNothing(ctx context.Context, key string, offset int64, dst []byte) ([]byte, error) {
	info, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if offset > info.Size {
		return nil, shortObject(key, offset, 0, info.Size)
	}
	return dst[:0], nil
}

// readRangeError tells a range past the end, which providers refuse each in its
// own way, from other failures.
func (s *bucketStore) readRangeError(ctx context.Context, key string, offset int64, err error) error {
	info, statErr := s.Stat(ctx, key)
	if statErr == nil && offset >= info.Size {
		return shortObject(key, offset, 0, info.Size)
	}
	return s.readError("reading object "+key, err)
}

// shortObject says that an object ends before the range that was asked for.
func shortObject(key string, offset, length, size int64) error {
	return fmt.Errorf("reading object %s: bytes %d to %d of %d: %w",
		key, offset, offset+length, size, io.ErrUnexpectedEOF)
}

// Stat implements Store.
func (s *bucketStore) Stat(ctx context.Context, key string) (Info, error) {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return Info{}, err
	}
	attrs, err := s.bucket.Attributes(ctx, key)
	if err != nil {
		return Info{}, s.readError("reading attributes of object "+key, err)
	}
	return Info{Key: key, Size: attrs.Size, Modified: base.MillisOf(attrs.ModTime)}, nil
}

// List implements Store. The library has no start key, so a page walks over the
// objects before it.
func (s *bucketStore) List(ctx context.Context, prefix, after string, limit int) ([]Info, error) {
	if err := s.begin(ctx, prefix, checkList(prefix, limit)); err != nil {
		return nil, err
	}
	var found []Info
	for it := s.bucket.List(&cloudblob.ListOptions{Prefix: prefix}); len(found) < limit; {
		object, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, s.readError(fmt.Sprintf("listing objects under %q", prefix), err)
		}
		if object.Key > after && checkKey(object.Key) == nil {
			found = append(found, Info{
				Key: object.Key, Size: object.Size, Modified: base.MillisOf(object.ModTime),
			})
		}
	}
	return found, nil
}

// Delete implements Store.
func (s *bucketStore) Delete(ctx context.Context, key string) error {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return err
	}
	err := s.bucket.Delete(ctx, key)
	if err == nil || isNotFound(err) {
		return nil
	}
	return s.writeError("deleting object "+key, err)
}

// String implements Store.
func (s *bucketStore) String() string { return s.name }

// Close implements Store.
func (s *bucketStore) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.bucket.Close(); err != nil {
		return fmt.Errorf("closing store %s: %w", s, err)
	}
	return nil
}

// begin refuses a call on a closed store, with a cancelled context or with
// arguments that were found invalid.
func (s *bucketStore) begin(ctx context.Context, key string, invalid error) error {
	if s.closed.Load() {
		return fmt.Errorf("store %s: object %s: %w", s, key, base.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store %s: object %s: %w", s, key, err)
	}
	return invalid
}
