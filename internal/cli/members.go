package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// maxMembers bounds the instances that a status lists.
const maxMembers = 50

// countMembers says how many instances live.
func countMembers(status *engine.Status) string {
	if len(status.Instances) == 0 {
		return "none is running"
	}
	return number(len(status.Instances))
}

// writeMembers lists the instances that live and what they do for all.
func writeMembers(p *page, members []engine.MemberStatus) {
	if len(members) == 0 {
		return
	}
	shown := members[:min(len(members), maxMembers)]
	rows := make([][]string, len(shown))
	for i, m := range shown {
		since := ""
		if !m.Since.IsZero() {
			since = m.Since.Format(time.RFC3339)
		}
		rows[i] = []string{m.ID, m.Label, m.Host, since, number(uint64(m.FoldVersion)), describeJobs(m.Jobs)}
	}
	p.linef("")
	p.table([]string{"INSTANCE", "LABEL", "HOST", "SINCE", "FOLDS#", "JOBS"}, rows)
	if more := len(members) - len(shown); more > 0 {
		p.linef("and %s: see status --json", plural(more, "more instance"))
	}
}

// describeJobs counts the jobs of each kind, which is what their names start with.
func describeJobs(jobs []string) string {
	counts := make(map[string]int)
	for _, job := range jobs {
		kind, _, _ := strings.Cut(job, ".")
		counts[kind]++
	}
	texts := make([]string, 0, len(counts))
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// describeFold says which fold version the cluster is at, and what the next waits for.
func describeFold(fold engine.FoldStatus) string {
	if fold.Version == fold.Newest {
		return number(uint64(fold.Version))
	}
	return fmt.Sprintf("%d of %d; next: %s", fold.Version, fold.Newest, fold.NextAction)
}
