package commitrecord_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// maxAmplification bounds the memory that decoding takes for each byte of a
// record: two bytes can be an empty message in a list.
const maxAmplification = 300

func FuzzDecode(f *testing.F) {
	for _, payload := range samples() {
		f.Add(encode(f, payload))
	}
	f.Add([]byte{})
	f.Add([]byte("LSCR"))
	f.Fuzz(func(t *testing.T, data []byte) {
		env, body, err := commitrecord.DecodeEnvelope(data)
		if err != nil {
			requireClass(t, err, commitrecord.ErrForeign, base.ErrNewerFormat)
			return
		}
		payload, err := commitrecord.DecodePayload(env.Kind, body)
		if err != nil {
			requireClass(t, err, base.ErrCorrupt, base.ErrNewerFormat)
			return
		}
		_, err = commitrecord.Encode(env, payload)
		require.NoError(t, err)
	})
}

// FuzzDecodePayload gets past the checksum.
func FuzzDecodePayload(f *testing.F) {
	for kind, payload := range samples() {
		_, body, err := commitrecord.DecodeEnvelope(encode(f, payload))
		require.NoError(f, err)
		f.Add(uint16(kind), body)
	}
	f.Fuzz(func(t *testing.T, kind uint16, body []byte) {
		if len(body) > commitrecord.MaxBytes {
			return
		}
		payload, allocated, err := decodeMeasured(commitrecord.Kind(kind), body)
		require.LessOrEqual(t, allocated, uint64(maxAmplification*len(body)+1<<16))
		if err != nil {
			requireClass(t, err, base.ErrCorrupt, base.ErrNewerFormat)
			return
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
		require.NoError(t, err)
		read, err := commitrecord.DecodePayload(commitrecord.Kind(kind), again)
		require.NoError(t, err)
		require.True(t, proto.Equal(payload, read))
	})
}

func decodeMeasured(kind commitrecord.Kind, body []byte) (commitrecord.Payload, uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	payload, err := commitrecord.DecodePayload(kind, body)
	runtime.ReadMemStats(&after)
	return payload, after.TotalAlloc - before.TotalAlloc, err
}

func requireClass(t *testing.T, err error, classes ...error) {
	t.Helper()
	for _, class := range classes {
		if errors.Is(err, class) {
			return
		}
	}
	require.Failf(t, "an error of no class", "%v", err)
}

// The worst that a record of the full size can cost.
func TestDecodingTheDensestRecordStaysBounded(t *testing.T) {
	body := make([]byte, commitrecord.MaxBytes)
	for i := 0; i+1 < len(body); i += 2 {
		body[i], body[i+1] = 0x1a, 0 // an empty range of a Prepared
	}
	_, allocated, err := decodeMeasured(commitrecord.KindPrepared, body)
	require.NoError(t, err)
	require.Less(t, allocated, uint64(maxAmplification*commitrecord.MaxBytes))
}
