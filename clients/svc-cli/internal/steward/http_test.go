package steward

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/theme"
)

// Update is shared with the tests outside the package: a flag can be defined once.
var Update = flag.Bool("update", false, "rewrite testdata")

func readSample(t *testing.T, change func(*canon.Object)) *Report {
	t.Helper()
	v, err := canon.Parse(samples.File("steward/history/day-1/steward-report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(v.(*canon.Object))
	}
	r, err := Parse(v)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sampleHistory(t *testing.T) History {
	t.Helper()
	h, err := NewHistory([]Entry{NewEntry("a/steward-report.json", readSample(t, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPages(t *testing.T) {
	t.Parallel()
	one, err := reportPage(readSample(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	many, err := historyPage(sampleHistory(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string][]byte{"report": one, "history": many} {
		if bytes.Contains(page, []byte("<script")) || bytes.Contains(page, []byte("<form")) || bytes.Contains(page, []byte("javascript:")) {
			t.Errorf(`%s has a script or a form; want !bytes.Contains(page, []byte("<script")) && !bytes.Contains(page, []byte("<form")) && !bytes.Contains(page, []byte("javascript:"))`, name)
		}
		if !bytes.Contains(page, []byte("<style>"+theme.CSS+"</style>")) {
			t.Errorf(`%s has another style than its policy lets in; want bytes.Contains(page, []byte("<style>"+theme.CSS+"</style>"))`, name)
		}
		// The style is the theme's own business.
		got := bytes.Replace(page, []byte(theme.CSS), nil, 1)
		path := filepath.Join("testdata", name+".html.golden")
		if *Update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs (%v); look at it, then run: go test ./internal/steward -update\n%s", name, err, got)
		}
	}
}

// Text of a report is text on the page, whatever it looks like.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	const evil = `<script>alert(1)</script>"'&`
	page, err := reportPage(readSample(t, func(o *canon.Object) {
		p, _ := o.Get("provenance")
		p.(*canon.Object).Set("workflow", evil)
		for _, list := range []string{"planned", "created"} {
			l, _ := o.Get(list)
			l.(canon.Array)[0].(*canon.Object).Set("branch", evil)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(page, []byte("<script")) || bytes.Count(page, []byte("&lt;script&gt;")) != 3 {
		t.Errorf(`%s; want !bytes.Contains(page, []byte("<script")) && bytes.Count(page, []byte("&lt;script&gt;")) == 3`, page)
	}
}

// serveSample runs a site and returns its address; it ends with the test.
func serveSample(t *testing.T, s site) string {
	t.Helper()
	l, err := loopback.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.server().Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

func askSite(t *testing.T, method, address, host string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestSite(t *testing.T) {
	t.Parallel()
	const page = "<!doctype html><title>x</title>"
	address := serveSample(t, site{name: "svc-steward-report-ui", version: "1.0", page: []byte(page)})
	const (
		host  = `{"error":{"code":"invalid_host","message":"This page is served to this machine only, as 127.0.0.1 or localhost."},"ok":false}`
		none  = `{"error":{"code":"not_found","message":"There is one page, at /."},"ok":false}`
		write = `{"error":{"code":"method_not_allowed","message":"This page can be read only."},"ok":false}`
	)
	for _, c := range []struct {
		method, path, host string
		status             int
		body               string
	}{
		{"GET", "/", "", 200, page},
		{"GET", "/?x=1", "LOCALHOST", 200, page},
		{"HEAD", "/", "", 200, ""},
		{"GET", "/index.html", "", 404, none},
		{"GET", "/steward-report.json", "", 404, none},
		{"GET", "/../etc/passwd", "", 404, none},
		{"GET", "/%2e%2e/", "", 404, none},
		{"POST", "/", "", 405, write},
		{"DELETE", "/x", "", 405, write},
		{"OPTIONS", "/", "", 405, write},
		{"GET", "/", "evil.example", 403, host},
		{"POST", "/", "127.0.0.2", 403, host},
	} {
		resp, body := askSite(t, c.method, address+c.path, c.host)
		if resp.StatusCode != c.status || body != c.body {
			t.Errorf("%s %s as %q: %d %s; want resp.StatusCode == c.status && body == c.body", c.method, c.path, c.host, resp.StatusCode, body)
		}
		media := "application/json; charset=utf-8"
		policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
		if c.status == 200 {
			media, policy = "text/html; charset=utf-8", policy+"; style-src "+styleSource()+"; img-src data:"
		}
		h := resp.Header
		if h.Get("Content-Type") != media || h.Get("Content-Security-Policy") != policy || h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("X-Request-ID") == "" || h.Get("Server") != "svc-steward-report-ui/0.1" || (h.Get("Allow") == "GET, HEAD") != (c.status == 405) {
			t.Errorf(`%s %s: %v; want h.Get("Content-Type") == media && h.Get("Content-Security-Policy") == policy && h.Get("Cache-Control") == "no-store" && h.Get("X-Frame-Options") == "DENY" && …`, c.method, c.path, h)
		}
	}
	if !strings.HasPrefix(styleSource(), "'sha256-") {
		t.Error(styleSource(), `want strings.HasPrefix(styleSource(), "'sha256-")`)
	}
}
