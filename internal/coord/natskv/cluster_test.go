package natskv_test

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

// startCluster runs three servers that keep three copies of each bucket.
func startCluster(t *testing.T) []*server.Server {
	t.Helper()
	const size = 3
	routes := make([]*url.URL, size)
	for i := range size {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		routes[i] = &url.URL{Scheme: "nats", Host: listener.Addr().String()}
		require.NoError(t, listener.Close())
	}
	servers := make([]*server.Server, size)
	for i := range size {
		options := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, Routes: routes,
		}
		options.Cluster.Name = "c"
		options.Cluster.Host = "127.0.0.1"
		options.Cluster.Port = portOf(t, routes[i])
		s, err := server.NewServer(options)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers[i] = s
	}
	for _, s := range servers {
		require.True(t, s.ReadyForConnections(10*time.Second))
	}
	eventually(t, func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == size {
				return true
			}
		}
		return false
	})
	return servers
}

func portOf(t *testing.T, u *url.URL) int {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", u.Host)
	require.NoError(t, err)
	return address.Port
}

// Given three servers, then buckets have three replicas, conflicts and reads
// are as with one, and the loss of the leader loses nothing.
func TestThreeServersKeepThreeCopies(t *testing.T) {
	servers := startCluster(t)
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.ClientURL()
	}
	open := func() *natskv.Store {
		s, err := natskv.Open(t.Context(), natskv.External{
			Options: natskv.Options{Prefix: prefix, Timeout: 2 * time.Second}, URLs: urls,
		})
		require.NoError(t, err)
		closeAtEnd(t, s)
		return s
	}
	writer, reader := open(), open()
	log, other := openLog(t, writer), openLog(t, reader)
	for range 50 {
		at := put(t, log, "record")
		_, last, err := other.Bounds(t.Context())
		require.NoError(t, err)
		require.Equal(t, at, last, "a read right after the write sees it")
	}
	docs := reader.Documents()
	at, err := docs.Create(t.Context(), "k", []byte("1"), 0)
	require.NoError(t, err)
	_, err = writer.Documents().Create(t.Context(), "k", []byte("2"), 0)
	require.ErrorIs(t, err, base.ErrExists)
	_, err = docs.Update(t.Context(), "k", []byte("2"), at+1, 0)
	require.ErrorIs(t, err, base.ErrConflict)
	require.ErrorIs(t, docs.Delete(t.Context(), "k", at+1), base.ErrConflict)
	info, err := foreign(t, servers[0]).Stream(t.Context(), "KV_"+prefix+"-s00")
	require.NoError(t, err)
	assert.Equal(t, 3, info.CachedInfo().Config.Replicas)

	for _, s := range servers {
		if s.JetStreamIsStreamLeader("$G", "KV_"+prefix+"-s00") {
			s.Shutdown()
			break
		}
	}

	unknown := 0
	eventually(t, func() bool {
		_, err := log.Put(t.Context(), []byte("after"))
		if errors.Is(err, base.ErrUnknown) {
			unknown++
		}
		return err == nil
	})
	texts := replay(t, other)
	assert.Equal(t, "after", texts[len(texts)-1])
	assert.LessOrEqual(t, len(texts), 51+unknown, "only unknown outcomes may have left a record")
}
