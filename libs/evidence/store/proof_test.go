package store_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// Root and both proofs as RFC 9162 defines them, over a list of leaves.

func splitPoint(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

func merkleRoot(leaves []tree.Hash) tree.Hash {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	default:
		k := splitPoint(n)
		l, r := merkleRoot(leaves[:k]), merkleRoot(leaves[k:])
		return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
	}
}

func inclusionPath(m int, leaves []tree.Hash) []tree.Hash {
	n := len(leaves)
	if n == 1 {
		return nil
	}
	k := splitPoint(n)
	if m < k {
		return append(inclusionPath(m, leaves[:k]), merkleRoot(leaves[k:]))
	}
	return append(inclusionPath(m-k, leaves[k:]), merkleRoot(leaves[:k]))
}

func consistencyProof(m int, leaves []tree.Hash, whole bool) []tree.Hash {
	n := len(leaves)
	if m == n {
		if whole {
			return nil
		}
		return []tree.Hash{merkleRoot(leaves)}
	}
	k := splitPoint(n)
	if m <= k {
		return append(consistencyProof(m, leaves[:k], whole), merkleRoot(leaves[k:]))
	}
	return append(consistencyProof(m-k, leaves[k:], false), merkleRoot(leaves[:k]))
}

// Every proof of a growing store equals the one the RFC defines, and a verifier accepts it.
func TestEveryProofUpToSeventeenEvents(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	r := openReader(t, path, store.ReadWait)
	var leaves []tree.Hash
	var ids []string
	for size := int64(1); size <= 17; size++ {
		mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(int(size)), IdempotencyKey: fmt.Sprint(size), At: at}))
		events := mustGet(r.Events(ctx, store.EventQuery{})).Items
		newest := events[len(events)-1]
		leaves, ids = append(leaves, tree.Leaf(newest.Envelope)), append(ids, newest.ID)
		root := merkleRoot(leaves)
		for i := range size {
			proof := mustGet(r.Inclusion(ctx, ids[i]))
			if proof.TreeSize != size || proof.Root != root || proof.Leaf != leaves[i] || !slices.Equal(proof.Path, inclusionPath(int(i), leaves)) {
				t.Fatalf("inclusion of %d in %d: %+v; want proof.TreeSize == size && proof.Root == root && proof.Leaf == leaves[i] && slices.Equal(proof.Path, inclusionPath(int(i), leaves))", i, size, proof)
			}
			if err := tlog.CheckRecord(proof.Path, size, root, i, leaves[i]); err != nil {
				t.Fatalf("inclusion of %d in %d: %v", i, size, err)
			}
			from := i + 1
			c, consistency, err := r.Checkpoint(ctx, from)
			if err != nil || c.TreeSize != size || c.Root != root || !slices.Equal(consistency, consistencyProof(int(from), leaves, true)) {
				t.Fatalf("consistency of %d with %d: %+v %v, %v; want c.TreeSize == size && c.Root == root && slices.Equal(consistency, consistencyProof(int(from), leaves, true))", from, size, c, consistency, err)
			}
			if err := tlog.CheckTree(consistency, size, root, from, merkleRoot(leaves[:from])); err != nil {
				t.Fatalf("consistency of %d with %d: %v", from, size, err)
			}
		}
	}
}
