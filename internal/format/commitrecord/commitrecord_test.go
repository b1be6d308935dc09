package commitrecord_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func TestARecordReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := drawEnvelope(t)
		kind, payload := drawPayload(t)
		data, err := commitrecord.Encode(env, payload)
		require.NoError(t, err)
		env.Kind = kind

		gotEnv, body, err := commitrecord.DecodeEnvelope(data)
		require.NoError(t, err)
		require.Equal(t, env, gotEnv)
		got, err := commitrecord.DecodePayload(gotEnv.Kind, body)
		require.NoError(t, err)
		require.True(t, proto.Equal(payload, got), "wrote %v, read %v", payload, got)

		again, err := commitrecord.Encode(env, got)
		require.NoError(t, err)
		require.Equal(t, data, again, "one meaning has one form")
	})
}

func TestAFlippedBitAnywhereMakesARecordForeign(t *testing.T) {
	for kind, payload := range samples() {
		data := encode(t, payload)
		for bit := range len(data) * 8 {
			damaged := bytes.Clone(data)
			damaged[bit/8] ^= 1 << (bit % 8)
			requireForeign(t, damaged, "bit %d of %s", bit, kind)
		}
	}
}

func TestAnyOtherByteAnywhereMakesARecordForeign(t *testing.T) {
	data := encode(t, samples()[commitrecord.KindAppend])
	for at := range data {
		for change := 1; change < 256; change++ {
			damaged := bytes.Clone(data)
			damaged[at] ^= byte(change)
			requireForeign(t, damaged, "byte %d", at)
		}
	}
}

func TestACutOrExtendedRecordIsForeign(t *testing.T) {
	for kind, payload := range samples() {
		data := encode(t, payload)
		for size := range data {
			requireForeign(t, data[:size], "%s cut to %d bytes", kind, size)
			requireForeign(t, data[size+1:], "%s without its first %d bytes", kind, size+1)
		}
		requireForeign(t, append(bytes.Clone(data), 0), "%s and a byte", kind)
		requireForeign(t, append(bytes.Clone(data), data...), "%s twice", kind)
	}
}

func requireForeign(t *testing.T, data []byte, format string, args ...any) {
	t.Helper()
	// Asked tens of thousands of times, so the words are made only on failure.
	env, body, err := commitrecord.DecodeEnvelope(data)
	if !errors.Is(err, commitrecord.ErrForeign) || env != (commitrecord.Envelope{}) || body != nil {
		require.Failf(t, "not foreign", format+": %+v, %d bytes, %v", append(args, env, len(body), err)...)
	}
}

// What a later version may do to the envelope must never look like a stranger's
// bytes: an old binary would skip the record and hold another state.
func TestARecordOfANewerVersionIsNewerWhateverItsShape(t *testing.T) {
	newer := func(size int) []byte {
		data := make([]byte, size)
		copy(data, "LSCR")
		binary.BigEndian.PutUint16(data[4:], commitrecord.Version+1)
		return seal(data)
	}
	for _, size := range []int{10, 11, 71, 72, 1000, commitrecord.MaxBytes, commitrecord.MaxBytes + 1, 4 * commitrecord.MaxBytes} {
		_, _, err := commitrecord.DecodeEnvelope(newer(size))
		require.ErrorIs(t, err, base.ErrNewerFormat, "%d bytes", size)
		require.NotErrorIs(t, err, base.ErrForeign)
	}
	sample := encode(t, samples()[commitrecord.KindAppend])
	binary.BigEndian.PutUint16(sample[4:], 0xffff)
	_, _, err := commitrecord.DecodeEnvelope(seal(sample))
	require.ErrorIs(t, err, base.ErrNewerFormat)
}

// A checksum that fits does not make an envelope of ours out of a wrong one.
func TestASealedRecordThatContradictsTheFormatIsForeign(t *testing.T) {
	sample := encode(t, samples()[commitrecord.KindFoldVersion])
	change := func(fn func([]byte)) []byte {
		data := bytes.Clone(sample)
		fn(data)
		return seal(data)
	}
	for name, data := range map[string][]byte{
		"version 0":            change(func(b []byte) { binary.BigEndian.PutUint16(b[4:], 0) }),
		"length one too large": change(func(b []byte) { b[67]++ }),
		"length one too small": change(func(b []byte) { b[67]-- }),
		"length of 4 GiB":      change(func(b []byte) { binary.BigEndian.PutUint32(b[64:], 1<<32-1) }),
		"a cut header":         seal(sample[:60]),
		"over the limit":       seal(append(bytes.Clone(sample), make([]byte, commitrecord.MaxBytes)...)),
		"another magic":        change(func(b []byte) { b[0] = 'X' }),
	} {
		requireForeign(t, data, name)
	}
}

func TestAnUnknownKindIsNewerAndGarbageIsCorrupt(t *testing.T) {
	sample := encode(t, samples()[commitrecord.KindFoldVersion])
	binary.BigEndian.PutUint16(sample[6:], 999)
	env, body, err := commitrecord.DecodeEnvelope(seal(sample))
	require.NoError(t, err, "the envelope can be checked without knowing the kind")
	_, err = commitrecord.DecodePayload(env.Kind, body)
	require.ErrorIs(t, err, base.ErrNewerFormat)
	require.ErrorContains(t, err, "999")

	for kind := range samples() {
		for _, garbage := range []string{"\xff", "\x0a\xff", "\x0a\x05ab", strings.Repeat("\xff", 100)} {
			_, err := commitrecord.DecodePayload(kind, []byte(garbage))
			require.ErrorIs(t, err, base.ErrCorrupt, "%s %q", kind, garbage)
		}
	}
}

// Skipping a field that a newer writer relied on would fold to another state than
// the writer's, silently.
func TestAnUnknownFieldAnywhereIsNewer(t *testing.T) {
	for kind, payload := range samples() {
		for _, m := range messagesIn(payload.ProtoReflect()) {
			m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7))
			body, err := proto.Marshal(payload)
			require.NoError(t, err)
			_, err = commitrecord.DecodePayload(kind, body)
			require.ErrorIs(t, err, base.ErrNewerFormat, "%s in %s", m.Descriptor().Name(), kind)
			m.SetUnknown(nil)
		}
	}
}

// messagesIn returns a message and all messages inside it.
func messagesIn(m protoreflect.Message) []protoreflect.Message {
	all := []protoreflect.Message{m}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				all = append(all, messagesIn(v.List().Get(i).Message())...)
			}
		default:
			all = append(all, messagesIn(v.Message())...)
		}
		return true
	})
	return all
}

func TestARecordOverTheLimitIsRefusedAndOneAtTheLimitIsNot(t *testing.T) {
	ofSize := func(n int) commitrecord.Payload {
		return &commitpb.Reclaimed{Keys: []string{strings.Repeat("k", n)}}
	}
	overhead := proto.Size(ofSize(commitrecord.MaxBytes)) - commitrecord.MaxBytes + 72
	data, err := commitrecord.Encode(sampleEnvelope, ofSize(commitrecord.MaxBytes-overhead))
	require.NoError(t, err)
	require.Len(t, data, commitrecord.MaxBytes)
	_, _, err = commitrecord.DecodeEnvelope(data)
	require.NoError(t, err)

	_, err = commitrecord.Encode(sampleEnvelope, ofSize(commitrecord.MaxBytes-overhead+1))
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "Reclaimed", "the error names what is too large")
}

func TestTextThatCannotBeStoredIsRefusedWhenItIsWritten(t *testing.T) {
	_, err := commitrecord.Encode(sampleEnvelope, &commitpb.Reclaimed{Keys: []string{"\xff"}})
	require.Error(t, err)
}

func TestTheEnvelopeTakesItsKindFromThePayload(t *testing.T) {
	env := sampleEnvelope
	env.Kind = commitrecord.KindReclaimed
	data, err := commitrecord.Encode(env, &commitpb.FoldVersion{Version: 1})
	require.NoError(t, err)
	got, _, err := commitrecord.DecodeEnvelope(data)
	require.NoError(t, err)
	require.Equal(t, commitrecord.KindFoldVersion, got.Kind)
}
