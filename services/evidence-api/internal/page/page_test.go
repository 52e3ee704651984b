package page_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/mlp-platform/platform/services/evidence-api/internal/page"
)

const nonce = "bm9uY2Utb2YtdGhlLXRlc3Q"

func renderPage(t *testing.T, boot *page.Boot) string {
	t.Helper()
	out, err := page.HTML(nonce, boot)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestBare: a page served to a stranger holds neither token nor report.
func TestBare(t *testing.T) {
	t.Parallel()
	token := strings.Repeat("T", 32)
	report := json.RawMessage(`{"run_id":"run/of-the-report"}`)
	full, bare := renderPage(t, &page.Boot{Token: token, Report: report}), renderPage(t, nil)
	if !strings.Contains(full, token) || !strings.Contains(full, "run/of-the-report") && !strings.Contains(full, `run\/of-the-report`) {
		t.Error("the first load lacks the token or the report")
	}
	if strings.Contains(bare, token) || strings.Contains(bare, "of-the-report") {
		t.Error("the bare page holds a secret")
	}
}

// TestReportIsAnyText: a report file that is not JSON still reaches the editor.
func TestReportIsAnyText(t *testing.T) {
	t.Parallel()
	if got := renderPage(t, &page.Boot{Token: strings.Repeat("T", 32), Report: json.RawMessage(`not json </script>`)}); !strings.Contains(got, `not json \u003c/script\u003e`) {
		t.Error("the report's text is not in the page")
	}
}

// TestScriptParses compiles the whole script and looks for constructs that the page's policy forbids.
func TestScriptParses(t *testing.T) {
	t.Parallel()
	html := renderPage(t, nil)
	found := regexp.MustCompile(`(?s)<script nonce="[^"]*">(.*)</script>`).FindStringSubmatch(html)
	if found == nil {
		t.Fatal("the page has no script")
	}
	// goja knows no for await; everything else the page uses it compiles.
	if _, err := goja.Compile("page.js", found[1], true); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "http://", "https://", "url("} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q; want !strings.Contains(html, bad)", bad)
		}
	}
}

// TestIDs: every label, panel and script finds the element it names, once.
func TestIDs(t *testing.T) {
	t.Parallel()
	html := renderPage(t, nil)
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		ids[m[1]]++
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("%d elements have id %q; want n == 1", n, id)
		}
	}
	for _, m := range regexp.MustCompile(`(?:\$\("|\s(?:for|aria-controls|aria-labelledby|aria-describedby)=")([a-z-]+)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] == 0 && m[1] != "tab-" {
			t.Errorf(`nothing has id %q; want (ids[m[1]] != 0 || m[1] == "tab-")`, m[1])
		}
	}
}
