package shardtest

import (
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Dump is what a state holds, as text, in parts: everything but the revision, the
// time and the chain hash, which change with every record.
type Dump struct {
	// Logs has the index and the marks of each log.
	Logs map[base.LogID]string
	// Streams has names, versions, policies and tables.
	Streams string
	// Writers has the open writers without their seqs.
	Writers string
	// Dead has the keys of dead objects.
	Dead map[string]bool
}

// DumpOf reads a state through its exported methods.
func DumpOf(s *shard.State) Dump {
	d := Dump{Logs: make(map[base.LogID]string), Dead: make(map[string]bool)}
	var streams, writers strings.Builder
	for _, st := range s.Streams() {
		policy, err := proto.MarshalOptions{Deterministic: true}.Marshal(st.Policy)
		fmt.Fprintln(&streams, st.ID, st.Name, st.Version, len(st.Logs), hex.EncodeToString(policy), err, st.Table, st.Former,
			st.Namespace, st.Retention, st.Properties, st.PropertiesSource)
		for _, l := range st.Logs {
			d.Logs[l.ID()] = dumpLog(s, l)
		}
	}
	for _, w := range s.Writers() {
		fmt.Fprintln(&writers, w.ID, w.Instance)
	}
	d.Streams, d.Writers = streams.String(), writers.String()
	for _, dead := range s.Dead() {
		d.Dead[dead.Key] = true
	}
	return d
}

func dumpLog(s *shard.State, l *shard.Log) string {
	var b strings.Builder
	fmt.Fprintln(&b, l.Start(), l.Floor(), l.Head(), l.Fence(), l.Skipped(), l.Bytes(), l.Prepared(), l.Materialized(), l.LeftOut())
	for _, e := range s.Entries(l, 0, l.Len()) {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	for _, p := range l.Pending() {
		fmt.Fprintln(&b, p.GetStart(), p.GetEnd(), p.GetMain(), p.GetFiltered(), p.GetSkipped(), p.Since)
	}
	return b.String()
}
