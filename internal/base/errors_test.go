package base_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

var sentinels = []error{
	base.ErrUnknown, base.ErrFenced, base.ErrInvalid, base.ErrNotFound, base.ErrExists, base.ErrConflict,
	base.ErrUnavailable, base.ErrCorrupt, base.ErrNewerFormat, base.ErrForeign, base.ErrTrimmed, base.ErrClosed,
}

func TestAClassedErrorIsItsClassAndItsCause(t *testing.T) {
	for _, class := range sentinels {
		err := fmt.Errorf("putting: %w", base.WithClass(class, context.Canceled))
		require.ErrorIs(t, err, class)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "putting: context canceled", err.Error(), "a class adds no words")
	}
}

func TestSentinelsAreToldApart(t *testing.T) {
	for i, a := range sentinels {
		for j, b := range sentinels {
			require.Equal(t, i == j, errors.Is(a, b), "%v and %v", a, b)
		}
	}
}

func TestNoErrorStaysNoError(t *testing.T) {
	require.NoError(t, base.WithClass(base.ErrUnknown, nil))
}
