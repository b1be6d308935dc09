package blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"gocloud.dev/gcerrors"

	"github.com/lakestream-go/lakestream/internal/base"
)

// httpStatus is what the SDKs' errors for HTTP responses have in common.
type httpStatus interface{ HTTPStatusCode() int }

func isNotFound(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

// writeError classes the failure of a write: unless the answer proves that
// nothing happened, the write may have happened.
func (s *bucketStore) writeError(doing string, err error) error {
	class := base.ErrUnknown
	if !s.closed.Load() { // a bucket that was just closed answers with codes that mean something else
		class = writeClass(err)
	}
	return classify(doing, class, err)
}

func writeClass(err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		return base.ErrExists
	case gcerrors.NotFound, gcerrors.PermissionDenied, gcerrors.ResourceExhausted, gcerrors.Unimplemented:
		return base.ErrUnavailable // also a bucket that is not there
	case gcerrors.InvalidArgument:
		return base.ErrInvalid
	default:
		return writeClassOfStatus(err)
	}
}

// writeClassOfStatus looks at the HTTP status, where the library did not.
func writeClassOfStatus(err error) error {
	var response httpStatus
	if !errors.As(err, &response) {
		return base.ErrUnknown
	}
	switch response.HTTPStatusCode() {
	case http.StatusPreconditionFailed:
		return base.ErrExists
	case http.StatusConflict, // someone else's conditional write of this key is under way
		http.StatusTooManyRequests:
		return base.ErrUnavailable
	default:
		return base.ErrUnknown
	}
}

// readError classes the failure of a call that changes nothing.
func (s *bucketStore) readError(doing string, err error) error {
	switch code := gcerrors.Code(err); {
	case s.closed.Load():
		return classify(doing, base.ErrClosed, err)
	case code == gcerrors.NotFound:
		return classify(doing, base.ErrNotFound, err)
	case code == gcerrors.InvalidArgument:
		return classify(doing, base.ErrInvalid, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	default:
		return classify(doing, base.ErrUnavailable, err)
	}
}

func classify(doing string, class, err error) error {
	return base.WithClass(class, fmt.Errorf("%s: %w", doing, err))
}

// endedError says that a writer was used after Commit or Abort.
func endedError(key string) error {
	return fmt.Errorf("committing object %s: the write has ended: %w", key, base.ErrClosed)
}
