package collab_test

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	stdhtml "html"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/collab"
)

func TestHostileTextBecomesInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<scr<script>ipt>alert(1)</script>":          "ipt&gt;alert(1)",
		"<b>bold</b> a < b & c":                      "bold a &lt; b &amp; c",
		"javascript:alert(1)":                        "alert(1)",
		"JaVaScRiPt:alert(1)":                        "alert(1)",
		"java\tscript\n:alert(1)":                    "alert(1)",
		"java\u200bscript:alert(1)":                  "alert(1)",
		"[x](java&#x73;cript:a)":                     "[x](a)",
		"java&amp;#x73;cript:a":                      "a",
		"java&amp;amp;#115cript&colon;a":             "a",
		"javajavascript:script:a":                    "a",
		"vbscript:x data:text/html,y data:image/png": "x html,y data:image/png",
		"e\u0301":             "\u00e9",
		"a\x00b\rc\x7f":       "abc",
		"it's \"so\"":         "it&#39;s &#34;so&#34;",
		"\uff4aavascript:":    "\uff4aavascript:", // no browser takes that for a scheme
		"about JavaScript: a": "about  a",
		"<!-- x -->y<style>z": "y",
	} {
		if got := collab.Sanitize(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestRenderedCommentsKeepTheirMarkdownAndNothingElse(t *testing.T) {
	t.Parallel()
	const rel = ` rel="nofollow noreferrer"`
	for in, want := range map[string]string{
		"**a** _b_ ~~c~~ `d < e`\nf":                      "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d &lt; e</code><br>\nf</p>",
		"```\n<script>\n```":                              "<pre><code>&lt;script&gt;\n</code></pre>",
		"- a\n- b\n\n> c":                                 "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<blockquote>\n<p>c</p>\n</blockquote>",
		"[x](https://a.example/b)":                        `<p><a href="https://a.example/b"` + rel + `>x</a></p>`,
		"[x](/models/JPCP?tab=drift)":                     `<p><a href="/models/JPCP?tab=drift"` + rel + `>x</a></p>`,
		"[x](//evil.example) [y](///evil.example)":        "<p>x y</p>",
		"[x](java&#x73;cript:a)":                          "<p>x</p>",
		"[x](data:text/html,a) [y](vbscript:a)":           "<p>x y</p>",
		"[x](relative) [y](#a) [z](ftp://a)":              "<p>x y z</p>",
		"<img src=x onerror=alert(1)>a":                   "<p>a</p>",
		"![a](https://evil.example/track)":                "<p></p>",
		"# a\n\n| b | c |":                                "a\n<p>| b | c |</p>",
		`<a href="https://a.example" onclick="x()">y</a>`: "<p>y</p>",
	} {
		got, err := collab.Render(in)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestMentionsAreNamesOutsideOfCodeAndAddresses(t *testing.T) {
	t.Parallel()
	many := make([]string, 25)
	for i := range many {
		many[i] = fmt.Sprintf("@n%02d", i)
	}
	for in, want := range map[string][]string{
		"a@b.c @eve":                        {"eve"},
		"@eve, @adam. (@idp-a:1001)":        {"eve", "adam", "idp-a:1001"},
		"@eve @eve @Eve":                    {"eve", "Eve"},
		"`@code` and ``@more`` @real":       {"real"},
		"```\n@block\n```\n\n    @indent\n": {},
		"@@eve .@eve -@eve @a@b":            {"a"},
		"@" + strings.Repeat("x", 70):       {strings.Repeat("x", 64)},
		"@-x @.y @":                         {},
		"line\n@eve":                        {"eve"},
		"**@eve** [@adam](/x)":              {"eve", "adam"},
		strings.Join(many, " "):             nil, // 20, checked below
	} {
		got := collab.Mentions(in)
		if want == nil {
			if len(got) != 20 || got[0] != "n00" || got[19] != "n19" {
				t.Errorf("got %v, want the first 20", got)
			}
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// scheme as a browser would read it, blanks apart.
var scheme = regexp.MustCompile(`(?i)javascript:|vbscript:|data:text/`)

func FuzzSanitize(f *testing.F) {
	for _, s := range []string{
		"<scr<script>ipt>", "[x](java&#x73;cript:a)", "java&amp;#115cript:", "javajavascript:script:", "&lt;script&gt;", "a\x00\xff", "&amp;amp;lt;b",
		"&#x110000;&#0;", "<a href=\"javascript:x\">", "d\u0061ta\t:text/html", "&NewLine;javascript&colon;", "<!--><img src=x>", "<svg><style><img>",
		"e\u0301<b\u0338", "data:text&sol;html",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := collab.Sanitize(in)
		if again := collab.Sanitize(got); again != got {
			t.Errorf("%q: got %q, then %q; want a fixed point", in, got, again)
		}
		if strings.ContainsAny(got, "<>") {
			t.Errorf("%q: got %q, with a bracket", in, got)
		}
		for plain, i := got, 0; i < 8; i++ { // decoded through up to eight layers of entities
			if seen := strings.Map(dropBlank, plain); scheme.MatchString(seen) {
				t.Errorf("%q: got %q, which reads %q", in, got, seen)
			}
			plain = stdhtml.UnescapeString(plain)
		}
	})
}

func dropBlank(r rune) rune {
	if unicode.IsSpace(r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

var allowed = []atom.Atom{
	atom.P, atom.Br, atom.Strong, atom.Em, atom.Del, atom.Code, atom.Pre, atom.Ul, atom.Ol, atom.Li, atom.Blockquote, atom.A,
}

// ownPath or a page elsewhere over http.
var safeLink = regexp.MustCompile(`^(?i:https?://)[^\s\\]|^/$|^/[^/\\\s]`)

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"**a** [x](java&#x73;cript:a)", "<a href='//x'>", "[x](/\\x)", "[x](/\t/x)", "<https://a> <javascript:x>", "![x](data:text/html,y)", "`<b>`\n```\n<i>\n```",
		"[x]: javascript:a\n[x]", "www.a.example mailto:a@b.c", "<svg/onload=x>", "[a](<java\nscript:x>)", "[x](/&#47;evil)", "[x](/&#9;/evil)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := collab.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		z := html.NewTokenizer(strings.NewReader(got))
		for {
			kind := z.Next()
			if kind == html.ErrorToken {
				if z.Err() != io.EOF {
					t.Fatal(z.Err())
				}
				break
			}
			token := z.Token()
			switch kind {
			case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
				if !slices.Contains(allowed, token.DataAtom) {
					t.Errorf("%q: got the tag %s in %q", in, token.Data, got)
				}
				for _, a := range token.Attr {
					if !(token.DataAtom == atom.A && (a.Key == "rel" || a.Key == "href" && safeLink.MatchString(a.Val))) {
						t.Errorf("%q: got %s=%q in %q", in, a.Key, a.Val, got)
					}
				}
			case html.CommentToken, html.DoctypeToken:
				t.Errorf("%q: got %s in %q", in, token, got)
			}
		}
	})
}
