package shard

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// metaState is what the log meta folds to: what belongs to no stream.
type metaState struct {
	namespaces map[string]*Namespace
	catalogs   map[string]*TableCatalog
	cluster    ClusterPolicy
}

func newMetaState() metaState {
	return metaState{
		namespaces: make(map[string]*Namespace),
		catalogs:   make(map[string]*TableCatalog),
		cluster:    ClusterPolicy{Version: 1, Policy: &commitpb.TablePolicy{}, Retention: &commitpb.Retention{}},
	}
}

// Namespace is what streams of one namespace have in common.
type Namespace struct {
	ID   base.NamespaceID
	Name string
	// Version counts the changes, from 1.
	Version    uint64
	Policy     *commitpb.TablePolicy
	Retention  *commitpb.Retention
	Properties []*commitpb.Property
}

// TableCatalog is a table catalog that policies may name.
type TableCatalog struct {
	Name, Type             string
	Connection, Properties []*commitpb.Property
}

// ClusterPolicy is what namespaces and streams inherit.
type ClusterPolicy struct {
	// Version counts the changes, from 1.
	Version   uint64
	Policy    *commitpb.TablePolicy
	Retention *commitpb.Retention
}

// Namespace returns a namespace by its name. Only the log meta holds any.
func (s *State) Namespace(name string) (*Namespace, bool) {
	n, ok := s.meta.namespaces[name]
	return n, ok
}

// Namespaces returns all namespaces, by name.
func (s *State) Namespaces() []*Namespace { return sortedValues(s.meta.namespaces) }

// TableCatalogs returns all table catalogs, by name.
func (s *State) TableCatalogs() []*TableCatalog { return sortedValues(s.meta.catalogs) }

// ClusterPolicy returns what namespaces and streams inherit.
func (s *State) ClusterPolicy() ClusterPolicy { return s.meta.cluster }

func (s *State) dispatchMeta(payload commitrecord.Payload, out *Outcome) error {
	if s.shard != base.MetaShard {
		out.Rejected = WrongShard
	}
	switch p := payload.(type) {
	case *commitpb.NamespaceCreate:
		s.foldNamespaceCreate(p, out)
	case *commitpb.NamespaceUpdate:
		s.foldNamespaceUpdate(p, out)
	case *commitpb.NamespaceDrop:
		s.foldNamespaceDrop(p, out)
	case *commitpb.ClusterUpdate:
		s.foldClusterUpdate(p, out)
	case *commitpb.CatalogRegister:
		s.foldCatalogRegister(p, out)
	case *commitpb.CatalogUnregister:
		s.foldCatalogUnregister(p, out)
	default:
		return fmt.Errorf("%s has no fold: %w", out.Kind, base.ErrNewerFormat)
	}
	return nil
}

func (s *State) foldNamespaceCreate(p *commitpb.NamespaceCreate, out *Outcome) {
	found, exists := s.meta.namespaces[p.GetNamespace()]
	switch {
	case !out.OK():
	case base.CheckName(p.GetNamespace()) != nil, !validProperties(p.GetProperties()):
		out.Rejected = Malformed
	case exists:
		out.Rejected, out.Namespace = NamespaceExists, found.ID
	case len(s.meta.namespaces) >= MaxNamespaces:
		out.Rejected = LimitReached
	default:
		out.Namespace = base.NamespaceID(out.Revision)
		n := &Namespace{
			ID: out.Namespace, Name: p.GetNamespace(), Version: 1,
			Policy: p.GetTable(), Retention: p.GetRetention(), Properties: p.GetProperties(),
		}
		if n.Policy == nil {
			n.Policy = &commitpb.TablePolicy{}
		}
		if n.Retention == nil {
			n.Retention = &commitpb.Retention{}
		}
		s.meta.namespaces[n.Name] = n
	}
}

func (s *State) namespaceByID(id uint64) *Namespace {
	for _, n := range s.meta.namespaces {
		if uint64(n.ID) == id {
			return n
		}
	}
	return nil
}

func (s *State) foldNamespaceUpdate(p *commitpb.NamespaceUpdate, out *Outcome) {
	n := s.namespaceByID(p.GetNamespaceId())
	out.Namespace = base.NamespaceID(p.GetNamespaceId())
	switch {
	case !out.OK():
		return
	case n == nil:
		out.Rejected = NoNamespace
		return
	case !validProperties(p.GetSet()):
		out.Rejected = Malformed
		return
	case n.Version != p.GetExpectedVersion():
		out.Rejected = VersionChanged
		return
	}
	properties := changeProperties(n.Properties, p.GetSet(), p.GetRemove())
	if len(properties) > MaxProperties {
		out.Rejected = LimitReached
		return
	}
	n.Properties = properties
	if p.GetTable() != nil {
		n.Policy = p.GetTable()
	}
	if p.GetRetention() != nil {
		n.Retention = p.GetRetention()
	}
	n.Version++
}

func (s *State) foldNamespaceDrop(p *commitpb.NamespaceDrop, out *Outcome) {
	n := s.namespaceByID(p.GetNamespaceId())
	out.Namespace = base.NamespaceID(p.GetNamespaceId())
	switch {
	case !out.OK():
	case n == nil:
		out.Rejected = NoNamespace
	default:
		delete(s.meta.namespaces, n.Name)
	}
}

func (s *State) foldClusterUpdate(p *commitpb.ClusterUpdate, out *Outcome) {
	c := &s.meta.cluster
	switch {
	case !out.OK():
		return
	case p.GetTable() == nil && p.GetRetention() == nil:
		out.Rejected = Malformed
		return
	case c.Version != p.GetExpectedVersion():
		out.Rejected = VersionChanged
		return
	}
	if p.GetTable() != nil {
		c.Policy = p.GetTable()
	}
	if p.GetRetention() != nil {
		c.Retention = p.GetRetention()
	}
	c.Version++
}

func (s *State) foldCatalogRegister(p *commitpb.CatalogRegister, out *Outcome) {
	_, exists := s.meta.catalogs[p.GetName()]
	switch {
	case !out.OK():
	case base.CheckName(p.GetName()) != nil, p.GetType() == "", len(p.GetType()) > base.MaxNameBytes,
		!validProperties(p.GetConnection()), !validProperties(p.GetProperties()):
		out.Rejected = Malformed
	case exists:
		out.Rejected = CatalogExists
	case len(s.meta.catalogs) >= MaxCatalogs:
		out.Rejected = LimitReached
	default:
		s.meta.catalogs[p.GetName()] = &TableCatalog{
			Name: p.GetName(), Type: p.GetType(), Connection: p.GetConnection(), Properties: p.GetProperties(),
		}
	}
}

func (s *State) foldCatalogUnregister(p *commitpb.CatalogUnregister, out *Outcome) {
	_, exists := s.meta.catalogs[p.GetName()]
	switch {
	case !out.OK():
	case !exists:
		out.Rejected = NoCatalog
	default:
		delete(s.meta.catalogs, p.GetName())
	}
}
