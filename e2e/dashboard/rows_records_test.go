//go:build e2e

package dashboard_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

func TestRow16FlagsAgreeAndKillSwitchesHold(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	admin := w.foreigner("row16", "admin") // a separate tenant: overrides are per tenant
	const rollout = "incidentTimeline"     // enabled for half of the subjects
	w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/flags/"+rollout, admin, map[string]bool{"enabled": true})
	t.Cleanup(func() { w.call(t, http.MethodDelete, w.url+"/api/v1/flags/"+rollout, admin, nil) })
	on := 0
	for n := range 20 {
		subject := fmt.Sprintf("row16-%d", n)
		c := w.foreigner(subject, "viewer")
		flags := decode[struct{ Flags map[string]bool }](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/v1/flags", c, nil)).Flags
		if want := rolloutBucket(rollout, "other:"+subject) < 50; flags[rollout] != want {
			t.Errorf("%s for other:%s: got %v, want %v", rollout, subject, flags[rollout], want)
		}
		if flags[rollout] {
			on++
		}
		all := decode[struct {
			Flags []struct {
				Key   string
				Value bool
			}
		}](t, w.want(t, http.StatusOK, http.MethodPost, w.url+"/ofrep/v1/evaluate/flags", c, map[string]any{"context": map[string]any{"targetingKey": "somebody else"}})).Flags
		if len(all) != len(flags) {
			t.Errorf("OFREP has %d flags, /flags %d", len(all), len(flags))
		}
		for _, f := range all {
			if flags[f.Key] != f.Value {
				t.Errorf("%s for %s: OFREP says %v, /flags %v", f.Key, subject, f.Value, flags[f.Key])
			}
		}
	}
	if on == 0 || on == 20 {
		t.Errorf("%d of 20 subjects are in the rollout; the vectors prove nothing", on)
	}

	for _, k := range []struct {
		flag, method, path string
		body               any
	}{
		{"toolProxy", http.MethodGet, "/api/proxy/control_plane/models", nil},
		{"copilotDrawer", http.MethodPost, "/api/v1/copilot/ask", map[string]string{"question": "which pods fail?"}},
	} {
		w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/flags/"+k.flag, admin, map[string]bool{"enabled": false})
		w.call(t, k.method, w.url+k.path, admin, k.body).problem(t, http.StatusForbidden, "feature_off")
		w.want(t, http.StatusOK, http.MethodDelete, w.url+"/api/v1/flags/"+k.flag, admin, nil)
		if a := w.call(t, k.method, w.url+k.path, admin, k.body); a.Status != http.StatusOK {
			t.Errorf("%s with the switch on again: got %d %s, want 200", k.path, a.Status, a.Body)
		}
	}
}

// rolloutBucket returns a subject's bucket in a flag's rollout: the digest as a number, modulo 100.
func rolloutBucket(flag, subject string) int64 {
	digest := sha256.Sum256([]byte(flag + ":" + subject))
	return new(big.Int).Mod(new(big.Int).SetBytes(digest[:]), big.NewInt(100)).Int64()
}

type comment struct {
	ID, Author, Body, BodyHTML string
	Mentions                   []string
}

// activeMarkup must be in no comment, whatever its form.
var activeMarkup = []string{"<script", "<scr", "<img", "<svg", "<iframe", " onerror=", " onload=", "javascript:a\"", "href=\"javascript", "href=\"data"}

var htmlLinks = regexp.MustCompile(`(?i)(?:href|src)\s*=\s*"([^"]*)"`)

func checkInert(t *testing.T, text, name, html string, active []string) {
	t.Helper()
	lower := strings.ToLower(html)
	for _, a := range active {
		if strings.Contains(lower, a) {
			t.Errorf("%q: %s is %q, want nothing of %q", text, name, html, a)
		}
	}
}

func TestRow17CommentsAreInert(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	viewer := w.passwordLogin(t, "viewer")
	events := w.openStream(t, w.url, viewer, "")
	events.next(t, "hello")
	comments := w.url + "/api/v1/collab/model/ROW17/comments"
	for _, text := range []string{
		"<scr<script>ipt>alert(1)</script>", "[x](java&#x73;cript:a)", "a@b.c @eve", "<img src=x onerror=alert(1)>", "JaVa\tScRiPt:a and vbscript:b",
		"<svg/onload=alert(1)>", "[x](data:text/html,<script>a</script>)", "&lt;script&gt;alert(1)&lt;/script&gt;",
	} {
		a := w.call(t, http.MethodPost, comments, viewer, map[string]string{"body": text})
		if a.Status == http.StatusUnprocessableEntity { // nothing was left after sanitising
			a.problem(t, http.StatusUnprocessableEntity, "empty_comment")
			continue
		}
		got := decode[comment](t, a)
		checkInert(t, text, "body", got.Body, append(slices.Clone(activeMarkup), "javascript:", "vbscript:", "data:text/", "java&#x73;cript"))
		checkInert(t, text, "bodyHtml", got.BodyHTML, activeMarkup)
		for _, link := range htmlLinks.FindAllStringSubmatch(got.BodyHTML, -1) {
			if !strings.HasPrefix(link[1], "http://") && !strings.HasPrefix(link[1], "https://") && !strings.HasPrefix(link[1], "/") {
				t.Errorf("%q: bodyHtml links to %q", text, link[1])
			}
		}
		if text == "a@b.c @eve" {
			if !slices.Equal(got.Mentions, []string{"eve"}) {
				t.Errorf("%q mentions %v, want eve alone", text, got.Mentions)
			}
			f := events.nextThat(t, "the mention", func(f frame) bool { return f.event == "event.mention" && f.data["comment_id"] == got.ID })
			if f.data["user"] != "eve" || f.data["by"] != "local:viewer" || f.data["entity"] != "model/ROW17" {
				t.Errorf("event.mention: got %v, want eve by local:viewer at model/ROW17", f.data)
			}
		}
	}
	list := decode[struct{ Comments []comment }](t, w.want(t, http.StatusOK, http.MethodGet, comments, viewer, nil)).Comments
	mentions := 0
	for _, c := range list {
		mentions += len(c.Mentions)
	}
	if mentions != 1 {
		t.Errorf("the comments hold %d mentions, want 1", mentions)
	}
}

// The secret values that the rows store; the search for secrets includes them.
const (
	forgeToken     = "row-21-forge-token-kkW1q9xU"
	dashboardsKey  = "row-21-dashboards-key-Zt57Pq2L"
	objectStoreKey = "row-21-object-store-key-Mm31aBcD"
)

func TestRow21ConfigIsAllOrNothingAndAudited(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	admin, viewer := w.passwordLogin(t, "admin"), w.passwordLogin(t, "viewer")
	read := func(c who) map[string]any {
		return w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/config", c, nil).JSON(t)
	}
	before := read(admin)
	for name, body := range map[string]map[string]any{
		"an unknown key":       {"forge_project_id": "7", "forge_colour": "red"},
		"a number":             {"forge_project_id": "7", "scheduler_mode": 7},
		"an empty secret":      {"forge_project_id": "7", "forge_token": ""},
		"the mask as a secret": {"forge_project_id": "7", "forge_token": "***"},
		"no URL":               {"forge_project_id": "7", "tracker_url": "javascript:alert(1)"},
		"a host not allowed":   {"forge_project_id": "7", "tracker_url": "http://169.254.169.254/latest"},
		"a URL with a user":    {"forge_project_id": "7", "tracker_url": "http://user:pass@127.0.0.1/"},
	} {
		w.call(t, http.MethodPut, w.url+"/api/config", admin, body).problem(t, http.StatusUnprocessableEntity, "validation_failed")
		if after := read(admin); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after %s: got %v, want %v", name, after, before)
		}
	}
	w.call(t, http.MethodPut, w.url+"/api/config", viewer, map[string]any{"forge_project_id": "7"}).problem(t, http.StatusForbidden, "role_required")

	w.want(t, http.StatusOK, http.MethodPut, w.url+"/api/config", admin, map[string]any{"forge_token": forgeToken, "scheduler_partition": "row21-old"})
	etag := w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/config", admin, nil).Header.Get("ETag")
	w.want(t, http.StatusOK, http.MethodPut, w.url+"/api/config", admin, map[string]any{"scheduler_partition": "row21-new"}, "If-Match", etag)
	w.call(t, http.MethodPut, w.url+"/api/config", admin, map[string]any{"scheduler_partition": "row21-lost"}, "If-Match", etag).
		problem(t, http.StatusPreconditionFailed, "config_changed")
	for name, c := range map[string]who{"admin": admin, "viewer": viewer} {
		if got := read(c); got["forge_token"] != "***" || got["scheduler_partition"] != "row21-new" {
			t.Errorf("%s reads forge_token %v, scheduler_partition %v; want *** and row21-new", name, got["forge_token"], got["scheduler_partition"])
		}
	}

	// A new address takes effect within a second, even for the proxy.
	elsewhere := harness.NewProxy(t, harness.FreePorts(t, 1)[0], w.Env["TRACKING_URI"])
	r := w.startReplica(t, "DASHBOARDS_URL="+elsewhere.URL)
	w.want(t, http.StatusOK, http.MethodPut, r.url+"/api/config", admin, map[string]any{"dashboards_url": elsewhere.URL + "/moved"})
	set := time.Now()
	t.Cleanup(func() { w.call(t, http.MethodPut, r.url+"/api/config", admin, map[string]any{"dashboards_url": nil}) })
	harness.Eventually(t, 20*time.Second, func() error {
		if got := w.call(t, http.MethodGet, w.url+"/api/config", admin, nil).JSON(t)["dashboards_url"]; got != elsewhere.URL+"/moved" {
			return fmt.Errorf("the platform's own dashboard has dashboards_url %v", got)
		}
		return nil
	})
	t.Logf("a stored address held on the other replica after %s", time.Since(set).Round(time.Millisecond))

	type fact struct {
		Actor, Action, Key, Target string
		Details                    map[string]any
	}
	harness.Eventually(t, 20*time.Second, func() error {
		a := w.call(t, http.MethodGet, w.url+"/api/audit?limit=200&action=config.set", admin, nil)
		if a.Status != http.StatusOK {
			return fmt.Errorf("audit: %d %s", a.Status, a.Body)
		}
		seen := map[string]bool{}
		for _, f := range decode[struct{ Items []fact }](t, a).Items {
			text := fmt.Sprint(f)
			if strings.Contains(text, forgeToken) {
				t.Fatalf("the audit holds the secret: %v", f)
			}
			if f.Actor != "local:admin" {
				continue
			}
			seen["partition"] = seen["partition"] || strings.Contains(text, "row21-old") && strings.Contains(text, "row21-new")
			seen["secret"] = seen["secret"] || strings.Contains(text, "forge_token")
			seen["address"] = seen["address"] || strings.Contains(text, elsewhere.URL+"/moved")
		}
		for _, name := range []string{"partition", "secret", "address"} {
			if !seen[name] {
				return fmt.Errorf("no audit fact of the %s: %s", name, a.Body)
			}
		}
		return nil
	})
}

// writeDocs creates a documentation root with a target for path traversal.
func writeDocs(t *testing.T, root string) {
	t.Helper()
	writeFile(t, filepath.Join(root, "README.md"), "# Read me\n")
	writeFile(t, filepath.Join(root, "go.mod"), "module inside\n")
	writeFile(t, filepath.Join(filepath.Dir(root), "go.mod"), "module outside\n")
	writeFile(t, filepath.Join(filepath.Dir(root), "secret.md"), "outside the root\n")
	writeFile(t, filepath.Join(root, "docs", "guides", "first.md"), "# First guide\n\nText.\n")
	if err := os.Symlink(filepath.Join(filepath.Dir(root), "secret.md"), filepath.Join(root, "docs", "link.md")); err != nil {
		t.Fatal(err)
	}
}

func TestRow23DocsStayInTheirRoot(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	viewer := w.passwordLogin(t, "viewer")
	for _, c := range []struct {
		path, code string
		status     int
	}{
		{"../go.mod", "bad_docs_path", 400}, {"%2e%2e/x", "bad_docs_path", 400}, {"%2e%2e/secret.md", "bad_docs_path", 400}, {"docs/link.md", "not_found", 404},
		{"go.mod", "bad_docs_path", 400}, {"docs/absent.md", "not_found", 404}, {"/etc/passwd", "bad_docs_path", 400}, {"docs\\guides\\first.md", "bad_docs_path", 400},
		{"docs/../../secret.md", "bad_docs_path", 400}, {"docs/%2e%2e/%2e%2e/secret.md", "bad_docs_path", 400}, {"docs/a\x00.md", "bad_docs_path", 400}, {"", "validation_failed", 422},
		{strings.Repeat("a", 501), "validation_failed", 422},
	} {
		t.Run(fmt.Sprintf("%.30q", c.path), func(t *testing.T) {
			// The path as written, and encoded a second time on the way.
			a := w.call(t, http.MethodGet, w.url+"/api/docs/content?path="+url.QueryEscape(c.path), viewer, nil)
			a.problem(t, c.status, c.code)
			if strings.Contains(c.path, "%") {
				w.call(t, http.MethodGet, w.url+"/api/docs/content?path="+c.path, viewer, nil).problem(t, c.status, c.code)
			}
		})
	}
	a := w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/docs/content?path=docs/guides/first.md", viewer, nil)
	if string(a.Body) != "# First guide\n\nText.\n" || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("a page: got %q as %s, want its Markdown as text/plain", a.Body, a.Header.Get("Content-Type"))
	}
	if tree := string(w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/docs/tree", viewer, nil).Body); strings.Contains(tree, "link.md") || !strings.Contains(tree, "First guide") {
		t.Errorf("tree: got %s, want the guide and no link", tree)
	}
}
