package collab

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	htmlrender "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown renders comments: raw HTML is left out, line feeds are kept as people typed them.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.Linkify), goldmark.WithRendererOptions(htmlrender.WithHardWraps()))

// href is where a link may lead: to a page over http or https, or to a path of this dashboard. A backslash or
// blank after the first slash would make another host of it.
var href = regexp.MustCompile(`^(?:[hH][tT][tT][pP][sS]?://[^\s\\]+|/(?:[^\s\\/][^\s\\]*)?)$`)

// rendered is the allowlist for rendered comments.
var rendered = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "strong", "em", "del", "code", "pre", "ul", "ol", "li", "blockquote")
	p.AllowAttrs("href").Matching(href).OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.AllowRelativeURLs(true)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}()

// Render converts a comment's Markdown to HTML that is safe as innerHTML.
func Render(source string) (string, error) {
	var out bytes.Buffer
	if err := markdown.Convert([]byte(source), &out); err != nil {
		return "", fmt.Errorf("render a comment: %w", err)
	}
	return strings.TrimSpace(rendered.Sanitize(out.String())), nil
}

// maxMentions of one comment; more are a mistake or a nuisance.
const maxMentions = 20

// mention is a name after an @ that does not belong to a word or an address.
var mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9._@-])@([A-Za-z0-9](?:[A-Za-z0-9._:-]{0,62}[A-Za-z0-9])?)`)

// Mentions returns the names that a comment mentions outside of code, each once, in order.
func Mentions(source string) []string {
	visible := []byte(source)
	maskCode(visible)
	out := []string{}
	for _, m := range mention.FindAllSubmatch(visible, -1) {
		if name := string(m[1]); !slices.Contains(out, name) && len(out) < maxMentions {
			out = append(out, name)
		}
	}
	return out
}

// maskCode overwrites the code of a Markdown text, spans and blocks, with a character that no name has.
func maskCode(source []byte) {
	var code []text.Segment
	doc := markdown.Parser().Parse(text.NewReader(slices.Clone(source)))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // fails only if this function does
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					code = append(code, t.Segment)
				}
			}
			return ast.WalkSkipChildren, nil
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				code = append(code, n.Lines().At(i))
			}
		}
		return ast.WalkContinue, nil
	})
	for _, s := range code {
		for i := s.Start; i < s.Stop; i++ {
			source[i] = '`'
		}
	}
}
