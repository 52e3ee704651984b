package trust

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/mlp-platform/platform/libs/textfile"
)

// Limits that are checked before the parser sees the file: it recurses per level.
const (
	// MaxFile limits a trust file, in bytes; one with a dozen providers is under 20 KB.
	MaxFile = 256 << 10
	// maxDepth limits how deep mappings and lists lie in each other; the format itself needs 6.
	maxDepth = 24
)

// document gathers the faults of one file.
type document struct {
	name   string
	faults Faults
}

func (d *document) fault(line int, format string, a ...any) {
	d.faults = append(d.faults, Fault{d.name, line, fmt.Sprintf(format, a...)})
}

// parse reads the text's one mapping; nil after a fault.
func (d *document) parse(src []byte) ast.Node {
	src, err := textfile.Clean(src)
	var wrong *textfile.Error
	switch line := deepLine(src); {
	case errors.As(err, &wrong):
		d.fault(wrong.Line, "column %d: %s; save the file as UTF-8", wrong.Column, wrong.Msg)
	case err != nil:
		d.fault(0, "%s", err)
	case len(src) > MaxFile:
		d.fault(0, "is larger than %d KiB", MaxFile>>10)
	case line > 0:
		d.fault(line, "nests more than %d levels", maxDepth)
	case bytes.Count(src, []byte("\n---")) > 1: // the parser takes seconds for thousands
		d.fault(0, "must hold one YAML document; it holds more")
	}
	if len(d.faults) > 0 {
		return nil
	}
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		var ye yaml.Error
		if errors.As(err, &ye) && ye.GetToken() != nil {
			d.fault(ye.GetToken().Position.Line, "%s", ye.GetMessage())
		} else {
			d.fault(0, "is no YAML: %s", err)
		}
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) != 1 {
		d.fault(0, "must hold one YAML document; it holds %d", len(bodies))
		return nil
	}
	// An alias repeats its anchor's content, so that a short file unfolds into gigabytes; a tag changes the type of a
	// value.
	for _, kind := range []ast.NodeType{ast.AliasType, ast.AnchorType, ast.TagType} {
		for _, n := range ast.Filter(kind, bodies[0]) {
			d.fault(lineOf(n), "anchors, aliases and tags are not read here; write the value out")
		}
	}
	if len(d.faults) > 0 {
		return nil
	}
	return bodies[0]
}

// deepLine is the first line that could lie deeper than maxDepth, or 0. It counts generously, brackets within
// strings too: no trust file comes near the limit.
func deepLine(src []byte) int {
	brackets := 0
	var indents []int
	for n, line := range bytes.Split(src, []byte("\n")) {
		text := bytes.TrimLeft(line, " \t")
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		indent := len(line) - len(text)
		for len(indents) > 0 && indents[len(indents)-1] >= indent {
			indents = indents[:len(indents)-1]
		}
		indents = append(indents, indent)
		compact := 0 // "- - - x" opens a list each
		for len(text) > 1 && (text[0] == '-' || text[0] == '?') && (text[1] == ' ' || text[1] == '\t') {
			compact++
			text = bytes.TrimLeft(text[1:], " \t")
		}
		deepest := brackets
		for _, c := range text {
			switch c {
			case '[', '{':
				brackets++
				deepest = max(deepest, brackets)
			case ']', '}':
				brackets = max(0, brackets-1)
			}
		}
		if len(indents)+compact+deepest > maxDepth {
			return n + 1
		}
	}
	return 0
}

// lineOf returns the line on which a value starts; a block mapping's own token is its first colon.
func lineOf(n ast.Node) int {
	switch v := n.(type) {
	case *ast.MappingNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return v.Values[0].Key.GetToken().Position.Line
		}
	case *ast.SequenceNode:
		if len(v.Values) > 0 && !v.IsFlowStyle {
			return lineOf(v.Values[0])
		}
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// object reads a mapping with exactly the expected keys.
type object struct {
	d     *document
	where string // for messages: "providers[0]"; empty for the file
	line  int
	keys  []string
	nodes map[string]ast.Node
	lines map[string]int
	asked []string
}

// object decodes a mapping. Any other value is a fault, and returns nil.
func (d *document) object(n ast.Node, where string) *object {
	var values []*ast.MappingValueNode
	switch v := n.(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	default:
		d.fault(lineOf(n), "%s must be a mapping of keys to values", orFile(where))
		return nil
	}
	o := &object{d: d, where: where, line: lineOf(n), nodes: map[string]ast.Node{}, lines: map[string]int{}}
	for _, v := range values {
		line := v.Key.GetToken().Position.Line
		key, ok := scalarText(v.Key)
		switch _, twice := o.nodes[key]; {
		case !ok:
			d.fault(line, "a key of %s is no plain text", orFile(where))
		case twice:
			d.fault(line, "%s is there twice, first in line %d", o.path(key), o.lines[key])
		default:
			o.nodes[key], o.lines[key] = v.Value, line
			o.keys = append(o.keys, key)
		}
	}
	return o
}

func orFile(where string) string {
	if where == "" {
		return "the file"
	}
	return where
}

func (o *object) path(key string) string {
	if o.where == "" {
		return key
	}
	return o.where + "." + key
}

// fault names a key; its line, or that of the object when the key is absent.
func (o *object) fault(key, format string, a ...any) {
	line, ok := o.lines[key]
	if !ok {
		line = o.line
	}
	o.d.fault(line, "%s %s", o.path(key), fmt.Sprintf(format, a...))
}

// value is the node of a key; ok is false when the key is absent. A key without a value is a fault: it is not clear
// whether the default or nothing is meant.
func (o *object) value(key string) (ast.Node, bool) {
	o.asked = append(o.asked, key)
	n, ok := o.nodes[key]
	if ok && (n == nil || n.Type() == ast.NullType) {
		o.fault(key, "has no value; give one or leave the key out")
		return nil, false
	}
	return n, ok
}

func (o *object) has(key string) bool { _, ok := o.nodes[key]; return ok }

// plainKey matches what could be a misspelt key.
var plainKey = lazyPattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// lazyPattern compiles a pattern at its first use: repeat counts make it large, and mlp, which links this package, mostly
// ends within milliseconds without one.
func lazyPattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// finish reports the unknown keys.
func (o *object) finish() {
	for _, key := range o.keys {
		known := strings.Join(slices.Sorted(slices.Values(o.asked)), ", ")
		switch {
		case slices.Contains(o.asked, key):
		case plainKey().MatchString(key):
			o.fault(key, "is unknown; known here: %s", known)
		default: // perhaps another file, whose lines must not be shown
			o.d.fault(o.lines[key], "a key of %s is unknown; known here: %s", orFile(o.where), known)
		}
	}
}

// scalarText is a value that YAML takes for text.
func scalarText(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	}
	return "", false
}

// maxText limits a text of the file, in bytes.
const maxText = 2048

// checkText returns what is wrong with a text, or "".
func checkText(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > maxText:
		return fmt.Sprintf("is longer than %d bytes", maxText)
	case strings.TrimSpace(s) != s:
		return "begins or ends with space"
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }):
		return "has control characters"
	}
	return ""
}

// text reads a string; standard when the key is absent.
func (o *object) text(key, standard string) string {
	n, ok := o.value(key)
	if !ok {
		return standard
	}
	s, ok := scalarText(n)
	if !ok {
		o.fault(key, "must be text; put it in quotes")
		return standard
	}
	if why := checkText(s); why != "" {
		o.fault(key, "%s", why)
		return standard
	}
	return s
}

// required is text that must be there.
func (o *object) required(key string) string {
	if !o.has(key) {
		o.asked = append(o.asked, key)
		o.fault(key, "is missing")
		return ""
	}
	return o.text(key, "")
}

func (o *object) flag(key string) bool {
	n, ok := o.value(key)
	if !ok {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		o.fault(key, "must be true or false")
		return false
	}
	return b.Value
}

func (o *object) number(key string, standard, low, high int) int {
	n, ok := o.value(key)
	if !ok {
		return standard
	}
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(i.GetToken().Value); err == nil && v >= low && v <= high {
			return v
		}
	}
	o.fault(key, "must be a whole number from %d to %d", low, high)
	return standard
}

// items are the entries of a list; ok is false when the key is absent or no list.
func (o *object) items(key string) ([]ast.Node, bool) {
	n, ok := o.value(key)
	if !ok {
		return nil, false
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		o.fault(key, "must be a list")
		return nil, false
	}
	return s.Values, true
}

// texts reads a list of different strings; standard when the key is absent.
func (o *object) texts(key string, standard []string) []string {
	items, ok := o.items(key)
	if !ok {
		return standard
	}
	out := make([]string, 0, len(items))
	for i, n := range items {
		s, ok := scalarText(n)
		why := "must be text; put it in quotes"
		if ok {
			if why = checkText(s); why == "" && slices.Contains(out, s) {
				why = fmt.Sprintf("repeats %q", s)
			}
		}
		if why != "" {
			o.d.fault(lineOf(n), "%s[%d] %s", o.path(key), i, why)
			continue
		}
		out = append(out, s)
	}
	return out
}

// textOrTexts reads one string or a list of them.
func (o *object) textOrTexts(key string) []string {
	if _, isList := o.nodes[key].(*ast.SequenceNode); isList {
		return o.texts(key, nil)
	}
	if s := o.text(key, ""); s != "" {
		return []string{s}
	}
	return nil
}

// object reads a mapping; nil when the key is absent or no mapping.
func (o *object) object(key string) *object {
	n, ok := o.value(key)
	if !ok {
		return nil
	}
	return o.d.object(n, o.path(key))
}
