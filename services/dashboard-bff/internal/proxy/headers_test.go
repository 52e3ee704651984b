package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestUpstreamNeverSeesCredentialsOrClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := make(chan http.Header, 1)
	srv := b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) {
		r.Header.Set("Host", r.Host)
		got <- r.Header
	})
	hidden := []string{
		"Cookie", "Authorization", "X-PLATFORM-CSRF", "X-PLATFORM-IDP", "x-platform-Rewrite", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Forwarded", "X-Forwarded-User", "X-Forwarded-For", "X-Forwarded-Host",
		"X-Real-IP", "X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X-Original-URL", "X-Rewrite-URL", "X-WEBAUTH-USER", "Remote-User", "X-Remote-User", "X_FORWARDED_FOR",
		"Keep-Alive", "Te", "Proxy-Authorization", "X-Hop", "Upgrade",
	}
	pairs := []string{"Connection", "X-Hop, Upgrade, keep-alive", "Accept", "text/x", "X-Custom", "kept", "X-Request-ID", "r-1", "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Accept-Encoding", "br, gzip;q=0.5"}
	for _, name := range hidden {
		pairs = append(pairs, name, "secret")
	}
	if a := b.send(http.MethodGet, "/api/proxy/tracker/x", "", pairs...); a.status != 200 {
		t.Fatalf("%d %s; want 200", a.status, a.body)
	}
	h := <-got
	for name, values := range h {
		if strings.Contains(strings.Join(values, ","), "secret") {
			t.Errorf("the service got %s: %s", name, values)
		}
	}
	for name, want := range map[string]string{
		"Accept": "text/x", "X-Custom": "kept", "X-Request-Id": "r-1", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Accept-Encoding": "gzip",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": b.proxy.dashboard.url.Host, "X-Forwarded-Prefix": "/api/proxy/tracker",
		"Host": strings.TrimPrefix(srv.URL, "http://"),
	} {
		if h.Get(name) != want {
			t.Errorf("the service got %s %q; want %q", name, h.Get(name), want)
		}
	}
}

func TestOnlyGzipOrIdentityIsAskedFor(t *testing.T) {
	t.Parallel()
	for offered, want := range map[string]bool{
		"": false, "gzip": true, "br": false, "identity": false, "br, gzip": true, "*": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=0.1": true, "GZIP": true, "x-gzip": true, "*;q=0": false,
	} {
		h := http.Header{}
		if offered != "" {
			h.Set("Accept-Encoding", offered)
		}
		if got := acceptsGzip(h); got != want {
			t.Errorf("%q: %v; want %v", offered, got, want)
		}
	}
}

func TestUpstreamGetsItsOwnOriginAndReferer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := make(chan [2]string, 1)
	srv := b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) {
		got <- [2]string{r.Header.Get("Origin"), r.Header.Get("Referer")}
	})
	for _, tc := range []struct{ origin, referer, wantOrigin, wantReferer string }{
		{b.dashboard.URL, b.dashboard.URL + "/api/proxy/tracker/a?b", srv.URL, srv.URL + "/a?b"},
		{"https://evil.example", "https://evil.example/x", "", ""},
		{"null", b.dashboard.URL + "/config?secret", "", ""},
	} {
		b.send(http.MethodPost, "/api/proxy/tracker/x", "", "Origin", tc.origin, "Referer", tc.referer)
		if g := <-got; g != [2]string{tc.wantOrigin, tc.wantReferer} {
			t.Errorf("%+v: %q", tc, g)
		}
	}
}

func TestBrowserNeverSeesWhatWouldActOnTheDashboard(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hidden := []string{
		"Set-Cookie", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc",
		"Service-Worker-Allowed", "Content-Security-Policy-Report-Only", "Report-To", "NEL", "Www-Authenticate", "Refresh-Token-Hint",
	}
	b.behind(upstream.Tracker, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, name := range hidden {
			h.Set(name, "hostile")
		}
		h.Del("Refresh-Token-Hint")
		for _, name := range []string{"Content-Security-Policy", "X-Frame-Options", "Referrer-Policy", "X-Content-Type-Options", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Permissions-Policy", "X-Request-Id", "X-Platform-Rewrite"} {
			h.Set(name, "hostile")
		}
		h.Set("Cache-Control", "public, max-age=60, s-maxage=90")
		h.Set("X-Custom", "kept")
		h.Set("Link", "</early.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Link")
		h.Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>x"))
		h.Set(http.TrailerPrefix+"Set-Cookie", "hostile=1")
		h.Set(http.TrailerPrefix+"X-Checksum", "fine")
	})
	for _, base := range []string{b.dashboard.URL, ""} {
		var a answer
		if base == "" {
			a = b.enter(upstream.Tracker).get("/api/proxy/tracker/x")
		} else {
			a = do(t, http.MethodGet, base+"/api/proxy/tracker/x", "", "X-Request-ID", "mine")
		}
		if a.status != 200 || a.body != "<p>x" {
			t.Fatalf("%d %q; want 200 <p>x", a.status, a.body)
		}
		for name, values := range a.header {
			if strings.Contains(strings.Join(values, ","), "hostile") {
				t.Errorf("the browser got %s: %s", name, values)
			}
			if len(values) > 1 && name != "Vary" {
				t.Errorf("the browser got %s twice: %s", name, values)
			}
		}
		if got := a.header.Get("Cache-Control"); got != "private, max-age=60" {
			t.Errorf("Cache-Control %q; want private, max-age=60", got)
		}
		if a.header.Get("X-Custom") != "kept" || a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Link") != "" {
			t.Errorf("headers %v; want X-Custom, X-Request-Id and nosniff, and no Link of early hints", a.header)
		}
	}
}

func TestTrailersAreCleanedToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "hostile=1")
		w.Header().Set(http.TrailerPrefix+"X-Checksum", "fine")
	})
	res, err := client.Get(b.dashboard.URL + "/api/proxy/tracker/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if res.Trailer.Get("Set-Cookie") != "" || res.Trailer.Get("X-Checksum") != "fine" {
		t.Errorf("trailers %v; want X-Checksum alone", res.Trailer)
	}
}

func TestCredentialsOfTheConfigurationAreSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, withServingToken("serving-token"))
	got := make(chan string, 1)
	read := func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }
	for s, want := range map[upstream.Service]string{upstream.Tracker: "", upstream.Dashboards: "Bearer key", upstream.Serving: "Bearer serving-token", upstream.ControlPlane: "Bearer cp-token"} {
		b.settings.set("dashboards_api_key", "key")
		b.settings.set("control_plane_token", "cp-token")
		b.behind(s, read)
		b.send(http.MethodGet, "/api/proxy/"+string(s)+"/", "", "Authorization", "Bearer of-the-caller")
		if g := <-got; g != want {
			t.Errorf("%s got %q; want %q", s, g, want)
		}
	}
	// The serving runtime's own dashboard is the serving runtime unless it has an address.
	b.send(http.MethodGet, "/api/proxy/serving_dashboard/", "")
	if g := <-got; g != "Bearer serving-token" {
		t.Errorf("serving_dashboard got %q; want the serving runtime's token", g)
	}
}
