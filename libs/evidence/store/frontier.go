package store

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// frontier is the state that a growing tree must keep: the roots of the full subtrees
// at the end of its leaves, largest first, one for each bit set in size.
type frontier struct {
	size  int64
	nodes []tree.Hash
}

func (f *frontier) add(leaf tree.Hash) {
	for n := f.size; n&1 == 1; n >>= 1 {
		last := len(f.nodes) - 1
		leaf = tree.Node(f.nodes[last], leaf)
		f.nodes = f.nodes[:last]
	}
	f.nodes = append(f.nodes, leaf)
	f.size++
}

func (f *frontier) root() tree.Hash {
	if f.size == 0 {
		return tree.Empty()
	}
	root := f.nodes[len(f.nodes)-1]
	for i := len(f.nodes) - 2; i >= 0; i-- {
		root = tree.Node(f.nodes[i], root)
	}
	return root
}

// String is `<size>` and the nodes in hex, apart by colons; [parseFrontier] reads it.
func (f *frontier) String() string {
	parts := []string{strconv.FormatInt(f.size, 10)}
	for _, n := range f.nodes {
		parts = append(parts, tree.Hex(n))
	}
	return strings.Join(parts, ":")
}

func parseFrontier(text string) (frontier, error) {
	parts := strings.Split(text, ":")
	size, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return frontier{}, fmt.Errorf("frontier: %w", err)
	}
	f := frontier{size: size}
	for _, part := range parts[1:] {
		h, err := tree.ParseHex(part)
		if err != nil {
			return frontier{}, fmt.Errorf("frontier: %w", err)
		}
		f.nodes = append(f.nodes, h)
	}
	if size < 0 || len(f.nodes) != bits.OnesCount64(uint64(size)) {
		return frontier{}, fmt.Errorf("frontier: %d nodes do not fit %d leaves", len(f.nodes), size)
	}
	return f, nil
}
