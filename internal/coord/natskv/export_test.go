package natskv

// Reconnect breaks the store's connection and lets the client make a new one.
func (s *Store) Reconnect() error { return s.conn.ForceReconnect() }

// Encrypted reports whether the connection of now is under TLS.
func (s *Store) Encrypted() bool {
	_, err := s.conn.TLSConnectionState()
	return err == nil
}

// SetFree replaces the measurement of free disk space.
func (s *Store) SetFree(free func() (uint64, error)) { s.node.free = free }

// Holds reports whether this process runs the server of the data directory.
func (s *Store) Holds() bool { return s.node.running() != nil }

// ServerGone ends the embedded server as a crash of its process would, as far
// as that can be told from outside: the lock is let go, the port file stays.
func (s *Store) ServerGone() error {
	s.node.stop()
	s.node.keeper.Wait()
	s.node.running().stop()
	return s.node.lock.Unlock()
}
