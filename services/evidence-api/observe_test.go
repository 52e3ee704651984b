package evidenceapi_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/tree"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

// lines collects the log.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	out := &lines{}
	tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.AccessLog = out })
	tw.Get("/api/v1/runs?limit=1&cursor=secret-cursor", "X-Request-ID: first").Want(400, "invalid_cursor")
	tw.Do(evidenceapitest.Request{Method: "HEAD", Target: "/healthz", Fields: []string{"X-Request-ID: second"}})
	body := fixtureReport(t)
	tw.Inspect(body, "X-Request-ID: third").Want(200, "")
	stopped := openStream(t, tw, stream, "X-Request-ID: fourth")
	stopped.Close()
	pollUntil(t, func() bool { return len(out.all()) == 4 })
	byID := map[string]*canon.Object{}
	for _, line := range out.all() {
		v, err := canon.Parse([]byte(line), canon.ObjectRoot())
		if err != nil {
			t.Fatal(err)
		}
		o := v.(*canon.Object)
		id, _ := o.Get("request_id")
		byID[id.(string)] = o
		for _, secret := range []string{"secret-cursor", evidenceapitest.Token, "demo:0002"} {
			if strings.Contains(line, secret) {
				t.Errorf("%s in %s; want !strings.Contains(line, secret)", secret, line)
			}
		}
	}
	for id, want := range map[string]string{"first": "GET /api/v1/runs 400", "second": "HEAD /healthz 200", "third": "POST " + inspect + " 200", "fourth": "GET " + stream + " 200"} {
		o := byID[id]
		get := func(key string) canon.Value { v, _ := o.Get(key); return v }
		if got := fmt.Sprint(get("method"), " ", get("path"), " ", get("status")); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
		if o.Len() != 9 || get("event") != "http_request" || get("service") != "svc-control-tower" {
			t.Errorf(`%s: %v; want o.Len() == 9 && get("event") == "http_request" && get("service") == "svc-control-tower"`, id, o.Keys())
		}
	}
	if n, _ := byID["second"].Get("response_bytes"); n != canon.NewInt(0) {
		t.Errorf("HEAD sent %v bytes; want n == canon.NewInt(0)", n)
	}
	if n, _ := byID["fourth"].Get("response_bytes"); n != canon.NewInt(int64(len("retry: 3000\n\n"))) {
		t.Errorf("the stream sent %v bytes; want n == canon.NewInt(int64(len(\"retry: 3000\\n\\n\")))", n)
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	tw.Get("/api/v1/status").Want(200, "")
	tw.Get("/nope").Want(404, "not_found")
	editStore(t, tw.Store, "PRAGMA user_version = 9")
	tw.Get("/api/v1/runs").Want(500, "store_error")
	r := tw.Get("/api/v1/metrics").Want(200, "")
	if got := r.At("requests"); got != `{"by_status_class":{"1xx":0,"2xx":1,"3xx":0,"4xx":1,"5xx":1},"client_errors_total":1,"server_errors_total":1,"total":3}` {
		t.Error(got, "want `{\"by_status_class\":{\"1xx\":0,\"2xx\":1,\"3xx\":0,\"4xx\":1,\"5xx\":1},\"client_errors_total\":1,\"server_errors_total\":1,\"total\":3}`")
	}
	if r.At("latency_ms", "count") != "3" || r.At("latency_ms", "buckets", 10, "count") != "3" || r.At("dependencies", "product_spine_store", "state") != `"configured_unprobed"` {
		t.Errorf("%s; want r.At(\"latency_ms\", \"count\") == \"3\" && r.At(\"latency_ms\", \"buckets\", 10, \"count\") == \"3\" && r.At(\"dependencies\", \"product_spine_store\", \"state\") == `\"configured_unprobed\"`", r.Body)
	}
	text := string(tw.Get("/metrics").Want(200, "").Body)
	for _, line := range []string{
		`svc_control_tower_build_info{version="1.2.3-test"} 1`,
		`svc_control_tower_requests_total{class="2xx"} 2`,
		`svc_control_tower_requests_total{class="5xx"} 1`,
		`svc_control_tower_request_duration_seconds_bucket{le="+Inf"} 4`,
		`svc_control_tower_request_duration_seconds_count 4`,
		`svc_control_tower_requests_in_flight 1`,
		`svc_control_tower_rejections_total{reason="overload"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s; want strings.Contains(text, line+\"\\n\")", line, text)
		}
	}
	none := evidenceapitest.Start(t, evidenceapitest.NoStore)
	if got := none.Get("/api/v1/metrics").At("dependencies", "product_spine_store", "state"); got != `"not_configured"` {
		t.Error(got, "want `\"not_configured\"`")
	}
}

// TestProofs checks the server's proofs of its log, as a client would.
func TestProofs(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	text := func(r *evidenceapitest.Response, path ...any) string { return strings.Trim(r.At(path...), `"`) }
	c := tw.Get("/api/v1/events/checkpoint?since=2").Want(200, "")
	if c.At("checkpoint", "tree_size") != "4" || c.At("consistency", "from_size") != "2" || !strings.HasPrefix(text(c, "checkpoint", "origin"), "svc/") {
		t.Errorf(`%s; want c.At("checkpoint", "tree_size") == "4" && c.At("consistency", "from_size") == "2" && strings.HasPrefix(text(c, "checkpoint", "origin"), "svc/")`, c.Body)
	}
	if got := tw.Get("/api/v1/events/checkpoint").Want(200, "").At("consistency"); got != "null" {
		t.Error(got, `want "null"`)
	}
	for _, since := range []string{"1", "4", "004"} {
		tw.Get("/api/v1/events/checkpoint?since="+since).Want(200, "")
	}
	for _, since := range []string{"0", "5", "x", "", "-1", "+1", strings.Repeat("9", 19)} {
		tw.Get("/api/v1/events/checkpoint?since="+since).Want(400, "invalid_tree_size")
	}
	list := tw.Get("/api/v1/events").Want(200, "")
	for i := range 4 {
		id := text(list, "items", i, "event_id")
		p := tw.Get("/api/v1/events/"+id+"/proof").Want(200, "")
		if leaf := tree.Hex(tree.Leaf([]byte(list.At("items", i)))); leaf != text(p, "leaf_hash") {
			t.Errorf(`%s: the leaf is not the hash of the envelope; want leaf == text(p, "leaf_hash")`, id)
		}
		if text(p, "root_hash") != text(c, "checkpoint", "root_hash") || p.At("inclusion_path", 1) == "" {
			t.Errorf(`%s; want text(p, "root_hash") == text(c, "checkpoint", "root_hash") && p.At("inclusion_path", 1) != ""`, p.Body)
		}
	}
	for _, id := range []string{"evt-000000000005", "evt-1", "x", "evt-000000000000"} {
		tw.Get("/api/v1/events/"+id+"/proof").Want(404, "event_not_found")
	}
}

// TestOpenAPIAnswer: the document that is served names its own build.
func TestOpenAPIAnswer(t *testing.T) {
	t.Parallel()
	r := evidenceapitest.Start(t).Get("/api/v1/openapi.json").Want(200, "")
	if r.At("openapi") != `"3.1.0"` || r.At("info", "version") != `"1.2.3-test"` || r.At("x-svc-kind") != `"svc-openapi"` || r.At("kind") != "" {
		t.Errorf("%.300s; want r.At(\"openapi\") == `\"3.1.0\"` && r.At(\"info\", \"version\") == `\"1.2.3-test\"` && r.At(\"x-svc-kind\") == `\"svc-openapi\"` && r.At(\"kind\") == \"\"", r.Body)
	}
}
