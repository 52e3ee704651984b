package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// sampleLinks returns the links of a tracker below /base, beside an orchestrator with a published address.
func sampleLinks() *linkMap {
	return newLinkMap(upstream.Tracker, "http", "/base", []place{
		{"http://tracker:5000", "/base", upstream.Tracker}, {"https://tracker.example", "", upstream.Tracker},
		{"http://localhost:4200", "", upstream.Orchestrator}, {"https://flows.example", "/ui", upstream.Orchestrator},
	}...)
}

// The shortcut for plain links gives what translate gives.
func FuzzPlainRoot(f *testing.F) {
	for _, link := range []string{"", "/", "/x", "//x", "/\\x", "/x?a=1#b", "/a b", "/x&amp;y", "/api/proxy/tracker/x", "/api/proxyx", "/x\ty", "x", "http://a/b", "/é", "/\x80"} {
		f.Add(link)
	}
	links := newLinkMap(upstream.Tracker, "http", "", place{"http://tracker:5000", "", upstream.Tracker})
	f.Fuzz(func(t *testing.T, link string) {
		if !links.isPlainRoot(link) {
			return
		}
		if want, _ := links.translate(unescape(link)); links.prefix+link != want {
			t.Errorf("%q: got %q, want %q", link, links.prefix+link, want)
		}
	})
}

func TestTranslatesLinks(t *testing.T) {
	t.Parallel()
	links := sampleLinks()
	for link, want := range map[string]string{
		"/base/x?y#z": "/api/proxy/tracker/x?y#z", "/base": "/api/proxy/tracker/", "/base?q": "/api/proxy/tracker/?q", "/x": "/api/proxy/tracker/x", "/": "/api/proxy/tracker/", "/basement": "/api/proxy/tracker/basement",
		"http://tracker:5000/base/x": "/api/proxy/tracker/x", "HTTP://Tracker:5000/base": "/api/proxy/tracker/", "//tracker:5000/base/x": "/api/proxy/tracker/x",
		"https://tracker.example/x": "/api/proxy/tracker/x", "https://tracker.example": "/api/proxy/tracker/", "https://tracker.example:443/x": "/api/proxy/tracker/x",
		"http://127.0.0.1:4200/api": "/api/proxy/orchestrator/api", "ws://localhost:4200/api/events/out": "/api/proxy/orchestrator/api/events/out", "https://flows.example/ui/runs": "/api/proxy/orchestrator/runs",
		" \t/x\n": "/api/proxy/tracker/x", "/a\nb": "/api/proxy/tracker/ab", `\x`: "/api/proxy/tracker/x", `/\tracker:5000/base/x`: "/api/proxy/tracker/x", `\\tracker:5000/base`: "/api/proxy/tracker/",
		// These stay.
		"x": "x", "./x": "./x", "../x": "../x", "#x": "#x", "?x": "?x", "": "", "mailto:a@b": "mailto:a@b", "javascript:x": "javascript:x", "data:,x": "data:,x",
		"/api/proxy/tracker/x": "/api/proxy/tracker/x", "/api/proxy/orchestrator": "/api/proxy/orchestrator", "https://evil.example/x": "https://evil.example/x", "//evil.example/x": "//evil.example/x",
		"http://tracker:5000/other": "http://tracker:5000/other", "http://tracker:5000@evil.example/base": "http://tracker:5000@evil.example/base", "http://tracker:5000.evil.example/base": "http://tracker:5000.evil.example/base",
		"https://flows.example/uix": "https://flows.example/uix", "http://tracker:5001/base": "http://tracker:5001/base", "https://localhost:4200/x": "https://localhost:4200/x",
	} {
		if got, _ := links.translate(link); got != want {
			t.Errorf("%q: %q; want %q", link, got, want)
		}
	}
}

func TestRewritesHTML(t *testing.T) {
	t.Parallel()
	const p = "/api/proxy/tracker"
	for in, want := range map[string]string{
		`<a href="/x">`:              `<a href="` + p + `/x">`,
		`<A HREF=/x class=Y>t</A>`:   `<A HREF="` + p + `/x" class=Y>t</A>`,
		`<a href='/x?a=1&amp;b="2'>`: `<a href='` + p + `/x?a=1&amp;b=&#34;2'>`,
		`<a href="&#47;x">`:          `<a href="` + p + `/x">`,
		`<a href = "/x" href="/y">`:  `<a href = "` + p + `/x" href="` + p + `/y">`,
		`<img src=/a.png srcset="/a.png 1x, /b.png 2x, c.png 3x">`: `<img src="` + p + `/a.png" srcset="` + p + `/a.png 1x, ` + p + `/b.png 2x, c.png 3x">`,
		`<form action="/go"><button formaction="/x">`:              `<form action="` + p + `/go"><button formaction="` + p + `/x">`,
		`<video poster="/p.jpg"></video><object data="/o">`:        `<video poster="` + p + `/p.jpg"></video><object data="` + p + `/o">`,
		`<div data="/o">`:                                 `<div data="/o">`,
		`<base href="/">`:                                 `<base href="` + p + `/">`,
		`<base href="http://tracker:5000/base/">`:         `<base href="` + p + `/">`,
		`<meta http-equiv=Refresh content="0; URL='/x'">`: `<meta http-equiv=Refresh content="0; url=` + p + `/x">`,
		`<meta name=x content="0;url=/x">`:                `<meta name=x content="0;url=/x">`,
		`a<meta http-equiv="Content-Security-Policy" content="default-src 'none'">b`:  `ab`,
		`<p style="background:url(/x.png)">`:                                          `<p style="background:url(&#34;` + p + `/x.png&#34;)">`,
		`<style>a{b:url('/x')}</style><i>`:                                            `<style>a{b:url("` + p + `/x")}</style><i>`,
		`<script>var a = "/x"; // <a href="/y"></script>`:                             `<script>var a = "/x"; // <a href="/y"></script>`,
		`<script src="/app.js"></script>`:                                             `<script src="` + p + `/app.js"></script>`,
		`<noscript><img src="/x"></noscript>`:                                         `<noscript><img src="` + p + `/x"></noscript>`,
		`<iframe srcdoc="<a href='/x'>">`:                                             `<iframe srcdoc="&lt;a href=&#39;` + p + `/x&#39;&gt;">`,
		`<link rel=stylesheet href="/a.css" integrity="sha256-x" media=all>`:          `<link rel=stylesheet href="` + p + `/a.css"  media=all>`,
		`<link rel=stylesheet href="https://cdn.example/a.css" integrity="sha256-x">`: `<link rel=stylesheet href="https://cdn.example/a.css" integrity="sha256-x">`,
		`<svg viewBox="0 0 1 1"><use xlink:href="/i.svg#a"/></svg>`:                   `<svg viewBox="0 0 1 1"><use xlink:href="` + p + `/i.svg#a"/></svg>`,
		`<!-- <a href="/x"> --><!DOCTYPE html><textarea><a href="/x"></textarea>`:     `<!-- <a href="/x"> --><!DOCTYPE html><textarea><a href="/x"></textarea>`,
		`<a href>x</a><a href=>y</a><br/>`:                                            `<a href>x</a><a href=>y</a><br/>`,
		`<a href="/x`:                                                                 `<a href="/x`, // cut off: browsers drop it
		"\r\n<p>\x00\xff<a title='>' href=\"/x\">":                                    "\r\n<p>\x00\xff<a title='>' href=\"" + p + "/x\">",
	} {
		if got := string(rewriteHTML([]byte(in), sampleLinks(), false)); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestPagesOfSinglePageApplicationsGetABaseOnTheToolsOrigin(t *testing.T) {
	t.Parallel()
	const in = `<head><script type="module" src="/assets/a.js"></script></head>`
	for _, tc := range []struct {
		in    string
		tools bool
		want  bool
	}{
		{in, true, true}, {in, false, false}, {`<base href="/">` + in, true, false}, {`<script src="/a.js"></script>`, true, false}, {`<script type=module src="a.js"></script>`, true, false},
	} {
		got := string(rewriteHTML([]byte(tc.in), sampleLinks(), tc.tools))
		if has := strings.Contains(got, `<base href="/api/proxy/tracker/"><script`); has != tc.want {
			t.Errorf("%s, tools %v: %s; want a base: %v", tc.in, tc.tools, got, tc.want)
		}
	}
}

func TestRewritesCSS(t *testing.T) {
	t.Parallel()
	const p = "/api/proxy/tracker"
	for in, want := range map[string]string{
		`a{b:url(/x.png)}`:                             `a{b:url("` + p + `/x.png")}`,
		`a{b:URL( "/x.png" ) no}`:                      `a{b:URL("` + p + `/x.png") no}`,
		`@import "/a.css" screen;`:                     `@import "` + p + `/a.css" screen;`,
		`@IMPORT/**/'/a.css';`:                         `@IMPORT/**/"` + p + `/a.css";`,
		`@import url(/a.css);`:                         `@import url("` + p + `/a.css");`,
		`a{b:url(\2f x)}`:                              `a{b:url("` + p + `/x")}`,
		`a{b:url("\3c /style>/x")}`:                    `a{b:url("\3c /style>/x")}`,
		`a{b:url("/\3c /style>")}`:                     `a{b:url("` + p + `/\3c /style\3e ")}`,
		`a{b:url(/x"y)}`:                               `a{b:url(/x"y)}`, // no url to browsers
		`a{b:url(x.png) url(#i) url(data:,/x)}`:        `a{b:url(x.png) url(#i) url(data:,/x)}`,
		`a::before{content:"/x"}/* url(/x) */`:         `a::before{content:"/x"}/* url(/x) */`,
		`@font-face{src:url(/f.woff2)format("woff2")}`: `@font-face{src:url("` + p + `/f.woff2")format("woff2")}`,
		`a{b:url(http://localhost:4200/y)`:             `a{b:url("/api/proxy/orchestrator/y")`,
		"":                                             "",
	} {
		if got := string(rewriteCSS([]byte(in), sampleLinks())); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestRewritesJSONStringValuesOfServicesOnly(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"url": "http://localhost:4200/api", "n": 1.10e2}`: `{"url": "/api/proxy/orchestrator/api", "n": 1.10e2}`,
		`["http:\/\/tracker:5000\/base\/x"]`:                `["/api/proxy/tracker/x"]`,
		`"\u0068ttps://tracker.example/<x>"`:                `"/api/proxy/tracker/<x>"`,
		`{"http://localhost:4200/api" : "/x"}`:              `{"http://localhost:4200/api" : "/x"}`,
		`{"a":"see http://localhost:4200/api"}`:             `{"a":"see http://localhost:4200/api"}`,
		`{"a":"http://localhost:42000/"}`:                   `{"a":"http://localhost:42000/"}`,
		`{"a":"http://localhost:4200`:                       `{"a":"http://localhost:4200`,
		`{"a":"\"http://localhost:4200"}`:                   `{"a":"\"http://localhost:4200"}`,
	} {
		if got := string(rewriteJSON([]byte(in), sampleLinks())); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func zip(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, s); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unzip(t testing.TB, s string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatalf("no gzip: %v in %.40q", err, s)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRewrittenBodiesKeepLengthEncodingAndTags(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const page = `<a href="/x">x</a>`
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("ETag", `W/"v1"`)
		h.Set("Content-MD5", "x")
		h.Set("Accept-Ranges", "bytes")
		if r.Header.Get("If-None-Match") == `W/"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := []byte(page)
		if r.Header.Get("Accept-Encoding") == "gzip" {
			h.Set("Content-Encoding", "gzip")
			body = zip(t, page)
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	const want = `<a href="/api/proxy/tracker/x">x</a>`
	plain := b.send(http.MethodGet, "/api/proxy/tracker/", "")
	if plain.body != want || plain.header.Get("Content-Length") != strconv.Itoa(len(want)) || plain.header.Get("Content-MD5") != "" || plain.header.Get("Accept-Ranges") != "" {
		t.Errorf("%q with %v; want %q, its length and no digest", plain.body, plain.header, want)
	}
	zipped := b.send(http.MethodGet, "/api/proxy/tracker/", "", "Accept-Encoding", "gzip")
	if got := unzip(t, zipped.body); got != want || zipped.header.Get("Content-Encoding") != "gzip" || zipped.header.Get("Content-Length") != strconv.Itoa(len(zipped.body)) {
		t.Errorf("%q with %v; want %q in gzip", got, zipped.header, want)
	}
	tag := plain.header.Get("ETag")
	if !strings.HasPrefix(tag, `W/"v1~rw-`) {
		t.Errorf("ETag %q; want one of the rewritten body", tag)
	}
	if a := b.send(http.MethodGet, "/api/proxy/tracker/", "", "If-None-Match", `"other", `+tag); a.status != 200 && a.status != 304 {
		t.Errorf("%d; want 200 or 304", a.status)
	}
	a := b.send(http.MethodGet, "/api/proxy/tracker/", "", "If-None-Match", tag)
	if a.status != 304 || a.header.Get("ETag") != tag {
		t.Errorf("%d with ETag %q; want 304 with %q", a.status, a.header.Get("ETag"), tag)
	}
	if head := b.send(http.MethodHead, "/api/proxy/tracker/", ""); head.header.Get("ETag") != tag || head.header.Get("Content-Length") != "" {
		t.Errorf("HEAD: ETag %q, length %q; want %q and none", head.header.Get("ETag"), head.header.Get("Content-Length"), tag)
	}
	// What links become has changed, so the tag is another one.
	b.settings.set("orchestrator_url", "http://elsewhere:1")
	if a := b.send(http.MethodGet, "/api/proxy/tracker/", "", "If-None-Match", tag); a.status != 200 || a.header.Get("ETag") == tag {
		t.Errorf("after a change of addresses: %d with ETag %q; want 200 with another", a.status, a.header.Get("ETag"))
	}
	raw := b.send(http.MethodGet, "/api/proxy/tracker/", "", "X-PLATFORM-Rewrite", "off")
	if raw.body != page || raw.header.Get("ETag") != `W/"v1"` || raw.header.Get("X-PLATFORM-Rewrite") != "off" || raw.header.Get("Vary") != "X-PLATFORM-Rewrite" {
		t.Errorf("raw: %q with %v; want the service's own bytes and tag", raw.body, raw.header)
	}
}

func TestLargeBrokenAndPartialBodiesPassMarkedSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	large := `<a href="/x">` + strings.Repeat("y", 9<<20)
	bodies := map[string]struct {
		body    []byte
		headers []string
		status  int
	}{
		"/large": {[]byte(large), nil, 200}, "/zipped": {zip(t, large), []string{"Content-Encoding", "gzip"}, 200}, "/nogzip": {[]byte("<a href=/x> no gzip"), []string{"Content-Encoding", "gzip"}, 200},
		"/cut": {zip(t, `<a href="/x">`+randomText(4000))[:500], []string{"Content-Encoding", "gzip"}, 200}, "/br": {[]byte("brotli"), []string{"Content-Encoding", "br"}, 200},
		"/part": {[]byte(`<a href="/x">`), []string{"Content-Range", "bytes 0-12/99"}, 206}, "/wide": {[]byte("\xfe\xff\x00<"), []string{"Content-Type", "text/html; charset=UTF-16"}, 200},
	}
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("ETag", `"own"`)
		for i := 0; i < len(bodies[r.URL.Path].headers); i += 2 {
			w.Header().Set(bodies[r.URL.Path].headers[i], bodies[r.URL.Path].headers[i+1])
		}
		w.WriteHeader(bodies[r.URL.Path].status)
		_, _ = w.Write(bodies[r.URL.Path].body)
	})
	for path, want := range bodies {
		a := b.send(http.MethodGet, "/api/proxy/tracker"+path, "", "Accept-Encoding", "gzip")
		if a.body != string(want.body) || a.status != want.status || a.header.Get("X-PLATFORM-Rewrite") != "skipped" || a.header.Get("ETag") != `"own"` {
			t.Errorf("%s: %d, %d bytes, %v; want %d, %d bytes as sent, marked skipped", path, a.status, len(a.body), a.header, want.status, len(want.body))
		}
	}
	if !b.proxy.buffers.TryAcquire(b.proxy.limits.budget) {
		t.Error("memory for rewriting is still held; want all of it back")
	}
}

func randomText(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x", r.Uint64())
	}
	return b.String()
}

func TestLinksInHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var srvURL string
	srv := b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Location", r.URL.Query().Get("to"))
		h.Set("Content-Location", r.URL.Query().Get("to"))
		h.Add("Link", `</a.css>; rel="preload", <`+srvURL+`/b>; title="<c>, d"`)
		h.Add("Link", `<https://x.example/>; rel=x`)
		h.Set("Refresh", "5; url=/later")
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.WriteHeader(status)
	})
	srvURL = srv.URL
	for _, tc := range []struct {
		to   string
		want string
	}{
		{"/login?x=1#y", "/api/proxy/tracker/login?x=1#y"}, {srv.URL + "/z", "/api/proxy/tracker/z"}, {"next", "/api/proxy/tracker/d/next"}, {"../up", "/api/proxy/tracker/up"}, {"?q", "/api/proxy/tracker/d/x?q"},
	} {
		a := b.send(http.MethodGet, "/api/proxy/tracker/d/x?status=302&to="+escape(tc.to), "")
		if a.status != 302 || a.header.Get("Location") != tc.want || a.header.Get("Content-Location") != tc.want {
			t.Errorf("%s: %d %s; want 302 %s", tc.to, a.status, a.header.Get("Location"), tc.want)
		}
		if got, want := a.header.Get("Link"), `</api/proxy/tracker/a.css>; rel="preload", </api/proxy/tracker/b>; title="<c>, d", <https://x.example/>; rel=x`; got != want {
			t.Errorf("Link %q; want %q", got, want)
		}
		if got, want := a.header.Get("Refresh"), "5; url=/api/proxy/tracker/later"; got != want {
			t.Errorf("Refresh %q; want %q", got, want)
		}
	}
	for _, to := range []string{"https://evil.example/", "//evil.example/x", `/\evil.example`, `\\evil.example`, "http://169.254.169.254/"} {
		wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/?status=302&to="+escape(to), ""), 502, "upstream_redirect")
	}
	if a := b.send(http.MethodGet, "/api/proxy/tracker/?status=201&to="+escape("https://evil.example/"), ""); a.status != 201 || a.header.Get("Location") != "" {
		t.Errorf("a created object elsewhere: %d %q; want 201 without Location", a.status, a.header.Get("Location"))
	}
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

func TestBinariesAndRangesPassUnchanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	content := make([]byte, 5<<20+17)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	srv := b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("ETag", `"bin"`)
		http.ServeContent(w, r, "model.onnx", modTime, bytes.NewReader(content))
	})
	for _, headers := range [][]string{nil, {"Range", "bytes=100-199"}, {"Range", "bytes=-50"}, {"Range", "bytes=0-0,10-20"}, {"If-None-Match", `"bin"`}, {"Range", "bytes=5-9", "If-Range", `"bin"`}, {"Range", "bytes=99999999-"}} {
		direct, through := do(t, http.MethodGet, srv.URL+"/m", "", headers...), b.send(http.MethodGet, "/api/proxy/tracker/m", "", headers...)
		sum := func(a answer) string {
			body := a.body
			if strings.HasPrefix(a.header.Get("Content-Type"), "multipart/") { // the boundary is random
				body = strconv.Itoa(len(body))
				return fmt.Sprint(a.status, body)
			}
			h := a.header
			return fmt.Sprint(a.status, sha256.Sum256([]byte(body)), h.Get("Content-Length"), h.Get("Content-Range"), h.Get("ETag"), h.Get("Last-Modified"), h.Get("Accept-Ranges"), h.Get("Content-Type"))
		}
		if d, p := sum(direct), sum(through); d != p {
			t.Errorf("%v\n direct %s\nthrough %s", headers, d, p)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/..%252f", "/%2e%2E/", "/a%5c", "/%", "/%zz/..%2", "/;..;/", "/%25%32%65%25%32%65/", "/\xff%ff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if checkPath(path) != nil {
			return
		}
		for level := range decodings + 1 {
			if strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\x00\r\n\x7f") {
				t.Fatalf("accepted, though decoded %d times it is %q", level, path)
			}
			for segment := range strings.SplitSeq(path, "/") {
				if segment == "." || segment == ".." {
					t.Fatalf("accepted, though decoded %d times it is %q", level, path)
				}
			}
			path = decodeOnce(path)
		}
	})
}

// The rewriter leaves no root-relative link, changes nothing the second time, and drops nothing between the tags.
func FuzzRewriteHTML(f *testing.F) {
	for _, s := range []string{
		`<a href="/x">`, `<a href=/x/>`, `<img srcset="/a 1x,/b 2x">`, `<style>@import "/a";b{c:url(/d)}</style>`, `<noscript><a href='/x'>`, `<iframe srcdoc="&lt;a href=/x>">`, `<a/href="/x">`, `<a "href="/x">`,
		`<a =href="/x" href = '/y'>`, `<meta http-equiv=refresh content="1;/x">`, `<p style="a:url(/b)">`, `<base href=/><script type=module src=/a>`, `<svg><a xlink:href="/x"/>`, "<a\x0chref=/\tx>", `<textarea><a href="/x">`, `<a href="&#x2f;&#9;x">`, `<a href="\/x">`, `<plaintext><a href=/x>`,
	} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, page string, tools bool) {
		links := sampleLinks()
		once := rewriteHTML([]byte(page), links, tools)
		if twice := rewriteHTML(once, links, tools); !bytes.Equal(once, twice) {
			t.Fatalf("%q\n once %q\ntwice %q", page, once, twice)
		}
		z := html.NewTokenizer(bytes.NewReader(once))
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			name, more := z.TagName()
			element := string(name)
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				if contentOf(string(key)) != oneLink && (string(key) != "data" || element != "object") {
					continue
				}
				link := cleanLink(string(value))
				if path, _ := cutPath(link); strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "//") && !isProxied(path) {
					t.Fatalf("%q: %s %s=%q is left in %q", page, element, key, value, once)
				}
			}
		}
	})
}

// The scanner and x/net/html's tokenizer find the same start tags.
func FuzzScansAsTheTokenizer(f *testing.F) {
	for _, s := range []string{
		`<a href="/x">t</a>`, `</><//x><?p?><!d><!-><!--><!---><!----><a>`, `<!--a--!><b><!--a--!-><c>--><d>`, `<script>a</scriptx></script ><b>`, `<SCRIPT><!--<script></script>--></script><b>`,
		`<style></style/><b>`, `<textarea><a></textarea><b>`, `<plaintext><b>`, `<a b='>' c=">" d=x>y>`, `<a/b/=x/>`, `<a b = >c<d e=`, `</a b=">"><c>`, `< a><<b><`, `<!DOCTYPE html "<a>"><b>`, `<title/><b></title><c>`, `<script><!-- < <script></script><b>`, `</a b="`, `<x`, `</`, `<![CDATA[<a>]]><b>`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, page string) {
		type found struct {
			At   int
			Text string
		}
		var got, want []found
		tag := startTag{page: page}
		for i := 0; nextStartTag(i, &tag); {
			got = append(got, found{tag.from, page[tag.from:tag.to]})
			if i = tag.to; tag.rawName() != "" {
				i = endOfRaw(page, i, tag.rawName())
			}
		}
		z, at := html.NewTokenizer(strings.NewReader(page)), 0
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			text := page[at : at+len(z.Raw())]
			if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
				want = append(want, found{at, text})
			}
			at += len(text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: the tokenizer's start tags (-) and the scanner's (+):\n%s", page, diff)
		}
	})
}

func FuzzRewriteCSS(f *testing.F) {
	for _, s := range []string{`a{b:url(/x)}`, `@import "/a"`, `url("/\"x")`, `url(/a\)b)`, `@import '/a`, `url( '/x`, "url(/\x00)", `\75 rl(/x)`, `url("/a\\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sheet string) {
		links := sampleLinks()
		once := rewriteCSS([]byte(sheet), links)
		if twice := rewriteCSS(once, links); !bytes.Equal(once, twice) {
			t.Fatalf("%q\n once %q\ntwice %q", sheet, once, twice)
		}
		if strings.Contains(strings.ToLower(string(once)), "</style") && !strings.Contains(strings.ToLower(sheet), "</style") {
			t.Fatalf("%q closes its element: %q", sheet, once)
		}
	})
}

func FuzzRewriteJSON(f *testing.F) {
	f.Add(`{"a":"http://localhost:4200/x","b":["ws://tracker:5000/base"]}`)
	f.Add(`"http:\/\/localhost:4200`)
	f.Fuzz(func(t *testing.T, doc string) {
		links := sampleLinks()
		once := rewriteJSON([]byte(doc), links)
		if valid(doc) != valid(string(once)) {
			t.Fatalf("%q is JSON: %v; rewritten %q: %v", doc, valid(doc), once, valid(string(once)))
		}
		if twice := rewriteJSON(once, links); !bytes.Equal(once, twice) {
			t.Fatalf("%q\n once %q\ntwice %q", doc, once, twice)
		}
	})
}
