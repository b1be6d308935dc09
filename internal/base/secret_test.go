package base_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestASecretShowsNowhere(t *testing.T) {
	holder := struct {
		Name   string
		Phrase base.Secret
	}{"me", "hunter2"}
	encoded, err := json.Marshal(holder)
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("opening", "password", holder.Phrase, "options", holder)
	for name, shown := range map[string]string{
		"%v": fmt.Sprintf("%v", holder), "%+v": fmt.Sprintf("%+v", holder), "%#v": fmt.Sprintf("%#v", holder),
		"String": holder.Phrase.String(), "%q": fmt.Sprintf("%q", holder.Phrase),
		"JSON": string(encoded), "log": log.String(),
	} {
		assert.NotContains(t, shown, "hunter2", name)
		assert.Contains(t, shown, "***", name)
	}
	assert.Equal(t, "hunter2", string(holder.Phrase))
}
