package runtime

import "github.com/mlp-platform/platform/libs/onnx/onnxpb"

// maxTexts limits the texts kept of one input.
const maxTexts = 16

// textLists are the attributes in which an encoder lists the texts that it knows.
var textLists = map[string]bool{"cats_strings": true, "keys_strings": true}

// knownTexts finds, for each text input, texts that the encoders it leads to know. A trial needs one: on any other text
// such a model fails before it has done its work.
func knownTexts(g *onnxpb.GraphProto, inputs []Info) map[string][]string {
	consumers := map[string][]*onnxpb.NodeProto{}
	for _, n := range g.Node {
		for _, in := range n.Input {
			consumers[in] = append(consumers[in], n)
		}
	}
	out := map[string][]string{}
	for _, in := range inputs {
		if in.Type != String {
			continue
		}
		seen := map[string]bool{in.Name: true}
		pending := []string{in.Name}
		for len(pending) > 0 && len(out[in.Name]) < maxTexts {
			name := pending[0]
			pending = pending[1:]
			for _, n := range consumers[name] {
				for _, a := range n.Attribute {
					if textLists[a.GetName()] {
						for _, s := range a.Strings[:min(len(a.Strings), maxTexts)] {
							out[in.Name] = append(out[in.Name], string(s))
						}
					}
				}
				for _, o := range n.Output {
					if !seen[o] {
						seen[o] = true
						pending = append(pending, o)
					}
				}
			}
		}
		out[in.Name] = out[in.Name][:min(len(out[in.Name]), maxTexts)]
	}
	return out
}
