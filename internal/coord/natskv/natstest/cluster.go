// Package natstest runs clusters of real NATS servers inside a test, whose members
// can be stopped, started again and cut off from each other.
package natstest

import (
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// size is the number of servers: as many as there are copies of each bucket.
const size = 3

// patience bounds every wait.
const patience = 30 * time.Second

// Cluster is three servers that keep three copies of each bucket and sync every
// record. It is for one goroutine.
type Cluster struct {
	servers [size]*server.Server
	options [size]*server.Options
	// wires carry what a server, first, dialed to another, second, says and hears.
	wires [size][size]*wire
}

// Start runs the servers until the test ends.
func Start(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{}
	var addresses [size]*net.TCPAddr
	for i := range size {
		addresses[i] = freeAddress(t)
	}
	for i := range size {
		c.options[i] = &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: freeAddress(t).Port, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		}
		cluster := &c.options[i].Cluster
		cluster.Name, cluster.Host, cluster.Port = "c", "127.0.0.1", addresses[i].Port
		// What servers tell each other must not lead around the wires.
		cluster.Advertise = "127.0.0.1:1"
		for j := range size {
			if i != j {
				c.wires[i][j] = startWire(t, addresses[j].String())
				c.options[i].Routes = append(c.options[i].Routes, &url.URL{Scheme: "nats", Host: c.wires[i][j].address()})
			}
		}
	}
	for i := range size {
		c.run(t, i)
	}
	t.Cleanup(func() {
		for i := range size {
			c.Stop(i)
		}
	})
	c.await(t, size)
	return c
}

func freeAddress(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, ok := listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	require.NoError(t, listener.Close())
	return address
}

// URL returns the address of server i for clients.
func (c *Cluster) URL(i int) string { return fmt.Sprintf("nats://127.0.0.1:%d", c.options[i].Port) }

// URLs returns the addresses of all servers.
func (c *Cluster) URLs() []string { return []string{c.URL(0), c.URL(1), c.URL(2)} }

// Members returns the numbers of the servers.
func (*Cluster) Members() []int { return []int{0, 1, 2} }

// Stop ends server i and waits for its end. Its files stay.
func (c *Cluster) Stop(i int) {
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
}

// Restart runs server i again, where it was, and waits until it is current.
func (c *Cluster) Restart(t *testing.T, i int) {
	t.Helper()
	c.run(t, i)
	require.Eventually(t, func() bool {
		return c.servers[i].JetStreamIsCurrent()
	}, patience, 20*time.Millisecond, "server %d does not catch up", i)
}

// RestartAll runs all servers again at once.
func (c *Cluster) RestartAll(t *testing.T) {
	t.Helper()
	for i := range size {
		c.run(t, i)
	}
	c.await(t, size)
}

// Leader returns the server that leads the stream of a bucket.
func (c *Cluster) Leader(t *testing.T, bucket string) int {
	t.Helper()
	leader := -1
	require.Eventually(t, func() bool {
		for i, s := range c.servers {
			if s.Running() && s.JetStreamIsStreamLeader("$G", "KV_"+bucket) {
				leader = i
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond, "nobody leads %s", bucket)
	return leader
}

// Follower returns a server that keeps a copy of a bucket and does not lead it.
func (c *Cluster) Follower(t *testing.T, bucket string) int {
	t.Helper()
	return (c.Leader(t, bucket) + 1) % size
}

// Isolate cuts server i off from its peers, without a word to either side. Its
// clients stay with it. Heal ends that.
func (c *Cluster) Isolate(i int) { c.each(i, (*wire).cut) }

// Heal connects server i with its peers again.
func (c *Cluster) Heal(i int) { c.each(i, (*wire).mend) }

func (c *Cluster) each(i int, do func(*wire)) {
	for j := range size {
		if i != j {
			do(c.wires[i][j])
			do(c.wires[j][i])
		}
	}
}

func (c *Cluster) run(t *testing.T, i int) {
	t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	require.NoError(t, err)
	s.Start()
	c.servers[i] = s
	require.True(t, s.ReadyForConnections(patience))
}

// await waits until the servers have a leader who knows so many of them.
func (c *Cluster) await(t *testing.T, members int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == members {
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond, "the servers form no cluster")
}
