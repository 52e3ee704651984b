package webui_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/webui"
)

var build = fstest.MapFS{
	".keep": {}, "index.html": {Data: []byte("<!doctype html><p>the page, long enough to be worth compressing")}, "index.html.br": {Data: []byte("page-br")}, "index.html.gz": {Data: []byte("page-gz")},
	"favicon.svg": {Data: []byte("<svg/>")}, "assets/app-4f2a.js": {Data: []byte("console.log('long enough')")}, "assets/app-4f2a.js.br": {Data: []byte("js-br")},
	"assets/app-4f2a.js.gz": {Data: []byte("js-gz")}, "assets/small.css": {Data: []byte("a{}")}, "assets/small.css.br": {Data: []byte("longer than the plain one")},
	"assets/font.woff2": {Data: []byte("font")}, "assets/archive.gz": {Data: []byte("no plain form")}, "assets/blob.xyz": {Data: []byte("?")},
}

func newUI(t *testing.T, files fstest.MapFS) *webui.UI {
	t.Helper()
	ui, err := webui.New(webui.Config{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return ui
}

func serve(ui *webui.UI, method, target string, header ...string) *httptest.ResponseRecorder {
	e := echo.New()
	e.HTTPErrorHandler = problem.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e.Any("/*", ui.Serve)
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestRoutesOfTheInterfaceGetItsPage(t *testing.T) {
	t.Parallel()
	ui := newUI(t, build)
	for _, target := range []string{"/", "/login", "/models", "/models/JPCP", "/models/a.b", "/documents?path=docs/security.md", "/search?q=x", "/snapshot/abc", "/apiary", "/docsets", "/index.html"} {
		w := serve(ui, http.MethodGet, target, "Accept", browser)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "<!doctype html>") || w.Header().Get("Cache-Control") != "no-cache" ||
			w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("ETag") == "" {
			t.Errorf("%s: got %d %v %s, want the page with a tag, to be checked each time", target, w.Code, w.Header(), w.Body)
		}
	}
}

// curl and probes accept anything: at / that is the page.
func TestRootIsThePageForWhoTakesAnything(t *testing.T) {
	t.Parallel()
	ui := newUI(t, build)
	for _, header := range [][]string{{"Accept", "*/*"}, {"Accept", "text/*"}, nil} {
		if w := serve(ui, http.MethodGet, "/", header...); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "<!doctype html>") {
			t.Errorf("%v: got %d %s, want the page", header, w.Code, w.Body)
		}
	}
}

func TestEverythingElseIsA404Problem(t *testing.T) {
	t.Parallel()
	ui := newUI(t, build)
	for _, tc := range []struct{ method, target, accept string }{
		{"GET", "/api/v1/nothing", browser}, {"GET", "/api", browser}, {"GET", "/ofrep/v1/x", browser}, {"GET", "/docs/x", browser}, {"GET", "/redoc", browser},
		{"GET", "/assets/gone-1234.js", browser}, {"GET", "/assets/", browser}, {"GET", "/assets", browser}, {"GET", "/assets/app-4f2a.js.br", browser},
		{"GET", "/assets/../index.html", browser}, {"GET", "/assets/%2e%2e/index.html", browser}, {"GET", "/.keep", "*/*"}, {"GET", "/models", "application/json"},
		{"GET", "/models", "*/*"}, {"GET", "/models", ""}, {"GET", "/models", "text/html;q=0"}, {"GET", "/", "application/json"}, {"POST", "/", browser}, {"DELETE", "/models", browser},
	} {
		w := serve(ui, tc.method, tc.target, "Accept", tc.accept)
		if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s for %q: got %d %s, want a 404 problem", tc.method, tc.target, tc.accept, w.Code, w.Body)
		}
	}
}

func TestHashedFilesAreKeptForever(t *testing.T) {
	t.Parallel()
	ui := newUI(t, build)
	for target, want := range map[string][2]string{
		"/assets/app-4f2a.js": {"public, max-age=31536000, immutable", "text/javascript; charset=utf-8"},
		"/assets/font.woff2":  {"public, max-age=31536000, immutable", "font/woff2"},
		"/assets/archive.gz":  {"public, max-age=31536000, immutable", "application/octet-stream"},
		"/assets/blob.xyz":    {"public, max-age=31536000, immutable", "application/octet-stream"},
		"/favicon.svg":        {"no-cache", "image/svg+xml"},
	} {
		w := serve(ui, http.MethodGet, target, "Accept", "*/*")
		if got := [2]string{w.Header().Get("Cache-Control"), w.Header().Get("Content-Type")}; w.Code != http.StatusOK || got != want {
			t.Errorf("%s: got %d %q, want %q", target, w.Code, got, want)
		}
	}
}

func TestEncodingIsTheSendersChoice(t *testing.T) {
	t.Parallel()
	ui := newUI(t, build)
	for _, tc := range []struct{ target, accept, encoding, body string }{
		{"/assets/app-4f2a.js", "gzip, deflate, br, zstd", "br", "js-br"}, {"/assets/app-4f2a.js", "gzip", "gzip", "js-gz"}, {"/assets/app-4f2a.js", "", "", "console.log('long enough')"},
		{"/assets/app-4f2a.js", "br;q=0.5, gzip;q=0.9", "gzip", "js-gz"}, {"/assets/app-4f2a.js", "br;q=0, gzip", "gzip", "js-gz"}, {"/assets/app-4f2a.js", "*", "br", "js-br"},
		{"/assets/app-4f2a.js", "*;q=0", "", "console.log('long enough')"}, {"/assets/app-4f2a.js", "BR", "br", "js-br"}, {"/assets/app-4f2a.js", "br;q=x", "", "console.log('long enough')"},
		{"/assets/small.css", "br", "", "a{}"}, {"/favicon.svg", "br, gzip", "", "<svg/>"},
	} {
		w := serve(ui, http.MethodGet, tc.target, "Accept-Encoding", tc.accept)
		if w.Header().Get("Content-Encoding") != tc.encoding || w.Body.String() != tc.body || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s for %q: got %q %q, Vary %q; want %q %q", tc.target, tc.accept, w.Header().Get("Content-Encoding"), w.Body, w.Header().Get("Vary"), tc.encoding, tc.body)
		}
	}
}

func TestEachEncodingHasItsOwnTag(t *testing.T) {
	t.Parallel()
	ui := newUI(t, build)
	tags := map[string]string{}
	for _, encoding := range []string{"br", "gzip", "identity"} {
		w := serve(ui, http.MethodGet, "/", "Accept", browser, "Accept-Encoding", encoding)
		tag := w.Header().Get("ETag")
		if other, twice := tags[tag]; twice {
			t.Errorf("%s and %s share the tag %s, want one each", encoding, other, tag)
		}
		tags[tag] = encoding
		for _, given := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			if w := serve(ui, http.MethodGet, "/", "Accept", browser, "Accept-Encoding", encoding, "If-None-Match", given); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
				t.Errorf("%s with %s: got %d %q, want 304 without a body", encoding, given, w.Code, w.Body)
			}
		}
		if w := serve(ui, http.MethodGet, "/", "Accept", browser, "Accept-Encoding", encoding, "If-None-Match", `"old"`); w.Code != http.StatusOK {
			t.Errorf("%s with an old tag: got %d, want 200", encoding, w.Code)
		}
	}
}

func TestHeadHasTheHeadersAlone(t *testing.T) {
	t.Parallel()
	w := serve(newUI(t, build), http.MethodHead, "/assets/app-4f2a.js", "Accept-Encoding", "br")
	if w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("Content-Length") != "5" || w.Header().Get("Content-Encoding") != "br" {
		t.Errorf("got %d %v %q, want the headers of the br form alone", w.Code, w.Header(), w.Body)
	}
}

func TestBinaryWithoutTheInterfaceSaysHowToBuildIt(t *testing.T) {
	t.Parallel()
	ui := newUI(t, fstest.MapFS{".keep": {}})
	w := serve(ui, http.MethodGet, "/models", "Accept", browser)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "make build") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("got %d %s %q, want 503 and text that names make build", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	if w := serve(ui, http.MethodGet, "/api/x", "Accept", browser); w.Code != http.StatusNotFound {
		t.Errorf("/api/x: got %d, want 404", w.Code)
	}
}

func TestBuildWithoutItsPageRefusesTheStart(t *testing.T) {
	t.Parallel()
	if _, err := webui.New(webui.Config{Files: fstest.MapFS{"assets/a.js": {Data: []byte("x")}}}); err == nil || !strings.Contains(err.Error(), "index.html") {
		t.Errorf("got %v, want an error that names index.html", err)
	}
}

func TestEmbeddedBuildCanBeRead(t *testing.T) {
	t.Parallel()
	ui, err := webui.New(webui.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := http.StatusServiceUnavailable // of a checkout that was never built
	if ui.Built() {
		want = http.StatusOK
	}
	if w := serve(ui, http.MethodGet, "/", "Accept", browser); w.Code != want {
		t.Errorf("got %d, want %d", w.Code, want)
	}
}
