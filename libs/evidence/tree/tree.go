// Package tree is the Merkle tree over the events of a store (RFC 9162, section 2):
// leaf SHA-256(00, C1(envelope)), node SHA-256(01, left, right), in the order of the
// sequence. A client that keeps a root can later verify that an event was under it,
// and that every later root still covers everything the old one covered.
//
// The arithmetic is golang.org/x/mod/sumdb/tlog's, whose hashing and proofs are those
// of the RFC.
package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a SHA-256 in the tree.
type Hash = tlog.Hash

// Leaf hashes an event: an envelope in form C1.
func Leaf(c1 []byte) Hash { return tlog.RecordHash(c1) }

// Node hashes two neighbours.
func Node(left, right Hash) Hash { return tlog.NodeHash(left, right) }

// Empty is the root over no event.
func Empty() Hash { return sha256.Sum256(nil) }

// Hex writes a hash as documents do.
func Hex(h Hash) string { return hex.EncodeToString(h[:]) }

// ParseHex reads 64 lower-case hex digits.
func ParseHex(s string) (Hash, error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != s {
		return Hash{}, errors.New("a hash is 64 lower-case hex digits")
	}
	return Hash(raw), nil
}
