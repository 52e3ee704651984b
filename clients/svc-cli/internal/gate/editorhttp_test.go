package gate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

const secret = "0123456789-0123456789-0123456789"

// startEditor serves an editor on a free port until the test ends.
func startEditor(t testing.TB, audit auditor) (*server, string) {
	t.Helper()
	s := &server{token: secret, version: "test", matrix: string(samples.File("gate/panel.json")), audit: audit}
	l, err := loopback.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	h := &httpd.Server{Handler: s.serve(ctx), RequestTimeout: requestTimeout, MaxConns: maxConns, Refused: s.refused}
	go func() { done <- h.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

type answer struct {
	status int
	header http.Header
	body   string
}

// sendRaw sends a request unchanged, with the fields that every good one has.
func sendRaw(t testing.TB, address, method, target, fields, body string) answer {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !strings.Contains(fields, "Host:") {
		fields = "Host: 127.0.0.1\r\n" + fields
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\n%s\r\n%s", method, target, fields, body); err != nil {
		t.Fatal(err)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // a body that ends early
	}
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{r.StatusCode, r.Header, string(got)}
}

const authorized = "X-SVC-UI-Token: " + secret + "\r\n"

func lengthField(n int) string { return fmt.Sprintf("%sContent-Length: %d\r\n", authorized, n) }

func TestAudit(t *testing.T) {
	t.Parallel()
	_, address := startEditor(t, Audit)
	panel := string(samples.File("gate/panel.json"))
	a := sendRaw(t, address, "POST", "/api/audit", lengthField(len(panel)), panel)
	if a.status != 200 || !strings.HasPrefix(a.body, `{"ok":true,"report":{"schema":"gate-audit-report-v0.1","gate_id":"example-five-verifier-gate",`) {
		t.Fatalf("%d %.300s; want a.status == 200 && strings.HasPrefix(a.body, `{\"ok\":true,\"report\":{\"schema\":\"gate-audit-report-v0.1\",\"gate_id\":\"example-five-verifier-gate\",`)", a.status, a.body)
	}
	var doc struct {
		Report struct {
			Panel struct {
				Votes float64 `json:"effective_votes"`
			}
			Provenance struct {
				Digest string `json:"input_digest_sha256"`
			}
		}
	}
	if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Report.Provenance.Digest != "23caa4c4cc57e91c31262bc9e830ccaecdb7884b7bf97d739c37d0615d6b2d8a" || doc.Report.Panel.Votes < 1.694 || doc.Report.Panel.Votes > 1.695 {
		t.Errorf(`digest %s, votes %v; want doc.Report.Provenance.Digest == "23caa4c4cc57e91c31262bc9e830ccaecdb7884b7bf97d739c37d0615d6b2d8a" && doc.Report.Panel.Votes >= 1.694 && doc.Report.Panel.Votes <= 1.695`, doc.Report.Provenance.Digest, doc.Report.Panel.Votes)
	}
	for name, want := range map[string]string{"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": name} {
		if a.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, a.header.Get(name), want)
		}
	}
	if a.header.Get("X-Request-ID") == "" {
		t.Error("no request id")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	_, address := startEditor(t, Audit)
	small := `{"gate_id":"g"}`
	for _, c := range []struct {
		what, method, target, fields, body string
		status                             int
		code, allow                        string
	}{
		{"foreign host", "GET", "/", "Host: evil.example\r\n", "", 403, "invalid_host", ""},
		{"no such host form", "POST", "/api/audit", "Host: [::1]\r\n" + lengthField(2), "{}", 403, "invalid_host", ""},
		{"two hosts", "GET", "/", "Host: localhost\r\nHost: localhost\r\n", "", 403, "invalid_host", ""},
		{"no token", "POST", "/api/audit", "Content-Length: 2\r\n", "{}", 403, "invalid_session_token", ""},
		{"token cut short", "POST", "/api/audit", "X-SVC-UI-Token: " + secret[1:] + "\r\nContent-Length: 2\r\n", "{}", 403, "invalid_session_token", ""},
		{"token twice", "POST", "/api/audit", authorized + lengthField(2), "{}", 403, "invalid_session_token", ""},
		{"unknown route without token", "GET", "/api/nope", "", "", 403, "invalid_session_token", ""},
		{"unknown route", "GET", "/api/nope", authorized, "", 404, "not_found", ""},
		{"unknown path", "GET", "/nope", "", "", 404, "not_found", ""},
		{"path is not cleaned", "GET", "//", "", "", 404, "not_found", ""},
		{"preflight", "OPTIONS", "/api/audit", "", "", 405, "preflight_not_supported", "POST"},
		{"preflight of the page", "OPTIONS", "/", "", "", 405, "preflight_not_supported", "GET, HEAD"},
		{"audit by GET", "GET", "/api/audit", authorized, "", 405, "method_not_allowed", "POST"},
		{"page by POST", "POST", "/", "Content-Length: 0\r\n", "", 405, "method_not_allowed", "GET, HEAD"},
		{"query on audit", "POST", "/api/audit?x=1", lengthField(2), "{}", 400, "unexpected_query_parameters", ""},
		{"query on health", "GET", "/healthz?x=1", "", "", 400, "unexpected_query_parameters", ""},
		{"query on page", "GET", "/?x=1", "", "", 400, "unexpected_query_parameters", ""},
		{"launch twice", "GET", "/?launch=a&launch=b", "", "", 400, "unexpected_query_parameters", ""},
		{"no length", "POST", "/api/audit", authorized, "", 411, "length_required", ""},
		{"chunked", "POST", "/api/audit", authorized + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", 400, "unsupported_transfer_encoding", ""},
		{"signed length", "POST", "/api/audit", authorized + "Content-Length: +2\r\n", "{}", 400, "invalid_content_length", ""},
		{"two lengths", "POST", "/api/audit", lengthField(2) + "Content-Length: 3\r\n", "{}", 400, "invalid_content_length", ""},
		{"over 2 MiB", "POST", "/api/audit", lengthField(2<<20 + 1), "", 413, "payload_too_large", ""},
		{"length beyond numbers", "POST", "/api/audit", authorized + "Content-Length: 99999999999999999999\r\n", "", 413, "payload_too_large", ""},
		{"body cut short", "POST", "/api/audit", lengthField(20), "{}", 400, "incomplete_body", ""},
		{"no JSON", "POST", "/api/audit", lengthField(1), "{", 400, "invalid_json", ""},
		{"no UTF-8", "POST", "/api/audit", lengthField(1), "\xff", 400, "invalid_utf8", ""},
		{"no object", "POST", "/api/audit", lengthField(2), "[]", 400, "invalid_document", ""},
		{"duplicate key", "POST", "/api/audit", lengthField(13), `{"a":1,"a":2}`, 400, "invalid_json", ""},
		{"no matrix", "POST", "/api/audit", lengthField(len(small)), small, 400, "missing_field", ""},
	} {
		a := sendRaw(t, address, c.method, c.target, c.fields, c.body)
		var doc struct {
			OK    *bool `json:"ok"`
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
			t.Errorf("%s: %v in %s", c.what, err, a.body)
			continue
		}
		if a.status != c.status || doc.OK == nil || *doc.OK || doc.Error.Code != c.code || doc.Error.Message == "" || a.header.Get("Allow") != c.allow {
			t.Errorf("%s: %d %s, Allow %q; want %d %s, Allow %q", c.what, a.status, a.body, a.header.Get("Allow"), c.status, c.code, c.allow)
		}
	}
}

// TestLimit: a matrix of exactly 2 MiB is read.
func TestLimit(t *testing.T) {
	t.Parallel()
	_, address := startEditor(t, Audit)
	panel := samples.File("gate/panel.json")
	body := string(panel) + strings.Repeat(" ", canon.MaxFile-len(panel))
	if a := sendRaw(t, address, "POST", "/api/audit", lengthField(len(body)), body); a.status != 200 {
		t.Errorf("%d %.200s; want a.status == 200", a.status, a.body)
	}
}

var nonceOf = regexp.MustCompile(`script-src 'nonce-([^']+)'`)

func TestPage(t *testing.T) {
	t.Parallel()
	s, address := startEditor(t, Audit)
	holds := func(target, method string) (secrets bool) {
		a := sendRaw(t, address, method, target, "", "")
		if a.status != 200 || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf(`%s %s: %d %s; want a.status == 200 && a.header.Get("Content-Type") == "text/html; charset=utf-8"`, method, target, a.status, a.body)
		}
		m := nonceOf.FindStringSubmatch(a.header.Get("Content-Security-Policy"))
		if m == nil {
			t.Fatalf("policy %q names no nonce; want m != nil", a.header.Get("Content-Security-Policy"))
		}
		if method == "GET" && strings.Count(a.body, `nonce="`+m[1]+`"`) != 3 {
			t.Error("the page's elements bear another nonce than its policy")
		}
		return strings.Contains(a.body, secret) || strings.Contains(a.body, "reviewer-a")
	}
	code := s.launches.New()
	if holds("/", "GET") || holds("/index.html", "GET") || holds("/?launch=wrong", "GET") || holds("/?", "GET") {
		t.Error("the bare page holds a secret")
	}
	if holds("/?launch="+code, "HEAD") {
		t.Error("a head holds a page")
	}
	if !holds("/?launch="+code, "GET") {
		t.Error("a fresh code opens nothing; did HEAD spend it?")
	}
	if holds("/?launch="+code, "GET") {
		t.Error("a code opens twice")
	}
	if a := sendRaw(t, address, "GET", "/healthz", "", ""); a.status != 200 || a.body != "ok\n" {
		t.Errorf("health: %d %q; want a.status == 200 && a.body == \"ok\\n\"", a.status, a.body)
	}
}

// TestPanic: a fault of the audit costs one answer and reveals nothing about itself.
func TestPanic(t *testing.T) {
	t.Parallel()
	_, address := startEditor(t, func(context.Context, canon.Value, Options) (*Report, error) { panic("private") })
	for range 2 {
		a := sendRaw(t, address, "POST", "/api/audit", lengthField(2), "{}")
		if a.status != 500 || !strings.Contains(a.body, "internal_error") || strings.Contains(a.body, "private") {
			t.Errorf(`%d %s; want a.status == 500 && strings.Contains(a.body, "internal_error") && !strings.Contains(a.body, "private")`, a.status, a.body)
		}
	}
}

// TestTurns: at most maxAudits run at once, the rest wait and are answered.
func TestTurns(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 8), make(chan struct{})
	_, address := startEditor(t, func(context.Context, canon.Value, Options) (*Report, error) {
		begun <- struct{}{}
		<-end
		return &Report{}, nil
	})
	answers := make(chan int, 4)
	for range 4 {
		go func() { answers <- sendRaw(t, address, "POST", "/api/audit", lengthField(2), "{}").status }()
	}
	for range maxAudits {
		<-begun
	}
	if a := sendRaw(t, address, "GET", "/healthz", "", ""); a.status != 200 {
		t.Errorf("health while audits run: %d; want 200", a.status)
	}
	if n := len(begun); n != 0 {
		t.Errorf("%d audits beyond the bound; want 0", n)
	}
	close(end)
	for range 4 {
		if status := <-answers; status != 200 {
			t.Errorf("an audit that waited got %d; want 200", status)
		}
	}
}

// FuzzRead: every body is a report that can be sent or a fault with a specific code, found without a panic. It bypasses
// the connection, whose goroutines would make the coverage of one body vary.
func FuzzRead(f *testing.F) {
	s := &server{version: "test", audit: Audit}
	f.Add([]byte(`{"gate_id":"g","evidence_class":"observed","quorum":0,"candidates":[{"id":"a","ground_truth":"accept"},{"id":"b","ground_truth":"reject"}],"verifiers":[{"id":"v","verdicts":{"a":"accept","b":"accept"}}]}`))
	f.Add([]byte(`{"quorum":1e400}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		report, err := s.read(t.Context(), body)
		if err != nil {
			if fault := command.FaultOf(err); fault.Code == command.Failed || fault.Message == "" {
				t.Fatalf(`%#v; want fault.Code != command.Failed && fault.Message != ""`, fault)
			}
			return
		}
		v, err := canon.From(report)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := canon.R(v); err != nil {
			t.Fatal(err)
		}
	})
}
