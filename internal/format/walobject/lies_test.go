package walobject_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
)

// TestAValidChecksumDoesNotMakeALieTrue gives fields of the index values that
// contradict the object, under checksums that hold.
func TestAValidChecksumDoesNotMakeALieTrue(t *testing.T) {
	be := binary.BigEndian
	// The index of three blocks and the trailer end the object.
	const tail = 3*44 + 24
	for name, lie := range map[string]func(index []byte){
		"the first block does not start behind the header": func(x []byte) { be.PutUint32(x[16:], 45) },
		"a gap between blocks":                             func(x []byte) { be.PutUint32(x[44+16:], be.Uint32(x[44+16:])+1) },
		"overlapping blocks":                               func(x []byte) { be.PutUint32(x[44+16:], 44) },
		"an empty block":                                   func(x []byte) { be.PutUint32(x[20:], 0) },
		"a block beyond the end":                           func(x []byte) { be.PutUint32(x[88+20:], math.MaxUint32) },
		"a block without records":                          func(x []byte) { be.PutUint32(x[12:], 0) },
		"times in the wrong order":                         func(x []byte) { be.PutUint64(x[24:], math.MaxInt64) },
		"fewer blocks":                                     func(x []byte) { be.PutUint32(x[132+8:], 2) },
		"more blocks":                                      func(x []byte) { be.PutUint32(x[132+8:], 4) },
		"more blocks than fit":                             func(x []byte) { be.PutUint32(x[132+8:], math.MaxUint32) },
		"another end":                                      func(x []byte) { x[132+20] = 'X' },
	} {
		t.Run(name, func(t *testing.T) {
			object := build(t, 3, 1, recordbatch.None)
			lie(object[len(object)-tail:])
			_, err := walobject.Describe(reseal(object))
			require.ErrorIs(t, err, base.ErrCorrupt)
		})
	}
}

func TestPaddingIsLessThanTheLargestAlignment(t *testing.T) {
	object := build(t, 1, 1, recordbatch.None)
	padded := slices.Concat(object[:len(object)-68], make([]byte, walobject.MaxAlignment), object[len(object)-68:])
	_, err := walobject.Parse(reseal(padded))
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.ErrorContains(t, err, "padding")
}

func TestAnObjectIsToldByItsFirstBytes(t *testing.T) {
	require.True(t, walobject.Is(build(t, 1, 1, recordbatch.None)))
	require.False(t, walobject.Is(nil))
	require.False(t, walobject.Is([]byte("PAR1")))
}

func TestADamagedRecordIsFoundBehindAValidIndex(t *testing.T) {
	object := build(t, 2, 1, recordbatch.None)
	object[44+80] ^= 1 // in the first block's records
	_, err := walobject.Describe(reseal(object))
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.ErrorContains(t, err, "block 0 of log 100-0")
}
