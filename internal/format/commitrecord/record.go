// Package commitrecord is the codec of the commit log: an envelope that every
// version can check, around one Protobuf payload.
//
// FORMAT.md holds the offset table. To add a kind, add its message to
// commit.proto, a Kind and an entry in newPayload, and raise FoldVersion: a kind,
// or a new field of one, may be written only after a FoldVersion record that
// allows it.
package commitrecord

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Version is the envelope version that this package writes and the newest it reads.
const Version = 1

// FoldVersion is the newest set of kinds and rules that this binary folds.
const FoldVersion = 2

// MaxBytes bounds an encoded record: a message of 1 MiB less room for what a
// coordination store adds to it. The batcher closes an object when its
// record reaches half of it, so that an Append is never split.
const MaxBytes = 1<<20 - 4<<10

const (
	magic = "LSCR"
	// prefixBytes are the magic and the version, at the same place for ever.
	prefixBytes  = 6
	headerBytes  = 68
	trailerBytes = 4
)

// Kind tells what a record's payload is.
type Kind uint16

// The kinds of fold version 1.
const (
	KindClusterCreate Kind = 1
	KindFoldVersion   Kind = 2
	KindStreamCreate  Kind = 3
	KindStreamUpdate  Kind = 4
	KindWriterOpen    Kind = 5
	KindWriterFence   Kind = 6
	KindAppend        Kind = 7
	KindCompact       Kind = 8
	KindPrepared      Kind = 9
	KindMaterialized  Kind = 10
	KindReclaimed     Kind = 11
	KindTableReset    Kind = 12
)

// The kinds that fold version 2 added.
const (
	KindPartitionsAdd     Kind = 13
	KindStreamDelete      Kind = 14
	KindNamespaceCreate   Kind = 15
	KindNamespaceUpdate   Kind = 16
	KindNamespaceDrop     Kind = 17
	KindNamespaceSeal     Kind = 18
	KindClusterUpdate     Kind = 19
	KindCatalogRegister   Kind = 20
	KindCatalogUnregister Kind = 21
	KindLogFence          Kind = 22
	KindLogUnfence        Kind = 23
	KindTrim              Kind = 24
	KindSkip              Kind = 25
	KindRecovered         Kind = 26
)

// String returns the kind's name, as the design names it.
func (k Kind) String() string {
	payload, err := newPayload(k)
	if err != nil {
		return fmt.Sprintf("kind %d", uint16(k))
	}
	return string(payload.ProtoReflect().Descriptor().Name())
}

// RequestID ties a record to the call that published it, so that its outcome
// can be found without trusting a revision. The zero value means none.
type RequestID [16]byte

// HashPrefix is the start of a chain hash, as carried by each record.
type HashPrefix [16]byte

// Envelope is what every record carries around its payload.
type Envelope struct {
	Kind    Kind
	Cluster base.ClusterID
	// SeenRevision and SeenHash are the publisher's view when it wrote the
	// record: a folder whose history differs there has forked.
	SeenRevision base.Revision
	SeenHash     HashPrefix
	Request      RequestID
}

// Payload is one of the messages of commitpb that have a Kind.
type Payload = proto.Message

// KindOf returns the kind of a payload, or false for a message that is none.
func KindOf(payload Payload) (Kind, bool) {
	switch payload.(type) {
	case *commitpb.ClusterCreate:
		return KindClusterCreate, true
	case *commitpb.FoldVersion:
		return KindFoldVersion, true
	case *commitpb.StreamCreate:
		return KindStreamCreate, true
	case *commitpb.StreamUpdate:
		return KindStreamUpdate, true
	case *commitpb.WriterOpen:
		return KindWriterOpen, true
	case *commitpb.WriterFence:
		return KindWriterFence, true
	case *commitpb.Append:
		return KindAppend, true
	case *commitpb.Compact:
		return KindCompact, true
	case *commitpb.Prepared:
		return KindPrepared, true
	case *commitpb.Materialized:
		return KindMaterialized, true
	case *commitpb.Reclaimed:
		return KindReclaimed, true
	case *commitpb.TableReset:
		return KindTableReset, true
	default:
		return kindOfVersion2(payload)
	}
}

func newPayload(kind Kind) (Payload, error) {
	switch kind {
	case KindClusterCreate:
		return &commitpb.ClusterCreate{}, nil
	case KindFoldVersion:
		return &commitpb.FoldVersion{}, nil
	case KindStreamCreate:
		return &commitpb.StreamCreate{}, nil
	case KindStreamUpdate:
		return &commitpb.StreamUpdate{}, nil
	case KindWriterOpen:
		return &commitpb.WriterOpen{}, nil
	case KindWriterFence:
		return &commitpb.WriterFence{}, nil
	case KindAppend:
		return &commitpb.Append{}, nil
	case KindCompact:
		return &commitpb.Compact{}, nil
	case KindPrepared:
		return &commitpb.Prepared{}, nil
	case KindMaterialized:
		return &commitpb.Materialized{}, nil
	case KindReclaimed:
		return &commitpb.Reclaimed{}, nil
	case KindTableReset:
		return &commitpb.TableReset{}, nil
	default:
		return newPayloadOfVersion2(kind)
	}
}

// Encode returns the record's bytes. The kind in the envelope is set from the
// payload. A record over MaxBytes is ErrInvalid.
func Encode(env Envelope, payload Payload) ([]byte, error) {
	kind, ok := KindOf(payload)
	if !ok {
		return nil, fmt.Errorf("encoding commit record: %T: %w", payload, base.ErrInvalid)
	}
	size := proto.Size(payload)
	if size > MaxBytes-headerBytes-trailerBytes {
		return nil, fmt.Errorf("encoding commit record: %s of %d bytes is over %d: %w", kind, size, MaxBytes, base.ErrInvalid)
	}
	b := make([]byte, 0, headerBytes+size+trailerBytes)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, Version)
	b = binary.BigEndian.AppendUint16(b, uint16(kind))
	b = append(b, env.Cluster[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(env.SeenRevision))
	b = append(b, env.SeenHash[:]...)
	b = append(b, env.Request[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(size)) //nolint:gosec // bounded above
	b, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(b, payload)
	if err != nil {
		return nil, fmt.Errorf("encoding commit record: %w", err)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrForeign says that bytes are no commit record of this software, or damaged
// beyond telling. A fold counts them and goes on: every instance sees the same.
var ErrForeign = fmt.Errorf("no valid commit record: %w", base.ErrForeign)

// DecodeEnvelope checks magic, checksum and version, and returns the envelope
// and the payload's bytes, which are a part of data. Bytes without a valid
// envelope are ErrForeign; a valid one of a newer version is base.ErrNewerFormat,
// whatever its length: a newer version may have another header and another limit.
func DecodeEnvelope(data []byte) (Envelope, []byte, error) {
	var env Envelope
	if len(data) < prefixBytes+trailerBytes || string(data[:4]) != magic {
		return env, nil, ErrForeign
	}
	body := data[:len(data)-trailerBytes]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(data[len(body):]) {
		return env, nil, ErrForeign
	}
	if version := binary.BigEndian.Uint16(data[4:]); version > Version {
		return env, nil, fmt.Errorf("commit record version %d, this binary knows %d: %w", version, Version, base.ErrNewerFormat)
	} else if version == 0 || len(body) < headerBytes || len(data) > MaxBytes {
		return env, nil, ErrForeign
	}
	env.Kind = Kind(binary.BigEndian.Uint16(data[6:]))
	copy(env.Cluster[:], data[8:])
	env.SeenRevision = base.Revision(binary.BigEndian.Uint64(data[24:]))
	copy(env.SeenHash[:], data[32:])
	copy(env.Request[:], data[48:])
	if int64(binary.BigEndian.Uint32(data[64:])) != int64(len(body)-headerBytes) {
		return Envelope{}, nil, ErrForeign
	}
	return env, body[headerBytes:], nil
}

// DecodePayload decodes a payload of the kind that its envelope names. An unknown
// kind is base.ErrNewerFormat, and so is a field that this binary does not know:
// folding the rest would give another state than its writer's. Bytes that are not
// a message of the kind are base.ErrCorrupt.
func DecodePayload(kind Kind, data []byte) (Payload, error) {
	payload, err := newPayload(kind)
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(data, payload); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", kind, base.WithClass(base.ErrCorrupt, err))
	}
	if hasUnknown(payload.ProtoReflect()) {
		return nil, fmt.Errorf("decoding %s: a field that this binary does not know: %w", kind, base.ErrNewerFormat)
	}
	return payload, nil
}

// hasUnknown reports whether a message, or one inside it, has unknown fields.
func hasUnknown(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	found := false
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && !found; i++ {
				found = hasUnknown(v.List().Get(i).Message())
			}
		default:
			found = hasUnknown(v.Message())
		}
		return !found
	})
	return found
}
