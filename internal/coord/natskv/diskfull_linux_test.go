package natskv_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// smallDisk mounts a file system of 24 MiB for the test.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// Given a disk that fills up under the server in spite of the reserve, when
// there is room again, then records are taken again without a restart of the
// process, and every acknowledged one is there.
func TestAFullDiskThatIsFreedIsSurvived(t *testing.T) {
	disk := smallDisk(t)
	ballast := filepath.Join(disk, "ballast")
	e := embedded(filepath.Join(disk, "data"))
	e.ReserveBytes = 1
	e.Timeout = 500 * time.Millisecond
	s, err := natskv.OpenEmbedded(t.Context(), e)
	require.NoError(t, err)
	closeAtEnd(t, s)
	log := openLog(t, s)
	require.NoError(t, os.WriteFile(ballast, make([]byte, 12<<20), 0o600))

	record := bytes.Repeat([]byte{'x'}, 600<<10)
	acknowledged := base.Revision(0)
	var failure error
	for acknowledged == 0 || failure == nil { // a slow machine may time out before
		var at base.Revision
		if at, failure = log.Put(t.Context(), record); failure == nil {
			acknowledged = at
		}
	}
	eventually(t, func() bool {
		_, err := log.Put(t.Context(), record)
		return errors.Is(err, base.ErrUnavailable)
	})

	require.NoError(t, os.Remove(ballast))
	eventually(t, func() bool {
		_, err := log.Put(t.Context(), []byte("room again"))
		return err == nil
	})
	texts := replay(t, log)
	require.GreaterOrEqual(t, len(texts), int(acknowledged)+1)
	for i := range acknowledged {
		require.Len(t, texts[i], len(record))
	}
	assert.Equal(t, "room again", texts[len(texts)-1])
}
