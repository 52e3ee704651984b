package localpage_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/loopback/localpage"
)

const nonce = "bm9uY2Utb2YtdGhlLXRlc3Q"

func renderPage(t *testing.T, boot *localpage.Boot) string {
	t.Helper()
	out, err := localpage.Page{Title: "A <page>", Body: "<main></main>", Style: "main { color: red; }", Script: "start();"}.HTML(nonce, boot)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var bootForm = regexp.MustCompile(`(?s)<script type="application/json" id="boot" nonce="[^"]*">(.*?)</script>`)

// TestBootStaysData: whatever the document contains, it ends no element and reads back to the same text.
func TestBootStaysData(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{"a":"</script><script>alert(1)</script>"}`, `<!--<script>`, "line\u2028end", `]]>`, `"quotes" 'and' \u0041`, "\ufeff{}",
		`123456789012345678901234567890.000`, strings.Repeat("<", 100),
	} {
		page := renderPage(t, &localpage.Boot{Token: "t&<", Document: text})
		found := bootForm.FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("%q: %d boot elements; want len(found) == 1", text, len(found))
		}
		if strings.ContainsAny(found[0][1], "<>") {
			t.Errorf(`%q stands in the page as %s; want !strings.ContainsAny(found[0][1], "<>")`, text, found[0][1])
		}
		var boot localpage.Boot
		if err := json.Unmarshal([]byte(found[0][1]), &boot); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if boot.Document != text || boot.Token != "t&<" {
			t.Errorf("read back %+v, want document %q", boot, text)
		}
		if n := strings.Count(page, "</script>"); n != 2 {
			t.Errorf("%q: the page ends %d scripts, want 2", text, n)
		}
	}
}

func TestBarePage(t *testing.T) {
	t.Parallel()
	page := renderPage(t, nil)
	if got := bootForm.FindStringSubmatch(page); got == nil || strings.TrimSpace(got[1]) != "null" {
		t.Errorf(`the bare page carries %q; want got != nil && strings.TrimSpace(got[1]) == "null"`, got)
	}
	if !strings.Contains(page, "<title>A &lt;page&gt;</title>") {
		t.Error("the title is not escaped")
	}
}

// TestPolicy: nothing in the page needs more than the nonce, and nothing reads data as markup.
func TestPolicy(t *testing.T) {
	t.Parallel()
	page := renderPage(t, nil)
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "javascript:", " style=", "http://", "https://", "@import", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q; want !strings.Contains(page, bad)", bad)
		}
	}
	if regexp.MustCompile(`<[^>]+\son[a-z]+=`).MatchString(page) {
		t.Error("the page holds a handler attribute")
	}
	if n := strings.Count(page, `nonce="`+nonce+`"`); n != 3 {
		t.Errorf("%d elements carry the nonce, want 3", n)
	}
}

func TestNonceIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "short", `aaaaaaaaaaaaaaaa" onload="x`, strings.Repeat("a", 129)} {
		if _, err := (localpage.Page{}).HTML(bad, nil); err == nil {
			t.Errorf("nonce %q is taken; want an error", bad)
		}
	}
}
