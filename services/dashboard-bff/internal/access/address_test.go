package access

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted, err := parseProxies([]string{"10.0.0.0/8", " 192.0.2.7 ", "", "2001:db8::/32", "::ffff:198.51.100.1"})
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{proxies: trusted}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "203.0.113.5:1", nil, "203.0.113.5"},
		{"a stranger's header is not believed", "203.0.113.5:1", []string{"1.2.3.4"}, "203.0.113.5"},
		{"proxy", "10.1.1.1:1", []string{"203.0.113.5"}, "203.0.113.5"},
		{"what the client forged stands left", "10.1.1.1:1", []string{"1.2.3.4, 203.0.113.5"}, "203.0.113.5"},
		{"two proxies", "10.1.1.1:1", []string{"1.2.3.4, 203.0.113.5, 192.0.2.7"}, "203.0.113.5"},
		{"several headers are one list", "10.1.1.1:1", []string{"1.2.3.4", "203.0.113.5", "192.0.2.7"}, "203.0.113.5"},
		{"all are proxies", "10.1.1.1:1", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"no header from the proxy", "10.1.1.1:1", nil, "10.1.1.1"},
		{"nonsense from the proxy", "10.1.1.1:1", []string{"203.0.113.5, unknown"}, "10.1.1.1"},
		{"with a port", "10.1.1.1:1", []string{"203.0.113.5:4711"}, "203.0.113.5"},
		{"IPv6", "[2001:db8::1]:1", []string{"2a00::5"}, "2a00::5"},
		{"IPv6 with brackets and port", "10.1.1.1:1", []string{"[2a00::5]:80"}, "2a00::5"},
		{"IPv4 in IPv6 as peer", "[::ffff:10.1.1.1]:1", []string{"203.0.113.5"}, "203.0.113.5"},
		{"IPv4 in IPv6 as setting", "198.51.100.1:1", []string{"203.0.113.5"}, "203.0.113.5"},
		{"zone", "[fe80::1%eth0]:1", nil, "fe80::1"},
	} {
		q := httptest.NewRequest("GET", "/", nil)
		q.RemoteAddr = c.peer
		for _, v := range c.forwarded {
			q.Header.Add("X-Forwarded-For", v)
		}
		if got := g.Address(q); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

func TestSubscribers(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8:1:2:3::4": "2001:db8:1:2::/64"} {
		if got := subscriberOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("subscriberOf(%s) = %s; want %s", address, got, want)
		}
	}
	if got := subscriberOf(netip.Addr{}); got != "unknown" {
		t.Errorf("subscriberOf(nothing) = %s; want unknown", got)
	}
}

func TestLocalLimitsStayBoundedAndNeverNone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLocalLimits(func() time.Time { return now })
	passed := 0
	for i := range maxLocal + 1000 {
		if l.allow(strings.Repeat("x", i%7)+string(rune(i)), 1, time.Minute).ok {
			passed++
		}
	}
	if len(l.windows) > maxLocal+1 || passed > maxLocal+1 {
		t.Errorf("%d counters, %d passed; want at most %d of each: the rest share one", len(l.windows), passed, maxLocal+1)
	}
	now = now.Add(time.Hour)
	if !l.allow("somebody new", 1, time.Minute).ok {
		t.Error("refused after all windows ended; want their room freed")
	}
}

func TestALocalWindowBeginsWithItsFirstAct(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLocalLimits(func() time.Time { return now })
	for i, want := range []bool{true, true, false} {
		if got := l.allow("k", 2, time.Minute); got.ok != want {
			t.Errorf("act %d: %+v; want ok %v", i, got, want)
		}
	}
	now = now.Add(59 * time.Second)
	if got := l.allow("k", 2, time.Minute); got.ok || got.after != time.Second {
		t.Errorf("at the end: %+v; want a refusal for another second", got)
	}
	now = now.Add(time.Second)
	if !l.allow("k", 2, time.Minute).ok {
		t.Error("refused in a new window; want it to pass")
	}
}

func FuzzAddress(f *testing.F) {
	trusted, err := parseProxies([]string{"10.0.0.0/8"})
	if err != nil {
		f.Fatal(err)
	}
	g := &Guard{proxies: trusted}
	f.Add("1.2.3.4, 10.0.0.1", "10.0.0.2:1")
	f.Add("[::1%25x]:0,", "[::ffff:10.0.0.1]:2")
	f.Fuzz(func(t *testing.T, forwarded, peer string) {
		q := httptest.NewRequest("GET", "/", nil)
		q.RemoteAddr, q.Header["X-Forwarded-For"] = peer, []string{forwarded}
		got := g.Address(q)
		if direct := parseAddress(peer); !trusted.contain(direct) && got != direct {
			t.Errorf("Address of peer %q with %q = %s; want the peer", peer, forwarded, got)
		}
		if subscriberOf(got) == "" {
			t.Errorf("subscriberOf(%s) is empty", got)
		}
	})
}

// FuzzBearer: whatever the header holds, it is one bearer of bounded length, none, or refused.
func FuzzBearer(f *testing.F) {
	f.Add("Bearer a.b.c")
	f.Add("bearer   ")
	f.Add("Basic eDp5")
	f.Fuzz(func(t *testing.T, header string) {
		q := httptest.NewRequest("GET", "/", nil)
		q.Header["Authorization"] = []string{header}
		token, err := bearerOf(q)
		if err == nil && (len(token) > maxBearer || !strings.Contains(header, token)) {
			t.Errorf("bearerOf(%q) = %q; want a part of it", header, token)
		}
		_ = algorithmOf(header)
	})
}
