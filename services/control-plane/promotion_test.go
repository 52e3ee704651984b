package controlplane_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A passed ladder sets Staging and Canary at once and opens a promotion, which
// a person approves.
func TestLadder(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	_, run, v := p.Trained("JPCP", "JobEmbeddings", controlplanetest.Good("rmse", 12.0))
	out := p.Report("jpcp", v)
	if fmt.Sprint(out["aliases_set"]) != "[Staging Canary]" || out["promotion_id"] == nil {
		t.Fatalf(`report %v; want fmt.Sprint(out["aliases_set"]) == "[Staging Canary]" && out["promotion_id"] != nil`, out)
	}
	for i, alias := range []string{"Staging", "Canary", "Production"} {
		if r := out["rungs"].([]any)[i].(map[string]any); r["alias"] != alias || r["pass"] != true || r["reason"] != nil {
			t.Errorf(`rung %v; want r["alias"] == alias && r["pass"] == true && r["reason"] == nil`, r)
		}
	}
	if again := p.Report("JPCP", v); fmt.Sprint(again) != fmt.Sprint(out) {
		t.Errorf("again %v, first %v; want fmt.Sprint(again) == fmt.Sprint(out)", again, out)
	}
	id := p.PendingPromotion("jpcp")
	pr := p.Promotion(id)
	if pr["version"] != v || pr["origin"] != "ladder" || pr["requested_by"] != "trainer" || pr["flow_run_id"] != run {
		t.Fatalf(`promotion %v; want pr["version"] == v && pr["origin"] == "ladder" && pr["requested_by"] == "trainer" && pr["flow_run_id"] == run`, pr)
	}
	gate := p.Want(200, "GET", "/promotions/JPCP/gate", controlplanetest.Reader, nil).Object(t)
	if gate["allowed"] != false || gate["approval"].(map[string]any)["state"] != "pending" || gate["policy"].(map[string]any)["allow"] != true ||
		gate["eval"].(map[string]any)["pass"] != true || gate["trackerName"] != "jpcp" || gate["version"] != v {
		t.Fatalf(`gate %v; want gate["allowed"] == false && gate["approval"].(map[string]any)["state"] == "pending" && gate["policy"].(map[string]any)["allow"] == true && …`, gate)
	}
	// A metric that was not measured has not passed.
	for _, none := range []string{"99", "2147483648"} {
		g := p.Want(200, "GET", "/promotions/JPCP/gate?version="+none, controlplanetest.Reader, nil).Object(t)
		if g["allowed"] != false || g["eval"].(map[string]any)["pass"] != false || !strings.Contains(fmt.Sprint(g["checks"]), "no version "+none) {
			t.Fatalf(`gate %v; want g["allowed"] == false && g["eval"].(map[string]any)["pass"] == false && strings.Contains(fmt.Sprint(g["checks"]), "no version "+none)`, g)
		}
	}
	// Its approval record decides it as well.
	record := pr["approval_id"].(string)
	if rec := p.Approval(record); rec["kind"] != "promotion" || rec["origin"] != "promotion" || rec["promotion_id"] != id || rec["status"] != "pending" {
		t.Fatalf(`record %v; want rec["kind"] == "promotion" && rec["origin"] == "promotion" && rec["promotion_id"] == id && rec["status"] == "pending"`, rec)
	}
	ans := p.Want(200, "POST", "/approvals/"+record+"/approve", controlplanetest.Operator, `{"reason":"good"}`).Object(t)
	if ans["status"] != "approved" || ans["promotion_id"] != id || ans["flow_run_id"] != nil {
		t.Fatalf(`answer %v; want ans["status"] == "approved" && ans["promotion_id"] == id && ans["flow_run_id"] == nil`, ans)
	}
	pr = p.Promotion(id)
	if pr["state"] != "promoted" || pr["decided_by"] != "operator" || pr["reason"] != "good" || p.Tracker.Holder("jpcp", "Production") != v {
		t.Fatalf(`promotion %v; want pr["state"] == "promoted" && pr["decided_by"] == "operator" && pr["reason"] == "good" && p.Tracker.Holder("jpcp", "Production") == v`, pr)
	}
	if gate := p.Want(200, "GET", "/promotions/JPCP/gate?version="+v, controlplanetest.Reader, nil).Object(t); gate["approval"].(map[string]any)["state"] != "approved" {
		t.Fatalf(`gate %v; want gate["approval"].(map[string]any)["state"] == "approved"`, gate)
	}
	p.Refused(409, "already_decided", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
	p.Refused(409, "already_decided", "POST", "/promotions/"+id+"/reject", controlplanetest.Operator, nil)
	p.Refused(409, "already_decided", "POST", "/approvals/"+record+"/reject", controlplanetest.Operator, nil)
	// The run has its version, and the list of runs shows both.
	p.Orchestrator.State(run, "COMPLETED", "")
	testenv.Eventually(t, 15*time.Second, func() error {
		if n := len(p.Events("job.completed")); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	e := p.Events("job.completed")[0]
	if e.Data["version"] != v || e.Data["run_id"] != "jpcp-"+v || e.Data["metrics"].(map[string]any)["rmse"] != 12.0 {
		t.Fatalf(`event %v; want e.Data["version"] == v && e.Data["run_id"] == "jpcp-" + v && e.Data["metrics"].(map[string]any)["rmse"] == 12.0`, e.Data)
	}
	items := p.Want(200, "GET", "/runs?model=jpcp&state=completed", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["model_version"] != v || items[0].(map[string]any)["ended_at"] == nil {
		t.Fatalf(`runs %v; want len(items) == 1 && items[0].(map[string]any)["model_version"] == v && items[0].(map[string]any)["ended_at"] != nil`, items)
	}
	// History: Staging, Canary by the ladder, Production by the promotion.
	for alias, via := range map[string]string{"Staging": "ladder", "Canary": "ladder", "Production": "promotion"} {
		h := p.Want(200, "GET", "/alias-history?model=JPCP&alias="+alias, controlplanetest.Reader, nil).Object(t)["items"].([]any)
		if len(h) != 1 || h[0].(map[string]any)["via"] != via {
			t.Errorf(`history of %s: %v; want len(h) == 1 && h[0].(map[string]any)["via"] == via`, alias, h)
		}
	}
	// A late report of an older version takes no alias back.
	p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 11.0))
	newest := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 10.0))
	p.Report("JPCP", newest)
	late := p.Report("JPCP", "2")
	if len(late["aliases_set"].([]any)) != 0 || p.Tracker.Holder("jpcp", "Staging") != newest {
		t.Fatalf(`late report %v; Staging is %s; want len(late["aliases_set"].([]any)) == 0 && p.Tracker.Holder("jpcp", "Staging") == newest`, late, p.Tracker.Holder("jpcp", "Staging"))
	}
}

// A person who trained a version without approval counts as a requester of its promotion, and does not decide it. The
// platform's own principals do.
func TestOwnTraining(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	train := func(model, metric string, value float64, by string) string {
		run := p.Want(200, "POST", "/retrain", by, map[string]any{"model_name": model, "dataset_name": "JobEmbeddings"}).Object(t)["flow_run_id"].(string)
		v := controlplanetest.Good(metric, value)
		v.RunTags = map[string]string{"prefect_flow_run_id": run}
		return p.Report(model, p.Tracker.Add(strings.ToLower(model), v))["promotion_id"].(string)
	}
	id := train("JPCP", "rmse", 12, controlplanetest.Operator)
	if pr := p.Promotion(id); pr["requested_by"] != "operator" || p.Approval(pr["approval_id"].(string))["requested_by"] != "operator" {
		t.Fatalf(`promotion %v; want pr["requested_by"] == "operator" && p.Approval(pr["approval_id"].(string))["requested_by"] == "operator"`, pr)
	}
	if got := p.Audits("promotion.opened"); len(got) != 1 || got[0]["actor"] != "trainer" {
		t.Fatalf(`audit %v; want len(got) == 1 && got[0]["actor"] == "trainer"`, got)
	}
	p.Refused(403, "own_request", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
	p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Approver, nil)
	seeded := train("JPCP", "rmse", 11, controlplanetest.Seeder)
	if pr := p.Want(200, "POST", "/promotions/"+seeded+"/approve", controlplanetest.Seeder, nil).Object(t); pr["requested_by"] != "system:seed" || pr["state"] != "promoted" {
		t.Fatalf(`promotion %v; want pr["requested_by"] == "system:seed" && pr["state"] == "promoted"`, pr)
	}
}

// Under approval_mode run the approval of the training run is enough.
func TestApprovalModeRun(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "PROMOTION_APPROVAL_MODE_DEFAULT=run")
	approval, _, v := p.Trained("JPCP", "JobEmbeddings", controlplanetest.Good("rmse", 12.0))
	out := p.Report("JPCP", v)
	pr := p.Promotion(out["promotion_id"].(string))
	if pr["state"] != "promoted" || pr["decided_by"] != "operator" || !strings.Contains(pr["reason"].(string), approval) {
		t.Fatalf(`promotion %v; want pr["state"] == "promoted" && pr["decided_by"] == "operator" && strings.Contains(pr["reason"].(string), approval)`, pr)
	}
	if h := p.Tracker.Holder("jpcp", "Production"); h != v {
		t.Fatalf("Production is %q; want %v", h, v)
	}
	// A run without approval waits for a person all the same.
	run := p.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings"}`).Object(t)["flow_run_id"].(string)
	next := controlplanetest.Good("rmse", 11.0)
	next.RunTags = map[string]string{"prefect_flow_run_id": run}
	out = p.Report("JPCP", p.Tracker.Add("jpcp", next))
	if pr := p.Promotion(out["promotion_id"].(string)); pr["state"] != "pending" {
		t.Fatalf(`promotion %v; want pr["state"] == "pending"`, pr)
	}
}

// The rules that hold a version back also apply on the ladder.
func TestLadderHoldsBack(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "ALLOW_GENERATED_PRODUCTION=false")
	for name, c := range map[string]struct {
		v      controlplanetest.Version
		set    string
		reason string
	}{
		"too bad for Canary": {controlplanetest.Good("rmse", 150.0), "[Staging]", "rmse is 150"},
		"dummy":              {controlplanetest.Version{Metrics: map[string]any{"rmse": 1.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "true"}}, "[Staging]", "dummy"},
		"generated":          {controlplanetest.Version{Metrics: map[string]any{"rmse": 1.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "data_origin": "generated"}}, "[Staging Canary]", "generated data"},
		"not a number":       {controlplanetest.Good("rmse", "NaN"), "[]", "not finite"},
		"infinite":           {controlplanetest.Good("rmse", -math.MaxFloat64), "[]", "not finite"},
	} {
		v := p.Tracker.Add("jpcp", c.v)
		p.Tracker.Move("jpcp", "Staging", "") // a dummy takes it only if no real version holds it
		out := p.Report("JPCP", v)
		last := out["rungs"].([]any)[2].(map[string]any)
		if fmt.Sprint(out["aliases_set"]) != c.set || out["promotion_id"] != nil || last["pass"] != false || !strings.Contains(fmt.Sprint(out["rungs"]), c.reason) {
			t.Errorf(`%s: %v; want fmt.Sprint(out["aliases_set"]) == c.set && out["promotion_id"] == nil && last["pass"] == false && strings.Contains(fmt.Sprint(out["rungs"]), c.reason)`, name, out)
		}
	}
	if h := p.Tracker.Holder("jpcp", "Production"); h != "" {
		t.Fatalf(`Production is %q; want ""`, h)
	}
	other := controlplanetest.Good("rmse", 1.0)
	other.RunTags = map[string]string{"prefect_flow_run_id": "f1"}
	p.Refused(409, "version_mismatch", "POST", "/versions", controlplanetest.Trainer, map[string]any{"model": "JPCP", "version": p.Tracker.Add("jpcp", other), "flow_run_id": "f2"})
}

// Moves by others are noticed and recorded, and supersede a promotion that was shown another holder.
func TestExternalMoves(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", v)
	id := p.PendingPromotion("JPCP")
	p.Tracker.Move("jpcp", "Production", p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 13.0)))
	r := p.Refused(409, "alias_moved", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil).Object(t)
	if r["version"] != "2" || p.Tracker.Holder("jpcp", "Production") != "2" {
		t.Fatalf(`answer %v; want r["version"] == "2" && p.Tracker.Holder("jpcp", "Production") == "2"`, r)
	}
	if pr := p.Promotion(id); pr["state"] != "superseded" {
		t.Fatalf(`promotion %v; want pr["state"] == "superseded"`, pr)
	}
	h := p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(h) != 1 || h[0].(map[string]any)["via"] != "external" || h[0].(map[string]any)["actor"] != "external" {
		t.Fatalf(`history %v; want len(h) == 1 && h[0].(map[string]any)["via"] == "external" && h[0].(map[string]any)["actor"] == "external"`, h)
	}
	// The watcher finds one without a caller's query.
	p.Tracker.Add("mack", controlplanetest.Good("accuracy", 0.9))
	p.Tracker.Move("mack", "Canary", "1")
	p.Tracker.Move("jpcp", "Production", "")
	testenv.Eventually(t, 45*time.Second, func() error {
		m := p.Want(200, "GET", "/alias-history?model=MACK", controlplanetest.Reader, nil).Object(t)["items"].([]any)
		j := p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)
		if len(m) != 1 || len(j) != 2 || j[0].(map[string]any)["version"] != nil {
			return fmt.Errorf("%v %v", m, j)
		}
		return nil
	})
	for _, e := range p.Events("deploy.alias_changed") {
		if e.Tenant != "platform" {
			t.Errorf(`event %v; want e.Tenant == "platform"`, e)
		}
	}
}

// A tracker that fails changes nothing before the decision, and is called again after it.
func TestTrackerFails(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 12.0))
	p.Report("JPCP", v)
	id := p.PendingPromotion("JPCP")
	for _, mode := range []string{controlplanetest.Down, controlplanetest.Broken, controlplanetest.Garbage} {
		p.Tracker.Set(mode)
		p.Refused(502, "tracker_unreachable", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
		p.Refused(502, "tracker_unreachable", "GET", "/promotions/JPCP/gate", controlplanetest.Operator, nil)
		p.Refused(502, "tracker_unreachable", "POST", "/versions", controlplanetest.Trainer, `{"model":"JPCP","version":"7"}`)
	}
	p.Tracker.Set(controlplanetest.Well)
	if pr := p.Promotion(id); pr["state"] != "pending" {
		t.Fatalf(`promotion %v; want pr["state"] == "pending"`, pr)
	}
	p.Tracker.Set(controlplanetest.FailMoves)
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil).Object(t); pr["state"] != "approved" {
		t.Fatalf(`promotion %v; want pr["state"] == "approved"`, pr)
	}
	p.Tracker.Set(controlplanetest.Well)
	testenv.Eventually(t, 30*time.Second, func() error {
		if pr := p.Promotion(id); pr["state"] != "promoted" {
			return fmt.Errorf("promotion %v", pr)
		}
		return nil
	})
	// A refusal is final.
	next := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 11.0))
	p.Report("JPCP", next)
	id = p.PendingPromotion("JPCP")
	p.Tracker.Set(controlplanetest.Refusing)
	if pr := p.Want(200, "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil).Object(t); pr["state"] != "failed" || !strings.Contains(pr["reason"].(string), "refused") {
		t.Fatalf(`promotion %v; want pr["state"] == "failed" && strings.Contains(pr["reason"].(string), "refused")`, pr)
	}
	p.Tracker.Set(controlplanetest.Well)
	if got := p.Audits("promotion.failed"); len(got) != 1 || got[0]["outcome"] != "failed" {
		t.Fatalf(`audit %v; want len(got) == 1 && got[0]["outcome"] == "failed"`, got)
	}
}

// Promotions of one alias supersede each other; rejecting and expiring end them.
func TestPromotionStates(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	v := p.Tracker.Add("mack", controlplanetest.Good("accuracy", 0.9))
	p.Tracker.Move("mack", "Staging", v)
	body := map[string]any{"model": "MACK", "approve": true}
	first := p.Want(200, "POST", "/promotions", controlplanetest.Operator, body).Object(t)
	if first["state"] != "pending" || first["allowed"] != true { // a request is not a decision
		t.Fatalf(`promotion %v; want first["state"] == "pending" && first["allowed"] == true`, first)
	}
	if again := p.Want(200, "POST", "/promotions", controlplanetest.Operator, body).Object(t); again["id"] != first["id"] {
		t.Fatalf(`opened twice: %v; want again["id"] == %v`, again, first["id"])
	}
	id := first["id"].(string)
	p.Refused(403, "own_request", "POST", "/promotions/"+id+"/approve", controlplanetest.Operator, nil)
	body["conditions"] = []any{map[string]any{"metric": "accuracy", "op": "gt", "value": 0.8}}
	second := p.Want(200, "POST", "/promotions", controlplanetest.Operator, body).Object(t)["id"].(string)
	if pr := p.Promotion(id); pr["state"] != "superseded" {
		t.Fatalf(`promotion %v; want pr["state"] == "superseded"`, pr)
	}
	if rec := p.Approval(p.Promotion(id)["approval_id"].(string)); rec["status"] != "expired" {
		t.Fatalf(`record %v; want rec["status"] == "expired"`, rec)
	}
	if pr := p.Want(200, "POST", "/promotions/"+second+"/reject", controlplanetest.Approver, `{"reason":"not now"}`).Object(t); pr["state"] != "rejected" || pr["decided_by"] != "approver" || pr["reason"] != "not now" {
		t.Fatalf(`promotion %v; want pr["state"] == "rejected" && pr["decided_by"] == "approver" && pr["reason"] == "not now"`, pr)
	}
	if g := p.Want(200, "GET", "/promotions/mack/gate?version="+v, controlplanetest.Reader, nil).Object(t); g["approval"].(map[string]any)["state"] != "rejected" {
		t.Fatalf(`gate %v; want g["approval"].(map[string]any)["state"] == "rejected"`, g)
	}
	third := p.Want(200, "POST", "/promotions", controlplanetest.Operator, body).Object(t)["id"].(string)
	p.SQL("update control_plane.promotions set expires_at = now() - interval '1 hour' where id = $1", third)
	p.Refused(409, "already_decided", "POST", "/promotions/"+third+"/approve", controlplanetest.Approver, nil)
	if pr := p.Promotion(third); pr["state"] != "expired" {
		t.Fatalf(`promotion %v; want pr["state"] == "expired"`, pr)
	}
	if reasons := fmt.Sprint(p.Refused(409, "promotion_denied", "POST", "/promotions", controlplanetest.Operator, `{"model":"MACK","conditions":[{"metric":"accuracy","op":"gt","value":0.99}]}`).Object(t)["reasons"]); !strings.Contains(reasons, "accuracy is 0.9; wanted > 0.99") {
		t.Fatalf(`reasons %s; want strings.Contains(reasons, "accuracy is 0.9; wanted > 0.99")`, reasons)
	}
}

// Policies come from the Production rung, can be changed and removed, and a
// removed one does not come back with a restart.
func TestPolicies(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "PROMOTION_APPROVAL_MODE_DEFAULT=run")
	stop := p.Serve()
	list := p.Want(200, "GET", "/promotion-policies", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	jpcp := list[0].(map[string]any)
	if len(list) != 5 || jpcp["model"] != "JPCP" || jpcp["metric"] != "rmse" || jpcp["operator"] != "lte" || jpcp["threshold"] != 50.0 ||
		jpcp["from_alias"] != "Staging" || jpcp["to_alias"] != "Production" || jpcp["approval_mode"] != "run" || jpcp["updated_by"] != "system:registry" {
		t.Fatalf(`policies %v; want len(list) == 5 && jpcp["model"] == "JPCP" && jpcp["metric"] == "rmse" && jpcp["operator"] == "lte" && jpcp["threshold"] == 50.0 && jpcp["from_alias"] == "Staging" && …`, list)
	}
	page := p.Want(200, "GET", "/promotion-policies?limit=2", controlplanetest.Reader, nil).Object(t)
	rest := p.Want(200, "GET", "/promotion-policies?limit=500&cursor="+page["next_cursor"].(string), controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(rest) != 3 {
		t.Fatalf("second page %v; want len(rest) == 3", rest)
	}
	set := p.Want(200, "PUT", "/promotion-policies/jpcp", controlplanetest.Operator, `{"metric":"mae","operator":"lt","threshold":5,"from_alias":"canary","approval_mode":"each"}`).Object(t)
	if set["from_alias"] != "Canary" || set["approval_mode"] != "each" || set["updated_by"] != "operator" || set["enabled"] != true {
		t.Fatalf(`policy %v; want set["from_alias"] == "Canary" && set["approval_mode"] == "each" && set["updated_by"] == "operator" && set["enabled"] == true`, set)
	}
	if got := p.Audits("promotion_policy.set"); len(got) != 1 || got[0]["details"].(map[string]any)["old"].(map[string]any)["metric"] != "rmse" {
		t.Fatalf(`audit %v; want len(got) == 1 && got[0]["details"].(map[string]any)["old"].(map[string]any)["metric"] == "rmse"`, got)
	}
	p.Refused(404, "model_not_found", "DELETE", "/promotion-policies/MACK", controlplanetest.Foreign, nil)
	p.Want(204, "DELETE", "/promotion-policies/MACK", controlplanetest.Operator, nil)
	if got := p.Audits("promotion_policy.removed"); len(got) != 1 || got[0]["tenant"] != "default" || got[0]["actor"] != "operator" || p.Audits("promotion_policy.set")[0]["tenant"] != "default" {
		t.Fatalf("got %v, want the owner's own facts", got)
	}
	p.Refused(404, "policy_not_found", "DELETE", "/promotion-policies/MACK", controlplanetest.Operator, nil)
	stop()
	p.Serve()
	if got := p.Want(200, "GET", "/promotion-policies/JPCP", controlplanetest.Reader, nil).Object(t); got["metric"] != "mae" {
		t.Fatalf(`policy %v; want got["metric"] == "mae"`, got)
	}
	p.Refused(404, "policy_not_found", "GET", "/promotion-policies/MACK", controlplanetest.Reader, nil)
}

// A dummy takes Staging only where none or a dummy holds it.
func TestDummyLeavesARealCandidateAlone(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	dummy := controlplanetest.Version{Metrics: map[string]any{"rmse": 10.0}, Tags: map[string]string{"artifact_digest": controlplanetest.Digest, "dummy": "true"}}
	report := func(v string) {
		p.Want(200, "POST", "/versions", controlplanetest.Trainer, map[string]any{"model": "JPCP", "version": v})
	}
	for _, step := range []struct {
		name    string
		version controlplanetest.Version
		holder  string
	}{
		{"where none holds it", dummy, "1"},
		{"where a dummy holds it", dummy, "2"},
		{"a real one takes it of a dummy", controlplanetest.Good("rmse", 150.0), "3"},
		{"a dummy leaves it to the real one", dummy, "3"},
		{"a newer real one takes it", controlplanetest.Good("rmse", 140.0), "5"},
	} {
		report(p.Tracker.Add("jpcp", step.version))
		if got := p.Tracker.Holder("jpcp", "Staging"); got != step.holder {
			t.Errorf("%s: got version %s in Staging, want %s", step.name, got, step.holder)
		}
	}
}

// A version whose definition no commit holds reaches Staging at most.
func TestDirtyDefinitionStaysInStaging(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := controlplanetest.Good("rmse", 10.0)
	v.RunTags = map[string]string{"modelrepo_dirty": "true"}
	version := p.Tracker.Add("jpcp", v)
	out := p.Want(200, "POST", "/versions", controlplanetest.Trainer, map[string]any{"model": "JPCP", "version": version}).Object(t)
	if got := fmt.Sprint(out["aliases_set"]); got != "[Staging]" {
		t.Errorf("got aliases %s, want [Staging]", got)
	}
	r := p.Refused(409, "promotion_denied", "POST", "/promotions", controlplanetest.Operator, map[string]any{"model": "JPCP"})
	if !strings.Contains(string(r.Body), "no commit holds") {
		t.Errorf("got %s, want the reason", r.Body)
	}
}
