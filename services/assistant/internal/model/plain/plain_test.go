package plain_test

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/mlp-platform/platform/services/assistant/internal/model/plain"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"The pod `api` restarts.\n", "The pod `api` restarts.\n"},
		{"![x](http://evil/?q=1)", "![x]\\(`http://evil/?q=1`)"},
		{"see [docs](https://a.b/c).", "see [docs]\\(`https://a.b/c`)."},
		{"[x]: http://evil\n", "[x]\\: `http://evil`\n"},
		{"<img src=x>", `\<img src=x>`},
		{"a < b and <pod-name>", `a < b and \<pod-name>`},
		{"go to HTTP://evil.com/a.", "go to `HTTP://evil.com/a`."},
		{"how www works", "how www works"},
		{"`curl http://api:8080/`", "`curl http://api:8080/`"},
		{"` ![x](http://evil)", "\\` ![x]\\(`http://evil`)"},
		{"|`a|http://evil|`|", "|\\`a|`http://evil`|\\`|"},
		{"`kubectl get pods | wc`", "`kubectl get pods | wc`"},
		{"```sh\ncurl http://x <a>\n```\nhttp://y", "```sh\ncurl http://x <a>\n```\n`http://y`"},
		{"```\nopen", "```\nopen\n```\n"},
		{"1. a\n   ```\nx\n   ```\n", "1. a\n   ```\n   x\n   ```\n"},
		{"> ```\nhttp://x", "> \\`\\`\\`\n`http://x`"},
		{"`a`http://x", "`a` `http://x`"},
		{`back\`, `back\\`},
		{"x[0] and map[string]int", "x[0] and map[string]int"},
	} {
		if got := plain.Text(c.in); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestNothingIsHeldBackWithoutNeed(t *testing.T) {
	t.Parallel()
	var w plain.Writer
	for _, token := range []string{"The ", "deployment ", "**api** ", "is at 1/3", ".\n", "- one"} {
		if got := w.Write(token); got != token {
			t.Errorf("%q came out as %q; want got == %v", token, got, token)
		}
	}
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// findLiveNode returns the first node that a client would fetch, follow or run.
func findLiveNode(source string) string {
	found := ""
	doc := markdown.Parse(text.NewReader([]byte(source)))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link, *ast.Image, *ast.RawHTML, *ast.HTMLBlock:
			found = n.Kind().String()
		case *ast.AutoLink:
			if n.AutoLinkType == ast.AutoLinkURL {
				found = n.Kind().String()
			}
		}
		return ast.WalkContinue, nil
	})
	return found
}

// FuzzText checks the output with an independent Markdown parser: no link, image or HTML is left, however the text was
// split into tokens, and the splits make no difference.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"![x](http://evil/?q=1)", "[a][b]\n\n[b]: http://evil", "<img src=http://x>", "```\n![x](http://e)\n", "- a\n  ~~~\n  ~~~~\nhttp://x",
		"`a``b`http://x", "|a|b|\n|-|-|\n|`x|http://e|`|", "> ```\n> a\n\nhttp://x", "1. a\n\n    ```\n    http://x", "\\\\`http://x`", "``a``http://x`b`",
		"   ```\n\t```\nhttp://x", "~~~\n\t~~~ \nhttp://e", "*\n  ```\n\n\nhttp://x", "http://a_b*c*`d`", "www.evil.com", "[x](\nhttp://e)", "<http://e>", "<!-- `a",
	} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, size uint8) {
		whole := plain.Text(s)
		if found := findLiveNode(whole); found != "" {
			t.Errorf(`%q has a live %s: %q; want found == ""`, s, found, whole)
		}
		var w plain.Writer
		var b strings.Builder
		step := int(size)%7 + 1
		for i := 0; i < len(s); i += step {
			b.WriteString(w.Write(s[i:min(i+step, len(s))]))
		}
		b.WriteString(w.Close())
		if b.String() != whole {
			t.Errorf("%q in pieces of %d gives %q, whole %q; want b.String() == %v", s, step, b.String(), whole, whole)
		}
	})
}
