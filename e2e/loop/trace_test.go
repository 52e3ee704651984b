//go:build e2e

package loop

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/e2e/harness"
)

// span is one span as a collector gets it.
type span struct {
	service string
	*traces.Span
}

// spanCollector takes spans by OTLP over HTTP.
type spanCollector struct {
	url   string
	token string // the authorization that came along

	mu    sync.Mutex
	spans map[string]span // by id; guarded by mu
}

func startCollector(t *testing.T) *spanCollector {
	t.Helper()
	c := &spanCollector{spans: map[string]span{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		raw, err := io.ReadAll(body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v; want spans at /v1/traces", r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.token = r.Header.Get("Authorization")
		for _, resource := range sent.ResourceSpans {
			service := ""
			for _, a := range resource.Resource.GetAttributes() {
				if a.Key == "service.name" {
					service = a.Value.GetStringValue()
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans[string(s.SpanId)] = span{service, s}
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// trace returns the spans of the trace whose root has this name, and its id.
func (c *spanCollector) trace(t *testing.T, root string) (all []span, id string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == root && len(s.ParentSpanId) == 0 {
			id = string(s.TraceId)
		}
	}
	if id == "" {
		t.Fatalf("none of %d spans is a root named %q", len(c.spans), root)
	}
	for _, s := range c.spans {
		if string(s.TraceId) == id {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return all, id
}

// renderTree draws the spans below a parent, without those of the database.
func renderTree(all []span, parent, indent string) string {
	var b strings.Builder
	for _, s := range all {
		if string(s.ParentSpanId) == parent {
			if !isQuery(s) {
				fmt.Fprintf(&b, "%s%s: %s (%s)\n", indent, s.service, s.Name, time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano).Round(100*time.Microsecond))
			}
			b.WriteString(renderTree(all, string(s.SpanId), indent+"  "))
		}
	}
	return b.String()
}

func isQuery(s span) bool {
	return slices.ContainsFunc(s.Attributes, func(a *common.KeyValue) bool { return a.Key == "db.system.name" })
}

// path are the spans from the root to the first span of a service with this name, each as "service: name".
func path(all []span, service, name string) []string {
	byID := map[string]span{}
	for _, s := range all {
		byID[string(s.SpanId)] = s
	}
	for _, s := range all {
		if s.service != service || s.Name != name {
			continue
		}
		way := []string{}
		for at, ok := s, true; ok; at, ok = byID[string(at.ParentSpanId)] {
			way = append(way, at.service+": "+at.Name)
		}
		slices.Reverse(way)
		return way
	}
	return nil
}

// containsInOrder reports whether way has the names in this order, others between them allowed.
func containsInOrder(way []string, names ...string) bool {
	for _, at := range way {
		if len(names) > 0 && at == names[0] {
			names = names[1:]
		}
	}
	return len(names) == 0
}

// One trace runs from the notice to the promoted version at work, through HTTP, the database, the orchestrator's run and
// the broker; nothing in it is secret.
func TestOneTraceFromNoticeToPromotion(t *testing.T) {
	c := startCollector(t)
	p := harness.New(t, "PLATFORM_SEED=false", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20of-the-collector")
	p.Start(t, 4*time.Minute)
	cp, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	harness.Want(t, 200, "POST", cp+"/api/changes", p.Secret(t, "ci_token"), map[string]any{
		"model_ids": []string{"mack"}, "commit_sha": strings.Repeat("ab", 20), "commit_msg": "body-of-the-caller", "changed_files": []string{"models/performance_prediction/MACK/model.yaml"},
	})
	res := harness.Want(t, 200, "POST", cp+"/approve/MACK", operator, map[string]any{}).JSON(t)
	if run := p.WaitRun(t, res["flow_run_id"].(string), 2*time.Minute); run["state_type"] != "COMPLETED" {
		t.Fatalf("run: %v; want COMPLETED", run)
	}
	harness.Eventually(t, time.Minute, func() error {
		a, err := harness.TryCall("GET", p.Env["SERVING_URL"]+"/health", "", nil)
		if err == nil && a.JSON(t)["models_loaded"] != 1.0 {
			err = fmt.Errorf("not served yet: %s", a.Body)
		}
		return err
	})
	p.Stop(t) // sends the last spans

	all, id := c.trace(t, "POST /api/changes")
	t.Logf("trace %s, %d spans:\n%s", hex.EncodeToString([]byte(id)), len(all), renderTree(all, "", ""))
	for _, row := range []struct {
		service, name string
		through       []string
	}{
		{"control-plane", "InsertApproval", []string{"control-plane: POST /api/changes"}},
		{"control-plane", "publish approval.created", []string{"control-plane: POST /api/changes"}},
		{"control-plane", "dispatch approval", []string{"control-plane: POST /api/changes", "control-plane: approve retrain"}},
		{"trainer", "train", []string{"control-plane: POST /api/changes", "control-plane: approve retrain"}},
		{"control-plane", "POST /versions", []string{"control-plane: approve retrain", "trainer: train", "trainer: stage ladder"}},
		{"control-plane", "publish deploy.alias_changed", []string{"trainer: train", "control-plane: POST /versions"}},
		{"inference", "process deploy.alias_changed", []string{"control-plane: POST /api/changes", "trainer: train", "control-plane: publish deploy.alias_changed"}},
		{"control-plane", "publish deploy.promoted", []string{"control-plane: POST /api/changes", "trainer: train", "control-plane: POST /versions"}},
	} {
		if way := path(all, row.service, row.name); !containsInOrder(way, append(row.through, row.service+": "+row.name)...) {
			t.Errorf("%s of %s is reached by %v; want through %v", row.name, row.service, way, row.through)
		}
	}
	linked := false
	for _, s := range all {
		linked = linked || s.Name == "approve retrain" && len(s.Links) == 1
	}
	if !linked {
		t.Error("the approval does not link the request that made it; want one link")
	}
	if want := "Bearer of-the-collector"; c.token != want {
		t.Errorf("the collector was sent the authorization %q, want %q", c.token, want)
	}
	for _, s := range c.spans {
		text := s.String()
		for _, secret := range []string{operator, p.Secret(t, "ci_token"), "body-of-the-caller", "of-the-collector"} {
			if strings.Contains(text, secret) {
				t.Errorf("a span holds %q: %s", secret, text)
			}
		}
	}
}
