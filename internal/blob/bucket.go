package blob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	cloudblob "gocloud.dev/blob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// provider is what differs between the services behind a bucketStore.
type provider struct {
	// calls repeats nothing by itself. It serves everything but Create.
	calls *cloudblob.Bucket
	// streams repeats the parts of an object that is written as a stream.
	streams *cloudblob.Bucket
	// put stores a whole object if nothing has its name.
	put func(ctx context.Context, name string, data []byte) error
	// remove deletes an object. An absent one may be an error or none.
	remove func(ctx context.Context, name string) error
	// startAfter, where the service can begin a listing in the middle, makes a
	// request do so. It may begin too early, never too late.
	startAfter func(as func(any) bool, name string)
	// close releases connections, after the buckets were closed. May be nil.
	close func() error
}

// bucketStore is a Store over a bucket of gocloud.dev/blob, below a prefix.
// Create-only writes are the bucket's own conditional writes, so they hold between
// machines.
type bucketStore struct {
	provider

	prefix  string // of every name in the bucket: empty, or ends with a slash
	name    string // for people: the URL without secrets
	secrets []string
	retry   retrier
	closed  atomic.Bool
}

// createOnly are the options of every write. The fixed content type spares the library
// from sniffing it.
func createOnly() *cloudblob.WriterOptions {
	return &cloudblob.WriterOptions{IfNotExist: true, ContentType: contentType}
}

const contentType = "application/octet-stream"

// Put implements Store. A bucket shows an object only when it is whole.
func (s *bucketStore) Put(ctx context.Context, key string, data []byte) error {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return err
	}
	stored := false // whether an attempt may have stored the object
	err := s.retry.do(ctx, int64(len(data)), func(ctx context.Context) error {
		err := s.put(ctx, s.prefix+key, data)
		stored = stored || (err != nil && errors.Is(s.writeClass(err), base.ErrUnknown))
		return err
	})
	doing := "putting object " + key
	switch {
	case err == nil:
		return nil
	case !stored:
		return s.writeError(doing, err)
	default:
		return s.resolve(ctx, doing, key, err, written{int64(len(data)), crc32.Checksum(data, castagnoli)})
	}
}

// written describes the bytes of an object that may have been stored.
type written struct {
	size     int64
	checksum uint32 // CRC-32C
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// resolve ends a write after an attempt whose answer was lost. If the last attempt
// found an object with the same bytes, an earlier one had stored it.
func (s *bucketStore) resolve(ctx context.Context, doing, key string, err error, w written) error {
	if !errors.Is(s.writeClass(err), base.ErrExists) {
		return s.classify(doing, base.ErrUnknown, err)
	}
	same, readErr := s.holds(ctx, key, w)
	switch {
	case readErr != nil:
		return classify(doing, base.ErrUnknown, fmt.Errorf("comparing with what is there: %w", readErr))
	case same:
		return nil
	default:
		return s.classify(doing, base.ErrExists, err)
	}
}

// comparedBytes is how much of an object is held while it is compared.
const comparedBytes = 1 << 20

// holds reports whether an object has the bytes described.
func (s *bucketStore) holds(ctx context.Context, key string, w written) (bool, error) {
	info, err := s.Stat(ctx, key)
	if err != nil || info.Size != w.size {
		return false, err
	}
	var checksum uint32
	var part []byte
	for at := int64(0); at < w.size; at += int64(len(part)) {
		if part, err = s.ReadRange(ctx, key, at, min(comparedBytes, w.size-at), part); err != nil {
			return false, err
		}
		checksum = crc32.Update(checksum, castagnoli, part)
	}
	return checksum == w.checksum, nil
}

// ReadRange implements Store.
func (s *bucketStore) ReadRange(
	ctx context.Context, key string, offset, length int64, dst []byte,
) (data []byte, err error) {
	if err := s.begin(ctx, key, checkRange(key, offset, length)); err != nil {
		return nil, err
	}
	if length == 0 { // providers disagree about empty ranges
		return s.readNothing(ctx, key, offset, dst)
	}
	var size int64
	err = s.retry.do(ctx, length, func(ctx context.Context) (err error) {
		data, size, err = s.read(ctx, key, offset, length, dst)
		return err
	})
	switch {
	case err != nil:
		return nil, s.readRangeError(ctx, key, offset, err)
	case data == nil:
		return nil, shortObject(key, offset, length, size)
	default:
		return data, nil
	}
}

// read reads a range once, and returns the size of the object. It returns no data
// where the object ends inside of the range.
func (s *bucketStore) read(
	ctx context.Context, key string, offset, length int64, dst []byte,
) (data []byte, size int64, err error) {
	r, err := s.calls.NewRangeReader(ctx, s.prefix+key, offset, length, nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = r.Close() }() // nothing to lose: the bytes were read or the read failed
	if length > r.Size()-offset {
		return nil, r.Size(), nil
	}
	data = slices.Grow(dst[:0], int(length))[:length]
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, 0, err
	}
	return data, r.Size(), nil
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
	if status, _ := answer(err); status == 0 && passing(err) {
		return s.readError("reading object "+key, err) // nobody answered: asking again is of no use
	}
	info, statErr := s.Stat(ctx, key)
	if statErr == nil && offset >= info.Size {
		return shortObject(key, offset, 0, info.Size)
	}
	return s.readError("reading object "+key, err)
}

// shortObject says that an object ends before the range that was asked for.
func shortObject(key string, offset, length, size int64) error {
	return fmt.Errorf("reading object %s: %d bytes from %d of %d: %w", key, length, offset, size, io.ErrUnexpectedEOF)
}

// Stat implements Store.
func (s *bucketStore) Stat(ctx context.Context, key string) (Info, error) {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return Info{}, err
	}
	var attrs *cloudblob.Attributes
	err := s.retry.do(ctx, 0, func(ctx context.Context) (err error) {
		attrs, err = s.calls.Attributes(ctx, s.prefix+key)
		return err
	})
	if err != nil {
		return Info{}, s.readError("reading attributes of object "+key, err)
	}
	return Info{Key: key, Size: attrs.Size, Modified: base.MillisOf(attrs.ModTime)}, nil
}

// pageObjects is the most that every provider lists at once.
const pageObjects = 1000

// List implements Store.
func (s *bucketStore) List(ctx context.Context, prefix, after string, limit int) ([]Info, error) {
	if err := s.begin(ctx, prefix, checkList(prefix, limit)); err != nil {
		return nil, err
	}
	opts := &cloudblob.ListOptions{Prefix: s.prefix + prefix, BeforeList: s.beforeList(after)}
	var found []Info
	for token := cloudblob.FirstPageToken; len(found) < limit && token != nil; {
		var page []*cloudblob.ListObject
		err := s.retry.do(ctx, 0, func(ctx context.Context) error {
			objects, next, err := s.calls.ListPage(ctx, token, min(limit-len(found)+1, pageObjects), opts)
			if err == nil {
				page, token = objects, next
			}
			return err
		})
		if err != nil {
			return nil, s.readError(fmt.Sprintf("listing objects under %q", prefix), err)
		}
		found = s.appendListed(found, page, after)
	}
	return found[:min(limit, len(found))], nil
}

// beforeList makes a listing start after a key. One that is outside the grammar
// could be spelled differently in the bucket: then the listing starts at the
// prefix, and what comes before the key is left out here.
func (s *bucketStore) beforeList(after string) func(as func(any) bool) error {
	if s.startAfter == nil || checkKey(after) != nil {
		return nil
	}
	return func(as func(any) bool) error {
		s.startAfter(as, s.prefix+after)
		return nil
	}
}

func (s *bucketStore) appendListed(found []Info, page []*cloudblob.ListObject, after string) []Info {
	for _, object := range page {
		key := strings.TrimPrefix(object.Key, s.prefix)
		if key > after && checkKey(key) == nil {
			found = append(found, Info{Key: key, Size: object.Size, Modified: base.MillisOf(object.ModTime)})
		}
	}
	return found
}

// Delete implements Store.
func (s *bucketStore) Delete(ctx context.Context, key string) error {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return err
	}
	err := s.retry.do(ctx, 0, func(ctx context.Context) error { return s.remove(ctx, s.prefix+key) })
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
	err := s.calls.Close()
	if s.streams != s.calls {
		err = errors.Join(err, s.streams.Close())
	}
	if s.close != nil {
		err = errors.Join(err, s.close())
	}
	if err != nil {
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
