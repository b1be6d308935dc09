package commitrecord_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

func TestEveryKindHasAPayloadANameAndARowInTheFormat(t *testing.T) {
	format, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	all := samples()
	for n := range 1 << 16 {
		kind := commitrecord.Kind(n)
		payload, err := commitrecord.DecodePayload(kind, nil)
		if err != nil {
			require.ErrorIs(t, err, base.ErrNewerFormat)
			require.Equal(t, fmt.Sprintf("kind %d", n), kind.String())
			require.NotContains(t, all, kind)
			continue
		}
		require.Contains(t, all, kind, "add %s to the samples", kind)
		back, ok := commitrecord.KindOf(payload)
		require.True(t, ok)
		require.Equal(t, kind, back)
		require.Contains(t, string(format), fmt.Sprintf("| %d | %s | ", n, kind))
	}
}

func TestAMessageWithoutAKindIsNotEncoded(t *testing.T) {
	_, ok := commitrecord.KindOf(&emptypb.Empty{})
	require.False(t, ok)
	_, err := commitrecord.Encode(sampleEnvelope, &emptypb.Empty{})
	require.ErrorIs(t, err, base.ErrInvalid)
}
