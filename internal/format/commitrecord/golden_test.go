package commitrecord_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

var update = flag.Bool("update", false, "write the golden files again")

// text renders a message as JSON with a stable layout.
func text(t *testing.T, m proto.Message) string {
	t.Helper()
	raw, err := protojson.Marshal(m)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, raw, "", "  "))
	return out.String()
}

// goldenText is the golden file of a record: its bytes, 32 a line, and what they
// mean.
func goldenText(t *testing.T, data []byte, payload proto.Message) string {
	t.Helper()
	var b strings.Builder
	for line := range chunks(data, 32) {
		b.WriteString(hex.EncodeToString(line) + "\n")
	}
	fmt.Fprintf(&b, "\n%s\n", text(t, payload))
	return b.String()
}

func chunks(data []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(size, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

func TestRecordsOfEveryKindKeepTheirBytes(t *testing.T) {
	for kind, payload := range samples() {
		t.Run(kind.String(), func(t *testing.T) {
			data := encode(t, payload)
			path := filepath.Join("testdata", kind.String()+".golden")
			got := goldenText(t, data, payload)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "a stored record would no longer be read; a change of meaning is a new kind")

			stored, meaning, _ := strings.Cut(string(want), "\n\n")
			bytes, err := hex.DecodeString(strings.ReplaceAll(stored, "\n", ""))
			require.NoError(t, err)
			env, body, err := commitrecord.DecodeEnvelope(bytes)
			require.NoError(t, err)
			decoded, err := commitrecord.DecodePayload(env.Kind, body)
			require.NoError(t, err)
			require.Equal(t, meaning, text(t, decoded)+"\n")
		})
	}
}

// A golden file proves little of a field that it leaves out.
func TestTheSamplesSetEveryField(t *testing.T) {
	for kind, payload := range samples() {
		requireEveryField(t, kind.String(), payload.ProtoReflect())
	}
}

func requireEveryField(t *testing.T, path string, m protoreflect.Message) {
	t.Helper()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := path + "." + string(f.Name())
		require.True(t, m.Has(f), "%s is not set", at)
		switch {
		case f.Message() == nil:
		case f.IsList():
			requireEveryField(t, at, m.Get(f).List().Get(0).Message())
		default:
			requireEveryField(t, at, m.Get(f).Message())
		}
	}
}

// The oracle decodes by the descriptor alone, without the generated code's tables.
func TestADynamicDecoderReadsTheSame(t *testing.T) {
	for kind, payload := range samples() {
		_, body, err := commitrecord.DecodeEnvelope(encode(t, payload))
		require.NoError(t, err)
		oracle := dynamicpb.NewMessage(payload.ProtoReflect().Descriptor())
		require.NoError(t, proto.Unmarshal(body, oracle))
		require.Equal(t, text(t, oracle), text(t, payload), kind.String())
	}
}
