package blob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"github.com/lakestream-go/lakestream/internal/base"
)

// answer returns the HTTP status and the provider's code of the response that an
// error reports: 0 and nothing when there was no response.
func answer(err error) (status int, code string) {
	if azure, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return azure.StatusCode, azure.ErrorCode
	}
	if google, ok := errors.AsType[*googleapi.Error](err); ok {
		return google.Code, ""
	}
	var s3 interface{ HTTPStatusCode() int }
	if errors.As(err, &s3) {
		status = s3.HTTPStatusCode()
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	return status, code
}

// writeError classes the failure of a write: unless the answer proves that nothing
// happened, the write may have happened.
func (s *bucketStore) writeError(doing string, err error) error {
	return s.classify(doing, s.writeClass(err), err)
}

func (s *bucketStore) writeClass(err error) error {
	if s.closed.Load() { // a bucket that was just closed answers with codes that mean something else
		return base.ErrUnknown
	}
	status, code := answer(err)
	if status == http.StatusOK { // an answer that began well and ended in an error
		status = 0
	}
	switch kind := gcerrors.Code(err); {
	case kind == gcerrors.FailedPrecondition, kind == gcerrors.AlreadyExists, status == http.StatusPreconditionFailed:
		return base.ErrExists
	case kind == gcerrors.InvalidArgument:
		return base.ErrInvalid
	case 400 <= status && status < 500, status == http.StatusNotImplemented:
		return base.ErrUnavailable // among them 409: someone else's conditional write of this key is under way
	case status == 0 && definite(kind), slowDown(code), unsent(err):
		return base.ErrUnavailable
	default:
		return base.ErrUnknown
	}
}

// definite are the codes of the library that say that nothing happened.
func definite(kind gcerrors.ErrorCode) bool {
	return slices.Contains([]gcerrors.ErrorCode{
		gcerrors.NotFound, gcerrors.PermissionDenied, gcerrors.ResourceExhausted, gcerrors.Unimplemented,
	}, kind)
}

// slowDown reports a 503 by which a provider refuses a request before it looks at
// it. Other 503 may come after the effect.
func slowDown(code string) bool { return code == "SlowDown" || code == "ServerBusy" }

// unsent reports that no connection could be made.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// readError classes the failure of a call that changes nothing.
func (s *bucketStore) readError(doing string, err error) error {
	switch {
	case s.closed.Load():
		return s.classify(doing, base.ErrClosed, err)
	case isNotFound(err):
		return s.classify(doing, base.ErrNotFound, err)
	case gcerrors.Code(err) == gcerrors.InvalidArgument:
		return s.classify(doing, base.ErrInvalid, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	default:
		return s.classify(doing, base.ErrUnavailable, err)
	}
}

// isNotFound reports that an object is absent. The library also calls a host that
// cannot be resolved, a bucket that is gone and a refused permission not found:
// taken for an absent object, each would look like data lost.
func isNotFound(err error) bool {
	status, code := answer(err)
	_, network := errors.AsType[net.Error](err)
	switch {
	case gcerrors.Code(err) != gcerrors.NotFound, noBucket(err, code), network:
		return false
	default:
		return status == 0 || status == http.StatusNotFound
	}
}

func noBucket(err error, code string) bool {
	return code == "NoSuchBucket" || code == "ContainerNotFound" || errors.Is(err, storage.ErrBucketNotExist)
}

// passing reports whether the same call may succeed in a moment.
func passing(err error) bool {
	status, code := answer(err)
	kind := gcerrors.Code(err)
	switch status {
	case 0, http.StatusOK:
		return kind == gcerrors.Unknown || kind == gcerrors.DeadlineExceeded
	case http.StatusConflict:
		return kind != gcerrors.FailedPrecondition && kind != gcerrors.AlreadyExists
	case http.StatusBadRequest:
		return code == "RequestTimeout" // S3, when the body came too slowly
	case http.StatusNotImplemented:
		return false
	default:
		return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
	}
}

// classify gives a provider's error a class, what was being done, a text that may
// be shown, and what to do next.
func (s *bucketStore) classify(doing string, class, err error) error {
	return classify(doing, class, s.shown(err))
}

func classify(doing string, class, err error) error {
	return base.WithClass(class, fmt.Errorf("%s: %w", doing, err))
}

// endedError says that a writer was used after Commit or Abort.
func endedError(key string) error {
	return fmt.Errorf("committing object %s: the write has ended: %w", key, base.ErrClosed)
}
