package loopback_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/loopback"
)

// FuzzFields checks the checks of fields against the contract's expressions,
// which are slower and equivalent.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{"localhost:8770", "127.0.0.1", "localhost:65536", "a:b.c", "req_1",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", strings.Repeat("a", 32), "localho\u017ft"} {
		f.Add(seed)
	}
	host := regexp.MustCompile(`\A(?:127\.0\.0\.1|[lL][oO][cC][aA][lL][hH][oO][sS][tT])(?::([1-9][0-9]{0,4}))?\z`)
	id := regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\z`)
	trace := regexp.MustCompile(`\A00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\z`)
	token := regexp.MustCompile(`\A[-A-Za-z0-9._~]*\z`)
	f.Fuzz(func(t *testing.T, s string) {
		m := host.FindStringSubmatch(s)
		good := m != nil
		if good && m[1] != "" {
			port, err := strconv.Atoi(m[1])
			good = err == nil && port <= 65535
		}
		if got := loopback.GoodHost(requestWith("Host", s)); got != good {
			t.Errorf("host %q: %v; want got == %v", s, got, good)
		}
		if got := loopback.RequestID(requestWith("X-Request-ID", s)); got == s != id.MatchString(s) || !id.MatchString(got) {
			t.Errorf("id %q: %q; want got == s == id.MatchString(s) && id.MatchString(got)", s, got)
		}
		good = trace.MatchString(s) && s[3:35] != strings.Repeat("0", 32) && s[36:52] != strings.Repeat("0", 16)
		if got, ok := loopback.Traceparent(requestWith("traceparent", s)); ok != good || ok && got != s {
			t.Errorf("traceparent %q: %v; want ok == good && (!ok || got == s)", s, ok)
		}
		if got := loopback.ValidToken(s); got != (token.MatchString(s) && 32 <= len(s) && len(s) <= 4096) {
			t.Errorf("token %q: %v; want got == (token.MatchString(s) && 32 <= len(s) && len(s) <= 4096)", s, got)
		}
		if got := loopback.TokenMatches(requestWith(loopback.TokenHeader, s), "0123456789"); got != (s == "0123456789") {
			t.Errorf(`token %q matches another: %v; want got == (s == "0123456789")`, s, got)
		}
	})
}
