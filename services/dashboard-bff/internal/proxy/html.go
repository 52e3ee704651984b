package proxy

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxNesting limits documents inside of documents (srcdoc, noscript).
const maxNesting = 3

// urlAttributes hold one link, on any element.
var urlAttributes = makeNames("href", "src", "action", "formaction", "poster", "background", "longdesc", "manifest", "xlink:href")

// srcsetAttributes hold a list of links with sizes.
var srcsetAttributes = makeNames("srcset", "imagesrcset")

func makeNames(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// rewriteHTML translates the links of a page. Bytes that are no link stay as they are: each tag is changed in place.
// tools says that the page will run its scripts.
func rewriteHTML(body []byte, links *linkMap, tools bool) []byte {
	if bytes.HasPrefix(body, []byte("\xfe\xff")) || bytes.HasPrefix(body, []byte("\xff\xfe")) {
		return body // UTF-16, whatever the header says
	}
	w := &htmlWriter{links: links, tools: tools}
	return w.rewrite(body, 0)
}

type htmlWriter struct {
	links *linkMap
	tools bool
	based bool // a base element was seen or added
}

func (w *htmlWriter) rewrite(body []byte, depth int) []byte {
	var out bytes.Buffer
	out.Grow(len(body) + len(body)/8)
	z := html.NewTokenizer(bytes.NewReader(body))
	done := 0
	inside := "" // the element whose text comes next
	for {
		kind := z.Next()
		// The tokenizer changes the case of names in its own copy, so the bytes are those of the body.
		raw := body[done : done+len(z.Raw())]
		done += len(raw)
		if kind == html.ErrorToken {
			out.Write(raw)
			break
		}
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			inside = w.writeTag(&out, raw, depth)
		case html.TextToken:
			switch inside {
			case "style":
				raw = rewriteCSS(raw, w.links)
			case "noscript":
				if depth < maxNesting {
					raw = w.rewrite(raw, depth+1)
				}
			}
			out.Write(raw)
		default:
			inside = ""
			out.Write(raw)
		}
	}
	out.Write(body[done:])
	return out.Bytes()
}

// attribute is where one is in its tag.
type attribute struct {
	name       string // in lower case
	start      int    // of the name
	from, to   int    // of the value, without quotes; equal without one
	quote      byte   // 0 for none
	hasValue   bool
	endOfValue int // behind the closing quote
}

// writeTag writes a start tag with its links translated and returns the element's name.
func (w *htmlWriter) writeTag(out *bytes.Buffer, raw []byte, depth int) string {
	name, attributes := scanTag(raw)
	value := func(wanted string) string {
		for _, a := range attributes {
			if a.name == wanted {
				return html.UnescapeString(string(raw[a.from:a.to]))
			}
		}
		return ""
	}
	switch name {
	case "base":
		w.based = true
	case "meta":
		equiv := strings.ToLower(strings.TrimSpace(value("http-equiv")))
		if strings.HasPrefix(equiv, "content-security-policy") || equiv == "x-dns-prefetch-control" {
			return name // the policy of this origin holds, and names addresses that the service does not know
		}
	case "script":
		w.addBase(out, value)
	}
	done := 0
	for _, a := range attributes {
		if name == "link" && a.name == "integrity" && w.isOwnSheet(value) {
			out.Write(raw[done:a.start]) // the digest is that of the sheet before its links were translated
			done = a.endOfValue
			continue
		}
		if !a.hasValue {
			continue
		}
		old := html.UnescapeString(string(raw[a.from:a.to]))
		changed := w.translateAttribute(name, a.name, old, value, depth)
		if changed == old {
			continue
		}
		out.Write(raw[done:a.from])
		if a.quote == 0 {
			out.WriteString(`"` + html.EscapeString(changed) + `"`)
		} else {
			out.WriteString(html.EscapeString(changed)) // it escapes both kinds of quotes
		}
		done = a.to
	}
	out.Write(raw[done:])
	return name
}

// translateAttribute gives the attribute's new value.
func (w *htmlWriter) translateAttribute(element, name, old string, value func(string) string, depth int) string {
	switch {
	case urlAttributes[name], name == "data" && element == "object":
		translated, _ := w.links.translate(old)
		return translated
	case srcsetAttributes[name]:
		return rewriteSrcset(old, w.links)
	case name == "style":
		return string(rewriteCSS([]byte(old), w.links))
	case name == "content" && element == "meta" && strings.EqualFold(strings.TrimSpace(value("http-equiv")), "refresh"):
		return rewriteRefresh(old, w.links)
	case name == "srcdoc" && depth < maxNesting:
		inner := &htmlWriter{links: w.links, tools: w.tools, based: true}
		return string(inner.rewrite([]byte(old), depth+1))
	}
	return old
}

// isOwnSheet reports whether a link element names a style sheet that comes through the proxy.
func (w *htmlWriter) isOwnSheet(value func(string) string) bool {
	if !slices.Contains(strings.Fields(strings.ToLower(value("rel"))), "stylesheet") {
		return false
	}
	_, foreign := w.links.translate(value("href"))
	return !foreign
}

// addBase gives the page of a single-page application a base before its first module, if it has none. Such a page names
// its module from the root; its router takes the base for the place where its own paths begin, and would otherwise
// look for them at the root of this origin.
func (w *htmlWriter) addBase(out *bytes.Buffer, value func(string) string) {
	if w.based || !w.tools || !strings.EqualFold(strings.TrimSpace(value("type")), "module") {
		return
	}
	if src := cleanLink(value("src")); !strings.HasPrefix(src, "/") || strings.HasPrefix(src, "//") {
		return
	}
	w.based = true
	out.WriteString(`<base href="` + prefix(w.links.own) + `/">`)
}

// scanTag finds the attributes in the bytes of a start tag, as the HTML standard reads them.
func scanTag(raw []byte) (name string, attributes []attribute) {
	i := 1
	for i < len(raw) && !isBlank(raw[i]) && raw[i] != '/' && raw[i] != '>' {
		i++
	}
	name = strings.ToLower(string(raw[1:i]))
	for i < len(raw) {
		for i < len(raw) && (isBlank(raw[i]) || raw[i] == '/') {
			i++
		}
		if i >= len(raw) || raw[i] == '>' {
			break
		}
		a := attribute{start: i}
		i++ // an = here is part of the name
		for i < len(raw) && !isBlank(raw[i]) && raw[i] != '/' && raw[i] != '>' && raw[i] != '=' {
			i++
		}
		a.name = strings.ToLower(string(raw[a.start:i]))
		a.from, a.to, a.endOfValue = i, i, i
		j := i
		for j < len(raw) && isBlank(raw[j]) {
			j++
		}
		if j < len(raw) && raw[j] == '=' {
			i = scanValue(raw, j+1, &a)
		}
		attributes = append(attributes, a)
	}
	return name, attributes
}

// scanValue reads the value that begins at i or after blanks, and returns where it ends.
func scanValue(raw []byte, i int, a *attribute) int {
	for i < len(raw) && isBlank(raw[i]) {
		i++
	}
	a.from, a.to, a.endOfValue = i, i, i
	if i >= len(raw) || raw[i] == '>' {
		return i
	}
	a.hasValue = true
	if raw[i] == '"' || raw[i] == '\'' {
		a.quote = raw[i]
		a.from = i + 1
		end := bytes.IndexByte(raw[a.from:], a.quote)
		if end < 0 { // the tokenizer ends no tag inside of quotes
			a.to, a.endOfValue = len(raw), len(raw)
			return len(raw)
		}
		a.to = a.from + end
		a.endOfValue = a.to + 1
		return a.endOfValue
	}
	for i < len(raw) && !isBlank(raw[i]) && raw[i] != '>' {
		i++
	}
	a.to, a.endOfValue = i, i
	return i
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// rewriteSrcset translates the links of "a.png 1x, b.png 2x".
func rewriteSrcset(value string, links *linkMap) string {
	var out strings.Builder
	changed := false
	for rest := value; ; {
		rest = strings.TrimLeft(rest, " \t\n\r\f,")
		if rest == "" {
			break
		}
		end := strings.IndexAny(rest, " \t\n\r\f")
		if end < 0 {
			end = len(rest)
		}
		link, descriptor := rest[:end], ""
		rest = rest[end:]
		if trimmed := strings.TrimRight(link, ","); trimmed != link {
			link = trimmed
		} else {
			descriptor, rest = cutDescriptor(rest)
		}
		translated, _ := links.translate(link)
		changed = changed || translated != link
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		out.WriteString(translated)
		if descriptor != "" {
			out.WriteString(" " + descriptor)
		}
	}
	if !changed {
		return value
	}
	return out.String()
}

// cutDescriptor reads up to the comma that ends a candidate; commas in parentheses do not.
func cutDescriptor(s string) (descriptor, rest string) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				return strings.TrimSpace(s[:i]), s[i+1:]
			}
		}
	}
	return strings.TrimSpace(s), ""
}
