package commitrecord

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func kindOfVersion2(payload Payload) (Kind, bool) {
	switch payload.(type) {
	case *commitpb.PartitionsAdd:
		return KindPartitionsAdd, true
	case *commitpb.StreamDelete:
		return KindStreamDelete, true
	case *commitpb.NamespaceCreate:
		return KindNamespaceCreate, true
	case *commitpb.NamespaceUpdate:
		return KindNamespaceUpdate, true
	case *commitpb.NamespaceDrop:
		return KindNamespaceDrop, true
	case *commitpb.NamespaceSeal:
		return KindNamespaceSeal, true
	case *commitpb.ClusterUpdate:
		return KindClusterUpdate, true
	case *commitpb.CatalogRegister:
		return KindCatalogRegister, true
	case *commitpb.CatalogUnregister:
		return KindCatalogUnregister, true
	case *commitpb.LogFence:
		return KindLogFence, true
	case *commitpb.LogUnfence:
		return KindLogUnfence, true
	case *commitpb.Trim:
		return KindTrim, true
	case *commitpb.Skip:
		return KindSkip, true
	case *commitpb.Recovered:
		return KindRecovered, true
	default:
		return 0, false
	}
}

func newPayloadOfVersion2(kind Kind) (Payload, error) {
	switch kind {
	case KindPartitionsAdd:
		return &commitpb.PartitionsAdd{}, nil
	case KindStreamDelete:
		return &commitpb.StreamDelete{}, nil
	case KindNamespaceCreate:
		return &commitpb.NamespaceCreate{}, nil
	case KindNamespaceUpdate:
		return &commitpb.NamespaceUpdate{}, nil
	case KindNamespaceDrop:
		return &commitpb.NamespaceDrop{}, nil
	case KindNamespaceSeal:
		return &commitpb.NamespaceSeal{}, nil
	case KindClusterUpdate:
		return &commitpb.ClusterUpdate{}, nil
	case KindCatalogRegister:
		return &commitpb.CatalogRegister{}, nil
	case KindCatalogUnregister:
		return &commitpb.CatalogUnregister{}, nil
	case KindLogFence:
		return &commitpb.LogFence{}, nil
	case KindLogUnfence:
		return &commitpb.LogUnfence{}, nil
	case KindTrim:
		return &commitpb.Trim{}, nil
	case KindSkip:
		return &commitpb.Skip{}, nil
	case KindRecovered:
		return &commitpb.Recovered{}, nil
	default:
		return nil, fmt.Errorf("record kind %d: %w", uint16(kind), base.ErrNewerFormat)
	}
}

// Since returns the fold version that a payload needs: that of its kind, or of the
// newest field that it sets.
func Since(payload Payload) uint32 {
	kind, _ := KindOf(payload)
	if kind >= KindPartitionsAdd {
		return 2
	}
	newer := false
	switch p := payload.(type) {
	case *commitpb.StreamCreate:
		newer = p.GetNamespaceId() != 0 || p.GetRetention() != nil || p.GetSchema() != nil || len(p.GetProperties()) > 0
	case *commitpb.StreamUpdate:
		newer = p.GetRetention() != nil || p.GetProperties() != nil
	case *commitpb.Append:
		newer = len(p.GetGroups()) > 0
	}
	if newer {
		return 2
	}
	return 1
}
