package cursor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
)

func drawRoster(t *rapid.T) roster {
	var r roster
	wants, _ := drawStreams(t)
	for i := range rapid.IntRange(0, 5).Draw(t, "members") {
		name := fmt.Sprintf("m%d", i)
		r = r.with(enrolled{Name: name, Session: "s" + name, Label: "host", Wants: wants[:rapid.IntRange(0, len(wants)).Draw(t, "wants")]})
	}
	return r
}

func TestARosterReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoster(t)
		data, err := r.encode()
		require.NoError(t, err)
		read, err := decodeRoster(data)
		require.NoError(t, err)
		again, err := read.encode()
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
		require.Len(t, read.Members, len(r.Members))
		for i, m := range read.Members {
			require.Equal(t, r.placesOf(m.Name), read.placesOf(m.Name))
			require.Len(t, m.Wants, len(r.Members[i].Wants))
		}
	})
}

// golden compares with the bytes that the first version wrote.
func golden(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(data))
	return want
}

func TestDocumentsOfTheFirstVersionAreRead(t *testing.T) {
	s := Stream{Shard: 2, ID: 12, Name: base.StreamName{Namespace: "shop", Name: "orders"}}
	r := roster{}.with(enrolled{Name: "a", Session: "01A", Label: "host-1", Wants: []Range{{Stream: s, Last: 3}}}).
		with(enrolled{Name: "b", Session: "01B", Wants: []Range{{Stream: s, Last: 3}}})
	data, err := r.encode()
	require.NoError(t, err)
	read, err := decodeRoster(golden(t, "group-v1.json", data))
	require.NoError(t, err)
	require.Equal(t, r, read)

	next := base.Offset(42)
	d := document{
		Next: &next, Acks: [][2]base.Offset{{50, 60}, {70, 71}}, Properties: map[string]string{"batch": "7"},
		Owner: "01A", Generation: 9, Stalled: true, Time: 1767225600000,
	}
	data, err = d.encode()
	require.NoError(t, err)
	back, err := decodeDocument(golden(t, "cursor-v1.json", data))
	require.NoError(t, err)
	require.Equal(t, d, back)
}

func TestWhatNoCursorHasIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		``:              base.ErrCorrupt,
		`{}`:            base.ErrCorrupt,
		`[]`:            base.ErrCorrupt,
		`{"version":2}`: base.ErrNewerFormat,
		`{"version":2,"next":"far away","streams":7}`:                                      base.ErrNewerFormat,
		`{"version":1,"next":-1}`:                                                          base.ErrCorrupt,
		`{"version":1,"acks":[[1,2]]}`:                                                     base.ErrCorrupt,
		`{"version":1,"next":5,"acks":[[5,6]]}`:                                            base.ErrCorrupt,
		`{"version":1,"next":5,"acks":[[7,7]]}`:                                            base.ErrCorrupt,
		`{"version":1,"next":5,"acks":[[9,10],[7,8]]}`:                                     base.ErrCorrupt,
		`{"version":1,"next":5,"acks":[[7,8],[8,9]]}`:                                      base.ErrCorrupt,
		`{"version":1,"properties":{"a":"` + strings.Repeat("x", MaxPropertyBytes) + `"}}`: base.ErrCorrupt,
	} {
		_, err := decodeDocument([]byte(text))
		require.ErrorIs(t, err, want, text)
	}
}

func TestWhatNoGroupHasIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		``:              base.ErrCorrupt,
		`{"version":2}`: base.ErrNewerFormat,
		`{"version":1,"streams":[{"owners":[0]}]}`:                                                             base.ErrCorrupt,
		`{"version":1,"streams":[{"owners":[-2]}]}`:                                                            base.ErrCorrupt,
		`{"version":1,"members":[{"name":"a","session":"b"}]}`:                                                 base.ErrCorrupt,
		`{"version":1,"subscriptions":[[]],"members":[{"name":"","session":"b"}]}`:                             base.ErrCorrupt,
		`{"version":1,"subscriptions":[[[0,0,0]]],"members":[{"name":"a","session":"b"}]}`:                     base.ErrCorrupt,
		`{"version":1,"subscriptions":[[]],"members":[{"name":"b","session":"b"},{"name":"a","session":"c"}]}`: base.ErrCorrupt,
		`{"version":1,"streams":[{"id":1},{"id":1}]}`:                                                          base.ErrCorrupt,
	} {
		_, err := decodeRoster([]byte(text))
		require.ErrorIs(t, err, want, text)
	}
}

func TestGroupsOverTheLimitsAreRefused(t *testing.T) {
	s := Stream{ID: 1}
	big := roster{}.with(enrolled{Name: "a", Session: "s", Wants: []Range{{Stream: s, Last: MaxGroupPartitions}}})
	_, err := big.encode()
	require.ErrorIs(t, err, base.ErrInvalid)
	full := roster{}.with(enrolled{Name: "a", Session: "s", Wants: []Range{{Stream: s, Last: MaxGroupPartitions - 1}}})
	_, err = full.encode()
	require.NoError(t, err, "what the limits allow fits into a document")
	var many roster
	for i := range MaxMembers + 1 {
		many.Members = append(many.Members, enrolled{Name: fmt.Sprintf("%03d", i), Session: "s"})
	}
	_, err = many.encode()
	require.ErrorIs(t, err, base.ErrInvalid)
	_, err = (&roster{Members: []enrolled{{Name: "a", Session: "s", Wants: make([]Range, MaxRanges+1)}}}).encode()
	require.ErrorIs(t, err, base.ErrInvalid)
}

func TestAStreamIsForgottenWhenNobodyWantsItAndItIsGone(t *testing.T) {
	kept, gone := Stream{ID: 1}, Stream{ID: 2}
	r := roster{}.with(enrolled{Name: "a", Session: "s", Wants: []Range{{Stream: kept}, {Stream: gone}}})
	all := func(Stream) bool { return true }
	_, forgotten := r.forget(all)
	require.Empty(t, forgotten, "both are wanted")
	r = r.with(enrolled{Name: "a", Session: "s", Wants: []Range{{Stream: kept}}})
	_, forgotten = r.forget(func(Stream) bool { return false })
	require.Empty(t, forgotten, "its commits count while it exists")
	r, forgotten = r.forget(all)
	require.Equal(t, []Stream{gone}, forgotten)
	require.Len(t, r.Streams, 1)
}

func FuzzDecodeRoster(f *testing.F) {
	f.Add([]byte(`{"version":1,"streams":[{"shard":1,"id":2,"namespace":"a","name":"b","owners":[0,-1]}],"subscriptions":[[[0,0,1]]],"members":[{"name":"m","session":"s","subscription":0}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRoster(data)
		if err != nil {
			return
		}
		again, err := r.encode()
		require.NoError(t, err)
		back, err := decodeRoster(again)
		require.NoError(t, err)
		require.Len(t, back.Members, len(r.Members))
	})
}

func FuzzDecodeDocument(f *testing.F) {
	f.Add([]byte(`{"version":1,"next":42,"acks":[[50,60]],"properties":{"a":"b"},"owner":"o","generation":9,"time_ms":1}`))
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := decodeDocument(data)
		if err != nil {
			return
		}
		again, err := d.encode()
		require.NoError(t, err)
		back, err := decodeDocument(again)
		require.NoError(t, err)
		c := newCursor(newMemLog(0), nil, nil)
		c.restore(&back)
		require.Equal(t, d.Next != nil, c.Marked())
	})
}
