package governance

import (
	"regexp"
	"slices"
	"strings"
)

// origin is a possible source of text in an expression's value: a context, by its path in lower case, in which "*" is
// any member; or a text in the expression itself, which has no path.
type origin struct {
	path []string
	text string
}

// The grammar of GitHub's expressions.
var expressionToken = regexp.MustCompile(`^(?:'(?:[^']|'')*'|[A-Za-z_][A-Za-z0-9_-]*|[-+]?(?:0[xo][0-9A-Fa-f]+|[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)|&&|\|\||[=!<>]=|[!<>()\[\].,*])`)

// noText are the functions whose values are true, false or a digest.
var noText = []string{"contains", "startswith", "endswith", "success", "failure", "always", "cancelled", "hashfiles"}

// anyOrigin is that of a value about which nothing is known.
var anyOrigin = []origin{{path: []string{"*"}}}

// findOrigins returns the possible origins of an expression's text; the expression may be with or without ${{ }}.
func findOrigins(expression string) []origin {
	p := expressionParser{rest: strings.TrimSuffix(strings.TrimPrefix(expression, "${{"), "}}")}
	p.advance()
	out := p.either()
	if p.bad || p.word != "" {
		return anyOrigin
	}
	return out
}

type expressionParser struct {
	rest  string
	word  string // the next of the grammar; empty at the end
	depth int
	bad   bool
}

// maxExpressionDepth is more than GitHub takes.
const maxExpressionDepth = 100

func (p *expressionParser) advance() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	p.word = expressionToken.FindString(p.rest)
	p.bad = p.bad || p.word == "" && p.rest != ""
	p.rest = p.rest[len(p.word):]
}

func (p *expressionParser) take(word string) bool {
	if p.word != word {
		return false
	}
	p.advance()
	return true
}

func (p *expressionParser) expect(word string) { p.bad = !p.take(word) || p.bad }

func (p *expressionParser) either() []origin {
	if p.depth++; p.depth > maxExpressionDepth {
		p.bad, p.rest, p.word = true, "", ""
		return nil
	}
	defer func() { p.depth-- }()
	out := p.both()
	for p.take("||") {
		out = append(out, p.both()...)
	}
	return out
}

// both: a && b is b, or an a that counts as false, which no text does but the empty one.
func (p *expressionParser) both() []origin {
	out := p.compared()
	for p.take("&&") {
		out = p.compared()
	}
	return out
}

func (p *expressionParser) compared() []origin {
	out := p.unary()
	for slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, p.word) {
		p.advance()
		p.unary()
		out = nil // true or false
	}
	return out
}

func (p *expressionParser) unary() []origin {
	negated := false
	for p.take("!") {
		negated = true
	}
	out := p.operand()
	if negated {
		return nil
	}
	return out
}

func (p *expressionParser) operand() []origin {
	out, context := p.primary()
	for {
		var member string
		switch {
		case p.take("."):
			member = strings.ToLower(p.word)
			p.advance()
		case p.take("["):
			member = "*"
			if index := p.either(); len(index) == 1 && index[0].path == nil {
				member = strings.ToLower(index[0].text)
			}
			p.expect("]")
		default:
			return out
		}
		for i, o := range out {
			if context && o.path != nil { // of the value of a function, every member is as the whole
				out[i].path = append(slices.Clone(o.path), member)
			}
		}
	}
}

// primary reads a value without its members, and reports whether it is the name of a context.
func (p *expressionParser) primary() (out []origin, context bool) {
	word := p.word
	p.advance()
	switch first := (word + " ")[0]; {
	case word == "(":
		out := p.either()
		p.expect(")")
		return out, false
	case first == '\'':
		return []origin{{text: strings.ReplaceAll(word[1:len(word)-1], "''", "'")}}, false
	case first >= '0' && first <= '9' || strings.IndexByte("+-.", first) >= 0 && len(word) > 1:
		return nil, false
	case word == "true" || word == "false" || word == "null":
		return nil, false
	case first != '_' && (first|0x20 < 'a' || first|0x20 > 'z'):
		p.bad = true
		return nil, false
	}
	name := strings.ToLower(word)
	if !p.take("(") {
		return []origin{{path: []string{name}}}, true
	}
	for first := true; p.word != ")" && p.word != ""; first = false {
		if !first {
			p.expect(",")
		}
		out = append(out, p.either()...)
		if p.bad {
			return nil, false
		}
	}
	p.expect(")")
	if slices.Contains(noText, name) {
		return nil, false
	}
	return out, false
}
