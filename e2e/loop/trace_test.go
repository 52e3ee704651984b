//go:build e2e

package loop

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/service/otlp/otlptest"
)

// traceOf returns the spans of the trace whose root has this name, and its id.
func traceOf(t *testing.T, c *otlptest.Collector, root string) (all []otlptest.Span, id string) {
	t.Helper()
	spans := c.Spans()
	for _, s := range spans {
		if s.Name == root && len(s.ParentSpanId) == 0 {
			id = string(s.TraceId)
		}
	}
	if id == "" {
		t.Fatalf("none of %d spans is a root named %q", len(spans), root)
	}
	for _, s := range spans {
		if string(s.TraceId) == id {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b otlptest.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return all, id
}

// renderTree draws the spans below a parent, without those of the database.
func renderTree(all []otlptest.Span, parent, indent string) string {
	var b strings.Builder
	for _, s := range all {
		if string(s.ParentSpanId) == parent {
			if !isQuery(s) {
				fmt.Fprintf(&b, "%s%s: %s (%s)\n", indent, s.Service, s.Name, time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano).Round(100*time.Microsecond))
			}
			b.WriteString(renderTree(all, string(s.SpanId), indent+"  "))
		}
	}
	return b.String()
}

func isQuery(s otlptest.Span) bool {
	return slices.ContainsFunc(s.Attributes, func(a *common.KeyValue) bool { return a.Key == "db.system.name" })
}

// path are the spans from the root to the first span of a service with this name, each as "service: name".
func path(all []otlptest.Span, service, name string) []string {
	byID := map[string]otlptest.Span{}
	for _, s := range all {
		byID[string(s.SpanId)] = s
	}
	for _, s := range all {
		if s.Service != service || s.Name != name {
			continue
		}
		way := []string{}
		for at, ok := s, true; ok; at, ok = byID[string(at.ParentSpanId)] {
			way = append(way, at.Service+": "+at.Name)
		}
		slices.Reverse(way)
		return way
	}
	return nil
}

// containsInOrder reports whether way contains the names in this order, possibly with others between.
func containsInOrder(way []string, names ...string) bool {
	for _, at := range way {
		if len(names) > 0 && at == names[0] {
			names = names[1:]
		}
	}
	return len(names) == 0
}

// One trace runs from the notice to the working promoted version, through HTTP, the database, the orchestrator's run
// and the broker; it contains no secret.
func TestOneTraceFromNoticeToPromotion(t *testing.T) {
	c := otlptest.Start(t)
	p := harness.New(t, "PLATFORM_SEED=false", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20of-the-collector")
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

	all, id := traceOf(t, c, "POST /api/changes")
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
	if want := "Bearer of-the-collector"; c.Token() != want {
		t.Errorf("the collector was sent the authorization %q, want %q", c.Token(), want)
	}
	for _, s := range c.Spans() {
		text := s.String()
		for _, secret := range []string{operator, p.Secret(t, "ci_token"), "body-of-the-caller", "of-the-collector"} {
			if strings.Contains(text, secret) {
				t.Errorf("a span holds %q: %s", secret, text)
			}
		}
	}
}
