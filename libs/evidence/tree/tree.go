// Package tree is the Merkle tree over the events of a store (RFC 9162, section 2):
// leaf SHA-256(00, C1(envelope)), node SHA-256(01, left, right), in the order of the
// sequence. Whoever keeps a root can later be shown that an event was under it, and
// that every later root still holds all that the old one held.
//
// The arithmetic is golang.org/x/mod/sumdb/tlog's, whose hashing and proofs are those
// of the RFC.
package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Hash is a SHA-256 in the tree.
type Hash = tlog.Hash

// Leaf hashes an event: an envelope in form C1.
func Leaf(c1 []byte) Hash { return tlog.RecordHash(c1) }

// LeafOf hashes a document that is not written yet.
func LeafOf(envelope canon.Value) (Hash, error) {
	c1, err := canon.C1(envelope)
	if err != nil {
		return Hash{}, err
	}
	return Leaf(c1), nil
}

// Node hashes two neighbours.
func Node(left, right Hash) Hash { return tlog.NodeHash(left, right) }

// Empty is the root over no event.
func Empty() Hash { return sha256.Sum256(nil) }

// Hex writes a hash as documents do.
func Hex(h Hash) string { return hex.EncodeToString(h[:]) }

// HexPath writes a proof as documents do; an empty proof is an empty list.
func HexPath(path []Hash) []string {
	out := make([]string, len(path))
	for i, h := range path {
		out[i] = Hex(h)
	}
	return out
}

// ParseHex reads 64 lower-case hex digits.
func ParseHex(s string) (Hash, error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != s {
		return Hash{}, errors.New("a hash is 64 lower-case hex digits")
	}
	return Hash(raw), nil
}

// ParseHexPath reads a proof. A path of more hashes than a tree of 63 levels needs
// is refused.
func ParseHexPath(path []string) ([]Hash, error) {
	if len(path) > 2*63 {
		return nil, errors.New("the proof is too long")
	}
	out := make([]Hash, len(path))
	for i, s := range path {
		h, err := ParseHex(s)
		if err != nil {
			return nil, fmt.Errorf("hash %d of the proof: %w", i+1, err)
		}
		out[i] = h
	}
	return out, nil
}

// Tree keeps every hash of a log that grows: 64 bytes an event. It proves any size
// the log ever had. Reads may run together, an append needs the tree alone.
type Tree struct {
	size   int64
	hashes []Hash // in tlog's order of stored hashes
}

// Append adds the next event's leaf.
func (t *Tree) Append(leaf Hash) {
	more, err := tlog.StoredHashesForRecordHash(t.size, leaf, tlog.HashReaderFunc(t.read))
	if err != nil { // only a hash that is not there fails, and all are
		panic(err)
	}
	t.hashes = append(t.hashes, more...)
	t.size++
}

// Size is the number of events.
func (t *Tree) Size() int64 { return t.size }

func (t *Tree) read(indexes []int64) ([]Hash, error) {
	out := make([]Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(t.hashes)) {
			return nil, fmt.Errorf("the tree holds no hash %d", at)
		}
		out[i] = t.hashes[at]
	}
	return out, nil
}

// ErrSize is a size or place that the tree does not have.
var ErrSize = errors.New("the tree has no such size or place")

// Leaf gives the hash of the event in this place, the first is 0.
func (t *Tree) Leaf(index int64) (Hash, error) {
	if index < 0 || index >= t.size {
		return Hash{}, ErrSize
	}
	return t.hashes[tlog.StoredHashIndex(0, index)], nil
}

// Root gives the root over the first size events.
func (t *Tree) Root(size int64) (Hash, error) {
	switch {
	case size < 0 || size > t.size:
		return Hash{}, ErrSize
	case size == 0:
		return Empty(), nil
	}
	return tlog.TreeHash(size, tlog.HashReaderFunc(t.read))
}

// Inclusion proves that the event in place index, the first is 0, is under the root
// over the first size events.
func (t *Tree) Inclusion(index, size int64) ([]Hash, error) {
	if index < 0 || index >= size || size > t.size {
		return nil, ErrSize
	}
	return tlog.ProveRecord(size, index, tlog.HashReaderFunc(t.read))
}

// Consistency proves that the root over the first size events holds all that the
// root over the first from events held, 1 <= from <= size. Of equal sizes the proof is
// empty.
func (t *Tree) Consistency(from, size int64) ([]Hash, error) {
	if from < 1 || from > size || size > t.size {
		return nil, ErrSize
	}
	return tlog.ProveTree(size, from, tlog.HashReaderFunc(t.read))
}

// ErrProof is a proof that does not show what it should.
var ErrProof = errors.New("the proof does not hold")

// CheckInclusion verifies what Inclusion proves.
func CheckInclusion(leaf Hash, index, size int64, root Hash, path []Hash) error {
	if index < 0 || index >= size {
		return ErrSize
	}
	if err := tlog.CheckRecord(path, size, root, index, leaf); err != nil {
		return ErrProof
	}
	return nil
}

// CheckConsistency verifies what Consistency proves.
func CheckConsistency(from, size int64, oldRoot, newRoot Hash, path []Hash) error {
	if from < 1 || from > size {
		return ErrSize
	}
	if from == size && (len(path) != 0 || oldRoot != newRoot) {
		return ErrProof
	}
	if err := tlog.CheckTree(path, size, newRoot, from, oldRoot); err != nil {
		return ErrProof
	}
	return nil
}
