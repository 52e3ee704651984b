package tree_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// The leaves and the root over the fixture run's two events.
func TestFixtureEvents(t *testing.T) {
	t.Parallel()
	var log tree.Tree
	for i, want := range []string{
		"fc9492e4f7a49b8233cd3152841f0b4c42f8aba886c301b9212ccdc89fcf192d",
		"8a0ccca18eb88045ceaaa52cdb248cf1fe7290889902c5d5dcb5b7503ac23631",
	} {
		leaf, err := tree.LeafOf(fixture.RunEvents()[i])
		if err != nil || tree.Hex(leaf) != want {
			t.Errorf("leaf %d = %s, %v; want %s", i, tree.Hex(leaf), err, want)
		}
		log.Append(leaf)
	}
	root, err := log.Root(2)
	if want := "79a2b09fe3c620d751fb05c933d4c26c0117ee6d6ae4c480d73aee3805e27506"; err != nil || tree.Hex(root) != want {
		t.Errorf("root = %s, %v; want %s", tree.Hex(root), err, want)
	}
	if _, err := tree.LeafOf(make(chan int)); err == nil {
		t.Error("a channel has a leaf")
	}
}

// root and the two proofs as RFC 9162 defines them, over a list of leaves.

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

func equalHashes(a, b []tree.Hash) bool {
	return fmt.Sprint(tree.HexPath(a)) == fmt.Sprint(tree.HexPath(b))
}

func TestEveryProofUpToSeventeenEvents(t *testing.T) {
	t.Parallel()
	var log tree.Tree
	var leaves []tree.Hash
	for size := 1; size <= 17; size++ {
		data := fmt.Appendf(nil, `{"n":%d}`, size)
		leaf := tree.Leaf(data)
		if leaf != tree.Hash(sha256.Sum256(append([]byte{0}, data...))) {
			t.Fatal("a leaf is SHA-256(00, data)")
		}
		log.Append(leaf)
		leaves = append(leaves, leaf)
		top, err := log.Root(int64(size))
		if err != nil || top != merkleRoot(leaves) || log.Size() != int64(size) {
			t.Fatalf("root of %d: %v", size, err)
		}
		for i := range size {
			got, err := log.Inclusion(int64(i), int64(size))
			if err != nil || !equalHashes(got, inclusionPath(i, leaves)) {
				t.Fatalf("inclusion of %d in %d: %v, %v", i, size, got, err)
			}
			if err := tree.CheckInclusion(leaves[i], int64(i), int64(size), top, got); err != nil {
				t.Fatal(i, size, err)
			}
			if size > 1 {
				if err := tree.CheckInclusion(leaves[i], int64(size-1-i), int64(size), top, got); err == nil && i != size-1-i {
					t.Fatalf("the proof of %d in %d holds for %d", i, size, size-1-i)
				}
			}
			old := leaves[:i+1]
			got, err = log.Consistency(int64(i+1), int64(size))
			if err != nil || !equalHashes(got, consistencyProof(i+1, leaves, true)) {
				t.Fatalf("consistency of %d with %d: %v, %v", i+1, size, got, err)
			}
			if err := tree.CheckConsistency(int64(i+1), int64(size), merkleRoot(old), top, got); err != nil {
				t.Fatal(i+1, size, err)
			}
			if err := tree.CheckConsistency(int64(i+1), int64(size), tree.Node(merkleRoot(old), top), top, got); !errors.Is(err, tree.ErrProof) {
				t.Fatalf("another old root passes: %d, %d", i+1, size)
			}
		}
	}
	if leaf, err := log.Leaf(16); err != nil || leaf != leaves[16] {
		t.Error("Leaf(16)", err)
	}
	if empty, err := log.Root(0); err != nil || empty != tree.Empty() {
		t.Error("Root(0)", err)
	}
	h := tree.Hash{}
	_, e1 := log.Leaf(17)
	_, e2 := log.Root(18)
	_, e3 := log.Inclusion(5, 5)
	_, e4 := log.Inclusion(0, 18)
	_, e5 := log.Consistency(0, 3)
	_, e6 := log.Consistency(4, 3)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, tree.CheckInclusion(h, 3, 3, h, nil), tree.CheckConsistency(0, 1, h, h, nil)} {
		if !errors.Is(err, tree.ErrSize) {
			t.Errorf("case %d: %v", i, err)
		}
	}
	if err := tree.CheckConsistency(3, 3, h, h, []tree.Hash{h}); !errors.Is(err, tree.ErrProof) {
		t.Error("a proof between equal sizes is not empty:", err)
	}
}

func TestHexOfHashesAndPaths(t *testing.T) {
	t.Parallel()
	h := tree.Leaf([]byte("x"))
	back, err := tree.ParseHex(tree.Hex(h))
	if err != nil || back != h {
		t.Error(back, err)
	}
	if p, err := tree.ParseHexPath(tree.HexPath([]tree.Hash{h, tree.Empty()})); err != nil || len(p) != 2 || p[0] != h {
		t.Error(p, err)
	}
	if p := tree.HexPath(nil); p == nil || len(p) != 0 {
		t.Error("an empty path must be an empty list")
	}
	for _, bad := range []string{"", "ab", tree.Hex(h)[1:], tree.Hex(h) + "00", "G" + tree.Hex(h)[1:], "A" + tree.Hex(h)[1:]} {
		if _, err := tree.ParseHex(bad); err == nil {
			t.Errorf("ParseHex(%q) passed", bad)
		}
	}
	if _, err := tree.ParseHexPath(make([]string, 127)); err == nil {
		t.Error("a path of 127 hashes passed")
	}
	if _, err := tree.ParseHexPath([]string{"x"}); err == nil {
		t.Error("a path of an x passed")
	}
}
