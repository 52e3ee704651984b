package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// names answers lookups from a function, so that a name can change its address.
type names func(host string) []string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, a := range n(host) {
		out = append(out, netip.MustParseAddr(a))
	}
	if len(out) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}

func TestMetadataAddressIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, url := range []string{"http://169.254.169.254", "http://[fe80::1]", "http://100.100.100.200", "http://0.0.0.0:1", "http://[::ffff:169.254.169.254]", "http://[fd00:ec2::254]"} {
		b.settings.set("tracker_url", url)
		a := b.send(http.MethodGet, "/api/proxy/tracker/latest/meta-data/", "")
		if p := a.problem(t); a.status != 502 || p.Kind.Code != "upstream_unavailable" || p.Detail == "" {
			t.Errorf("%s: %d %s; want 502 upstream_unavailable", url, a.status, a.body)
		}
	}
}

// A name that resolves to a good address when it is checked and to loopback a moment later reaches the good one or nothing:
// the connection goes to exactly the address that was checked.
func TestDNSRebindingReachesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var secret atomic.Bool
	inside := b.behind(upstream.Tracker, func(http.ResponseWriter, *http.Request) { secret.Store(true) })
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	b.settings.set("tracker_url", "http://tracker.example:"+port)
	var lookups atomic.Int32
	b.proxy.connect(names(func(string) []string {
		if lookups.Add(1)%2 == 1 {
			return []string{"192.0.2.1"} // a documentation address: nothing answers
		}
		return []string{"127.0.0.1"}
	}))
	for range 4 {
		a := b.send(http.MethodGet, "/api/proxy/tracker/", "")
		if a.status != 502 && a.status != 504 {
			t.Errorf("%d %s; want 502 or 504", a.status, a.body)
		}
	}
	if secret.Load() {
		t.Error("the request reached the loopback service")
	}
	if n := lookups.Load(); n < 2 {
		t.Errorf("%d lookups; want one for each dial", n)
	}
}

func TestConnectsToTheCheckedAddressOfAName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	host := make(chan string, 1)
	inside := b.behind(upstream.Tracker, func(_ http.ResponseWriter, r *http.Request) { host <- r.Host })
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	b.settings.set("tracker_url", "http://tracker.localhost:"+port)
	b.proxy.connect(names(func(string) []string { return []string{"169.254.169.254", "127.0.0.1"} }))
	if a := b.send(http.MethodGet, "/api/proxy/tracker/", ""); a.status != 200 {
		t.Fatalf("%d %s; want 200: the second address is good", a.status, a.body)
	}
	if got, want := <-host, "tracker.localhost:"+port; got != want {
		t.Errorf("Host %q; want %q", got, want)
	}
}

func TestUnknownHostAndUnconfiguredServiceSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 503, "service_not_configured")
	b.settings.set("tracker_url", "ftp://x")
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 503, "service_not_configured")
	b.settings.set("tracker_url", "http://user:pw@x")
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 503, "service_not_configured")
	b.settings.set("tracker_url", "http://no.such.host.example")
	b.proxy.connect(names(func(string) []string { return nil }))
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/tracker/", ""), 502, "upstream_unavailable")
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/nonsense/", ""), 404, "unknown_service")
	wantProblem(t, b.send(http.MethodGet, "/api/proxy/bus/", ""), 404, "unknown_service")
}
