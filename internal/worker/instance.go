package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// instancePrefix starts the name of the lease that says a process lives.
const instancePrefix = "instance."

// untold is what an instance supports that does not tell: the fold version of the
// release whose leases held no more than their holder's name.
const untold = 1

// Instance is what a process tells of itself in the document of its lease.
type Instance struct {
	// ID is unique to one start of a process. WriterOpen records carry it.
	ID string `json:"id"`
	// Label and Host name the process for people.
	Label string `json:"label,omitempty"`
	Host  string `json:"host,omitempty"`
	// Since is when the process started, by its own clock.
	Since time.Time `json:"since,omitzero"`
	// FoldVersion is the newest one that the process folds.
	FoldVersion uint32 `json:"fold_version"`
}

// document is what the lease of an instance holds. It is bounded, whatever the
// label is.
func (i Instance) document() (string, error) {
	i.Label, i.Host = clip(i.Label), clip(i.Host)
	text, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("describing instance %s: %w", i.ID, err)
	}
	return string(text), nil
}

func clip(text string) string {
	if len(text) <= base.MaxNameBytes {
		return text
	}
	return strings.ToValidUTF8(text[:base.MaxNameBytes], "")
}

// instanceOf reads a lease. What is not the description of its holder is that of a
// process that tells nothing but its name.
func instanceOf(d coord.Document) Instance {
	id := strings.TrimPrefix(d.Key, LeasePrefix+instancePrefix)
	var i Instance
	if err := json.Unmarshal(d.Value, &i); err != nil || i.ID != id {
		i = Instance{ID: id}
	}
	i.FoldVersion = max(i.FoldVersion, untold)
	return i
}

// Instances returns the processes whose lease stands, by their id. Errors are those
// of coord.Documents.
func Instances(ctx context.Context, documents coord.Documents) ([]Instance, error) {
	found, err := documents.List(ctx, LeasePrefix+instancePrefix)
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	instances := make([]Instance, len(found))
	for i, d := range found {
		instances[i] = instanceOf(d)
	}
	return instances, nil
}

// Jobs returns the names of the leased jobs that run, sorted, by the id of the
// instance that runs them. Errors are those of coord.Documents.
func Jobs(ctx context.Context, documents coord.Documents) (map[string][]string, error) {
	found, err := documents.List(ctx, LeasePrefix)
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	jobs := make(map[string][]string)
	for _, d := range found {
		name := strings.TrimPrefix(d.Key, LeasePrefix)
		if !strings.HasPrefix(name, instancePrefix) {
			jobs[string(d.Value)] = append(jobs[string(d.Value)], name)
		}
	}
	for _, names := range jobs {
		slices.Sort(names)
	}
	return jobs, nil
}
