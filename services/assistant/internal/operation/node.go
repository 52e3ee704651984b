package operation

import (
	"math"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// budget converts YAML nodes to plain values and counts them, so that aliases cannot exceed the limit.
type budget struct {
	field string
	nodes int
}

func (b *budget) refuse(n *yaml.Node, what string) error {
	return Refuse(InvalidManifest, b.field, "Line %d of the %s %s.", n.Line, b.field, what)
}

func (b *budget) value(n *yaml.Node, depth int) (any, error) {
	if b.nodes--; b.nodes < 0 || depth > maxDepth {
		return nil, Refuse(TooLarge, b.field, "The %s is nested or repeated too much: at most %d values, %d levels.", b.field, maxNodes, maxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) != 1 {
			return nil, nil
		}
		return b.value(n.Content[0], depth)
	case yaml.AliasNode:
		// An anchor that contains its own alias ends at the depth limit.
		return b.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return b.mapping(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := b.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.ScalarNode:
		return b.scalar(n)
	}
	return nil, nil // an empty document
}

func (b *budget) mapping(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			return nil, b.refuse(key, "has a key that is no string; quote it")
		}
		if _, twice := m[key.Value]; twice {
			return nil, b.refuse(key, "has the key "+Quote(key.Value)+" twice")
		}
		if !cleanText(key.Value) {
			return nil, b.refuse(key, "has control characters in a key")
		}
		v, err := b.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		m[key.Value] = v
	}
	return m, nil
}

// Words that YAML 1.1 reads as booleans and YAML 1.2 as text: tools disagree.
var ambiguous = map[string]bool{"yes": true, "no": true, "on": true, "off": true}

func (b *budget) scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!str":
		if n.Style == 0 && ambiguous[strings.ToLower(n.Value)] {
			return nil, b.refuse(n, "has a bare "+n.Value+"; write true or false, or quote it")
		}
		if !cleanText(n.Value) {
			return nil, b.refuse(n, "has control characters in a value")
		}
		return n.Value, nil
	case "!!timestamp": // text to the API, whatever it looks like
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		var v bool
		if err := n.Decode(&v); err != nil {
			return nil, b.refuse(n, "has a boolean that cannot be read")
		}
		return v, nil
	case "!!int":
		var v int64
		if err := n.Decode(&v); err != nil {
			return nil, b.refuse(n, "has a whole number out of range")
		}
		return v, nil
	case "!!float":
		var v float64
		// Beyond 2^53 a whole number would change its value in transit.
		if err := n.Decode(&v); err != nil || math.IsNaN(v) || math.Abs(v) > 1<<53 {
			return nil, b.refuse(n, "has a number out of range")
		}
		if v == 0 {
			return 0.0, nil // JSON's whole numbers have no minus zero
		}
		return v, nil
	}
	return nil, b.refuse(n, "has a value of a type that JSON does not know")
}
