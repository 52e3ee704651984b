package tree_test

import (
	"crypto/sha256"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// The leaves and the root over the fixture run's two events.
func TestFixtureEvents(t *testing.T) {
	t.Parallel()
	var leaves []tree.Hash
	for i, want := range []string{
		"fc9492e4f7a49b8233cd3152841f0b4c42f8aba886c301b9212ccdc89fcf192d",
		"8a0ccca18eb88045ceaaa52cdb248cf1fe7290889902c5d5dcb5b7503ac23631",
	} {
		c1, err := canon.C1(evidencetest.RunEvents()[i])
		if err != nil {
			t.Fatal(err)
		}
		leaf := tree.Leaf(c1)
		if tree.Hex(leaf) != want {
			t.Errorf("leaf %d = %s, want %s", i, tree.Hex(leaf), want)
		}
		leaves = append(leaves, leaf)
	}
	const want = "79a2b09fe3c620d751fb05c933d4c26c0117ee6d6ae4c480d73aee3805e27506"
	if root := tree.Hex(tree.Node(leaves[0], leaves[1])); root != want {
		t.Errorf("root = %s, want %s", root, want)
	}
	if tree.Empty() != sha256.Sum256(nil) {
		t.Errorf("root over no event = %s; want tree.Empty() == sha256.Sum256(nil)", tree.Hex(tree.Empty()))
	}
}

func TestHexOfHashes(t *testing.T) {
	t.Parallel()
	h := tree.Leaf([]byte("x"))
	back, err := tree.ParseHex(tree.Hex(h))
	if err != nil || back != h {
		t.Errorf("ParseHex(Hex(%s)) = %s, %v; want back == h", tree.Hex(h), tree.Hex(back), err)
	}
	for _, bad := range []string{"", "ab", tree.Hex(h)[1:], tree.Hex(h) + "00", "G" + tree.Hex(h)[1:], "A" + tree.Hex(h)[1:]} {
		if _, err := tree.ParseHex(bad); err == nil {
			t.Errorf("ParseHex(%q) passed; want an error", bad)
		}
	}
}
