package controlplane_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
)

// trained lets a change of the model be approved and trained to a version, as
// the trainer would report it.
func (p *plane) trained(model, dataset string, v trackedVersion) (approval, run, version string) {
	p.t.Helper()
	approval = p.notice(model, "c0ffee1")
	run = p.want(200, "POST", "/approve/"+model, operator, map[string]any{"dataset_name": dataset}).object(p.t)["flow_run_id"].(string)
	v.runTags = map[string]string{"prefect_flow_run_id": run, "modelrepo_commit": "c0ffee1"}
	return approval, run, p.tracker.add(strings.ToLower(model), v)
}

func (p *plane) report(model, version string) map[string]any {
	p.t.Helper()
	return p.want(200, "POST", "/versions", trainer, map[string]any{"model": model, "version": version}).object(p.t)
}

// A passed ladder sets Staging and Canary at once and opens a promotion, which
// a person approves.
func TestLadder(t *testing.T) {
	t.Parallel()
	p := start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	_, run, v := p.trained("JPCP", "JobEmbeddings", good("rmse", 12.0))
	out := p.report("jpcp", v)
	if fmt.Sprint(out["aliases_set"]) != "[Staging Canary]" || out["promotion_id"] == nil {
		t.Fatalf("report %v", out)
	}
	for i, alias := range []string{"Staging", "Canary", "Production"} {
		if r := out["rungs"].([]any)[i].(map[string]any); r["alias"] != alias || r["pass"] != true || r["reason"] != nil {
			t.Errorf("rung %v", r)
		}
	}
	if again := p.report("JPCP", v); fmt.Sprint(again) != fmt.Sprint(out) {
		t.Errorf("again %v, first %v", again, out)
	}
	id := p.pendingPromotion("jpcp")
	pr := p.promotion(id)
	if pr["version"] != v || pr["origin"] != "ladder" || pr["requested_by"] != "trainer" || pr["flow_run_id"] != run {
		t.Fatalf("promotion %v", pr)
	}
	gate := p.want(200, "GET", "/promotions/JPCP/gate", reader, nil).object(t)
	if gate["allowed"] != false || gate["approval"].(map[string]any)["state"] != "pending" || gate["policy"].(map[string]any)["allow"] != true ||
		gate["eval"].(map[string]any)["pass"] != true || gate["trackerName"] != "jpcp" || gate["version"] != v {
		t.Fatalf("gate %v", gate)
	}
	// What was not evaluated has not passed.
	for _, none := range []string{"99", "2147483648"} {
		g := p.want(200, "GET", "/promotions/JPCP/gate?version="+none, reader, nil).object(t)
		if g["allowed"] != false || g["eval"].(map[string]any)["pass"] != false || !strings.Contains(fmt.Sprint(g["checks"]), "no version "+none) {
			t.Fatalf("gate %v", g)
		}
	}
	// Its approval record decides it as well.
	record := pr["approval_id"].(string)
	if rec := p.approval(record); rec["kind"] != "promotion" || rec["origin"] != "promotion" || rec["promotion_id"] != id || rec["status"] != "pending" {
		t.Fatalf("record %v", rec)
	}
	ans := p.want(200, "POST", "/approvals/"+record+"/approve", operator, `{"reason":"good"}`).object(t)
	if ans["status"] != "approved" || ans["promotion_id"] != id || ans["flow_run_id"] != nil {
		t.Fatalf("answer %v", ans)
	}
	pr = p.promotion(id)
	if pr["state"] != "promoted" || pr["decided_by"] != "operator" || pr["reason"] != "good" || p.tracker.holder("jpcp", "Production") != v {
		t.Fatalf("promotion %v", pr)
	}
	if gate := p.want(200, "GET", "/promotions/JPCP/gate?version="+v, reader, nil).object(t); gate["approval"].(map[string]any)["state"] != "approved" {
		t.Fatalf("gate %v", gate)
	}
	p.refused(409, "already_decided", "POST", "/promotions/"+id+"/approve", operator, nil)
	p.refused(409, "already_decided", "POST", "/promotions/"+id+"/reject", operator, nil)
	p.refused(409, "already_decided", "POST", "/approvals/"+record+"/reject", operator, nil)
	// The run knows its version, and the record of runs tells all of it.
	p.orchestrator.state(run, "COMPLETED", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		if n := len(p.events("job.completed")); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	e := p.events("job.completed")[0]
	if e.Data["version"] != v || e.Data["run_id"] != "jpcp-"+v || e.Data["metrics"].(map[string]any)["rmse"] != 12.0 {
		t.Fatalf("event %v", e.Data)
	}
	items := p.want(200, "GET", "/runs?model=jpcp&state=completed", reader, nil).object(t)["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["model_version"] != v || items[0].(map[string]any)["ended_at"] == nil {
		t.Fatalf("runs %v", items)
	}
	// History: Staging, Canary by the ladder, Production by the promotion.
	for alias, via := range map[string]string{"Staging": "ladder", "Canary": "ladder", "Production": "promotion"} {
		h := p.want(200, "GET", "/alias-history?model=JPCP&alias="+alias, reader, nil).object(t)["items"].([]any)
		if len(h) != 1 || h[0].(map[string]any)["via"] != via {
			t.Errorf("history of %s: %v", alias, h)
		}
	}
	// A late report of an older version takes nothing back.
	p.tracker.add("jpcp", good("rmse", 11.0))
	newest := p.tracker.add("jpcp", good("rmse", 10.0))
	p.report("JPCP", newest)
	late := p.report("JPCP", "2")
	if len(late["aliases_set"].([]any)) != 0 || p.tracker.holder("jpcp", "Staging") != newest {
		t.Fatalf("late report %v; Staging is %s", late, p.tracker.holder("jpcp", "Staging"))
	}
}

// Who trained a version at once has asked for its promotion, and does not decide
// it. The platform's own principals do.
func TestOwnTraining(t *testing.T) {
	t.Parallel()
	p := start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	train := func(model, metric string, value float64, by string) string {
		run := p.want(200, "POST", "/retrain", by, map[string]any{"model_name": model, "dataset_name": "JobEmbeddings"}).object(t)["flow_run_id"].(string)
		v := good(metric, value)
		v.runTags = map[string]string{"prefect_flow_run_id": run}
		return p.report(model, p.tracker.add(strings.ToLower(model), v))["promotion_id"].(string)
	}
	id := train("JPCP", "rmse", 12, operator)
	if pr := p.promotion(id); pr["requested_by"] != "operator" || p.approval(pr["approval_id"].(string))["requested_by"] != "operator" {
		t.Fatalf("promotion %v", pr)
	}
	if got := p.audits("promotion.opened"); len(got) != 1 || got[0]["actor"] != "trainer" {
		t.Fatalf("audit %v", got)
	}
	p.refused(403, "own_request", "POST", "/promotions/"+id+"/approve", operator, nil)
	p.want(200, "POST", "/promotions/"+id+"/approve", approver, nil)
	seeded := train("JPCP", "rmse", 11, seeder)
	if pr := p.want(200, "POST", "/promotions/"+seeded+"/approve", seeder, nil).object(t); pr["requested_by"] != "system:seed" || pr["state"] != "promoted" {
		t.Fatalf("promotion %v", pr)
	}
}

// Under approval_mode run the approval of the training run is enough.
func TestApprovalModeRun(t *testing.T) {
	t.Parallel()
	p := start(t, "PROMOTION_APPROVAL_MODE_DEFAULT=run")
	approval, _, v := p.trained("JPCP", "JobEmbeddings", good("rmse", 12.0))
	out := p.report("JPCP", v)
	pr := p.promotion(out["promotion_id"].(string))
	if pr["state"] != "promoted" || pr["decided_by"] != "operator" || !strings.Contains(pr["reason"].(string), approval) {
		t.Fatalf("promotion %v", pr)
	}
	if h := p.tracker.holder("jpcp", "Production"); h != v {
		t.Fatalf("Production is %q", h)
	}
	// A run that nobody approved waits for a person all the same.
	run := p.want(200, "POST", "/retrain", operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`).object(t)["flow_run_id"].(string)
	next := good("rmse", 11.0)
	next.runTags = map[string]string{"prefect_flow_run_id": run}
	out = p.report("JPCP", p.tracker.add("jpcp", next))
	if pr := p.promotion(out["promotion_id"].(string)); pr["state"] != "pending" {
		t.Fatalf("promotion %v", pr)
	}
}

// What holds a version back holds it back on the ladder too.
func TestLadderHoldsBack(t *testing.T) {
	t.Parallel()
	p := start(t, "ALLOW_GENERATED_PRODUCTION=false")
	for name, c := range map[string]struct {
		v      trackedVersion
		set    string
		reason string
	}{
		"too bad for Canary": {good("rmse", 150.0), "[Staging]", "rmse is 150"},
		"dummy":              {trackedVersion{metrics: map[string]any{"rmse": 1.0}, tags: map[string]string{"artifact_digest": digest, "dummy": "true"}}, "[Staging]", "dummy"},
		"generated":          {trackedVersion{metrics: map[string]any{"rmse": 1.0}, tags: map[string]string{"artifact_digest": digest, "data_origin": "generated"}}, "[Staging Canary]", "generated data"},
		"not a number":       {good("rmse", "NaN"), "[]", "not finite"},
		"infinite":           {good("rmse", -math.MaxFloat64), "[]", "not finite"},
	} {
		v := p.tracker.add("jpcp", c.v)
		out := p.report("JPCP", v)
		last := out["rungs"].([]any)[2].(map[string]any)
		if fmt.Sprint(out["aliases_set"]) != c.set || out["promotion_id"] != nil || last["pass"] != false || !strings.Contains(fmt.Sprint(out["rungs"]), c.reason) {
			t.Errorf("%s: %v", name, out)
		}
	}
	if h := p.tracker.holder("jpcp", "Production"); h != "" {
		t.Fatalf("Production is %q", h)
	}
	other := good("rmse", 1.0)
	other.runTags = map[string]string{"prefect_flow_run_id": "f1"}
	p.refused(409, "version_mismatch", "POST", "/versions", trainer, map[string]any{"model": "JPCP", "version": p.tracker.add("jpcp", other), "flow_run_id": "f2"})
}

// Moves by others are seen and recorded; a promotion that was shown another
// holder is superseded by them.
func TestExternalMoves(t *testing.T) {
	t.Parallel()
	p := start(t)
	v := p.tracker.add("jpcp", good("rmse", 12.0))
	p.report("JPCP", v)
	id := p.pendingPromotion("JPCP")
	p.tracker.move("jpcp", "Production", p.tracker.add("jpcp", good("rmse", 13.0)))
	r := p.refused(409, "alias_moved", "POST", "/promotions/"+id+"/approve", operator, nil).object(t)
	if r["version"] != "2" || p.tracker.holder("jpcp", "Production") != "2" {
		t.Fatalf("answer %v", r)
	}
	if pr := p.promotion(id); pr["state"] != "superseded" {
		t.Fatalf("promotion %v", pr)
	}
	h := p.want(200, "GET", "/alias-history?model=JPCP&alias=Production", reader, nil).object(t)["items"].([]any)
	if len(h) != 1 || h[0].(map[string]any)["via"] != "external" || h[0].(map[string]any)["actor"] != "external" {
		t.Fatalf("history %v", h)
	}
	// The watcher finds one that nobody asks about.
	p.tracker.add("mack", good("accuracy", 0.9))
	p.tracker.move("mack", "Canary", "1")
	p.tracker.move("jpcp", "Production", "")
	testenv.Eventually(t, 45*time.Second, func() error {
		m := p.want(200, "GET", "/alias-history?model=MACK", reader, nil).object(t)["items"].([]any)
		j := p.want(200, "GET", "/alias-history?model=JPCP&alias=Production", reader, nil).object(t)["items"].([]any)
		if len(m) != 1 || len(j) != 2 || j[0].(map[string]any)["version"] != nil {
			return fmt.Errorf("%v %v", m, j)
		}
		return nil
	})
	for _, e := range p.events("deploy.alias_changed") {
		if e.Tenant != "platform" {
			t.Errorf("event %v", e)
		}
	}
}

// A tracker that fails changes nothing before the decision, and is told again after it.
func TestTrackerFails(t *testing.T) {
	t.Parallel()
	p := start(t)
	v := p.tracker.add("jpcp", good("rmse", 12.0))
	p.report("JPCP", v)
	id := p.pendingPromotion("JPCP")
	for _, mode := range []string{down, broken, garbage} {
		p.tracker.set(mode)
		p.refused(502, "tracker_unreachable", "POST", "/promotions/"+id+"/approve", operator, nil)
		p.refused(502, "tracker_unreachable", "GET", "/promotions/JPCP/gate", operator, nil)
		p.refused(502, "tracker_unreachable", "POST", "/versions", trainer, `{"model":"JPCP","version":"7"}`)
	}
	p.tracker.set(well)
	if pr := p.promotion(id); pr["state"] != "pending" {
		t.Fatalf("promotion %v", pr)
	}
	p.tracker.set(failMoves)
	if pr := p.want(200, "POST", "/promotions/"+id+"/approve", operator, nil).object(t); pr["state"] != "approved" {
		t.Fatalf("promotion %v", pr)
	}
	p.tracker.set(well)
	testenv.Eventually(t, 30*time.Second, func() error {
		if pr := p.promotion(id); pr["state"] != "promoted" {
			return fmt.Errorf("promotion %v", pr)
		}
		return nil
	})
	// A refusal is final.
	next := p.tracker.add("jpcp", good("rmse", 11.0))
	p.report("JPCP", next)
	id = p.pendingPromotion("JPCP")
	p.tracker.set(refusing)
	if pr := p.want(200, "POST", "/promotions/"+id+"/approve", operator, nil).object(t); pr["state"] != "failed" || !strings.Contains(pr["reason"].(string), "refused") {
		t.Fatalf("promotion %v", pr)
	}
	p.tracker.set(well)
	if got := p.audits("promotion.failed"); len(got) != 1 || got[0]["outcome"] != "failed" {
		t.Fatalf("audit %v", got)
	}
}

// Promotions of one alias supersede each other; rejecting and expiring end them.
func TestPromotionStates(t *testing.T) {
	t.Parallel()
	p := start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	v := p.tracker.add("mack", good("accuracy", 0.9))
	p.tracker.move("mack", "Staging", v)
	body := map[string]any{"model": "MACK", "approve": true}
	first := p.want(200, "POST", "/promotions", operator, body).object(t)
	if first["state"] != "pending" || first["allowed"] != true { // asking is not deciding
		t.Fatalf("promotion %v", first)
	}
	if again := p.want(200, "POST", "/promotions", operator, body).object(t); again["id"] != first["id"] {
		t.Fatalf("opened twice: %v", again)
	}
	id := first["id"].(string)
	p.refused(403, "own_request", "POST", "/promotions/"+id+"/approve", operator, nil)
	body["conditions"] = []any{map[string]any{"metric": "accuracy", "op": "gt", "value": 0.8}}
	second := p.want(200, "POST", "/promotions", operator, body).object(t)["id"].(string)
	if pr := p.promotion(id); pr["state"] != "superseded" {
		t.Fatalf("promotion %v", pr)
	}
	if rec := p.approval(p.promotion(id)["approval_id"].(string)); rec["status"] != "expired" {
		t.Fatalf("record %v", rec)
	}
	if pr := p.want(200, "POST", "/promotions/"+second+"/reject", approver, `{"reason":"not now"}`).object(t); pr["state"] != "rejected" || pr["decided_by"] != "approver" || pr["reason"] != "not now" {
		t.Fatalf("promotion %v", pr)
	}
	if g := p.want(200, "GET", "/promotions/mack/gate?version="+v, reader, nil).object(t); g["approval"].(map[string]any)["state"] != "rejected" {
		t.Fatalf("gate %v", g)
	}
	third := p.want(200, "POST", "/promotions", operator, body).object(t)["id"].(string)
	p.sql("update control_plane.promotions set expires_at = now() - interval '1 hour' where id = $1", third)
	p.refused(409, "already_decided", "POST", "/promotions/"+third+"/approve", approver, nil)
	if pr := p.promotion(third); pr["state"] != "expired" {
		t.Fatalf("promotion %v", pr)
	}
	if reasons := fmt.Sprint(p.refused(409, "promotion_denied", "POST", "/promotions", operator, `{"model":"MACK","conditions":[{"metric":"accuracy","op":"gt","value":0.99}]}`).object(t)["reasons"]); !strings.Contains(reasons, "accuracy is 0.9; wanted > 0.99") {
		t.Fatalf("reasons %s", reasons)
	}
}

// Policies come from the Production rung, can be changed and removed, and a
// removed one does not come back with a restart.
func TestPolicies(t *testing.T) {
	t.Parallel()
	p := neighbours(t, "PROMOTION_APPROVAL_MODE_DEFAULT=run")
	stop := p.serve()
	list := p.want(200, "GET", "/promotion-policies", reader, nil).object(t)["items"].([]any)
	jpcp := list[0].(map[string]any)
	if len(list) != 5 || jpcp["model"] != "JPCP" || jpcp["metric"] != "rmse" || jpcp["operator"] != "lte" || jpcp["threshold"] != 50.0 ||
		jpcp["from_alias"] != "Staging" || jpcp["to_alias"] != "Production" || jpcp["approval_mode"] != "run" || jpcp["updated_by"] != "system:registry" {
		t.Fatalf("policies %v", list)
	}
	page := p.want(200, "GET", "/promotion-policies?limit=2", reader, nil).object(t)
	rest := p.want(200, "GET", "/promotion-policies?limit=500&cursor="+page["next_cursor"].(string), reader, nil).object(t)["items"].([]any)
	if len(rest) != 3 {
		t.Fatalf("second page %v", rest)
	}
	set := p.want(200, "PUT", "/promotion-policies/jpcp", operator, `{"metric":"mae","operator":"lt","threshold":5,"from_alias":"canary","approval_mode":"each"}`).object(t)
	if set["from_alias"] != "Canary" || set["approval_mode"] != "each" || set["updated_by"] != "operator" || set["enabled"] != true {
		t.Fatalf("policy %v", set)
	}
	if got := p.audits("promotion_policy.set"); len(got) != 1 || got[0]["details"].(map[string]any)["old"].(map[string]any)["metric"] != "rmse" {
		t.Fatalf("audit %v", got)
	}
	p.want(204, "DELETE", "/promotion-policies/MACK", operator, nil)
	p.refused(404, "policy_not_found", "DELETE", "/promotion-policies/MACK", operator, nil)
	stop()
	p.serve()
	if got := p.want(200, "GET", "/promotion-policies/JPCP", reader, nil).object(t); got["metric"] != "mae" {
		t.Fatalf("policy %v", got)
	}
	p.refused(404, "policy_not_found", "GET", "/promotion-policies/MACK", reader, nil)
}
