package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a cluster in the middle of an upgrade, when its status is shown, then people
// see who lives, what each does, and who holds the cluster back.
func TestAStatusShowsWhoLives(t *testing.T) {
	status := engine.Status{
		Instances: []string{"01A", "01B"},
		Members: []engine.MemberStatus{
			{
				ID: "01A", Label: "edge", Host: "h1", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), FoldVersion: 2,
				Jobs: []string{"compact.s00", "compact.s01", "table.s00-2", "upgrade"},
			},
			{ID: "01B", FoldVersion: 1},
		},
		FoldVersion: engine.FoldStatus{Version: 1, Newest: 2, HeldBackBy: []string{"01B"}, NextAction: "upgrade 01B"},
	}
	var p page
	writeStatus(&p, &status)
	require.Contains(t, p.String(), "\ninstances     2\nfold version  1 of 2; next: upgrade 01B\n")
	require.Contains(t, p.String(), "\n"+
		"INSTANCE  LABEL  HOST  SINCE                 FOLDS  JOBS\n"+
		"01A       edge   h1    2026-01-02T03:04:05Z      2  2 compact, 1 table, 1 upgrade\n"+
		"01B                                              1  none\n")

	status.FoldVersion = engine.FoldStatus{Version: 2, Newest: 2}
	p.Reset()
	writeStatus(&p, &status)
	require.Contains(t, p.String(), "\nfold version  2\n")
}

// Given more instances than anyone reads, then the rest is counted.
func TestAStatusListsManyInstancesInShort(t *testing.T) {
	var p page
	members := make([]engine.MemberStatus, maxMembers+3)
	for i := range members {
		members[i].ID = fmt.Sprintf("%02d", i)
	}
	writeMembers(&p, members)
	require.Equal(t, 1+1+maxMembers+1, strings.Count(p.String(), "\n"))
	require.Contains(t, p.String(), "and 3 more instances: see status --json\n")
}
