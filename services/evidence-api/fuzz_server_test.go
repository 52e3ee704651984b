package evidenceapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

// FuzzServer: whatever is sent, there is at most one answer, of 2xx or 4xx (505 for another HTTP version), and a
// document is canonical and has the digest that its header states.
func FuzzServer(f *testing.F) {
	tw := evidenceapitest.Start(f, func(c *evidenceapi.Config) { c.MaxStream = 10 * time.Millisecond })
	report := fixtureReport(f)
	length := fmt.Sprintf("Content-Length: %d", len(report))
	for _, r := range []evidenceapitest.Request{
		{Target: "/"}, {Target: "/api/v1/status", Fields: []string{"Accept: */*;q=0"}}, {Target: "/metrics"}, {Target: "*", Method: "OPTIONS"},
		{Target: "/api/v1/runs?limit=1&state=proposed&project_id=%20"}, {Target: "/api/v1/runs/run%2Fdemo:0002/evidence"},
		{Target: "/api/v1/runs?cursor=eyJhZnRlciI6InJ1bi9kZW1vOjAwMDEiLCJraW5kIjoicHJvZHVjdC1zcGluZS1ydW4tbGlzdC1jdXJzb3ItdjEiLCJtYWMiOiJmMmUzMTJhYzRjNjI2MmU0YWUxNDJkNjE5OTMyYTRkOSJ9"},
		{Target: "/api/v1/connections/demo-scm"}, {Target: "/api/v1/work-units/work/demo-0001"}, {Target: "/api/v1/projects/project/demo"},
		{Target: "/api/v1/events?event_type=run.created"}, {Target: "/api/v1/events/checkpoint?since=2"}, {Target: "/api/v1/events/evt-000000000001/proof"},
		{Target: stream, Fields: []string{"Last-Event-ID: 1"}}, {Target: "http://localhost/readyz", Method: "HEAD"},
		{Target: inspect, Method: "POST", Fields: []string{asJSON, length}, Body: report},
		{Target: inspect, Method: "POST", Fields: []string{asJSON, "Content-Length: 1", "Expect: 100-continue"}, Body: []byte("[")},
	} {
		f.Add(r.Text("127.0.0.1"))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		answer := exchangeBytes(t, tw.Addr, request)
		if len(answer) == 0 {
			return // a head that never ended
		}
		head, body, whole := bytes.Cut(answer, []byte("\r\n\r\n"))
		if string(head) == "HTTP/1.1 100 Continue" {
			head, body, whole = bytes.Cut(body, []byte("\r\n\r\n"))
		}
		version, rest, _ := strings.Cut(string(head), " ")
		status, err := strconv.Atoi(rest[:min(3, len(rest))])
		if !whole || version != "HTTP/1.1" || err != nil || status/100 != 2 && status/100 != 4 && status != 505 {
			t.Fatalf(`%.300q; want whole && version == "HTTP/1.1" && ((status / 100 == 2 || status / 100 == 4) || status == 505)`, answer)
		}
		if !bytes.Contains(head, []byte("json; charset=utf-8\r\n")) || len(body) == 0 {
			return
		}
		doc, err := canon.Parse(body, canon.ObjectRoot())
		if err != nil {
			t.Fatalf("%v: %.300q", err, body)
		}
		if c1, err := canon.C1(doc); err != nil || !bytes.Equal(c1, body) || !bytes.Contains(head, []byte("\r\nX-SVC-Content-Digest: "+canon.DigestBytes(body)+"\r\n")) {
			t.Fatalf("not canonical, or of another digest: %v: %.300q; want bytes.Equal(c1, body) && bytes.Contains(head, []byte(\"\\r\\nX-SVC-Content-Digest: \"+canon.DigestBytes(body)+\"\\r\\n\"))", err, answer)
		}
	})
}

// exchangeBytes sends bytes, closes the write side, and reads the response.
func exchangeBytes(t *testing.T, addr string, request []byte) []byte {
	t.Helper()
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(evidenceapitest.Patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(request) // an early answer may cut it
	_ = c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if err != nil && len(answer) == 0 {
		return nil // a connection that was reset: the server had no more to say
	}
	return answer
}
