package filter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	end kind = iota
	name
	str
	number
	symbol // an operator, parenthesis or comma
)

type token struct {
	kind   kind
	text   string // without quotes
	entity string // of a dotted name
	dotted bool
}

func (t token) is(word string) bool {
	return t.kind == name && !t.dotted && strings.EqualFold(t.text, word)
}

func (t token) String() string {
	switch {
	case t.kind == end:
		return "the end"
	case t.dotted:
		return fmt.Sprintf("'%s.%s'", t.entity, t.text)
	}
	return "'" + t.text + "'"
}

type lexer struct{ rest string }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isName reports whether c may occur in an unquoted name; bytes above ASCII are letters of some language.
func isName(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf || strings.IndexByte("_-/:", c) >= 0
}

func (l *lexer) token() (token, error) {
	for l.rest != "" && isSpace(l.rest[0]) {
		l.rest = l.rest[1:]
	}
	if l.rest == "" {
		return token{}, nil
	}
	switch c := l.rest[0]; {
	case strings.IndexByte("(),", c) >= 0:
		l.rest = l.rest[1:]
		return token{kind: symbol, text: string(c)}, nil
	case strings.IndexByte("=<>!", c) >= 0:
		n := 1
		for n < len(l.rest) && strings.IndexByte("=<>!", l.rest[n]) >= 0 {
			n++
		}
		t := token{kind: symbol, text: l.rest[:n]}
		l.rest = l.rest[n:]
		return t, nil
	case isDigit(c), c == '-', c == '+', c == '.':
		return l.number()
	case c == '\'', c == '"', c == '`':
		text, err := l.quoted()
		if err == nil && c == '`' {
			return l.dotted(text)
		}
		return token{kind: str, text: text}, err
	case isName(c):
		return l.dotted(l.word())
	}
	r, _ := utf8.DecodeRuneInString(l.rest)
	return token{}, newError("Invalid clause(s) in filter string: %q was not expected.", r)
}

func (l *lexer) word() string {
	n := 0
	for n < len(l.rest) && isName(l.rest[n]) {
		n++
	}
	w := l.rest[:n]
	l.rest = l.rest[n:]
	return w
}

// dotted reads the key after the first part of a name: quoted as a whole or with further dots.
func (l *lexer) dotted(first string) (token, error) {
	if !strings.HasPrefix(l.rest, ".") {
		return token{kind: name, text: first}, nil
	}
	l.rest = l.rest[1:]
	t := token{kind: name, entity: first, dotted: true}
	if l.rest != "" && strings.IndexByte("'\"`", l.rest[0]) >= 0 {
		var err error
		t.text, err = l.quoted()
		return t, err
	}
	t.text = l.word()
	for strings.HasPrefix(l.rest, ".") {
		l.rest = l.rest[1:]
		t.text += "." + l.word()
	}
	if t.text == "" {
		return t, newError("Invalid identifier '%s.': no key follows the dot.", first)
	}
	return t, nil
}

// quoted reads a string in the quotes that the rest begins with.
func (l *lexer) quoted() (string, error) {
	q := l.rest[:1]
	var out strings.Builder
	for rest := l.rest[1:]; ; {
		part, after, ok := strings.Cut(rest, q)
		if !ok {
			return "", newError("Invalid clause(s) in filter string: the quote %s is not closed.", q)
		}
		out.WriteString(part)
		if !strings.HasPrefix(after, q) {
			l.rest = after
			return out.String(), nil
		}
		out.WriteString(q)
		rest = after[1:]
	}
}

func (l *lexer) number() (token, error) {
	n := 1
	for n < len(l.rest) {
		c := l.rest[n]
		sign := (c == '-' || c == '+') && (l.rest[n-1] == 'e' || l.rest[n-1] == 'E')
		if !isDigit(c) && c != '.' && c != 'e' && c != 'E' && !sign {
			break
		}
		n++
	}
	// A name may begin with a digit.
	if n < len(l.rest) && isName(l.rest[n]) && isDigit(l.rest[0]) {
		return l.dotted(l.word())
	}
	t := token{kind: number, text: l.rest[:n]}
	if _, err := strconv.ParseFloat(t.text, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return t, newError("Invalid clause(s) in filter string: '%s' is no number.", t.text)
	}
	l.rest = l.rest[n:]
	return t, nil
}

type parser struct {
	lexer
	grammar Grammar
	tok     token
}

func (p *parser) next() (err error) {
	p.tok, err = p.token()
	return err
}

func (p *parser) clause() (c Clause, err error) {
	left := p.tok
	// A string here is an attribute with a blank in its name.
	if left.kind != name && left.kind != str || left.is("AND") {
		return c, newError("Invalid clause(s) in filter string: %s where a condition was expected.", left)
	}
	if err := p.next(); err != nil {
		return c, err
	}
	if c.Op, err = p.op(); err != nil {
		return c, err
	}
	var f Field
	if c.Entity, c.Key, f, err = p.grammar.resolve(left); err != nil {
		return c, err
	}
	if !slices.Contains(f.ops(), c.Op) {
		return c, newError("Invalid comparator '%s' for %s '%s'; allowed are %s.", c.Op, c.Entity, c.Key, opNames(f.ops()))
	}
	switch {
	case c.Op == IsNull || c.Op == IsNotNull:
		return c, nil
	case c.Op == In || c.Op == NotIn:
		c.List, err = p.list()
		return c, err
	case f.Numeric && p.tok.kind != number:
		return c, newError("Expected numeric value type for %s '%s'. Found %s.", c.Entity, c.Key, p.tok)
	case !f.Numeric && p.tok.kind != str:
		return c, newError("Expected a quoted string value for %s '%s' (e.g. 'my-value'). Got %s.", c.Entity, c.Key, p.tok)
	case f.Numeric:
		// Out of range is infinite, which compares as it should.
		c.Number, _ = strconv.ParseFloat(p.tok.text, 64)
	default:
		c.Text = p.tok.text
	}
	return c, p.next()
}

func opNames(ops []Op) string {
	names := make([]string, len(ops))
	for i, o := range ops {
		names[i] = string(o)
	}
	return strings.Join(names, ", ")
}

func (p *parser) op() (Op, error) {
	t := p.tok
	if err := p.next(); err != nil {
		return "", err
	}
	switch {
	case t.kind == symbol && slices.Contains([]Op{Eq, Ne, Lt, Le, Gt, Ge}, Op(t.text)):
		return Op(t.text), nil
	case t.is("LIKE"):
		return Like, nil
	case t.is("ILIKE"):
		return ILike, nil
	case t.is("IN"):
		return In, nil
	case t.is("NOT") && p.tok.is("IN"):
		return NotIn, p.next()
	case t.is("IS") && p.tok.is("NULL"):
		return IsNull, p.next()
	case t.is("IS") && p.tok.is("NOT"):
		if err := p.next(); err != nil {
			return "", err
		}
		if p.tok.is("NULL") {
			return IsNotNull, p.next()
		}
	}
	return "", newError("Invalid clause(s) in filter string: %s where a comparison was expected.", t)
}

func (p *parser) list() ([]string, error) {
	if p.tok.kind != symbol || p.tok.text != "(" {
		return nil, newError("Expected a list of quoted strings in parentheses. Got %s.", p.tok)
	}
	var out []string
	for {
		if err := p.next(); err != nil {
			return nil, err
		}
		if p.tok.kind == symbol && p.tok.text == ")" && len(out) > 0 {
			return out, p.next() // after a trailing comma
		}
		if p.tok.kind != str {
			return nil, newError("While parsing a list in the query, expected a non-empty list of string values, but got %s.", p.tok)
		}
		if out = append(out, p.tok.text); len(out) > MaxList {
			return nil, newError("A list in the query has more than %d values.", MaxList)
		}
		if err := p.next(); err != nil {
			return nil, err
		}
		switch {
		case p.tok.kind == symbol && p.tok.text == ")":
			return out, p.next()
		case p.tok.kind != symbol || p.tok.text != ",":
			return nil, newError("While parsing a list in the query, expected a comma or a parenthesis, but got %s.", p.tok)
		}
	}
}
