package blob

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// httpError is how a provider's SDK reports a response.
type httpError int

func (e httpError) Error() string       { return fmt.Sprintf("http status %d", int(e)) }
func (e httpError) HTTPStatusCode() int { return int(e) }

func memoryBucket() *bucketStore {
	bucket := memblob.OpenBucket(nil)
	return newBucketStore(provider{calls: bucket, streams: bucket}, "", "mem://", Options{})
}

func TestWriteErrorSaysWhatMayHaveHappened(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"precondition failed", httpError(412), base.ErrExists},
		{"another conditional write under way", httpError(409), base.ErrUnavailable},
		{"slow down", httpError(429), base.ErrUnavailable},
		{"service unavailable may come after the effect", httpError(503), base.ErrUnknown},
		{"internal error", httpError(500), base.ErrUnknown},
		{"time ran out", context.DeadlineExceeded, base.ErrUnknown},
		{"cancelled", context.Canceled, base.ErrUnknown},
		{"connection lost", errors.New("connection reset"), base.ErrUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := memoryBucket().writeError("putting object a", fmt.Errorf("sdk: %w", test.err))
			require.ErrorIs(t, err, test.want)
			require.ErrorIs(t, err, test.err, "the cause is kept")
			require.ErrorContains(t, err, "putting object a: sdk")
			for _, class := range []error{base.ErrExists, base.ErrUnavailable, base.ErrUnknown} {
				require.Equal(t, errors.Is(test.want, class), errors.Is(err, class), "%v", class)
			}
		})
	}
}

func TestReadErrorIsNeverUnknown(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"internal error", httpError(500), base.ErrUnavailable},
		{"time ran out", context.DeadlineExceeded, base.ErrUnavailable},
		{"cancelled", context.Canceled, context.Canceled},
		{"connection lost", errors.New("connection reset"), base.ErrUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := memoryBucket().readError("reading object a", test.err)
			require.ErrorIs(t, err, test.want)
			require.NotErrorIs(t, err, base.ErrUnknown)
		})
	}
}

// A bucket closed under a call answers with the code of a failed precondition.
// Taken for ErrExists, it would say that an object is there that is not.
func TestCallsOvertakenByCloseDoNotClaimThatAnObjectExists(t *testing.T) {
	s := memoryBucket()
	require.NoError(t, s.Close())
	overtaken := s.calls.WriteAll(t.Context(), "a", nil, createOnly())
	require.Error(t, overtaken)
	require.ErrorIs(t, s.writeError("putting object a", overtaken), base.ErrUnknown)
	require.NotErrorIs(t, s.writeError("putting object a", overtaken), base.ErrExists)
	require.ErrorIs(t, s.readError("reading object a", overtaken), base.ErrClosed)
}
