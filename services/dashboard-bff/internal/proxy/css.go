package proxy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// rewriteCSS translates the links of a style sheet, or of an inline style: url() and the strings of @import. All other
// bytes stay.
func rewriteCSS(body []byte, links *linkMap) []byte {
	lower := bytes.ToLower(body)
	if !bytes.Contains(lower, []byte("url")) && !bytes.Contains(lower, []byte("@")) && !bytes.Contains(lower, []byte(`\`)) {
		return body
	}
	var out bytes.Buffer
	out.Grow(len(body) + len(body)/8)
	input := parse.NewInputBytes(slices.Clip(body)) // it writes past the end of its input
	lexer := css.NewLexer(input)
	done := 0
	imports := false // the next string is the operand of @import
	for {
		kind, text := lexer.Next()
		if kind == css.ErrorToken {
			break
		}
		// The bytes are those of the body: the lexer's may be changed by it.
		raw := body[done : done+len(text)]
		done += len(text)
		switch kind {
		case css.URLToken:
			raw = rewriteURLToken(raw, links)
			imports = false
		case css.StringToken:
			if imports {
				raw = rewriteCSSString(raw, links)
			}
			imports = false
		case css.AtKeywordToken:
			imports = strings.EqualFold(unescapeCSS(string(raw)), "@import")
		case css.WhitespaceToken, css.CommentToken:
		default:
			imports = false
		}
		out.Write(raw)
	}
	out.Write(body[done:])
	return out.Bytes()
}

// rewriteURLToken translates url(x), url("x") or url('x').
func rewriteURLToken(raw []byte, links *linkMap) []byte {
	open := bytes.IndexByte(raw, '(')
	if open < 0 {
		return raw
	}
	inner := strings.TrimSuffix(string(raw[open+1:]), ")")
	inner = strings.Trim(inner, " \t\n\r\f")
	link := unescapeCSS(unquoteCSS(inner))
	translated, _ := links.translate(link)
	if translated == link {
		return raw
	}
	return []byte(string(raw[:open+1]) + quoteCSS(translated) + ")")
}

func rewriteCSSString(raw []byte, links *linkMap) []byte {
	link := unescapeCSS(unquoteCSS(string(raw)))
	translated, _ := links.translate(link)
	if translated == link {
		return raw
	}
	return []byte(quoteCSS(translated))
}

// unquoteCSS removes the quotes of a string; one cut off by the end of the file has only one.
func unquoteCSS(s string) string {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return s
	}
	inner := s[1:]
	if strings.HasSuffix(inner, s[:1]) {
		backslashes := len(inner) - 1 - len(strings.TrimRight(inner[:len(inner)-1], `\`))
		if backslashes%2 == 0 {
			inner = inner[:len(inner)-1]
		}
	}
	return inner
}

// unescapeCSS resolves the escapes of CSS Syntax, section 4.3.7.
func unescapeCSS(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			i++
			continue
		}
		i++
		var code rune
		digits := 0
		for digits < 6 && i < len(s) && isHex(s[i]) {
			code = code<<4 | rune(hexValue(s[i]))
			i++
			digits++
		}
		switch {
		case digits > 0:
			if code == 0 || !utf8.ValidRune(code) {
				code = utf8.RuneError
			}
			out.WriteRune(code)
			if i+1 < len(s) && s[i] == '\r' && s[i+1] == '\n' {
				i += 2
			} else if i < len(s) && strings.IndexByte(" \t\n\r\f", s[i]) >= 0 {
				i++
			}
		case i < len(s) && s[i] == '\r': // an escaped line break is nothing
			i++
			if i < len(s) && s[i] == '\n' {
				i++
			}
		case i < len(s) && (s[i] == '\n' || s[i] == '\f'):
			i++
		case i < len(s):
			_, size := utf8.DecodeRuneInString(s[i:])
			out.WriteString(s[i : i+size])
			i += size
		}
	}
	return out.String()
}

// quoteCSS writes a string that neither ends early nor closes the style element or attribute that contains it.
func quoteCSS(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '<' || c == '>' || c < ' ' || c == 0x7f:
			fmt.Fprintf(&out, `\%x `, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hexValue(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}
