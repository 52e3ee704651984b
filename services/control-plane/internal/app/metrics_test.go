package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// metricsNamedInRules returns the metrics with this prefix that the alert rules name.
func metricsNamedInRules(t *testing.T, prefix string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../../../deploy/prometheus/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v; want len(files) != 0", files, err)
	}
	name := regexp.MustCompile(`\b` + prefix + `[a-z0-9_]+`)
	out := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, g := range doc.Groups {
			for _, r := range g.Rules {
				for _, m := range name.FindAllString(r.Expr, -1) {
					out[m] = true
				}
			}
		}
	}
	return out
}

// serveDriftingModel serves as an inference service with one model far from its baseline.
func serveDriftingModel(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/drift/status" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `[{"model":"JPCP","alias":"Production","version":"1","status":"CRITICAL","overall":"CRITICAL","z_score":4.5,"z_se":9,
			"live_mean":1,"live_std":1,"baseline_mean":1,"baseline_std":1,"n_snapshots":100,"n_baseline":100,"measures":{},"recent":[]}]`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Every metric of the control plane that an alert rule names exists from the start, so that no rule waits for a series
// created by the first fault.
func TestAlertRulesNameRealMetrics(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "SERVING_URL="+serveDriftingModel(t))
	names := metricsNamedInRules(t, "platform_")
	if len(names) < 8 {
		t.Fatalf("the rules name only %v; want len(names) >= 8", names)
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		text := string(p.Want(200, "GET", "/metrics", "", nil).Body)
		for name := range names {
			if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
				return fmt.Errorf("no metric %s", name)
			}
		}
		for _, line := range []string{
			`platform_retrain_requests_total{dataset="JobEmbeddings",model_id="JPCP",outcome="orchestrator_unreachable"} 0`,
			`platform_drift_z{alias="Production",model_id="JPCP"} 4.5`, "platform_dispatch_target_ok 1", "platform_audit_verified 1",
			"platform_audit_lag_events 0", `platform_outbox_rows{state="poison"} 0`,
		} {
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("no line %s", line)
			}
		}
		return nil
	})
	p.Orchestrator.Set(controlplanetest.Down)
	p.Refused(502, "orchestrator_unreachable", "POST", "/retrain", controlplanetest.Operator, map[string]any{"model_name": "JPCP", "dataset_name": "JobEmbeddings"})
	text := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	if !strings.Contains(text, `outcome="orchestrator_unreachable"} 1`+"\n") {
		t.Error("the failed dispatch is not counted where it was expected")
	}
}

// Every counter exists before its first event: a rate does not show the event that creates the series.
func TestCountersExistFromTheStart(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	text := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	for _, line := range []string{
		`platform_approval_events_total{action="created",model_id="JPCP"} 0`,
		`platform_approval_events_total{action="dispatch_failed",model_id="other"} 0`,
		"platform_approvals_expired_total 0",
		"platform_orchestrator_breaker_opens_total 0",
		`platform_retrain_requests_total{dataset="other",model_id="other",outcome="ok"} 0`,
		`platform_runs_total{model_id="MACK",state="CRASHED"} 0`,
		`platform_promotions_total{outcome="denied"} 0`,
		`platform_promotions_total{outcome="rolled_back"} 0`,
		`platform_webhook_total{forge="forge-a",outcome="accepted"} 0`,
		`platform_webhook_total{forge="forge-b",outcome="invalid_webhook_proof"} 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("got no line %s; want strings.Contains(text, \"\\n\"+line+\"\\n\")", line)
		}
	}
}
