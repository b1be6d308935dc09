package base

import (
	"encoding/hex"
	"fmt"
)

// ClusterID identifies a cluster: 16 random bytes (a ULID), drawn once at its
// creation and carried by every commit record and object.
type ClusterID [16]byte

// String renders the id as 32 hexadecimal digits.
func (c ClusterID) String() string { return hex.EncodeToString(c[:]) }

// IsZero reports whether the id was never set.
func (c ClusterID) IsZero() bool { return c == ClusterID{} }

// ParseClusterID reads what ClusterID.String writes, or returns ErrInvalid.
func ParseClusterID(text string) (ClusterID, error) {
	var id ClusterID
	if len(text) != hex.EncodedLen(len(id)) {
		return ClusterID{}, fmt.Errorf("%w: cluster id %q: want 32 hexadecimal digits", ErrInvalid, text)
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return ClusterID{}, fmt.Errorf("%w: cluster id %q: %w", ErrInvalid, text, err)
	}
	return id, nil
}

// Hash is a SHA-256 hash: of a shard's history, or of its state.
type Hash [32]byte

// String renders the first 16 hexadecimal digits, enough to compare by eye.
func (h Hash) String() string { return hex.EncodeToString(h[:8]) }
