package loopback_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// requestWith has one field of that name for each value.
func requestWith(name string, values ...string) *httpd.Request {
	r := &httpd.Request{Path: "/"}
	for _, v := range values {
		r.Header = append(r.Header, httpd.Field{Name: name, Value: v})
	}
	return r
}

func TestGoodHost(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"127.0.0.1", "localhost", "LOCALHOST", "LocalHost:8770", "127.0.0.1:1", "127.0.0.1:65535", "localhost:80"} {
		if !loopback.GoodHost(requestWith("hOsT", good)) {
			t.Errorf(`%q is refused; want loopback.GoodHost(requestWith("hOsT", good))`, good)
		}
	}
	bad := []string{"", " ", "evil.example", "[::1]", "[::1]:80", "::1", "0.0.0.0", "127.0.0.2", "127.1", "2130706433", "0x7f.0.0.1", "localhost.", "localhost.:80",
		"a.localhost", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:", "localhost:0", "localhost:00080", "localhost:080", "localhost:65536", "localhost:99999999999999999999",
		"localhost:-1", "localhost:+1", "localhost:8o", "localhost:80:80", "localhost: 80", "localhost:80 ", " localhost", "localhost ", "localhost\t",
		"user@localhost", "user:pw@127.0.0.1:80", "localhost:80@evil.example", "localhost,evil.example", "127.0.0.1, 127.0.0.1", "localhost/", "http://localhost", "localhost#", "localhost?",
		"l\u014dcalhost", "localho\u017ft", "\uff4cocalhost", "localhost\x00", "127.0.0.1%00", "%6cocalhost", "127.0.0.1:\u0661"}
	for _, host := range bad {
		if loopback.GoodHost(requestWith("Host", host)) {
			t.Errorf(`%q passes; want !loopback.GoodHost(requestWith("Host", host))`, host)
		}
		r := requestWith("Host", "localhost")
		r.Absolute, r.Authority = true, host
		if loopback.GoodHost(r) {
			t.Errorf("authority %q passes; want !loopback.GoodHost(r)", host)
		}
	}
	if loopback.GoodHost(requestWith("Host")) || loopback.GoodHost(requestWith("Host", "localhost", "localhost")) || loopback.GoodHost(requestWith("X-Forwarded-Host", "localhost")) {
		t.Error("none, two or another field passes")
	}
	r := requestWith("Host", "localhost")
	r.Absolute, r.Authority = true, "127.0.0.1:8770"
	if !loopback.GoodHost(r) {
		t.Error("a good absolute form is refused")
	}
	r.Header[0].Value = "evil.example"
	if loopback.GoodHost(r) {
		t.Error("a good authority covers a bad Host")
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	ok := strings.Repeat("aZ0-._~9", 4)
	for token, want := range map[string]bool{
		ok: true, ok[1:]: false, ok + "x": true, strings.Repeat("a", 4096): true, strings.Repeat("a", 4097): false, "": false,
		ok + " ": false, ok + "+": false, ok + "/": false, ok + "=": false, ok + "é": false, ok + "\x00": false, ok + "\n": false,
	} {
		if loopback.ValidToken(token) != want {
			t.Errorf("%.40q (%d): %v", token, len(token), !want)
		}
	}
	a, b := loopback.NewToken(), loopback.NewToken()
	raw, err := base64.RawURLEncoding.DecodeString(a)
	if a == b || err != nil || len(raw) != 24 || !loopback.ValidToken(a) {
		t.Errorf("%q, %q, %v; want a != b && len(raw) == 24 && loopback.ValidToken(a)", a, b, err)
	}
}

func TestTokenMatches(t *testing.T) {
	t.Parallel()
	token := strings.Repeat("Ab1~", 8)
	if !loopback.TokenMatches(requestWith("x-svc-ui-TOKEN", token), token) {
		t.Error("the token is refused")
	}
	for _, values := range [][]string{nil, {""}, {token, token}, {token, ""}, {" " + token}, {token + " "}, {token[1:]}, {token[:31]}, {token + "x"},
		{strings.ToLower(token)}, {strings.ToUpper(token)}, {token[:30] + "é"}, {"Bearer " + token}, {`"` + token + `"`}} {
		if loopback.TokenMatches(requestWith(loopback.TokenHeader, values...), token) {
			t.Errorf("%q passes; want !loopback.TokenMatches(requestWith(loopback.TokenHeader, values...), token)", values)
		}
	}
	for _, name := range []string{"Authorization", "Cookie", "X-SVC-Token", "X_SVC_UI_Token"} {
		if loopback.TokenMatches(requestWith(name, token), token) {
			t.Errorf("%s passes; want !loopback.TokenMatches(requestWith(name, token), token)", name)
		}
	}
	if loopback.TokenMatches(requestWith(loopback.TokenHeader, ""), "") {
		t.Error("no token passes where none is set")
	}
}

func TestLaunches(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := loopback.Launches{Now: func() time.Time { return now }}
	a, b := l.New(), l.New()
	if a == b || !regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`).MatchString(a) {
		t.Errorf("%q %q; want a != b && regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`).MatchString(a)", a, b)
	}
	for _, wrong := range []string{"", a[1:], a + "x", strings.ToUpper(a) + "-"} {
		if l.Redeem(wrong) {
			t.Errorf("%q opens; want !l.Redeem(wrong)", wrong)
		}
	}
	if !l.Redeem(a) || l.Redeem(a) {
		t.Error("not once")
	}
	now = now.Add(10*time.Minute - 1)
	if !l.Redeem(b) {
		t.Error("spent too early")
	}
	c := l.New()
	now = now.Add(10 * time.Minute)
	if l.Redeem(c) {
		t.Error("good after its time")
	}
	first := l.New()
	for range 63 {
		l.New()
	}
	last := l.New()
	if l.Redeem(first) || !l.Redeem(last) {
		t.Error("the oldest of too many has to go")
	}
	var zero loopback.Launches
	if !zero.Redeem(zero.New()) {
		t.Error("the zero value is not ready")
	}
}

func headerText(h httpd.Header) string {
	var b strings.Builder
	for _, f := range h {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	const confine = `Cache-Control: no-store
X-Content-Type-Options: nosniff
X-Frame-Options: DENY
Referrer-Policy: no-referrer
Cross-Origin-Resource-Policy: same-origin
Cross-Origin-Opener-Policy: same-origin
Permissions-Policy: camera=(), microphone=(), geolocation=(), payment=()
Content-Security-Policy: default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
	if got, want := headerText(loopback.BaseHeaders("svc-control-tower/0.1", "1.2")), confine+"\nServer: svc-control-tower/0.1\nX-SVC-Service: svc-control-tower\nX-SVC-Service-Version: 1.2\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := headerText(loopback.PageHeaders("N")), confine+"; style-src 'nonce-N'; script-src 'nonce-N'; connect-src 'self'; img-src 'self' data: blob:\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if a := loopback.NewNonce(); a == loopback.NewNonce() || len(a) != 32 {
		t.Errorf("%q; want a != loopback.NewNonce() && len(a) == 32", a)
	}
	for name, want := range map[string]bool{"!~": true, "": false, "a b": false, "é": false, strings.Repeat("v", 128): true, strings.Repeat("v", 129): false} {
		if loopback.ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	minted := regexp.MustCompile(`^req_[0-9a-f]{32}$`)
	for _, id := range []string{"a", "a:b.c", "0_-", strings.Repeat("x", 128)} {
		if got := loopback.RequestID(requestWith("x-request-id", id)); got != id {
			t.Errorf("%q became %q; want got == %v", id, got, id)
		}
	}
	for _, ids := range [][]string{nil, {""}, {"bad id"}, {".a"}, {"a\n"}, {" a"}, {"é"}, {"a", "a"}, {strings.Repeat("x", 129)}} {
		if got := loopback.RequestID(requestWith("X-Request-ID", ids...)); !minted.MatchString(got) {
			t.Errorf("%q became %q; want minted.MatchString(got)", ids, got)
		}
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if got, ok := loopback.Traceparent(requestWith("TraceParent", good)); !ok || got != good {
		t.Errorf("%q %v; want ok && got == good", got, ok)
	}
	for _, values := range [][]string{nil, {""}, {good, good}, {" " + good}, {good + " "}, {strings.ToUpper(good)}, {"01" + good[2:]}, {"ff" + good[2:]}, {good + "-x"}, {good[1:]},
		{"00-" + strings.Repeat("0", 32) + good[35:]}, {good[:36] + strings.Repeat("0", 16) + "-01"}, {good[:53] + "0g"}, {strings.Replace(good, "-", "_", 1)}, {strings.ReplaceAll(good, "-", "0")}} {
		if got, ok := loopback.Traceparent(requestWith("traceparent", values...)); ok {
			t.Errorf("%q gave %q; want !ok", values, got)
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	l, err := loopback.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.String() != "127.0.0.1" {
		t.Errorf(`listens on %v; want addr.IP.String() == "127.0.0.1"`, addr)
	}
	if _, err := loopback.Listen(addr.Port); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d on 127.0.0.1 is taken", addr.Port)) {
		t.Errorf(`%v; want an error && strings.Contains(err.Error(), fmt.Sprintf("port %%d on 127.0.0.1 is taken", addr.Port))`, err)
	}
	for _, port := range []int{-1, 65536} {
		if _, err := loopback.Listen(port); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf(`%v; want an error && strings.Contains(err.Error(), "out of range")`, err)
		}
	}
}
