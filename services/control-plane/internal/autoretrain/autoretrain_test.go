package autoretrain_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// startWithServing runs a control plane whose leader checks drift only on request.
func startWithServing(t *testing.T, env ...string) (*controlplanetest.Plane, *controlplanetest.Serving) {
	t.Helper()
	s := controlplanetest.NewServing(t)
	p := controlplanetest.Start(t, slices.Concat(s.Env(), []string{"AUTO_RETRAIN_SECONDS=3600"}, env)...)
	p.AwaitTarget()
	return p, s
}

func zScore(v float64) *float64 { return &v }

func enableAutoRetrain(p *controlplanetest.Plane, model string, settings map[string]any) map[string]any {
	p.T.Helper()
	settings["enabled"] = true
	return p.Want(200, "PUT", "/auto-retrain/"+model, controlplanetest.Operator, settings).Object(p.T)
}

// triggerOnce triggers and returns the only result.
func triggerOnce(p *controlplanetest.Plane, body any) map[string]any {
	p.T.Helper()
	results := p.Want(200, "POST", "/drift/trigger", controlplanetest.Operator, body).Object(p.T)["results"].([]any)
	if len(results) != 1 {
		p.T.Fatalf("%d results: %v; want len(results) == 1", len(results), results)
	}
	return results[0].(map[string]any)
}

func expectOutcome(p *controlplanetest.Plane, want string, body any) map[string]any {
	p.T.Helper()
	r := triggerOnce(p, body)
	if r["outcome"] != want {
		p.T.Fatalf("outcome %v, want %s: %v", r["outcome"], want, r)
	}
	return r
}

func settingsOf(p *controlplanetest.Plane, model string) map[string]any {
	p.T.Helper()
	for _, item := range p.Want(200, "GET", "/auto-retrain", controlplanetest.Reader, nil).Object(p.T)["items"].([]any) {
		if row := item.(map[string]any); row["model"] == model {
			return row
		}
	}
	p.T.Fatalf("no settings of %s", model)
	return nil
}

func TestSettingsHaveDefaultsAndDisablingKeepsThem(t *testing.T) {
	t.Parallel()
	p, _ := startWithServing(t)
	row := enableAutoRetrain(p, "jpcp", map[string]any{})
	for name, want := range map[string]any{
		"model": "JPCP", "enabled": true, "dataset_name": nil, "min_z": 3.0, "cooldown_seconds": 3600.0, "gate": "approval", "gate_forced": false,
		"kind": "prediction", "last_triggered_at": nil, "last_outcome": nil, "updated_by": "operator",
	} {
		if row[name] != want {
			t.Errorf("%s is %v, want %v", name, row[name], want)
		}
	}
	dataset := p.Want(200, "GET", "/models/JPCP/meta", "", nil).Object(t)["supported_datasets"].([]any)[0].(string)
	enableAutoRetrain(p, "JPCP", map[string]any{"min_z": 4.5, "cooldown_seconds": 0, "gate": "direct", "kind": "any", "dataset_name": strings.ToLower(dataset)})
	p.Want(200, "PUT", "/auto-retrain/JPCP", controlplanetest.Operator, map[string]any{"enabled": false})
	row = settingsOf(p, "JPCP")
	for name, want := range map[string]any{
		"enabled": false, "dataset_name": dataset, "min_z": 4.5, "cooldown_seconds": 0.0, "gate": "direct", "kind": "any",
	} {
		if row[name] != want {
			t.Errorf("%s is %v, want %v", name, row[name], want)
		}
	}
	if row := p.Want(200, "PUT", "/auto-retrain/JPCP", controlplanetest.Operator, map[string]any{"enabled": false, "dataset_name": ""}).Object(t); row["dataset_name"] != nil {
		t.Errorf("dataset_name %v is not taken back; want nil", row["dataset_name"])
	}
	enabled := p.Audits("auto_retrain.enabled")
	if len(enabled) != 2 || enabled[1]["actor"] != "operator" || enabled[1]["tenant"] != "default" {
		t.Fatalf(`audit: %v; want len(enabled) == 2 && enabled[1]["actor"] == "operator" && enabled[1]["tenant"] == "default"`, enabled)
	}
	details := enabled[1]["details"].(map[string]any)
	if details["old"].(map[string]any)["min_z"] != 3.0 || details["new"].(map[string]any)["min_z"] != 4.5 {
		t.Errorf(`audit details %v; want details["old"].(map[string]any)["min_z"] == 3.0 && details["new"].(map[string]any)["min_z"] == 4.5`, details)
	}
	if n := len(p.Audits("auto_retrain.disabled")); n != 2 {
		t.Errorf("%d audit facts of disabling; want 2", n)
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	t.Parallel()
	p, _ := startWithServing(t)
	p.Refused(400, "unknown_model", "PUT", "/auto-retrain/nosuch", controlplanetest.Operator, map[string]any{"enabled": true})
	p.Refused(400, "unknown_dataset", "PUT", "/auto-retrain/JPCP", controlplanetest.Operator, map[string]any{"enabled": true, "dataset_name": "nosuch"})
	for _, body := range []string{
		`{}`, `{"enabled":true,"min_z":0}`, `{"enabled":true,"min_z":-1}`, `{"enabled":true,"min_z":1e300}`, `{"enabled":true,"cooldown_seconds":-1}`,
		`{"enabled":true,"cooldown_seconds":31536001}`, `{"enabled":true,"cooldown_seconds":1.5}`, `{"enabled":true,"gate":"none"}`,
		`{"enabled":true,"kind":"both"}`, `{"enabled":true,"dataset_name":"../x"}`, `{"enabled":true,"surprise":1}`,
	} {
		p.Refused(422, "validation_error", "PUT", "/auto-retrain/JPCP", controlplanetest.Operator, body)
	}
	p.Refused(403, "insufficient_scope", "PUT", "/auto-retrain/JPCP", controlplanetest.Reader, map[string]any{"enabled": true})
	p.Refused(403, "insufficient_scope", "POST", "/drift/trigger", controlplanetest.Reader, nil)
	p.Refused(400, "unknown_model", "POST", "/drift/trigger", controlplanetest.Operator, map[string]any{"model": "nosuch"})
	p.Refused(422, "validation_error", "POST", "/drift/trigger", controlplanetest.Operator, map[string]any{"model": "../x"})
	p.Refused(422, "validation_error", "POST", "/drift/trigger", controlplanetest.Operator, `{"dry":true}`)
	expectOutcome(p, "failed", map[string]any{"model": "JPCP"}) // no model is enabled
	if items := p.Want(200, "GET", "/auto-retrain", controlplanetest.Reader, nil).Object(t)["items"].([]any); len(items) != 0 {
		t.Errorf("settings %v; want len(items) == 0", items)
	}
}

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	p, _ := startWithServing(t)
	models := p.Want(200, "GET", "/models", "", nil).List(t)
	for _, m := range models {
		enableAutoRetrain(p, m["model_name"].(string), map[string]any{})
	}
	var got []string
	for cursor := ""; ; {
		page := p.Want(200, "GET", "/auto-retrain?limit=2&cursor="+cursor, controlplanetest.Reader, nil).Object(t)
		for _, item := range page["items"].([]any) {
			got = append(got, item.(map[string]any)["model"].(string))
		}
		if page["next_cursor"] == nil {
			break
		}
		cursor = page["next_cursor"].(string)
	}
	if len(got) != len(models) || !slices.IsSorted(got) {
		t.Errorf("pages %v of %d models; want len(got) == len(models) && slices.IsSorted(got)", got, len(models))
	}
	p.Refused(422, "validation_error", "GET", "/auto-retrain?limit=0", controlplanetest.Reader, nil)
}

// Row 22: drift creates a record with its origin; a second check finds the cooldown.
func TestDriftAsksForApproval(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	dataset := p.Want(200, "GET", "/models/JPCP/meta", "", nil).Object(t)["supported_datasets"].([]any)
	last := dataset[len(dataset)-1].(string)
	enableAutoRetrain(p, "JPCP", map[string]any{"dataset_name": last})
	s.Drift("prediction", "JPCP", "Canary", "CRITICAL", zScore(40), "") // not the version that Production serves
	s.Drift("prediction", "JPCP", "Production", "WARNING", zScore(2.9), "")
	if r := expectOutcome(p, "below_threshold", nil); r["z_score"] != 2.9 {
		t.Errorf(`result %v; want r["z_score"] == 2.9`, r)
	}
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(3), "")
	if r := expectOutcome(p, "would_trigger", map[string]any{"dry_run": true}); r["z_score"] != 3.0 || r["approval_id"] != nil {
		t.Errorf(`result %v; want r["z_score"] == 3.0 && r["approval_id"] == nil`, r)
	}
	if n := len(p.Want(200, "GET", "/approvals", controlplanetest.Reader, nil).List(t)); n != 0 {
		t.Fatalf("a dry run made %d records; want 0", n)
	}
	r := expectOutcome(p, "requested", map[string]any{"model": "jpcp"})
	record := p.Approval(r["approval_id"].(string))
	if record["origin"] != "drift" || record["status"] != "pending" || record["requested_by"] != "operator" || record["model_id"] != "JPCP" || record["dataset_name"] != last {
		t.Errorf(`record %v; want record["origin"] == "drift" && record["status"] == "pending" && record["requested_by"] == "operator" && record["model_id"] == "JPCP" && record["dataset_name"] == last`, record)
	}
	row := settingsOf(p, "JPCP")
	if row["last_outcome"] != "requested" || row["last_triggered_at"] == nil {
		t.Errorf(`settings %v; want row["last_outcome"] == "requested" && row["last_triggered_at"] != nil`, row)
	}
	expectOutcome(p, "cooling_down", nil)
	expectOutcome(p, "cooling_down", map[string]any{"dry_run": true})
	enableAutoRetrain(p, "JPCP", map[string]any{"cooldown_seconds": 0})
	if again := expectOutcome(p, "already_pending", nil); again["approval_id"] != r["approval_id"] {
		t.Errorf(`result %v; want again["approval_id"] == %v`, again, r["approval_id"])
	}
	if again := expectOutcome(p, "already_pending", map[string]any{"dry_run": true}); again["approval_id"] != r["approval_id"] {
		t.Errorf(`result %v; want again["approval_id"] == %v`, again, r["approval_id"])
	}
	events := p.Events("drift.retrain_requested")
	if len(events) != 1 || events[0].Tenant != "platform" || events[0].Actor != "operator" || events[0].Data["outcome"] != "requested" || events[0].Data["z_score"] != 3.0 {
		t.Errorf(`events %v; want len(events) == 1 && events[0].Tenant == "platform" && events[0].Actor == "operator" && events[0].Data["outcome"] == "requested" && events[0].Data["z_score"] == 3.0`, events)
	}
	if n := len(p.Audits("drift.retrain_requested")); n != 1 {
		t.Errorf("%d audit facts; want 1", n)
	}
	// The record leads to a run whose origin is drift, on the data set of the settings.
	p.Want(200, "POST", "/approve/JPCP", controlplanetest.Seeder, nil)
	run := p.Want(200, "GET", "/runs?model=JPCP", controlplanetest.Reader, nil).Object(t)["items"].([]any)[0].(map[string]any)
	if run["origin"] != "drift" || run["dataset_name"] != last {
		t.Errorf(`run %v; want run["origin"] == "drift" && run["dataset_name"] == last`, run)
	}
	if open := expectOutcome(p, "already_pending", nil); !strings.Contains(open["reason"].(string), run["flow_run_id"].(string)) {
		t.Errorf(`result %v; want strings.Contains(open["reason"].(string), run["flow_run_id"].(string))`, open)
	}
}

// A trigger of another tenant, and its rejected record, use only that tenant's cooldown.
func TestCooldownIsTheTenantsOwn(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(9), "")
	as := func(bearer, want string) map[string]any {
		t.Helper()
		r := p.Want(200, "POST", "/drift/trigger", bearer, nil).Object(t)["results"].([]any)[0].(map[string]any)
		if r["outcome"] != want {
			t.Errorf("outcome %v, want %s: %v", r["outcome"], want, r)
		}
		return r
	}
	if r := p.Want(200, "POST", "/drift/trigger", controlplanetest.Foreign, nil).Object(t)["results"].([]any); len(r) != 0 {
		t.Errorf("got %v, want no model of another tenant", r)
	}
	p.Refused(404, "model_not_found", "POST", "/drift/trigger", controlplanetest.Foreign, map[string]any{"model": "JPCP"})
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] != nil {
		t.Errorf(`settings show another tenant's trigger: %v; want row["last_triggered_at"] == nil`, row)
	}
	ours := as(controlplanetest.Operator, "requested")
	if a := p.Approval(ours["approval_id"].(string)); a["tenant"] != "default" || a["status"] != "pending" {
		t.Errorf(`record %v; want a["tenant"] == "default" && a["status"] == "pending"`, a)
	}
	as(controlplanetest.Operator, "cooling_down")
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] == nil {
		t.Errorf(`settings %v; want row["last_triggered_at"] != nil`, row)
	}
}

// A run caused by drift counts for every tenant; only its tenant may see it.
func TestRunOfAnotherTenantIsNotNamed(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{"gate": "direct"})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(9), "")
	run := p.Want(200, "POST", "/retrain", controlplanetest.Foreign, map[string]any{"model_name": "JPCP", "dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
	p.SQL("update control_plane.runs set origin = 'drift' where flow_run_id = $1", run)
	ours := expectOutcome(p, "already_pending", nil)
	if strings.Contains(ours["reason"].(string), run) {
		t.Errorf(`result %v; want !strings.Contains(ours["reason"].(string), run)`, ours)
	}
	for bearer, want := range map[string]any{controlplanetest.Legacy: run, controlplanetest.Reader: nil} {
		for _, m := range p.Want(200, "GET", "/modelrepo/status", bearer, nil).Object(t)["models"].([]any) {
			if row := m.(map[string]any); row["model_id"] == "JPCP" && row["active_run"] != want {
				t.Errorf(`%s sees the run %v; want (row["model_id"] != "JPCP" || row["active_run"] == want)`, bearer, row["active_run"])
			}
		}
	}
}

// A pending change is neither duplicated nor superseded.
func TestDriftLeavesAWaitingChangeAlone(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	id := p.Notice("JPCP", "c0ffee1")
	enableAutoRetrain(p, "JPCP", map[string]any{})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(9), "")
	if r := expectOutcome(p, "already_pending", nil); r["approval_id"] != id {
		t.Errorf(`result %v; want r["approval_id"] == %v`, r, id)
	}
	if a := p.Approval(id); a["status"] != "pending" {
		t.Errorf(`record %v; want a["status"] == "pending"`, a)
	}
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] != nil || row["last_outcome"] != "already_pending" {
		t.Errorf(`settings %v; want row["last_triggered_at"] == nil && row["last_outcome"] == "already_pending"`, row)
	}
}

// Row 22: corrupt data triggers no training, and is reported once.
func TestCorruptDataBlocks(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{"kind": "any"})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(9), "")
	s.Drift("input", "JPCP", "Production", "CORRUPT", nil, "non_finite")
	r := expectOutcome(p, "blocked_corrupt", nil)
	if !strings.Contains(r["reason"].(string), "non_finite") {
		t.Errorf(`result %v; want strings.Contains(r["reason"].(string), "non_finite")`, r)
	}
	expectOutcome(p, "blocked_corrupt", nil)
	expectOutcome(p, "blocked_corrupt", map[string]any{"dry_run": true})
	events := p.Events("drift.retrain_blocked")
	if len(events) != 1 || events[0].Tenant != "platform" || events[0].Data["outcome"] != "blocked_corrupt" || events[0].Data["reason"] == "" {
		t.Errorf(`events %v; want len(events) == 1 && events[0].Tenant == "platform" && events[0].Data["outcome"] == "blocked_corrupt" && events[0].Data["reason"] != ""`, events)
	}
	if a := p.Audits("drift.retrain_blocked"); len(a) != 1 || a[0]["outcome"] != "denied" {
		t.Errorf(`audit %v; want len(a) == 1 && a[0]["outcome"] == "denied"`, a)
	}
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] != nil || row["last_outcome"] != "blocked_corrupt" {
		t.Errorf(`settings %v; want row["last_triggered_at"] == nil && row["last_outcome"] == "blocked_corrupt"`, row)
	}
	s.Drift("input", "JPCP", "Production", "OK", zScore(0.1), "")
	if r := expectOutcome(p, "requested", nil); r["z_score"] != 9.0 {
		t.Errorf(`result %v; want r["z_score"] == 9.0`, r)
	}
}

// z alone misses a distribution that changes around its mean; min_z then has no effect.
func TestTrainsAfterCriticalDriftBesideZ(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{})
	s.DriftBeside("JPCP", "ks", "WARNING", 0.4)
	if r := expectOutcome(p, "below_threshold", nil); r["z_score"] != 0.4 {
		t.Errorf("a warning of ks: got %v, want below_threshold with z 0.4", r)
	}
	s.DriftBeside("JPCP", "ks", "CRITICAL", 0.4)
	if r := expectOutcome(p, "requested", nil); r["z_score"] != 0.4 || !strings.Contains(fmt.Sprint(r["reason"]), "ks") {
		t.Errorf("critical by ks: got %v, want requested with z 0.4 and ks in the reason", r)
	}
}

func TestKindsAndLevels(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	for _, c := range []struct {
		name, kind       string
		prediction, data string // levels; empty: no row
		pz, dz           *float64
		want             string
		z                any
	}{
		{"a constant baseline that is left", "prediction", "CRITICAL", "", nil, nil, "would_trigger", nil},
		{"no z and no critical drift", "prediction", "WARNING", "", nil, nil, "below_threshold", nil},
		{"no baseline", "prediction", "NO_BASELINE", "", nil, nil, "below_threshold", nil},
		{"too few predictions", "prediction", "INSUFFICIENT", "", zScore(9), nil, "below_threshold", nil},
		{"nothing served", "prediction", "", "", nil, nil, "below_threshold", nil},
		{"inputs do not count", "prediction", "OK", "CRITICAL", zScore(0.5), zScore(9), "below_threshold", 0.5},
		{"inputs alone", "input", "CRITICAL", "OK", zScore(9), zScore(0.5), "below_threshold", 0.5},
		{"inputs drift", "input", "", "CRITICAL", nil, zScore(4), "would_trigger", 4.0},
		{"the worse of both", "any", "OK", "CRITICAL", zScore(0.5), zScore(4), "would_trigger", 4.0},
		{"both", "any", "CRITICAL", "CRITICAL", zScore(5), zScore(4), "would_trigger", 5.0},
		{"neither", "any", "OK", "WARNING", zScore(1), zScore(2), "below_threshold", 2.0},
		{"corrupt predictions", "prediction", "CORRUPT", "", zScore(9), nil, "blocked_corrupt", nil},
	} {
		enableAutoRetrain(p, "JPCP", map[string]any{"kind": c.kind})
		for kind, at := range map[string]struct {
			level string
			z     *float64
		}{"prediction": {c.prediction, c.pz}, "input": {c.data, c.dz}} {
			if at.level == "" {
				s.Clear(kind)
				continue
			}
			s.Drift(kind, "JPCP", "Production", at.level, at.z, "")
		}
		if r := triggerOnce(p, map[string]any{"dry_run": true}); r["outcome"] != c.want || r["z_score"] != c.z {
			t.Errorf("%s: %v, want %s with z %v", c.name, r, c.want, c.z)
		}
	}
	s.Mu.Lock()
	s.NoInput = true
	s.Mu.Unlock()
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	enableAutoRetrain(p, "JPCP", map[string]any{"kind": "any"})
	expectOutcome(p, "would_trigger", map[string]any{"dry_run": true}) // predictions are the only drift data
	enableAutoRetrain(p, "JPCP", map[string]any{"kind": "input"})
	expectOutcome(p, "failed", map[string]any{"dry_run": true})
}

func TestInferenceServiceThatCannotBeReadUsesNoCooldown(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(9), "")
	for _, mode := range []string{controlplanetest.Down, controlplanetest.Hang, controlplanetest.Broken, controlplanetest.Garbage} {
		s.Set(mode)
		if r := expectOutcome(p, "failed", nil); r["reason"] == nil {
			t.Errorf(`%s: %v; want r["reason"] != nil`, mode, r)
		}
	}
	s.Set(controlplanetest.Well)
	row := `{"model":"JPCP","alias":"Production","version":"1","status":"CRITICAL","overall":"CRITICAL","live_mean":null,"live_std":null,"n_snapshots":1,"n_baseline":1,"measures":{},"recent":[],"z_score":%s}`
	for name, answer := range map[string]string{
		"null": "null", "an object": "{}", "NaN": "[" + fmt.Sprintf(row, "NaN") + "]", "infinity": "[" + fmt.Sprintf(row, "1e999") + "]",
		"text": "[" + fmt.Sprintf(row, `"nan"`) + "]", "an unknown level": "[" + strings.Replace(fmt.Sprintf(row, "9"), `"status":"CRITICAL"`, `"status":"ODD"`, 1) + "]",
		"too much": "[" + strings.Repeat(" ", 9<<20) + "]", "half": "[" + fmt.Sprintf(row, "9"),
	} {
		s.Mu.Lock()
		s.Answer = answer
		s.Mu.Unlock()
		if r := triggerOnce(p, nil); r["outcome"] != "failed" {
			t.Errorf(`%s: %v; want r["outcome"] == "failed"`, name, r)
		}
	}
	s.Mu.Lock()
	s.Answer = ""
	s.Mu.Unlock()
	s.Drift("prediction", "A MODEL OF OTHERS", "Production", "CRITICAL", zScore(9), "") // is none of ours
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] != nil || row["last_outcome"] != "failed" {
		t.Errorf(`settings %v; want row["last_triggered_at"] == nil && row["last_outcome"] == "failed"`, row)
	}
	if e := p.Events("drift.retrain_blocked"); len(e) != 1 || e[0].Data["outcome"] != "failed" {
		t.Errorf(`it is told %d times: %v; want len(e) == 1 && e[0].Data["outcome"] == "failed"`, len(e), e)
	}
	expectOutcome(p, "requested", nil)
}

// Row 23: a failed dispatch uses no cooldown; the next one does.
func TestRow23DirectTriggerWithTheOrchestratorDownThenUp(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{"gate": "direct"})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	p.Orchestrator.Set(controlplanetest.Down)
	if r := expectOutcome(p, "failed", nil); !strings.Contains(r["reason"].(string), "orchestrator_unreachable") {
		t.Errorf(`result %v; want strings.Contains(r["reason"].(string), "orchestrator_unreachable")`, r)
	}
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] != nil || row["last_outcome"] != "failed" {
		t.Errorf(`settings %v; want row["last_triggered_at"] == nil && row["last_outcome"] == "failed"`, row)
	}
	p.Orchestrator.Set(controlplanetest.Well)
	r := expectOutcome(p, "dispatched", nil)
	run := p.Want(200, "GET", "/runs?model=JPCP", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(run) != 1 || run[0].(map[string]any)["flow_run_id"] != r["flow_run_id"] || run[0].(map[string]any)["origin"] != "drift" {
		t.Errorf(`runs %v, result %v; want len(run) == 1 && run[0].(map[string]any)["flow_run_id"] == r["flow_run_id"] && run[0].(map[string]any)["origin"] == "drift"`, run, r)
	}
	if row := settingsOf(p, "JPCP"); row["last_triggered_at"] == nil || row["last_outcome"] != "dispatched" {
		t.Errorf(`settings %v; want row["last_triggered_at"] != nil && row["last_outcome"] == "dispatched"`, row)
	}
	expectOutcome(p, "cooling_down", nil)
	events := p.Events("drift.retrain_requested")
	if len(events) != 1 || events[0].Data["outcome"] != "dispatched" || events[0].Data["z_score"] != 5.0 {
		t.Errorf(`events %v; want len(events) == 1 && events[0].Data["outcome"] == "dispatched" && events[0].Data["z_score"] == 5.0`, events)
	}
	if n := len(p.Orchestrator.All()); n != 1 {
		t.Errorf("%d runs; want 1", n)
	}
}

// The orchestrator accepts a run and its answer is lost: the next trigger finds the run instead of starting another.
func TestDispatchWhoseAnswerIsLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	enableAutoRetrain(p, "JPCP", map[string]any{"gate": "direct"})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	p.Orchestrator.Set(controlplanetest.Swallow)
	expectOutcome(p, "failed", nil)
	p.Orchestrator.Set(controlplanetest.Well)
	r := expectOutcome(p, "dispatched", nil)
	if all := p.Orchestrator.All(); len(all) != 1 || all[0].ID != r["flow_run_id"] {
		t.Errorf(`runs %v, result %v; want len(all) == 1 && all[0].ID == r["flow_run_id"]`, all, r)
	}
}

func TestGateIsForced(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t, "AUTO_RETRAIN_GATE=approval")
	if row := enableAutoRetrain(p, "JPCP", map[string]any{"gate": "direct"}); row["gate"] != "direct" || row["gate_forced"] != true {
		t.Errorf(`settings %v; want row["gate"] == "direct" && row["gate_forced"] == true`, row)
	}
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	expectOutcome(p, "requested", nil)
	if n := len(p.Orchestrator.All()); n != 0 {
		t.Errorf("%d runs; want 0", n)
	}
}

// Two replicas, each triggered many times concurrently, start one training.
func TestReplicasTriggerOnce(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"approval", "direct"} {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			p, s := startWithServing(t)
			q := *p
			q.Serve()
			q.AwaitTarget()
			enableAutoRetrain(p, "JPCP", map[string]any{"gate": gate})
			s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
			count := map[string]int{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 12 {
				plane := p
				if i%2 == 1 {
					plane = &q
				}
				wg.Go(func() {
					r, err := plane.Try("POST", "/drift/trigger", controlplanetest.Operator, nil)
					mu.Lock()
					defer mu.Unlock()
					if err != nil || r.Status != 200 {
						t.Errorf("%v %s; want r.Status == 200", err, r.Body)
						return
					}
					count[r.Object(t)["results"].([]any)[0].(map[string]any)["outcome"].(string)]++
				})
			}
			wg.Wait()
			want := map[string]string{"approval": "requested", "direct": "dispatched"}[gate]
			if count[want] != 1 || count[want]+count["cooling_down"]+count["already_pending"] != 12 {
				t.Errorf(`outcomes %v; want count[want] == 1 && count[want] + count["cooling_down"] + count["already_pending"] == 12`, count)
			}
			if n := len(p.Events("drift.retrain_requested")); n != 1 {
				t.Errorf("%d events; want 1", n)
			}
			if n := len(p.Orchestrator.All()); gate == "direct" && n != 1 {
				t.Errorf(`%d runs; want (gate != "direct" || n == 1)`, n)
			}
		})
	}
}

// The leader triggers on its own schedule, as the system principal.
func TestLeaderTriggers(t *testing.T) {
	t.Parallel()
	s := controlplanetest.NewServing(t)
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	p := controlplanetest.Start(t, append(s.Env(), "AUTO_RETRAIN_SECONDS=1")...)
	p.AwaitTarget()
	enableAutoRetrain(p, "JPCP", map[string]any{})
	testenv.Eventually(t, 15*time.Second, func() error {
		if e := p.Events("drift.retrain_requested"); len(e) != 1 || e[0].Actor != "system:drift" {
			return fmt.Errorf("events %v", e)
		}
		return nil
	})
	list := p.Want(200, "GET", "/approvals", controlplanetest.Reader, nil).List(t)
	if len(list) != 1 || list[0]["requested_by"] != "system:drift" || list[0]["tenant"] != "default" || list[0]["origin"] != "drift" {
		t.Errorf(`records %v; want len(list) == 1 && list[0]["requested_by"] == "system:drift" && list[0]["tenant"] == "default" && list[0]["origin"] == "drift"`, list)
	}
}

// A process dies between the orchestrator's acceptance and the stamp: another
// finds the run, and the cooldown begins.
func TestCrashBetweenDispatchAndStamp(t *testing.T) {
	t.Parallel()
	s := controlplanetest.NewServing(t)
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	p := controlplanetest.Neighbours(t, append(s.Env(), "AUTO_RETRAIN_SECONDS=3600")...)
	kill := p.Spawn("replica")
	p.AwaitTarget()
	enableAutoRetrain(p, "JPCP", map[string]any{"gate": "direct"})
	p.Orchestrator.Set(controlplanetest.Swallow)
	go func() { _, _ = p.Try("POST", "/drift/trigger", controlplanetest.Operator, nil) }()
	select {
	case <-p.Orchestrator.Created:
	case <-time.After(20 * time.Second):
		t.Fatal("no dispatch")
	}
	kill()
	p.Orchestrator.Set(controlplanetest.Well)
	p.SQL(`update control_plane.commands set lease_until = now()`)
	p.SQL(`update control_plane.auto_retrain set claim_until = now() - interval '1 second'`)
	p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error {
		if row := settingsOf(p, "JPCP"); row["last_triggered_at"] == nil || row["last_outcome"] != "dispatched" {
			return fmt.Errorf("settings %v", row)
		}
		return nil
	})
	expectOutcome(p, "cooling_down", nil)
	if n := len(p.Orchestrator.All()); n != 1 {
		t.Errorf("%d runs; want 1", n)
	}
	if n := len(p.Events("drift.retrain_requested")); n != 1 {
		t.Errorf("%d events; want 1", n)
	}
}

// A process dies after its claim and before its command: the next one continues in the name of the one that began.
func TestClaimOfADeadProcessIsContinued(t *testing.T) {
	t.Parallel()
	p, s := startWithServing(t)
	dataset := p.Want(200, "GET", "/models/JPCP/meta", "", nil).Object(t)["supported_datasets"].([]any)[0].(string)
	enableAutoRetrain(p, "JPCP", map[string]any{"gate": "direct"})
	s.Drift("prediction", "JPCP", "Production", "CRITICAL", zScore(5), "")
	p.SQL(`update control_plane.auto_retrain set claim = gen_random_uuid(), claim_until = now() + interval '1 hour', claim_tenant = 'default',
		claim_by = 'system:drift', claim_dataset = $1, claim_z = 4`, dataset)
	expectOutcome(p, "already_pending", nil)
	p.SQL(`update control_plane.auto_retrain set claim_until = now() - interval '1 second'`)
	expectOutcome(p, "dispatched", nil)
	if e := p.Events("drift.retrain_requested"); len(e) != 1 || e[0].Actor != "system:drift" {
		t.Errorf(`events %v; want len(e) == 1 && e[0].Actor == "system:drift"`, e)
	}
	expectOutcome(p, "cooling_down", nil)
}

func TestFaultySettingsOfTheProcessStopTheStart(t *testing.T) {
	t.Parallel()
	for env, name := range map[string]string{
		"SERVING_TOKEN=changeme": "SERVING_TOKEN", "SERVING_URL=inference:18001": "SERVING_URL", "AUTO_RETRAIN_SECONDS=0": "AUTO_RETRAIN_SECONDS", "ALERT_SECONDS=3601": "ALERT_SECONDS",
		"AUTO_RETRAIN_GATE=open": "AUTO_RETRAIN_GATE",
	} {
		if _, err := controlplane.LoadConfig([]string{"PLATFORM_DATABASE_URL=postgres://u@h/p", env}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want an error && strings.Contains(err.Error(), name)", env, err)
		}
	}
}
