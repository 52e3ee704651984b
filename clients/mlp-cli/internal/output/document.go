package output

import (
	"bytes"
	"errors"
	"math"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"go.yaml.in/yaml/v3"

	"github.com/mlp-platform/platform/libs/cli/printable"
)

// Documents are encoded as encoding/json does, except for values that are not JSON numbers: a run can log NaN or an
// infinity, and one such value must not cost the reader the document. encoding/json has no such option.
var documentOptions = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false),
	jsonv2.WithMarshalers(jsonv2.MarshalToFunc(func(enc *jsontext.Encoder, x float64) error {
		if isFinite(x) {
			return errors.ErrUnsupported // as any other figure
		}
		return enc.WriteToken(jsontext.Null)
	})))

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Marshal encodes v as JSON in one line; NaN and the infinities are null.
func Marshal(v any) ([]byte, error) { return jsonv2.Marshal(v, documentOptions) }

// MarshalIndent is [Marshal] with indentation.
func MarshalIndent(v any) ([]byte, error) {
	return jsonv2.Marshal(v, documentOptions, jsontext.WithIndent("  "))
}

// marshalYAML goes through JSON, so that both formats share key names and nulls.
func marshalYAML(v any) ([]byte, error) {
	data, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	document, err := readNode(jsontext.NewDecoder(bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(document); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// readNode reads the next value of JSON as YAML, its keys in their order.
func readNode(dec *jsontext.Decoder) (*yaml.Node, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch kind := token.Kind(); kind {
	case '{', '[':
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if kind == '{' {
			n.Kind = yaml.MappingNode
		}
		for next := dec.PeekKind(); next != '}' && next != ']'; next = dec.PeekKind() {
			child, err := readNode(dec)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err := dec.ReadToken()
		return n, err
	case '"':
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token.String()}
		if printable.Text(n.Value) != n.Value {
			n.Style = yaml.DoubleQuotedStyle // no other style has escapes, which hostile characters need
		}
		return n, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
}
