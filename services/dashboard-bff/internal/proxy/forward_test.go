package proxy

import (
	"net/http"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestForwardsAGetWithItsRawPathAndQuery(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := make(chan string, 1)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) {
		got <- r.RequestURI
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("hello"))
	})
	a := b.send(http.MethodGet, "/api/proxy/tracker/a%2Fb/c%20d;x=1?q=%zz&x=a;b", "")
	if want := "/a%2Fb/c%20d;x=1?q=%zz&x=a;b"; a.status != 200 || a.body != "hello" {
		t.Errorf("%d %q; want 200 hello of %s", a.status, a.body, want)
	} else if uri := <-got; uri != want {
		t.Errorf("the service got %q; want %q", uri, want)
	}
}

func TestRefusesPathsThatAServiceCouldReadAsOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.behind(upstream.Tracker, func(w http.ResponseWriter, r *http.Request) { t.Errorf("forwarded %s", r.RequestURI) })
	for _, path := range []string{
		"/../x", "/a/../x", "/a/..", "/./x", "/a/.", "/%2e%2e/x", "/%2E./x", "/..%2fx", "/..%252fx", "/%252e%252e/x", "/%252e%252e%252fx",
		"/a%5cx", "/a%255cx", "/a%00", "/a%0ax", "/a%250dx", "/a%7f", "//evil/x", "/%2fevil", "/%252fevil", "/..;/x", "/..%3bx/y", "/%c0%ae%c0%ae/x", "/a%c2%85",
	} {
		a := b.send(http.MethodGet, "/api/proxy/tracker"+path, "")
		if a.status != 400 || a.problem(t).Kind.Code != "bad_proxy_path" {
			t.Errorf("%s: %d %s; want 400 bad_proxy_path", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/", "/a/...", "/a..b/..c", "/100%25", "/a%2Fb", "/%E2%9C%93", "/a//b", "/.well-known/x", "/a;v=1/b"} {
		if err := checkPath(path); err != nil {
			t.Errorf("%s: %v; want nil", path, err)
		}
	}
}
