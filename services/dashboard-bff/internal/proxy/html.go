package proxy

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxNesting limits documents inside of documents (srcdoc, noscript).
const maxNesting = 3

// content is the kind of value that an attribute holds.
type content int

const (
	otherContent content = iota
	oneLink
	linkList // with sizes
	styleDeclarations
	innerDocument
	metaValue // of what, another attribute says
	objectData
	digest // of a script or style sheet
)

// longestAttribute limits the names that contentOf knows.
const longestAttribute = 16

// contentOf returns the kind of value that the attribute with the name holds.
func contentOf(name string) content {
	var lower [longestAttribute]byte
	if len(name) > len(lower) {
		return otherContent
	}
	for i := range len(name) {
		lower[i] = toLower(name[i])
	}
	switch string(lower[:len(name)]) {
	case "href", "src", "action", "formaction", "poster", "background", "longdesc", "manifest", "xlink:href":
		return oneLink
	case "srcset", "imagesrcset":
		return linkList
	case "style":
		return styleDeclarations
	case "srcdoc":
		return innerDocument
	case "content":
		return metaValue
	case "data":
		return objectData
	case "integrity":
		return digest
	}
	return otherContent
}

// rewriteHTML translates the links of a page. All other bytes stay as they are: each tag is changed in place, and a
// page without a link to translate is returned unchanged. tools reports that the page will run its scripts.
func rewriteHTML(body []byte, links *linkMap, tools bool) []byte {
	if bytes.HasPrefix(body, []byte("\xfe\xff")) || bytes.HasPrefix(body, []byte("\xff\xfe")) {
		return body // UTF-16, whatever the header says
	}
	w := &htmlWriter{links: links, tools: tools, text: string(body)}
	w.rewrite(0)
	if w.out == nil {
		return body
	}
	return append(w.out, w.text[w.done:]...)
}

// htmlWriter rewrites one document.
type htmlWriter struct {
	links *linkMap
	tools bool
	based bool // a base element was seen or added
	text  string
	out   []byte // the document as it becomes, up to done; nil as long as nothing changes
	done  int    // bytes of text that are written or left out
	tag   startTag
}

// replace writes what takes the place of text[from:to].
func (w *htmlWriter) replace(from, to int, with string) {
	if w.out == nil {
		w.out = make([]byte, 0, len(w.text)+len(w.text)/2+len(with))
	}
	w.out = append(append(w.out, w.text[w.done:from]...), with...)
	w.done = to
}

func (w *htmlWriter) rewrite(depth int) {
	w.tag.page = w.text
	for i := 0; nextStartTag(i, &w.tag); {
		i = w.tag.to
		raw := w.tag.rawName()
		w.rewriteTag(depth)
		if raw == "" {
			continue
		}
		end := endOfRaw(w.text, i, raw)
		switch old := w.text[i:end]; raw {
		case "style":
			if changed := string(rewriteCSS([]byte(old), w.links)); changed != old {
				w.replace(i, end, changed)
			}
		case "noscript":
			if changed := w.rewriteInner(old, depth, &w.based); changed != old {
				w.replace(i, end, changed)
			}
		}
		i = end
	}
}

// rewriteInner rewrites a document inside of this one; based is whether it has a base element.
func (w *htmlWriter) rewriteInner(text string, depth int, based *bool) string {
	if depth >= maxNesting {
		return text
	}
	inner := &htmlWriter{links: w.links, tools: w.tools, based: *based, text: text}
	inner.rewrite(depth + 1)
	*based = inner.based
	if inner.out == nil {
		return text
	}
	return string(inner.out) + text[inner.done:]
}

// value returns the value of the tag's attribute with the name.
func (w *htmlWriter) value(name string) string {
	for _, a := range w.tag.attributes {
		if equalFold(w.text[a.start:a.end], name) {
			return unescape(w.text[a.from:a.to])
		}
	}
	return ""
}

// unescape is html.UnescapeString without its copy of texts that need none.
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	return html.UnescapeString(s)
}

// rewriteTag translates the links of the start tag.
func (w *htmlWriter) rewriteTag(depth int) {
	switch {
	case w.tag.named("base"):
		w.based = true
	case len(w.tag.attributes) == 0:
		return
	case w.tag.named("meta"):
		equiv := strings.ToLower(strings.TrimSpace(w.value("http-equiv")))
		if strings.HasPrefix(equiv, "content-security-policy") || equiv == "x-dns-prefetch-control" {
			w.replace(w.tag.from, w.tag.to, "") // the policy of this origin holds, and names addresses that the service does not know
			return
		}
	case w.tag.named("script"):
		w.addBase()
	}
	for _, a := range w.tag.attributes {
		holds := contentOf(w.text[a.start:a.end])
		if holds == digest && w.tag.named("link") && w.isOwnSheet() {
			w.replace(a.start, a.endOfValue, "") // it is that of the sheet before its links were translated
			continue
		}
		if holds == otherContent || !a.hasValue {
			continue
		}
		if holds == oneLink && a.quote != 0 && w.links.isPlainRoot(w.text[a.from:a.to]) {
			w.replace(a.from, a.from, w.links.prefix)
			continue
		}
		old := unescape(w.text[a.from:a.to])
		changed := w.translateValue(holds, old, depth)
		if changed == old {
			continue
		}
		changed = html.EscapeString(changed) // both kinds of quotes
		if a.quote == 0 {
			changed = `"` + changed + `"`
		}
		w.replace(a.from, a.to, changed)
	}
}

// translateValue gives an attribute's new value.
func (w *htmlWriter) translateValue(holds content, old string, depth int) string {
	switch holds {
	case oneLink:
		translated, _ := w.links.translate(old)
		return translated
	case objectData:
		if w.tag.named("object") {
			translated, _ := w.links.translate(old)
			return translated
		}
	case linkList:
		return rewriteSrcset(old, w.links)
	case styleDeclarations:
		return string(rewriteCSS([]byte(old), w.links))
	case metaValue:
		if w.tag.named("meta") && strings.EqualFold(strings.TrimSpace(w.value("http-equiv")), "refresh") {
			return rewriteRefresh(old, w.links)
		}
	case innerDocument:
		based := true
		return w.rewriteInner(old, depth, &based)
	}
	return old
}

// isOwnSheet reports whether a link element names a style sheet that comes through the proxy.
func (w *htmlWriter) isOwnSheet() bool {
	if !slices.Contains(strings.Fields(strings.ToLower(w.value("rel"))), "stylesheet") {
		return false
	}
	_, foreign := w.links.translate(w.value("href"))
	return !foreign
}

// addBase gives the page of a single-page application a base before its first module, if it has none. Such a page names
// its module from the root; its router takes the base for the place where its own paths begin, and would otherwise
// look for them at the root of this origin.
func (w *htmlWriter) addBase() {
	if w.based || !w.tools || !strings.EqualFold(strings.TrimSpace(w.value("type")), "module") {
		return
	}
	if src := cleanLink(w.value("src")); !strings.HasPrefix(src, "/") || strings.HasPrefix(src, "//") {
		return
	}
	w.based = true
	w.replace(w.tag.from, w.tag.from, `<base href="`+prefix(w.links.own)+`/">`)
}

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
