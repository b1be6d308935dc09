package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Apply folds one record of the log into the state. It returns the outcome that
// every instance gives it, or an error after which the shard must stop: the
// record is newer than this binary (base.ErrNewerFormat), a revision is missing
// or a writer's record was lost (base.ErrCorrupt). After an error the state must
// not be used for anything but showing it.
func (s *State) Apply(revision base.Revision, serverTime base.Millis, data []byte) (Outcome, error) {
	if revision != s.revision+1 {
		return Outcome{}, fmt.Errorf("folding %s: revision %d after %d: %w", s.shard, revision, s.revision, base.ErrCorrupt)
	}
	out := Outcome{Revision: revision}
	env, body, err := commitrecord.DecodeEnvelope(data)
	switch {
	case errors.Is(err, base.ErrNewerFormat):
		return Outcome{}, fmt.Errorf("folding %s at revision %d: %w", s.shard, revision, err)
	case err != nil, env.Cluster != s.cluster:
		return s.foldForeign(out, data), nil //nolint:nilerr // alike everywhere, so it is no error
	}
	payload, err := s.decode(env.Kind, body)
	if err != nil {
		return Outcome{}, fmt.Errorf("folding %s at revision %d: %w", s.shard, revision, err)
	}
	s.revision = revision
	s.time = max(s.time, serverTime)
	out.Time, out.Kind, out.Request = s.time, env.Kind, env.Request
	if payload == nil {
		out.Rejected = Malformed
	} else if err := s.dispatch(payload, &out); err != nil {
		return Outcome{}, fmt.Errorf("folding %s at revision %d: %w", s.shard, revision, err)
	}
	s.chain(data, &out)
	return out, nil
}

// foldForeign counts a record that is not ours. It changes nothing else, not even
// the time.
func (s *State) foldForeign(out Outcome, data []byte) Outcome {
	s.revision = out.Revision
	s.foreign++
	out.Rejected = NotOurs
	out.Time = s.time
	s.chain(data, &out)
	return out
}

// decode returns nil for a payload that is no message of its kind: a valid
// envelope around it was written by something that is not this software.
func (s *State) decode(kind commitrecord.Kind, body []byte) (commitrecord.Payload, error) {
	payload, err := commitrecord.DecodePayload(kind, body)
	if errors.Is(err, base.ErrNewerFormat) {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // rejected as malformed, alike everywhere
	}
	return payload, nil
}

func (s *State) dispatch(payload commitrecord.Payload, out *Outcome) error {
	if p, ok := payload.(*commitpb.ClusterCreate); ok {
		return s.foldClusterCreate(p, out)
	}
	switch {
	case !s.created:
		out.Rejected = NoCluster
		return nil
	case commitrecord.Since(payload) > s.foldVersion:
		out.Rejected = NotYetAllowed
		return nil
	}
	switch p := payload.(type) {
	case *commitpb.FoldVersion:
		return s.foldFoldVersion(p, out)
	case *commitpb.StreamCreate:
		s.foldStreamCreate(p, out)
	case *commitpb.StreamUpdate:
		s.foldStreamUpdate(p, out)
	case *commitpb.WriterOpen:
		s.foldWriterOpen(p, out)
	case *commitpb.WriterFence:
		s.foldWriterFence(p, out)
	case *commitpb.Append:
		return s.foldAppend(p, out)
	case *commitpb.Compact:
		return s.foldCompact(p, out)
	case *commitpb.Prepared:
		return s.foldPrepared(p, out)
	case *commitpb.Materialized:
		s.foldMaterialized(p, out)
	case *commitpb.Reclaimed:
		s.foldReclaimed(p, out)
	case *commitpb.TableReset:
		s.foldTableReset(p, out)
	default:
		return s.dispatchVersion2(payload, out)
	}
	return nil
}

// dispatchVersion2 folds the kinds that fold version 2 added.
func (s *State) dispatchVersion2(payload commitrecord.Payload, out *Outcome) error {
	switch p := payload.(type) {
	case *commitpb.PartitionsAdd:
		s.foldPartitionsAdd(p, out)
	case *commitpb.StreamDelete:
		s.foldStreamDelete(p, out)
	case *commitpb.NamespaceSeal:
		s.foldNamespaceSeal(p, out)
	case *commitpb.LogFence:
		s.foldLogFence(p, out)
	case *commitpb.LogUnfence:
		s.foldLogUnfence(p, out)
	case *commitpb.Trim:
		s.foldTrim(p, out)
	case *commitpb.Skip:
		s.foldSkip(p, out)
	case *commitpb.Recovered:
		s.foldRecovered(p, out)
	default:
		return s.dispatchMeta(payload, out)
	}
	return nil
}

// chain extends the rolling hash by a record and its outcome.
func (s *State) chain(data []byte, out *Outcome) {
	h := sha256.New()
	h.Write(s.hash[:])
	h.Write(data)
	b := make([]byte, 0, 64+16*len(out.Logs))
	b = binary.BigEndian.AppendUint64(b, uint64(out.Time)) //nolint:gosec // canonical form only
	b = binary.BigEndian.AppendUint64(b, uint64(out.Stream))
	b = appendText(b, string(out.Rejected))
	b = binary.BigEndian.AppendUint32(b, uint32(len(out.Logs))) //nolint:gosec // bounded by the record
	for _, l := range out.Logs {
		b = binary.BigEndian.AppendUint64(b, uint64(l.Base)) //nolint:gosec // canonical form only
		b = appendText(b, string(l.Rejected))
	}
	h.Write(b)
	h.Sum(s.hash[:0])
}

func appendText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text))) //nolint:gosec // short texts only
	return append(b, text...)
}

func sortedValues[K cmp.Ordered, V any](m map[K]V) []V {
	values := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[k])
	}
	return values
}

func (s *State) foldClusterCreate(p *commitpb.ClusterCreate, out *Outcome) error {
	if s.created {
		out.Rejected = ClusterExists
		return nil
	}
	if p.GetFoldVersion() > commitrecord.FoldVersion {
		return newerFold(p.GetFoldVersion())
	}
	if p.GetShards() == 0 || p.GetShards() > base.MaxShards || p.GetFoldVersion() == 0 {
		out.Rejected = Malformed
		return nil
	}
	s.created = true
	s.shards = int(p.GetShards())
	s.foldVersion = p.GetFoldVersion()
	return nil
}

func (s *State) foldFoldVersion(p *commitpb.FoldVersion, out *Outcome) error {
	if p.GetVersion() != s.foldVersion+1 {
		out.Rejected = NotNextVersion
		return nil
	}
	if p.GetVersion() > commitrecord.FoldVersion {
		return newerFold(p.GetVersion())
	}
	s.foldVersion = p.GetVersion()
	return nil
}

func newerFold(version uint32) error {
	return fmt.Errorf("fold version %d, this binary knows %d: upgrade it: %w", version, commitrecord.FoldVersion, base.ErrNewerFormat)
}
