package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits in bytes. A row has at most maxValues columns, and the files that describe them have bytesPerColumn for each,
// which is room for names of a hundred characters. None of it reaches the YAML reader of MLmodel, which takes a
// thousand times its input.
const (
	bytesPerColumn = 256
	MaxDescription = maxValues * bytesPerColumn // of MLmodel, and of platform.json
	maxStructure   = 256 << 10
	maxDepth       = 64 // of brackets within brackets
)

// mlmodel is the part of MLflow's MLmodel file that serving needs.
type mlmodel struct {
	Flavors   map[string]map[string]any `yaml:"flavors"`
	Signature *signature                `yaml:"signature"`
}

type signature struct {
	Inputs  string `yaml:"inputs"`
	Outputs string `yaml:"outputs"`
}

func readMLmodel(dir fs.FS) (m mlmodel, err error) {
	raw, err := readFile(dir, "MLmodel")
	if err != nil {
		return m, fmt.Errorf("the artifact has no readable MLmodel file: %w", err)
	}
	structure, cut := cutSignature(raw)
	if len(structure) > maxStructure {
		return m, fmt.Errorf("MLmodel: larger than %d bytes beside the signature's inputs and outputs", maxStructure)
	}
	if err := unmarshalMLmodel(structure, &m); err != nil {
		return m, fmt.Errorf("MLmodel: %w", err)
	}
	if m.Signature != nil {
		for key, text := range cut {
			switch key {
			case "inputs":
				m.Signature.Inputs = text
			case "outputs":
				m.Signature.Outputs = text
			}
		}
	}
	return m, nil
}

// cutSignature takes the texts in single quotes out of the signature, as MLflow writes the columns: they may be of any
// length, and reading them takes no YAML. In the rest they are empty. Other forms stay in the rest, whose size is bounded.
func cutSignature(raw []byte) (rest []byte, texts map[string]string) {
	texts = map[string]string{}
	inside, indent := false, 0
	for len(raw) > 0 {
		line, after := cutLine(raw)
		depth := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case depth == 0:
			inside, indent = bytes.Equal(bytes.TrimRight(line, " \r\n"), []byte("signature:")), 0
		case inside && (indent == 0 || depth == indent):
			indent = depth
			if key, text, next, ok := cutText(raw, line); ok {
				texts[string(bytes.TrimSpace(key))] = text
				rest = append(append(rest, key...), ": ''\n"...)
				raw = next
				continue
			}
		}
		rest = append(rest, line...)
		raw = after
	}
	return rest, texts
}

// cutText returns the key and the text in single quotes at the start of the first line of raw, and the rest after the
// text.
func cutText(raw, line []byte) (key []byte, text string, next []byte, ok bool) {
	key, value, ok := bytes.Cut(line, []byte(": '"))
	if !ok {
		return nil, "", nil, false
	}
	quoted := raw[len(line)-len(value):]
	end := closingQuote(quoted)
	if end < 0 {
		return nil, "", nil, false
	}
	tail, next := cutLine(quoted[end+1:])
	if len(bytes.TrimSpace(tail)) > 0 {
		return nil, "", nil, false
	}
	return key, unquoteYAML(quoted[:end]), next, true
}

// cutLine returns the first line with its end, and the rest.
func cutLine(raw []byte) (line, after []byte) {
	if i := bytes.IndexByte(raw, '\n'); i >= 0 {
		return raw[:i+1], raw[i+1:]
	}
	return raw, nil
}

// closingQuote is where a text in single quotes ends, or −1; a quote within it is doubled.
func closingQuote(text []byte) int {
	for i := 0; i < len(text); i++ {
		at := bytes.IndexByte(text[i:], '\'')
		if at < 0 {
			return -1
		}
		if i += at; i+1 == len(text) || text[i+1] != '\'' {
			return i
		}
		i++ // the other half of a doubled quote
	}
	return -1
}

// unquoteYAML is a text between single quotes: a line break is a space, and one that follows another is a line break.
func unquoteYAML(text []byte) string {
	var out strings.Builder
	breaks := 0
	for i, line := range strings.Split(strings.ReplaceAll(string(text), "''", "'"), "\n") {
		if i > 0 {
			line = strings.TrimLeft(line, " \t")
			if breaks++; line == "" {
				continue
			}
			if breaks == 1 {
				out.WriteByte(' ')
			}
			out.WriteString(strings.Repeat("\n", breaks-1))
			breaks = 0
		}
		out.WriteString(strings.TrimRight(line, " \t\r"))
	}
	return out.String()
}

// unmarshalMLmodel refuses YAML that is expensive to parse: anchors and aliases, with which a kilobyte unfolds into
// more than any memory, and deeply nested lists, which the library reads in quadratic time. Outsiders write these
// files, so that a fault of the library must not end the service either.
func unmarshalMLmodel(raw []byte, m *mlmodel) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not readable: %v", p)
		}
	}()
	depth := 0
	for _, c := range raw {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("brackets are nested more than %d deep", maxDepth)
			}
		case ']', '}':
			depth--
		}
	}
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return errors.New("the file is empty")
	}
	body := file.Docs[0].Body
	for _, kind := range []ast.NodeType{ast.AliasType, ast.AnchorType} {
		if nodes := ast.Filter(kind, body); len(nodes) > 0 {
			return fmt.Errorf("line %d: anchors and aliases are not read", nodes[0].GetToken().Position.Line)
		}
	}
	return yaml.NodeToValue(body, m)
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, MaxDescription+1))
	if err == nil && len(raw) > MaxDescription {
		err = fmt.Errorf("larger than %d bytes", MaxDescription)
	}
	return raw, err
}

// list is a list in a description, of limited length. Outsiders write them, and an entry may take a hundred times its
// size in the file.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	*l = nil
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("expected a list"), err)
	}
	for d.More() {
		if len(*l) == maxValues {
			return fmt.Errorf("a list has more than %d values, which is not served", maxValues)
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		*l = append(*l, v)
	}
	return nil
}

// table is an object in a description, bounded as list is.
type table[T any] map[string]T

// UnmarshalJSON implements json.Unmarshaler.
func (m *table[T]) UnmarshalJSON(raw []byte) error {
	*m = nil
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("expected an object"), err)
	}
	*m = table[T]{}
	for d.More() {
		if len(*m) == maxValues {
			return fmt.Errorf("an object has more than %d values, which is not served", maxValues)
		}
		key, err := d.Token()
		if err != nil {
			return err
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		(*m)[key.(string)] = v // the names of an object are strings
	}
	return nil
}
