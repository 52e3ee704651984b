//go:build e2e

package dashboard_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// manage calls the control plane as an operator of the tenant default.
func (w *world) manage(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	token := w.Secret(t, "operator_token")
	if method == http.MethodPut && strings.HasPrefix(path, "/promotion-policies/") {
		token = w.Env["CONTROL_PLANE_TOKEN"] // any other caller's change would wait for a second person
	}
	a := harness.Want(t, http.StatusOK, method, w.Env["CONTROL_PLANE_URL"]+path, token, body)
	return a.JSON(t)
}

// patience is for facts that pass through an outbox, a bus and caches of seconds.
const patience = 30 * time.Second

type registryRow struct {
	Name, TrackerName, Stage, Health string
	Version                          *int
	ZScore                           *float64
	HealthReasons                    []string
}

func (w *world) registry(t *testing.T, c who) []registryRow {
	t.Helper()
	return decode[struct {
		Registry struct{ Rows []registryRow }
	}](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/v1/mlops/registry", c, nil)).Registry.Rows
}

type alertEntry struct {
	ID, Source, Severity, State, Title string
	Labels                             map[string]string
	AckedBy                            string    `json:"acked_by"`
	AckedAt                            time.Time `json:"acked_at"`
}

func (w *world) alerts(t *testing.T, dashboard string, c who) map[string]alertEntry {
	t.Helper()
	inbox := decode[struct {
		Inbox struct{ Alerts []alertEntry }
	}](t, w.want(t, http.StatusOK, http.MethodGet, dashboard+"/api/v1/alerts", c, nil)).Inbox
	out := map[string]alertEntry{}
	for _, a := range inbox.Alerts {
		out[a.ID] = a
	}
	return out
}

// driftJPCP makes the model's predictions differ far from its baseline: the baseline is taken from the jobs with the
// two lowest predictions, and then requests use the one with the highest.
func (w *world) driftJPCP(t *testing.T) {
	t.Helper()
	type job struct {
		body       string
		prediction float64
	}
	jobs := make([]job, 30)
	predict := func(body string) float64 {
		v, _ := harness.Want(t, http.StatusOK, http.MethodPost, w.Env["SERVING_URL"]+"/predict/JPCP", w.Env["SERVING_TOKEN"], body).JSON(t)["prediction"].(float64)
		return v
	}
	random := rand.New(rand.NewPCG(12, 12))
	for n := range jobs {
		embedding := make([]float64, 384)
		for i := range embedding {
			embedding[i] = random.NormFloat64()
		}
		raw, err := json.Marshal(map[string]any{"features": map[string]any{"embedding": embedding}})
		if err != nil {
			t.Fatal(err)
		}
		jobs[n] = job{string(raw), predict(string(raw))}
	}
	slices.SortFunc(jobs, func(a, b job) int { return cmp.Compare(a.prediction, b.prediction) })
	const window = 500 // snapshots that baseline and live figures are computed from
	for n := range window {
		predict(jobs[n%2].body)
	}
	baseline := func() { w.Run(t, "mlp", "--yes", "drift", "baseline", "JPCP") }
	harness.Eventually(t, patience, func() error { // the snapshots are written a moment later
		baseline()
		mean := w.driftOf(t).BaselineMean
		if low := (jobs[0].prediction + jobs[1].prediction) / 2; mean == nil || math.Abs(*mean-low) > math.Abs(low)*0.001 {
			return fmt.Errorf("the baseline's mean is %v, want %v", printed(mean), low)
		}
		return nil
	})
	for range window {
		predict(jobs[len(jobs)-1].body)
	}
	t.Cleanup(baseline) // the live data is then no drift any more
}

type driftStatus struct {
	Alias        string
	ZScore       *float64 `json:"z_score"`
	BaselineMean *float64 `json:"baseline_mean"`
	Status       string
}

// driftOf returns mlp's drift status of JPCP's Production version.
func (w *world) driftOf(t *testing.T) driftStatus {
	t.Helper()
	var all []driftStatus
	if err := json.Unmarshal([]byte(w.Run(t, "mlp", "--json", "drift", "status", "JPCP")), &all); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Alias == "Production" {
			return d
		}
	}
	t.Fatalf("mlp drift status: %+v, want Production", all)
	return driftStatus{}
}

func TestRow12OneRowAndOneVerdict(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	viewer := w.passwordLogin(t, "viewer")
	harness.Want(t, http.StatusOK, http.MethodPost, w.Tracker()+"/api/2.0/mlflow/registered-models/create", "", map[string]string{"name": "JPCP"})
	t.Cleanup(func() {
		harness.Call(t, http.MethodDelete, w.Tracker()+"/api/2.0/mlflow/registered-models/delete", "", map[string]string{"name": "JPCP"})
	})
	serving, token := w.Env["SERVING_URL"], w.Env["SERVING_TOKEN"]
	harness.Want(t, http.StatusOK, http.MethodPost, serving+"/traffic-rules/jpcp", token, map[string]any{"production": 100})
	harness.Want(t, http.StatusOK, http.MethodPost, serving+"/traffic-rules/JPCP", token, map[string]any{"production": 100})
	w.driftJPCP(t)
	const tolerance = 1e-6
	harness.Eventually(t, patience, func() error {
		var row *registryRow
		for _, r := range w.registry(t, viewer) {
			if strings.EqualFold(r.Name, "JPCP") {
				if row != nil {
					t.Fatalf("two rows of one model: %+v and %+v", *row, r)
				}
				row = &r
			}
		}
		if row == nil || row.ZScore == nil || *row.ZScore < 2 {
			return fmt.Errorf("registry row %+v, want a z-score over 2", row)
		}
		if row.Name != "JPCP" || row.Health != "warn" || len(row.HealthReasons) == 0 {
			t.Errorf("registry row %+v, want JPCP, warn with reasons", *row)
		}
		mlp := w.driftOf(t)
		if mlp.ZScore == nil || math.Abs(*mlp.ZScore-*row.ZScore) > tolerance {
			return fmt.Errorf("mlp drift status says %v, the registry %v", printed(mlp.ZScore), *row.ZScore)
		}
		for id, a := range w.alerts(t, w.url, viewer) {
			if a.Source != "drift" || !strings.Contains(id, "JPCP") {
				continue
			}
			if critical := *row.ZScore >= 3; a.Labels["status"] != mlp.Status || critical != (a.Labels["status"] == "CRITICAL") {
				return fmt.Errorf("the alert says %v, mlp %s, the registry z = %v", a.Labels, mlp.Status, *row.ZScore)
			}
			t.Logf("registry, mlp and the alert %q agree on z = %.3f; labels %v", a.Title, *row.ZScore, a.Labels)
			return nil
		}
		return errors.New("no drift alert of JPCP")
	})
}

func printed(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func TestRow13AcknowledgementsSurviveARestart(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	viewer, admin := w.passwordLogin(t, "viewer"), w.passwordLogin(t, "admin")
	w.manage(t, http.MethodPost, "/costs", map[string]any{"model": "MCBOUND", "version": "1", "scheduler": "slurm", "job_id": "row13", "gpu_hours": 10, "cpu_hours": 1, "project": "row13"})
	w.manage(t, http.MethodPut, "/budgets/row13", map[string]any{"cost_budget": 1})
	r := w.startReplica(t)
	const id = "budget:row13"
	harness.Eventually(t, patience, func() error {
		if a, fires := w.alerts(t, r.url, viewer)[id]; !fires || a.State != "firing" {
			return fmt.Errorf("alert %s: %+v, want it firing", id, a)
		}
		return nil
	})
	type ack struct {
		Acked, Audited bool
		AckedBy        string    `json:"acked_by"`
		AckedAt        time.Time `json:"acked_at"`
	}
	first := decode[ack](t, w.want(t, http.StatusOK, http.MethodPost, r.url+"/api/v1/alerts/"+id+"/ack", viewer, nil))
	if !first.Acked || !first.Audited || first.AckedBy != "local:viewer" || first.AckedAt.IsZero() {
		t.Fatalf("ack: got %+v, want it by local:viewer", first)
	}
	r.kill()
	r.start(t)
	a := w.alerts(t, r.url, viewer)[id]
	if a.State != "acknowledged" || a.AckedBy != "local:viewer" || !a.AckedAt.Equal(first.AckedAt) {
		t.Errorf("after a restart: got %+v, want it acknowledged by local:viewer at %s", a, first.AckedAt)
	}
	if again := decode[ack](t, w.want(t, http.StatusOK, http.MethodPost, r.url+"/api/v1/alerts/"+id+"/ack", admin, nil)); again.AckedBy != "local:viewer" || !again.AckedAt.Equal(first.AckedAt) {
		t.Errorf("a second ack: got %+v, want the first one's actor and time", again)
	}
	w.call(t, http.MethodPost, r.url+"/api/v1/alerts/budget:nobody/ack", viewer, nil).problem(t, http.StatusNotFound, "alert_not_found")
}

type promotionGate struct {
	Promotion struct {
		Allowed bool
		Version *int
		Policy  struct {
			Allow   bool
			Reasons []string
		}
		Eval struct {
			Pass  bool
			State string
		}
		Approval struct{ State string }
	}
}

func TestRow14PromotionGate(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	viewer := w.passwordLogin(t, "viewer")
	const model = "MCBOUND"
	was := w.manage(t, http.MethodGet, "/promotion-policies/"+model, nil)
	policy := func(enabled bool) map[string]any {
		p := map[string]any{"require_eval": true, "enabled": enabled, "approval_mode": "each", "from_alias": "Production", "to_alias": "Canary"}
		for _, name := range []string{"metric", "operator", "threshold"} {
			p[name] = was[name]
		}
		return p
	}
	t.Cleanup(func() {
		p := policy(true)
		for name := range p {
			p[name] = was[name]
		}
		w.manage(t, http.MethodPut, "/promotion-policies/"+model, p)
	})
	gate := func() promotionGate {
		return decode[promotionGate](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/v1/mlops/promotion/"+strings.ToLower(model), viewer, nil))
	}
	eval := func(version, status string, passed bool) {
		w.manage(t, http.MethodPost, "/evals", map[string]any{"model": model, "version": version, "suite": "row14", "status": status,
			"metrics": []map[string]any{{"metric": "rmse", "value": 3.5, "passed": passed}}})
	}
	// A version to promote: that of Production, which Canary must not hold yet.
	freeCanary := func() harness.Answer {
		return harness.Call(t, http.MethodDelete, w.Tracker()+"/api/2.0/mlflow/registered-models/alias", "", map[string]string{"name": "mcbound", "alias": "Canary"})
	}
	freeCanary()
	w.manage(t, http.MethodPut, "/promotion-policies/"+model, policy(false))
	var version string
	harness.Eventually(t, patience, func() error {
		g := gate().Promotion
		if g.Version == nil {
			return fmt.Errorf("gate %+v, want the version of Production", g)
		}
		version = fmt.Sprint(*g.Version)
		return nil
	})
	eval(version, "failed", false)
	harness.Eventually(t, patience, func() error {
		g := gate().Promotion
		reasons := strings.Join(g.Policy.Reasons, "\n")
		if g.Allowed || g.Policy.Allow || g.Eval.Pass || g.Eval.State != "failed" || g.Approval.State != "pending" {
			return fmt.Errorf("gate %+v, want all three denied", g)
		}
		for _, word := range []string{"polic", "evaluation", "approved"} {
			if !strings.Contains(reasons, word) {
				return fmt.Errorf("the reasons %q do not name %q", g.Policy.Reasons, word)
			}
		}
		return nil
	})
	w.manage(t, http.MethodPut, "/promotion-policies/"+model, policy(true))
	eval(version, "passed", true)
	opened := harness.Want(t, http.StatusOK, http.MethodPost, w.Env["CONTROL_PLANE_URL"]+"/promotions", w.Env["CONTROL_PLANE_TOKEN"], map[string]any{"model": model}).JSON(t)
	harness.Eventually(t, patience, func() error {
		if g := gate().Promotion; g.Allowed || !g.Eval.Pass || g.Approval.State != "pending" || len(g.Policy.Reasons) == 0 {
			return fmt.Errorf("gate %+v, want only the approval missing; the promotion is %v", g, opened)
		}
		return nil
	})
	w.manage(t, http.MethodPost, fmt.Sprintf("/promotions/%v/approve", opened["id"]), map[string]any{})
	harness.Eventually(t, patience, func() error {
		g := gate().Promotion
		if g.Approval.State == "approved" {
			freeCanary() // an approved promotion is carried out at once, and a completed move is not allowed again
		}
		if !g.Allowed || g.Approval.State != "approved" || len(g.Policy.Reasons) != 0 {
			return fmt.Errorf("gate %+v, want it allowed without reasons", g)
		}
		return nil
	})
}

func TestRow15BudgetOfZero(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	viewer := w.passwordLogin(t, "viewer")
	w.manage(t, http.MethodPost, "/costs", map[string]any{"model": "MACK", "version": "1", "scheduler": "slurm", "job_id": "row15", "gpu_hours": 2, "cpu_hours": 0, "project": "row15"})
	w.manage(t, http.MethodPut, "/budgets/row15", map[string]any{"cost_budget": 0})
	harness.Eventually(t, patience, func() error {
		budgets := decode[struct {
			Budget struct {
				Budgets []struct {
					Project    string
					CostRatio  *float64
					OverBudget bool
					SpentUsd   float64
				}
			}
		}](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/v1/finops/overview", viewer, nil)).Budget.Budgets
		for _, b := range budgets {
			if b.Project == "row15" {
				if !b.OverBudget || b.CostRatio != nil || b.SpentUsd <= 0 {
					return fmt.Errorf("a budget of 0: %+v, want it over with no ratio", b)
				}
				return nil
			}
		}
		return errors.New("no budget row15")
	})
}

type ledgerView struct {
	Audit struct {
		Count      int
		HeadDigest string
		Verified   *bool
		Checked    *int
	}
}

// TestRow15EditedLedger runs alone: once a row is edited, the tenant's ledger is invalid for all tests.
func TestRow15EditedLedger(t *testing.T) {
	w := sharedWorld(t)
	admin := w.foreigner("row15", "admin") // with a separate ledger
	w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/selfobs/action", admin, map[string]string{"action": "row15", "target": "ledger", "details": "the truth"})
	await := func(want bool) {
		t.Helper()
		harness.Eventually(t, patience, func() error {
			a := decode[ledgerView](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/v1/governance/overview", admin, nil)).Audit
			if a.Count == 0 || a.Verified == nil || *a.Verified != want {
				return fmt.Errorf("ledger of %d entries, verified %v; want %v", a.Count, a.Verified, want)
			}
			return nil
		})
	}
	await(true)
	edit := func(from, to string) {
		t.Helper()
		for _, sql := range []string{
			"alter table control_plane.audit_events disable trigger audit_events_append_only",
			fmt.Sprintf("update control_plane.audit_events set details = replace(details::text, '%s', '%s')::json where tenant = '%s' and details::text like '%%%s%%'", from, to, foreignTenant, from),
			"alter table control_plane.audit_events enable always trigger audit_events_append_only",
		} {
			tag, err := w.db.Exec(t.Context(), sql)
			if err != nil || tag.Update() && tag.RowsAffected() != 1 {
				t.Fatalf("%s: %v, %d rows, want 1", sql, err, tag.RowsAffected())
			}
		}
	}
	edit("the truth", "a lie")
	await(false)
	edit("a lie", "the truth")
	// A failure stays found, although it was undone and the ledger has grown: until two people acknowledge it.
	w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/selfobs/action", admin, map[string]string{"action": "row15", "target": "ledger", "details": "afterwards"})
	harness.Eventually(t, patience, func() error {
		a := decode[ledgerView](t, w.want(t, http.StatusOK, http.MethodGet, w.url+"/api/v1/governance/overview", admin, nil)).Audit
		if a.Count < 2 || a.Verified == nil || *a.Verified {
			return fmt.Errorf("ledger of %d entries after the edit was undone: got verified %v, want false", a.Count, a.Verified)
		}
		return nil
	})
}
