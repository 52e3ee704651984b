package evidenceapi_test

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

const inspect = "/api/v1/run-evidence/inspect"

func fixtureReport(t testing.TB) []byte {
	t.Helper()
	text, err := canon.C1(fixture.Report())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// postBody sends a body under these fields alone.
func postBody(tw *evidenceapitest.Tower, body []byte, fields ...string) *evidenceapitest.Response {
	return tw.Do(evidenceapitest.Request{Method: "POST", Target: inspect, Fields: fields, Body: body})
}

const asJSON = "Content-Type: application/json"

func TestRow19InspectTheFixtureReport(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	report := fixtureReport(t)
	pretty, err := canon.RPretty(fixture.Report()) // keys in another order, with white space
	if err != nil {
		t.Fatal(err)
	}
	first := tw.Inspect(report).Want(200, "")
	for _, body := range [][]byte{report, append([]byte("\ufeff"), report...), pretty} {
		if r := tw.Inspect(body).Want(200, ""); !bytes.Equal(r.Body, first.Body) {
			t.Errorf("another answer: %s; want bytes.Equal(r.Body, first.Body)", r.Body)
		}
	}
	if got := first.At("snapshot", "source", "evidence_report_digest"); got != `"sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec"` {
		t.Error(got, "want `\"sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec\"`")
	}
	var codes []string
	for i := 0; first.At("snapshot", "attention", i) != ""; i++ {
		codes = append(codes, strings.Trim(first.At("snapshot", "attention", i, "code"), `"`))
	}
	if got := strings.Join(codes, " "); got != "verification_disagreement rejected_attempts human_decision_pending" {
		t.Error(got, `want "verification_disagreement rejected_attempts human_decision_pending"`)
	}
	snapshot, _ := first.JSON().Get("snapshot")
	if got := first.At("snapshot_digest"); got != `"`+canon.Digest(snapshot)+`"` {
		t.Error("snapshot digest", got, "want got == `\"` + canon.Digest(snapshot) + `\"`")
	}
}

func TestRow20Chunked(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	chunked := []byte("2\r\n{}\r\n0\r\n\r\n")
	postBody(tw, chunked, asJSON, "Transfer-Encoding: chunked").Want(400, "unsupported_transfer_encoding")
	postBody(tw, nil, asJSON, "Transfer-Encoding: identity", "Content-Length: 0").Want(400, "unsupported_transfer_encoding")
	postBody(tw, chunked, "Transfer-Encoding: chunked").Want(400, "unsupported_transfer_encoding")
}

func TestRow21MediaTypes(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	report := fixtureReport(t)
	length := "Content-Length: " + strconv.Itoa(len(report))
	for _, fields := range [][]string{{"Content-Type: text/plain", length}, {length}, {"Content-Type: ", length}, {asJSON, asJSON, length}, {"Content-Type: text/plain"}} {
		r := postBody(tw, report, fields...).Want(415, "unsupported_media_type")
		if got := r.At("error", "details", "supported"); got != `["application/json","application/vnd.svc.control-tower.v1+json"]` {
			t.Error(got, "want `[\"application/json\",\"application/vnd.svc.control-tower.v1+json\"]`")
		}
	}
	postBody(tw, report, "Content-Type: Application/JSON; x=y", length).Want(200, "")
	postBody(tw, report, "Content-Type: application/vnd.svc.control-tower.v1+json", length).Want(200, "")
	postBody(tw, report, asJSON, "Content-Encoding: identity", length).Want(200, "")
	for _, codings := range [][]string{{"gzip"}, {"identity", "br"}} {
		fields := []string{asJSON, length}
		for _, c := range codings {
			fields = append(fields, "Content-Encoding: "+c)
		}
		postBody(tw, report, fields...).Want(415, "unsupported_media_type")
	}
}

func TestRow22Lengths(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	report := fixtureReport(t)
	n := strconv.Itoa(len(report))
	postBody(tw, nil, asJSON).Want(411, "length_required")
	for _, bad := range []string{"+2", "-0", "2.0", "1 1", "", "0x2", "٢", "2,2"} {
		postBody(tw, []byte("{}"), asJSON, "Content-Length: "+bad).Want(400, "invalid_content_length")
	}
	postBody(tw, report, asJSON, "Content-Length: "+n, "Content-Length: 1").Want(400, "invalid_content_length")
	for _, good := range []string{"0" + n, " \t" + n + " ", strings.Repeat("0", 40) + n} {
		postBody(tw, report, asJSON, "Content-Length: "+good).Want(200, "")
	}
	postBody(tw, report, asJSON, "Content-Length: "+n, "Content-Length: 0"+n).Want(200, "")
	postBody(tw, nil, asJSON, "Content-Length: 0").Want(400, "invalid_run_evidence")
}

func TestRow23LargestBody(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore, func(c *evidenceapi.Config) { c.RequestTimeout = time.Minute }) // far beyond the bound below
	for _, length := range []string{"2097153", strings.Repeat("9", 30), "99999999999999999999"} {
		began := time.Now()
		r := postBody(tw, nil, asJSON, "Content-Length: "+length).Want(413, "payload_too_large")
		if r.At("error", "details") != `{"max_request_body_bytes":2097152}` || time.Since(began) > 15*time.Second {
			t.Errorf("%s after %v; want r.At(\"error\", \"details\") == `{\"max_request_body_bytes\":2097152}` && time.Since(began) <= 15 * time.Second", r.Body, time.Since(began))
		}
	}
	report := fixtureReport(t)
	padded := append(bytes.Repeat([]byte(" "), 2097152-len(report)), report...)
	tw.Inspect(padded).Want(200, "")
	tw.Inspect(append(padded, ' ')).Want(413, "payload_too_large")
}

func TestRow24ShortBody(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore, func(c *evidenceapi.Config) { c.RequestTimeout = 500 * time.Millisecond })
	began := time.Now()
	c := tw.Send(evidenceapitest.Request{Method: "POST", Target: inspect, Fields: []string{asJSON, "Content-Length: 100"}, Body: []byte("{")})
	defer c.Close()
	r := c.Answer().Want(408, "request_timeout")
	if took := time.Since(began); took < 400*time.Millisecond || took > 15*time.Second {
		t.Errorf("after %v; want took >= 400 * time.Millisecond && took <= 5 * time.Second", took)
	}
	if got := r.At("error", "details"); got != `{"request_timeout_seconds":0.5}` {
		t.Error(got, "want `{\"request_timeout_seconds\":0.5}`")
	}
	// A body that ends early is not waited for.
	slow := evidenceapitest.Start(t, evidenceapitest.NoStore, func(c *evidenceapi.Config) { c.RequestTimeout = 300 * time.Second })
	c = slow.Send(evidenceapitest.Request{Method: "POST", Target: inspect, Fields: []string{asJSON, "Content-Length: 100"}, Body: []byte("{")})
	defer c.Close()
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.Answer().Want(408, "request_timeout")
}

func TestRow25InvalidUTF8(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	tw.Inspect([]byte{0xff}).Want(400, "invalid_utf8")
	tw.Inspect(append(fixtureReport(t), 0xc3)).Want(400, "invalid_utf8")
}

func TestRow26InvalidReports(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	report := string(fixtureReport(t))
	swap := func(old, new string) string {
		out := strings.Replace(report, old, new, 1)
		if out == report {
			t.Fatalf("the report has no %s; want out != report", old)
		}
		return out
	}
	for _, c := range []struct{ body, reason, path string }{
		{`{"a":1,"a":1}`, "duplicate_key", "/a"},
		{`NaN`, "invalid_json", ""},
		{`{"a":NaN}`, "invalid_json", "/a"},
		{`"\ud800"`, "invalid_json", ""},
		{`{} x`, "invalid_json", ""},
		{`[]`, "not_an_object", ""},
		{strings.Repeat("[", 512) + strings.Repeat("]", 512), "not_an_object", ""}, // the deepest that is read
		{strings.Repeat("[", 513) + strings.Repeat("]", 513), "too_deep", strings.Repeat("/0", 512)[:256-1] + "…"},
		{strings.Repeat("[", 20000), "too_deep", strings.Repeat("/0", 512)[:256-1] + "…"},
		{`{}`, "missing_field", "/schema_version"},
		{strings.Replace(report, "{", `{"extra":1,`, 1), "unknown_field", "/extra"},
		{swap(`"supported":1`, `"supported":2`), "summary_mismatch", "/summary/supported"},
		{swap(`"merge":false`, `"merge":true`), "invalid_value", "/authority/merge"},
		{swap(`"run_id":"run/demo:0002"`, `"run_id":1`), "invalid_type", "/run_id"},
		{swap(`"attempt_id":"attempt-2"`, `"attempt_id":"attempt-1"`), "duplicate_attempt", ""},
		{swap(`"evidence_state":"supported"`, `"evidence_state":"rejected"`), "state_mismatch", ""},
	} {
		r := tw.Inspect([]byte(c.body)).Want(400, "invalid_run_evidence")
		if got := r.At("error", "details", "reason"); got != `"`+c.reason+`"` {
			t.Errorf("%.40s: %s, want %s", c.body, got, c.reason)
		}
		if got := r.At("error", "details", "path"); c.path != "" && got != `"`+c.path+`"` {
			t.Errorf("%.40s: at %s, want %s", c.body, got, c.path)
		}
	}
	for count, want := range map[string]string{"run_evidence_inspections_total": "16"} {
		if got := tw.Get("/api/v1/metrics").At("operations", count); got != want {
			t.Errorf("%s = %s, want %s", count, got, want)
		}
	}
	tw.Inspect([]byte{0xff})
	if got := tw.Get("/api/v1/metrics").At("operations", "run_evidence_inspections_total"); got != "16" {
		t.Error("bytes that are no text count:", got, `want "16"`)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	report := fixtureReport(t)
	fields := []string{asJSON, fmt.Sprintf("Content-Length: %d", len(report)), "Expect: 100-continue"}
	c := tw.Send(evidenceapitest.Request{Method: "POST", Target: inspect, Fields: fields})
	defer c.Close()
	if head := c.Head(); head.StatusLine != "HTTP/1.1 100 Continue" {
		t.Fatal(head.StatusLine, `want "HTTP/1.1 100 Continue"`)
	}
	if _, err := c.Write(report); err != nil {
		t.Fatal(err)
	}
	c.Answer().Want(200, "")
	// The framing is checked before the client is asked.
	postBody(tw, nil, "Content-Type: text/plain", "Content-Length: 5", "Expect: 100-continue").Want(415, "unsupported_media_type")
}
