package runtime

import (
	"fmt"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// flow tracks where the values of a request go in a graph. The cost of a run must not depend on them: otherwise the
// trial run, with its own values, would predict nothing about later runs.
//
// Graphs within the graph are laid out flat. A name that two of them use counts as one value, which can only refuse
// more.
type flow struct {
	nodes     []*onnxpb.NodeProto
	consumers map[string][]int // nodes by the values they read
	tainted   map[string]bool  // values that depend on a request's
	pending   []string
	readsSize bool // some node reads the size of a value
}

// checkSizes refuses a graph in which a request's values decide how large a result is or whether it is computed.
// readsSize reports that sizes may depend on the number of rows in any way at all.
func checkSizes(g *onnxpb.GraphProto, inputs []Info) (readsSize bool, err error) {
	f := &flow{consumers: map[string][]int{}, tainted: map[string]bool{}}
	f.add(g)
	for _, in := range inputs {
		f.taint(in.Name)
	}
	f.spread()
	for _, n := range f.nodes {
		for _, at := range sizeOperands[n.GetOpType()] {
			if at < len(n.Input) && f.tainted[n.Input[at]] {
				return false, fmt.Errorf("node %q (%s): how much it computes depends on the values of a request", shorten(n.GetName()), n.GetOpType())
			}
		}
	}
	return f.readsSize, nil
}

// add lays out the nodes of g and of the graphs within them.
func (f *flow) add(g *onnxpb.GraphProto) {
	for _, n := range g.Node {
		at := len(f.nodes)
		f.nodes = append(f.nodes, n)
		for _, in := range n.Input {
			f.consumers[in] = append(f.consumers[in], at)
		}
		if op := n.GetOpType(); op == "Shape" || op == "Size" {
			f.readsSize = true
		}
		for _, sub := range graphsOf(n) {
			f.add(sub)
			for _, out := range sub.Output { // outputs of the inner graph are outputs of the node
				f.consumers[out.GetName()] = append(f.consumers[out.GetName()], at)
			}
		}
	}
}

func (f *flow) taint(name string) {
	if name != "" && !f.tainted[name] {
		f.tainted[name] = true
		f.pending = append(f.pending, name)
	}
}

func (f *flow) spread() {
	for len(f.pending) > 0 {
		name := f.pending[len(f.pending)-1]
		f.pending = f.pending[:len(f.pending)-1]
		for _, at := range f.consumers[name] {
			n := f.nodes[at]
			if op := n.GetOpType(); op == "Shape" || op == "Size" {
				continue // sizes do not depend on a request's values: flow enforces it
			}
			for _, out := range n.Output {
				f.taint(out)
			}
			for _, sub := range graphsOf(n) {
				for _, in := range sub.Input {
					f.taint(in.GetName())
				}
			}
		}
	}
}

// graphsOf are the graphs in a node's attributes.
func graphsOf(n *onnxpb.NodeProto) (out []*onnxpb.GraphProto) {
	for _, a := range n.Attribute {
		if a.G != nil {
			out = append(out, a.G)
		}
		out = append(out, a.Graphs...)
	}
	return out
}
