package natskv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

var classes = []error{base.ErrUnknown, base.ErrUnavailable, base.ErrInvalid, base.ErrConflict}

func apiError(status int, code jetstream.ErrorCode) error {
	return fmt.Errorf("nats: %w", &jetstream.APIError{Code: status, ErrorCode: code, Description: "told so"})
}

// What a client's error means for the record that was to be written, and for a
// question that was asked. nil means refused without a class.
func TestClientErrorsHaveClasses(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		write, read error
	}{
		"timeout":                {nats.ErrTimeout, base.ErrUnknown, base.ErrUnavailable},
		"deadline":               {context.DeadlineExceeded, base.ErrUnknown, base.ErrUnavailable},
		"cancelled":              {context.Canceled, base.ErrUnknown, base.ErrUnavailable},
		"closed under way":       {nats.ErrConnectionClosed, base.ErrUnknown, base.ErrUnavailable},
		"unreadable answer":      {jetstream.ErrInvalidJSAck, base.ErrUnknown, base.ErrUnavailable},
		"anything else":          {errors.New("surprise"), base.ErrUnknown, base.ErrUnavailable},
		"not sent, reconnecting": {nats.ErrReconnectBufExceeded, base.ErrUnavailable, base.ErrUnavailable},
		"nobody listens":         {nats.ErrNoResponders, base.ErrUnavailable, base.ErrUnavailable},
		"no stream listens":      {jetstream.ErrNoStreamResponse, base.ErrUnavailable, base.ErrUnavailable},
		"over the payload":       {nats.ErrMaxPayload, base.ErrInvalid, base.ErrUnavailable},
		"refused for now":        {apiError(503, 10008), base.ErrUnavailable, base.ErrUnavailable},
		"refused by the store":   {apiError(500, codeStoreFailed), base.ErrUnavailable, base.ErrUnavailable},
		"refused":                {apiError(400, 10052), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, got := range map[string]struct{ err, class error }{
				"write": {writeError(t.Context(), c.err), c.write},
				"read":  {readError(t.Context(), c.err), c.read},
			} {
				require.ErrorIs(t, got.err, c.err, kind)
				for _, class := range classes {
					assert.Equal(t, errors.Is(class, got.class), errors.Is(got.err, class), "%s: %s", kind, class)
				}
			}
		})
	}
	require.NoError(t, writeError(t.Context(), nil))
	require.NoError(t, readError(t.Context(), nil))
}

func TestBothConflictCodesAreConflicts(t *testing.T) {
	assert.True(t, isConflict(apiError(400, 10071)))
	assert.True(t, isConflict(apiError(400, 10164)))
	assert.False(t, isConflict(apiError(400, 10072)))
	assert.False(t, isConflict(nats.ErrTimeout))
	assert.False(t, isConflict(nil))
}

func TestALostLinkIsNamed(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLinkLost)
	err := writeError(ctx, context.Canceled)
	require.ErrorIs(t, err, base.ErrUnknown)
	require.ErrorContains(t, err, "connection lost before the answer")
}

// A loss of the link ends the requests and watches of before, and none of after.
func TestALinkHasGenerations(t *testing.T) {
	l := newLink(t.Context())
	before := l.context()
	l.lost()
	require.Error(t, before.Err())
	require.NoError(t, l.context().Err())
	assert.Zero(t, l.count(), "lost is not restored")
	l.restored()
	assert.Equal(t, uint64(1), l.count())
	l.lost()
}
