package decodetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// member is one member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// RequireClaims fails unless each column of the row, at any depth outside of
// lists, holds what the member that claims it brought: the first whose name is
// exactly the column's, else the first whose name matches without regard to case.
func RequireClaims(t testing.TB, payload []byte, row Row) {
	t.Helper()
	if !bytes.HasPrefix(bytes.TrimSpace(payload), []byte("{")) {
		return
	}
	members := membersOf(t, payload)
	for column, value := range row {
		if strings.HasPrefix(column, "__") {
			continue
		}
		claimant := claimantOf(members, column)
		require.NotNil(t, claimant, "nothing could fill column %s\npayload %s", column, payload)
		brought := Scalars{}
		brought.tokens(t, column, claimant)
		held := Scalars{}
		held.column(t, column, value, brought)
		for scalar, times := range held {
			require.LessOrEqual(t, times, brought[scalar], "%s\npayload %s\nrow %v", scalar, payload, row)
		}
		if inner, ok := value.(Row); ok {
			RequireClaims(t, claimant, inner)
		}
	}
}

func membersOf(t testing.TB, object []byte) (members []member) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	require.NoError(t, err)
	for d.More() {
		name, err := d.Token()
		require.NoError(t, err)
		m := member{name: strings.NewReplacer("~", "~0", ".", "~1").Replace(name.(string))}
		require.NoError(t, d.Decode(&m.value))
		members = append(members, m)
	}
	return members
}

func claimantOf(members []member, column string) (claimant json.RawMessage) {
	for _, m := range members {
		if m.name == column {
			return m.value
		}
		if claimant == nil && strings.EqualFold(m.name, column) {
			claimant = m.value
		}
	}
	return claimant
}
