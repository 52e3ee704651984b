package runtime

import (
	"bytes"
	"errors"
	"fmt"
)

// maxTreeDepth limits the nodes from a tree's root to a leaf; the library builds trees by recursion.
const maxTreeDepth = 4096

// The library does not notice when a tree leads back to where it came from: it would walk on for ever, inside one
// operator, where no deadline reaches it. So each forest must be free of cycles. A node may have several parents:
// LightGBM's exports share leaves.

// checkTrees checks TreeEnsembleRegressor and TreeEnsembleClassifier, whose nodes are known by tree and number.
func checkTrees(a attrs) error {
	trees, ids := a["nodes_treeids"].GetInts(), a["nodes_nodeids"].GetInts()
	modes := a["nodes_modes"].GetStrings()
	yes, no := a["nodes_truenodeids"].GetInts(), a["nodes_falsenodeids"].GetInts()
	n := len(trees)
	if len(ids) != n || len(modes) != n || len(yes) != n || len(no) != n || len(a["nodes_featureids"].GetInts()) != n {
		return errors.New("the lists of its trees' nodes have different lengths")
	}
	type key struct{ tree, node int64 }
	index := make(map[key]int32, n)
	for i := range n {
		k := key{trees[i], ids[i]}
		if _, twice := index[k]; twice {
			return fmt.Errorf("tree %d has two nodes %d", k.tree, k.node)
		}
		index[k] = int32(i)
	}
	w := treeWalk{children: func(i int32) ([2]int32, error) {
		if bytes.Equal(modes[i], []byte("LEAF")) {
			return [2]int32{-1, -1}, nil
		}
		t, okYes := index[key{trees[i], yes[i]}]
		f, okNo := index[key{trees[i], no[i]}]
		if !okYes || !okNo {
			return [2]int32{}, fmt.Errorf("node %d of tree %d has a branch to a node that is not there", ids[i], trees[i])
		}
		return [2]int32{t, f}, nil
	}}
	return w.check(n)
}

// checkTreeEnsemble checks the newer TreeEnsemble, whose branches are indices of nodes or of leaves.
func checkTreeEnsemble(a attrs) error {
	yes, no := a["nodes_truenodeids"].GetInts(), a["nodes_falsenodeids"].GetInts()
	yesLeaf, noLeaf := a["nodes_trueleafs"].GetInts(), a["nodes_falseleafs"].GetInts()
	roots, leaves := a["tree_roots"].GetInts(), len(a["leaf_targetids"].GetInts())
	n := len(yes)
	if len(no) != n || len(yesLeaf) != n || len(noLeaf) != n || len(a["nodes_featureids"].GetInts()) != n {
		return errors.New("the lists of its trees' nodes have different lengths")
	}
	for _, r := range roots {
		if r < 0 || r >= int64(max(n, 1)) {
			return fmt.Errorf("tree_roots has %d of %d nodes", r, n)
		}
	}
	branch := func(to, leaf int64) (int32, error) {
		limit := int64(n)
		if leaf != 0 {
			limit = int64(leaves)
		}
		switch {
		case to < 0 || to >= limit:
			return 0, fmt.Errorf("a branch leads to %d of %d", to, limit)
		case leaf != 0:
			return -1, nil
		}
		return int32(to), nil
	}
	w := treeWalk{children: func(i int32) (c [2]int32, err error) {
		if c[0], err = branch(yes[i], yesLeaf[i]); err == nil {
			c[1], err = branch(no[i], noLeaf[i])
		}
		return c, err
	}}
	return w.check(n)
}

// treeWalk visits each node once, depth first.
type treeWalk struct {
	children func(node int32) ([2]int32, error) // −1 where a branch ends
}

func (w treeWalk) check(n int) error {
	const unseen, open, done = 0, 1, 2
	state := make([]byte, n)
	type step struct {
		node int32
		next [2]int32
		at   int
	}
	var path []step
	enter := func(i int32) error {
		if len(path) >= maxTreeDepth {
			return fmt.Errorf("a tree is more than %d nodes deep", maxTreeDepth)
		}
		c, err := w.children(i)
		if err != nil {
			return err
		}
		state[i] = open
		path = append(path, step{node: i, next: c})
		return nil
	}
	for root := range n {
		if state[root] != unseen {
			continue
		}
		if err := enter(int32(root)); err != nil {
			return err
		}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if top.at == 2 {
				state[top.node] = done
				path = path[:len(path)-1]
				continue
			}
			child := top.next[top.at]
			top.at++
			switch {
			case child < 0 || state[child] == done:
			case state[child] == open:
				return errors.New("a tree leads back to where it came from")
			default:
				if err := enter(child); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
