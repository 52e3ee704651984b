package proxy

import (
	"io"
	"strings"

	"golang.org/x/net/html"
)

// The scanner finds the start tags of a page and the texts of its raw elements, where x/net/html's tokenizer finds
// them (FuzzScansAsTheTokenizer); it makes no tokens of the rest, which is most of a page, and copies nothing.

// attribute is where one is in the page.
type attribute struct {
	start, end int // of the name
	from, to   int // of the value, without quotes; equal without one
	quote      byte
	hasValue   bool
	endOfValue int // behind the closing quote
}

// startTag is where one is in the page, from < to behind >.
type startTag struct {
	page       string
	from, to   int
	nameEnd    int
	attributes []attribute
}

// named reports whether the element has the name, which is in lower case.
func (t *startTag) named(name string) bool { return equalFold(t.page[t.from+1:t.nameEnd], name) }

// equalFold compares as HTML does: only ASCII letters have a case. lower is in lower case.
func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		if toLower(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

func toLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// nextStartTag fills tag with the first start tag at or behind i; false if there is none that ends.
func nextStartTag(i int, tag *startTag) bool {
	text := tag.page
	for {
		n := strings.IndexByte(text[i:], '<')
		if n < 0 || i+n+1 >= len(text) {
			return false
		}
		i += n
		switch c := text[i+1]; {
		case isLetter(c):
			return scanTag(i, tag)
		case c == '/':
			if i = skipEndTag(i, tag); i < 0 {
				return false
			}
		case c == '!' && strings.HasPrefix(text[i:], "<!--"):
			i = skipComment(text, i+len("<!--"))
		case c == '!', c == '?':
			i = skipPast(text, i+1, '>')
		default:
			i++
		}
	}
}

// skipPast returns the position after the next c.
func skipPast(text string, i int, c byte) int {
	if n := strings.IndexByte(text[i:], c); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// skipEndTag returns where the end tag at i ends; -1 if it does not. One with attributes is read as a start tag is.
func skipEndTag(i int, tag *startTag) int {
	text := tag.page
	if i+2 >= len(text) {
		return -1
	}
	if !isLetter(text[i+2]) {
		return skipPast(text, i+2, '>')
	}
	if !scanTag(i+1, tag) {
		return -1
	}
	return tag.to
}

// skipComment returns where the comment ends whose text begins at i.
func skipComment(text string, i int) int {
	dashes, atStart := 0, true
	for i < len(text) {
		c := text[i]
		i++
		switch {
		case c == '-':
			dashes++
			continue
		case c == '>' && (dashes >= 2 || atStart):
			return i
		case c == '!' && dashes >= 2 && i < len(text):
			c = text[i]
			i++
			if c == '>' {
				return i
			}
			if c == '-' {
				dashes, atStart = 1, false
				continue
			}
		}
		dashes, atStart = 0, false
	}
	return i
}

// scanTag reads the tag whose name begins at from+1, as the HTML standard does; false if it does not end.
func scanTag(from int, tag *startTag) bool {
	text, i := tag.page, from+1
	for i < len(text) && !isBlank(text[i]) && text[i] != '/' && text[i] != '>' {
		i++
	}
	tag.from, tag.nameEnd, tag.attributes = from, i, tag.attributes[:0]
	for {
		for i < len(text) && (isBlank(text[i]) || text[i] == '/') {
			i++
		}
		if i >= len(text) {
			return false
		}
		if text[i] == '>' {
			tag.to = i + 1
			return true
		}
		a := attribute{start: i}
		i++ // an = here is part of the name
		for i < len(text) && !isBlank(text[i]) && text[i] != '/' && text[i] != '>' && text[i] != '=' {
			i++
		}
		a.end = i
		a.from, a.to, a.endOfValue = i, i, i
		j := i
		for j < len(text) && isBlank(text[j]) {
			j++
		}
		if j < len(text) && text[j] == '=' {
			if i = scanValue(text, j+1, &a); i < 0 {
				return false
			}
		}
		tag.attributes = append(tag.attributes, a)
	}
}

// scanValue reads the value that begins at i or after blanks, and returns where it ends; -1 if a quote does not end.
func scanValue(text string, i int, a *attribute) int {
	for i < len(text) && isBlank(text[i]) {
		i++
	}
	a.from, a.to, a.endOfValue = i, i, i
	if i >= len(text) || text[i] == '>' {
		return i
	}
	a.hasValue = true
	if text[i] == '"' || text[i] == '\'' {
		a.quote = text[i]
		a.from = i + 1
		n := strings.IndexByte(text[a.from:], a.quote)
		if n < 0 {
			return -1
		}
		a.to = a.from + n
		a.endOfValue = a.to + 1
		return a.endOfValue
	}
	for i < len(text) && !isBlank(text[i]) && text[i] != '>' {
		i++
	}
	a.to, a.endOfValue = i, i
	return i
}

// rawElements hold text without tags, up to their own end tag.
var rawElements = []string{"script", "style", "noscript", "textarea", "title", "iframe", "noembed", "noframes", "xmp", "plaintext"}

// rawName returns the tag's name in rawElements; "" if it is none of them.
func (t *startTag) rawName() string {
	for _, name := range rawElements {
		if t.named(name) {
			return name
		}
	}
	return ""
}

// endOfRaw returns where the text of the raw element ends that begins at i.
func endOfRaw(text string, i int, name string) int {
	if name == "plaintext" {
		return len(text)
	}
	end := i
	for {
		n := strings.Index(text[end:], "</")
		if n < 0 {
			end = len(text)
			break
		}
		end += n
		if after := end + 2 + len(name); after < len(text) && equalFold(text[end+2:after], name) && (isBlank(text[after]) || text[after] == '/' || text[after] == '>') {
			break
		}
		end += 2
	}
	if name == "script" && strings.Contains(text[i:end], "<!--") {
		return endOfScript(text, i)
	}
	return end
}

// endOfScript finds the end of a script with HTML comments, in which the standard allows end tags to be part of the
// script.
func endOfScript(text string, i int) int {
	z := html.NewTokenizer(io.MultiReader(strings.NewReader("<script>"), strings.NewReader(text[i:])))
	z.Next()
	if z.Next() != html.TextToken {
		return i
	}
	return i + len(z.Raw())
}
