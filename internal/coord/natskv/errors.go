package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lakestream-go/lakestream/internal/base"
)

// errLinkLost is why a request ended that was under way when the connection
// broke.
var errLinkLost = errors.New("connection lost before the answer")

// codeReplicas is the server's refusal of more replicas than it can place, and
// serviceUnavailable the class of refusals that may pass by themselves.
const (
	codeReplicas       jetstream.ErrorCode = 10074
	codeNoPeers        jetstream.ErrorCode = 10005
	codeStoreFailed    jetstream.ErrorCode = 10077
	serviceUnavailable                     = 503
)

// isConflict reports a failed compare-and-set. Replicated streams answer with
// another code than single ones.
func isConflict(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	var apiErr *jetstream.APIError
	if !errors.As(err, &apiErr) {
		return false
	}
	return slices.Contains(codes, apiErr.ErrorCode)
}

// writeError classes the error of a request that changes something: refused by
// the server or never sent is definite; without an answer it is unknown.
func writeError(ctx context.Context, err error) error {
	var apiErr *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, jetstream.ErrNoStreamResponse):
		return base.WithClass(base.ErrUnavailable, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return base.WithClass(base.ErrInvalid, err)
	case errors.As(err, &apiErr):
		return refusal(apiErr, err)
	default:
		return base.WithClass(base.ErrUnknown, explain(ctx, err))
	}
}

// readError classes the error of a request that changes nothing.
func readError(ctx context.Context, err error) error {
	var apiErr *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &apiErr):
		return refusal(apiErr, err)
	default:
		return base.WithClass(base.ErrUnavailable, explain(ctx, err))
	}
}

// refusal classes what a server answered: nothing happened.
func refusal(apiErr *jetstream.APIError, err error) error {
	if apiErr.Code == serviceUnavailable || apiErr.ErrorCode == codeStoreFailed {
		return base.WithClass(base.ErrUnavailable, err)
	}
	return err
}

// explain names the lost connection where the client only says that the
// context ended.
func explain(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errLinkLost) {
		return fmt.Errorf("%w: %w", errLinkLost, err)
	}
	return err
}
