package catalog

import (
	"maps"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Inherited is what streams take from their namespace and from the cluster, as one
// read of the log meta showed it. It never changes. The zero value is that of a
// cluster where neither says anything.
type Inherited struct {
	namespaces map[string]level
	cluster    level
}

// level is what one of a stream, a namespace and the cluster says.
type level struct {
	policy    *commitpb.TablePolicy
	retention *commitpb.Retention
}

// Table resolves how a stream becomes a table.
func (i Inherited) Table(st *shard.Stream) Table { return i.table(st.Name, st.Policy) }

// Retention resolves what a stream's logs keep.
func (i Inherited) Retention(st *shard.Stream) LogRetention {
	return ResolveRetention(st.Retention, i.namespaces[st.Name.Namespace].retention, i.cluster.retention)
}

func (i Inherited) table(name base.StreamName, policy *commitpb.TablePolicy) Table {
	return Resolve(name, policy, i.namespaces[name.Namespace].policy, i.cluster.policy)
}

// with returns what streams inherit when a namespace has other settings.
func (i Inherited) with(namespace string, settings Settings) Inherited {
	i.namespaces = maps.Clone(i.namespaces)
	if i.namespaces == nil {
		i.namespaces = make(map[string]level)
	}
	i.namespaces[namespace] = level{policy: settings.Table.encode(), retention: settings.Retention.encode()}
	return i
}

// withDefaults returns what streams inherit when the cluster has other defaults.
func (i Inherited) withDefaults(settings Settings) Inherited {
	i.cluster = level{policy: settings.Table.encode(), retention: settings.Retention.encode()}
	return i
}

// inheritance reads Inherited, once for each revision of the log meta. It is safe
// for concurrent use.
type inheritance struct {
	meta Ledger

	mu sync.Mutex
	// revision is that of the log meta at which last was read. Both are guarded by
	// mu, which is never held while a state is inspected.
	revision base.Revision
	last     Inherited
}

func (i *inheritance) read() Inherited {
	i.mu.Lock()
	revision, last := i.revision, i.last
	i.mu.Unlock()
	fresh := false
	i.meta.Inspect(func(s *shard.State) {
		if fresh = s.Revision() != revision; fresh {
			revision, last = s.Revision(), inheritedOf(s)
		}
	})
	if fresh {
		i.mu.Lock()
		defer i.mu.Unlock()
		if revision > i.revision {
			i.revision, i.last = revision, last
		}
	}
	return last
}

func inheritedOf(s *shard.State) Inherited {
	cluster := s.ClusterPolicy()
	all := Inherited{
		namespaces: make(map[string]level),
		cluster:    level{policy: cluster.Policy, retention: cluster.Retention},
	}
	for _, n := range s.Namespaces() {
		all.namespaces[n.Name] = level{policy: n.Policy, retention: n.Retention}
	}
	return all
}
