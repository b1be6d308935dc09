package shard_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// publisher folds what it is given into a ledger, or fails.
type publisher struct {
	ledger
	fail error
}

func (p *publisher) Publish(_ context.Context, payload commitrecord.Payload) (shard.Outcome, error) {
	if p.fail != nil {
		return shard.Outcome{}, p.fail
	}
	return p.publish(payload), nil
}

func openSession(t *testing.T, p *publisher) *shard.Session {
	t.Helper()
	s, err := shard.OpenSession(t.Context(), p, "machine", bytes.NewReader(bytes.Repeat([]byte{7}, 16)))
	require.NoError(t, err)
	return s
}

func sessionAppend(s *shard.Session) *commitpb.Append {
	p := appendOf(uint64(s.Next()), 0, 1)
	p.Writer = uint64(s.Writer())
	return p
}

func TestASessionPublishesInSequenceUntilItIsClosed(t *testing.T) {
	p := &publisher{ledger: newLedger(t)}
	s := openSession(t, p)
	w, ok := p.Writer(s.Writer())
	require.True(t, ok)
	require.Equal(t, "machine", w.Instance)
	for seq := range base.Seq(3) {
		require.Equal(t, seq+1, s.Next())
		out, err := s.Publish(t.Context(), sessionAppend(s))
		require.NoError(t, err)
		require.True(t, out.OK())
	}
	require.NoError(t, s.Close(t.Context()))
	_, ok = p.Writer(s.Writer())
	require.False(t, ok)
	_, err := s.Publish(t.Context(), sessionAppend(s))
	require.ErrorIs(t, err, shard.ErrSessionLost)
	require.NoError(t, s.Close(t.Context()), "closing again is no error")
}

func TestASessionWhoseWriterWasFencedIsLost(t *testing.T) {
	p := &publisher{ledger: newLedger(t)}
	s := openSession(t, p)
	p.accept(&commitpb.WriterFence{Writers: []uint64{uint64(s.Writer())}})
	_, err := s.Publish(t.Context(), sessionAppend(s))
	require.ErrorIs(t, err, shard.ErrSessionLost)
	require.ErrorIs(t, err, base.ErrFenced)
	_, err = s.Publish(t.Context(), sessionAppend(s))
	require.ErrorIs(t, err, shard.ErrSessionLost)
}

func TestASessionThatDoesNotKnowAnOutcomeIsLost(t *testing.T) {
	p := &publisher{ledger: newLedger(t)}
	s := openSession(t, p)
	p.fail = base.WithClass(base.ErrUnknown, errors.New("no reply"))
	_, err := s.Publish(t.Context(), sessionAppend(s))
	require.ErrorIs(t, err, base.ErrUnknown)
	require.ErrorIs(t, s.Close(t.Context()), base.ErrUnknown)
	p.fail = nil
	_, err = s.Publish(t.Context(), sessionAppend(s))
	require.ErrorIs(t, err, shard.ErrSessionLost, "the next seq is not known")
}

func TestASessionGoesOnAfterARefusedPart(t *testing.T) {
	p := &publisher{ledger: newLedger(t)}
	s := openSession(t, p)
	wrong := sessionAppend(s)
	wrong.Stream = []uint64{77}
	out, err := s.Publish(t.Context(), wrong)
	require.NoError(t, err)
	require.Equal(t, shard.NoStream, out.Logs[0].Rejected)
	malformed := sessionAppend(s)
	malformed.Len = []uint32{0}
	out, err = s.Publish(t.Context(), malformed)
	require.NoError(t, err)
	require.Equal(t, shard.Malformed, out.Rejected)
	out, err = s.Publish(t.Context(), sessionAppend(s))
	require.NoError(t, err)
	require.True(t, out.OK(), "a refused record has used its seq")
}

func TestASessionThatCannotOpenSaysWhy(t *testing.T) {
	p := &publisher{ledger: newLedger(t)}
	_, err := shard.OpenSession(t.Context(), p, "machine", bytes.NewReader(nil))
	require.Error(t, err, "no randomness")
	_, err = shard.OpenSession(t.Context(), p, string(make([]byte, 129)), bytes.NewReader(make([]byte, 16)))
	require.ErrorIs(t, err, base.ErrUnavailable)
	p.fail = base.ErrUnavailable
	_, err = shard.OpenSession(t.Context(), p, "machine", bytes.NewReader(make([]byte, 16)))
	require.ErrorIs(t, err, base.ErrUnavailable)
}
