package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Commit is how far a group has come in one partition.
type Commit struct {
	Group     string
	Partition base.Partition
	// Next is the first offset that the group has not consumed. Committed says
	// that it ever committed one; else Next is 0.
	Next      base.Offset
	Committed bool
}

// CommitOf returns how far one group has come in one partition. One that never was
// there has not committed.
func CommitOf(ctx context.Context, documents coord.Documents, group string, place Place) (Commit, error) {
	doc, _, err := loadDocument(ctx, documents, place.key(commitKind, group))
	if err != nil {
		return Commit{}, fmt.Errorf("reading the commit of group %s in %s: %w", group, place, err)
	}
	return doc.commit(group, place.Partition), nil
}

func (d *document) commit(group string, partition base.Partition) Commit {
	c := Commit{Group: group, Partition: partition, Committed: d.Next != nil}
	if c.Committed {
		c.Next = *d.Next
	}
	return c
}

// Commits returns how far every group has come in the partitions of a stream, by
// partition and group, as the leader of coordination knows it: for retention that
// waits for groups. A group that took a partition and has not begun counts, with
// Committed false. It costs a request for each. Groups may commit meanwhile; a
// commit goes back only when someone seeks.
func Commits(ctx context.Context, documents coord.Documents, stream Stream) ([]Commit, error) {
	found, err := documents.List(ctx, stream.prefix(commitKind))
	if err != nil {
		return nil, fmt.Errorf("reading the commits of %s: %w", stream.Name, err)
	}
	commits := make([]Commit, 0, len(found))
	for _, entry := range found {
		partition, group, ok := stream.split(commitKind, entry.Key)
		if !ok {
			continue // not ours
		}
		doc, err := decodeDocument(entry.Value)
		if err != nil {
			return nil, fmt.Errorf("reading the commit of group %s in partition %d of %s: %w", group, partition, stream.Name, err)
		}
		commits = append(commits, doc.commit(group, partition))
	}
	slices.SortStableFunc(commits, func(a, b Commit) int { return int(a.Partition) - int(b.Partition) })
	return commits, nil
}

// ForgetStream deletes what groups committed in a stream that is gone: of the named
// groups, or of all and then the stream's cursors too. What is deleted meanwhile is
// no error.
func ForgetStream(ctx context.Context, documents coord.Documents, stream Stream, groups ...string) error {
	kinds := []string{commitKind}
	if len(groups) == 0 {
		kinds = append(kinds, cursorKind)
	}
	for _, kind := range kinds {
		if err := stream.forget(ctx, documents, kind, groups); err != nil {
			return fmt.Errorf("forgetting the cursors of %s: %w", stream.Name, err)
		}
	}
	return nil
}

// forget deletes the stream's cursors of one kind: those with these names, or all.
func (s Stream) forget(ctx context.Context, documents coord.Documents, kind string, names []string) error {
	found, err := documents.List(ctx, s.prefix(kind))
	if err != nil {
		return err
	}
	for _, entry := range found {
		_, name, ok := s.split(kind, entry.Key)
		if !ok || len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		if err := deleteAnyway(ctx, documents, entry); err != nil {
			return err
		}
	}
	return nil
}

// deleteAnyway deletes a document although it changes meanwhile.
func deleteAnyway(ctx context.Context, documents coord.Documents, doc coord.Document) error {
	for range takeAttempts {
		err := documents.Delete(ctx, doc.Key, doc.Revision)
		if err == nil || errors.Is(err, base.ErrNotFound) {
			return nil
		}
		if !errors.Is(err, base.ErrConflict) {
			return err
		}
		if doc, err = documents.Get(ctx, doc.Key); err != nil {
			if errors.Is(err, base.ErrNotFound) {
				return nil
			}
			return err
		}
	}
	return base.WithClass(base.ErrUnavailable, fmt.Errorf("deleting document %s: it changes again and again", doc.Key))
}
