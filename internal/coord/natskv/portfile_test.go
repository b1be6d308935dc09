package natskv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAPortFileReadsBackAsWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		want := portFile{
			URL:   rapid.StringMatching(`nats://[a-z0-9.]{1,20}:[0-9]{1,5}`).Draw(rt, "url"),
			Token: rapid.StringMatching(`[A-Z2-7]{26}`).Draw(rt, "token"),
			PID:   rapid.IntRange(1, 1<<22).Draw(rt, "pid"),
		}
		require.NoError(rt, writePortFile(dir, want))
		got, err := readPortFile(dir)
		require.NoError(rt, err)
		assert.Equal(rt, want, got)
		files, err := os.ReadDir(dir)
		require.NoError(rt, err)
		assert.Len(rt, files, 1, "each write replaces the one before")
	})
}

func TestRemovingAnAbsentPortFileIsNoError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writePortFile(dir, portFile{URL: "u", Token: "t"}))
	require.NoError(t, removePortFile(dir))
	require.NoError(t, removePortFile(dir))
	_, err := readPortFile(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAPortFileIsNotWrittenByHalves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	require.Error(t, writePortFile(dir, portFile{URL: "u", Token: "t"}))
	require.NoDirExists(t, dir)
}

// Whatever lies in the file, reading it gives an address and a token, or an
// error.
func FuzzPortFile(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `null`, `[]`, `{"url":"nats://127.0.0.1:4222","token":"T","pid":1}`,
		`{"url":"","token":"T"}`, `{"url":1,"token":2}`, `{"url":"u","token":"t","pid":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, portFileName), data, 0o600))
		p, err := readPortFile(dir)
		if err == nil {
			assert.NotEmpty(t, p.URL)
			assert.NotEmpty(t, p.Token)
		}
	})
}
