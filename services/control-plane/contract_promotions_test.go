package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// rows runs subtests, each a row.
type rows func(name string, f func(t *testing.T, p *controlplanetest.Plane))

const (
	policyMembers    = "model metric operator threshold from_alias to_alias enabled require_eval approval_mode updated_at updated_by"
	promotionMembers = "id model version from to state updated_at updated_by"
	gateMembers      = "model trackerName version policy eval approval allowed checks"
	holderMembers    = "model alias version? previous_version? from to? actor via promotion_id?"
)

// The routes of models, promotions, aliases, drift and alerts; those of the records
// are in contract_records_test.go.
func TestContractModelAndPromotionRoutes(t *testing.T) {
	t.Parallel()
	repo, first := newSampleRepository(t)
	serving := controlplanetest.NewServing(t)
	p := startForWalk(t, append(serving.Env(), "MODELREPO_DIR="+repo.Dir, "MODELREPO_POLL_SECONDS=0", "ALERT_SECONDS=1", "AUTO_RETRAIN_SECONDS=3600")...)
	p.AwaitTarget()
	row := func(name string, f func(t *testing.T, p *controlplanetest.Plane)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { f(t, onSubtest(t, p)) })
	}
	registryRows(row)
	trainingRows(row, repo.Commit("second", map[string]string{"notes": "1\n"}), first)
	promotionRows(row)
	auditRows(row)
	costRows(row)
	governanceRows(row)
	driftRows(row, serving)
	operationRows(row)
}

func registryRows(row rows) {
	row("GET /models", func(t *testing.T, p *controlplanetest.Plane) {
		list := decodeArray(t, p.Want(200, "GET", "/models", "", nil), "model_name datasets")
		if len(list) != 5 || list[0]["model_name"] != "JPCP" {
			t.Error(list, `want len(list) == 5 && list[0]["model_name"] == "JPCP"`)
		}
	})
	row("GET /models/{m}/meta", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, p.Want(200, "GET", "/models/RuntimeClass/meta", "", nil),
			"name trackerName task_type type estimator supported_datasets input_schema output_schema lifecycle project bus_uuid enabled")
		if d["name"] != "RUNTIMECLASS" || d["trackerName"] != "runtimeclass" {
			t.Error(d, `want d["name"] == "RUNTIMECLASS" && d["trackerName"] == "runtimeclass"`)
		}
		p.Refused(404, "model_not_found", "GET", "/models/nope/meta", "", nil)
	})
	row("GET /models/{m}/readme", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, p.Want(200, "GET", "/models/jpcp/readme", "", nil), "text sha")
	})
	row("GET /models/{m}/images/{file}", func(t *testing.T, p *controlplanetest.Plane) {
		r := p.Want(200, "GET", "/models/jpcp/images/parity.png", "", nil)
		if !strings.HasPrefix(string(r.Body), "\x89PNG") || r.Header.Get("Content-Type") != "image/png" {
			t.Errorf("%q %v; want strings.HasPrefix(string(r.Body), \"\\x89PNG\") && r.Header.Get(\"Content-Type\") == \"image/png\"", r.Body, r.Header)
		}
		for _, file := range []string{"none.png", "..%2FREADME.md", "..%2Fmodel.yaml"} {
			if r := p.Call("GET", "/models/jpcp/images/"+file, "", nil); r.Status != 404 {
				t.Errorf("%s: %d %s; want r.Status == 404", file, r.Status, r.Body)
			}
		}
	})
	row("GET /capabilities", func(t *testing.T, p *controlplanetest.Plane) {
		if d := decodeObject(t, p.Want(200, "GET", "/capabilities", "", nil), "service version api features limits backends"); d["service"] != "control-plane" {
			t.Error(d, `want d["service"] == "control-plane"`)
		}
	})
	row("POST /admin/reload", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "manage", "POST", "/admin/reload", nil), "registry_reloaded models errors")
		if d["registry_reloaded"] != true || len(d["models"].([]any)) != 5 || len(d["errors"].([]any)) != 0 {
			t.Error(d, `want d["registry_reloaded"] == true && len(d["models"].([]any)) == 5 && len(d["errors"].([]any)) == 0`)
		}
		if a := p.Audits("registry.reloaded"); len(a) != 1 || a[0]["actor"] != "only-manage" {
			t.Errorf(`audit %v; want len(a) == 1 && a[0]["actor"] == "only-manage"`, a)
		}
	})
	row("GET /status", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/status", nil), "services pending_approvals")
		for _, key := range []string{"tracker", "orchestrator", "serving", "bus"} {
			s, ok := d["services"].(doc)[key].(doc)
			if !ok {
				t.Fatalf("no %s in %v; want ok", key, d)
			}
			expectContractMembers(t, s, "ok status latency_ms? note?")
		}
	})
}

func trainingRows(row rows, head, first string) {
	row("GET /approvals/{id}/diff", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("JPCP", head)
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/approvals/"+id+"/diff", nil), "from_commit? to_commit files truncated")
		if d["from_commit"] != first || d["to_commit"] != head || d["truncated"] != false || len(d["files"].([]any)) != 1 {
			t.Error(d, `want d["from_commit"] == first && d["to_commit"] == head && d["truncated"] == false && len(d["files"].([]any)) == 1`)
		}
		expectContractMembers(t, d["files"].([]any)[0].(doc), "path status additions deletions patch?")
		p.Refused(404, "diff_unavailable", "GET", "/approvals/"+p.Notice("MACK", "deadbeef")+"/diff", all, nil)
		p.Refused(404, "approval_not_found", "GET", "/approvals/"+id+"/diff", controlplanetest.Foreign, nil)
	})
	row("GET /approvals/{id}/effect", func(t *testing.T, p *controlplanetest.Plane) {
		id := p.Notice("MCBound", head)
		e := decodeObject(t, callWithScope(p, 200, "read", "GET", "/approvals/"+id+"/effect", nil),
			"approval_id kind model_id decidable mode policy_enabled target current_version new_version dataset_name starts_training moves first_of_two action sentences")
		if e["mode"] != "each" || e["moves"] != "after_another_approval" || e["starts_training"] != true || e["action"] != "Approve and train" {
			t.Error(e, "want a training run, and another approval before Production moves")
		}
		p.Refused(404, "approval_not_found", "GET", "/approvals/"+id+"/effect", controlplanetest.Foreign, nil)
	})
	row("GET /runs?model=&state=", func(t *testing.T, p *controlplanetest.Plane) {
		for _, model := range []string{"JPCP", "MACK"} {
			p.Want(200, "POST", "/approve/"+model, controlplanetest.Operator, nil)
		}
		list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/runs", nil),
			"flow_run_id model_id dataset_name origin state_type commit_sha approval_id model_version started_at ended_at is_dummy requested_by requesters dispatched_at reason? tracker_run_id? is_generated? metrics?")
		if len(list) != 2 || list[0]["model_id"] != "MACK" || list[0]["approval_id"] == nil {
			t.Error(list, `want len(list) == 2 && list[0]["model_id"] == "MACK" && list[0]["approval_id"] != nil`)
		}
		if of := decodeItems(t, p.Want(200, "GET", "/runs?model=jpcp&state=SCHEDULED", all, nil), ""); len(of) != 1 || of[0]["model_id"] != "JPCP" {
			t.Error(of, `want len(of) == 1 && of[0]["model_id"] == "JPCP"`)
		}
		expectPaging(p, "/runs", false)
	})
	row("POST /versions", func(t *testing.T, p *controlplanetest.Plane) {
		version := p.Tracker.Add("mack", controlplanetest.Good("accuracy", 0.9))
		body := doc{"model": "mack", "version": version}
		d := decodeObject(t, callWithScope(p, 200, "manage", "POST", "/versions", body), "rungs aliases_set promotion_id?")
		rungs := d["rungs"].([]any)
		for i, alias := range []string{"Staging", "Canary", "Production"} {
			if r := expectContractMembers(t, rungs[i].(doc), "alias pass reason?"); r["alias"] != alias || r["pass"] != true {
				t.Errorf(`rung %d: %v; want r["alias"] == alias && r["pass"] == true`, i, r)
			}
		}
		if fmt.Sprint(d["aliases_set"]) != "[Staging Canary]" || d["promotion_id"] == nil || p.Tracker.Holder("mack", "Production") != "" {
			t.Errorf(`%v; Production is %q; want fmt.Sprint(d["aliases_set"]) == "[Staging Canary]" && d["promotion_id"] != nil && p.Tracker.Holder("mack", "Production") == ""`, d, p.Tracker.Holder("mack", "Production"))
		}
		expectUnknownKeyRefused(p, "POST", "/versions", body)
	})
}

func promotionRows(row rows) {
	row("GET /promotion-policies", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/promotion-policies", nil), policyMembers)
		expectPaging(p, "/promotion-policies", false)
	})
	row("PUT /promotion-policies/{m}", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"metric": "rmse", "operator": "lte", "threshold": 50}
		d := decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/promotion-policies/jpcp", body), policyMembers)
		for name, want := range (doc{"model": "JPCP", "from_alias": "Staging", "to_alias": "Production", "enabled": true, "require_eval": false, "approval_mode": "each"}) {
			if d[name] != want {
				t.Errorf("default of %s is %v; want d[name] == %v", name, d[name], want)
			}
		}
		for _, op := range []string{"lt", "gt", "gte", "lte"} {
			p.Want(200, "PUT", "/promotion-policies/jpcp", onlyScope("manage"), doc{"metric": "rmse", "operator": op, "threshold": 50, "approval_mode": "run"})
		}
		p.Want(200, "PUT", "/promotion-policies/jpcp", onlyScope("manage"), body)
		expectUnknownKeyRefused(p, "PUT", "/promotion-policies/jpcp", body)
		if a := p.Audits("promotion_policy.set"); len(a) != 6 || a[5]["details"].(doc)["old"] == nil || a[5]["details"].(doc)["new"] == nil {
			t.Errorf(`audit %v; want len(a) == 6 && a[5]["details"].(doc)["old"] != nil && a[5]["details"].(doc)["new"] != nil`, a)
		}
	})
	row("GET /promotion-policies/{m}", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, callWithScope(p, 200, "read", "GET", "/promotion-policies/jpcp", nil), policyMembers)
	})
	row("DELETE /promotion-policies/{m}", func(t *testing.T, p *controlplanetest.Plane) {
		callWithScope(p, 204, "manage", "DELETE", "/promotion-policies/mcbound", nil)
		p.Refused(404, "policy_not_found", "GET", "/promotion-policies/mcbound", all, nil)
	})
	var v1, id string
	row("GET /promotions/{m}/gate?version=&from=&to=", func(t *testing.T, p *controlplanetest.Plane) {
		v1 = p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 10.0))
		p.Tracker.Move("jpcp", "Staging", v1)
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/promotions/jpcp/gate?version="+v1+"&from=staging&to=PRODUCTION", nil), gateMembers)
		expectContractMembers(t, d["policy"].(doc), "allow reasons")
		expectContractMembers(t, d["eval"].(doc), "pass metrics")
		if a := expectContractMembers(t, d["approval"].(doc), "required state"); a["required"] != true || a["state"] != "pending" {
			t.Errorf(`approval %v; want a["required"] == true && a["state"] == "pending"`, a)
		}
		for _, c := range d["checks"].([]any) {
			expectContractMembers(t, c.(doc), "name pass detail")
		}
		if d["model"] != "JPCP" || d["trackerName"] != "jpcp" || d["version"] != v1 {
			t.Error(d, `want d["model"] == "JPCP" && d["trackerName"] == "jpcp" && d["version"] == v1`)
		}
	})
	row("POST /promotions", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"model": "jpcp", "version": v1, "from": "Staging", "to": "Production", "reason": "better", "conditions": []doc{{"metric": "rmse", "op": "lt", "value": 11}}}
		dry := decodeObject(t, callWithScope(p, 200, "approve", "POST", "/promotions", doc{"model": "jpcp", "dry_run": true}), "id? model version from to state allowed reasons checks")
		if dry["id"] != nil || dry["version"] != v1 || dry["from"] != "Staging" || dry["to"] != "Production" || dry["allowed"] != true {
			t.Errorf(`defaults %v; want dry["id"] == nil && dry["version"] == v1 && dry["from"] == "Staging" && dry["to"] == "Production" && dry["allowed"] == true`, dry)
		}
		expectUnknownKeyRefused(p, "POST", "/promotions", body)
		d := decodeObject(t, p.Want(200, "POST", "/promotions", onlyScope("approve"), body), "id model version from to state allowed reasons checks")
		if d["state"] != "pending" || p.Tracker.Holder("jpcp", "Production") != "" {
			t.Error(d, `want d["state"] == "pending" && p.Tracker.Holder("jpcp", "Production") == ""`)
		}
		id = d["id"].(string)
		body["conditions"] = []doc{{"metric": "rmse", "op": "gt", "value": 11}}
		denied := decodeObject(t, p.Refused(409, "promotion_denied", "POST", "/promotions", onlyScope("approve"), body), "status code detail allowed reasons model version from to state checks")
		if denied["allowed"] != false || len(denied["reasons"].([]any)) != 1 || !strings.Contains(denied["detail"].(string), "1 check") {
			t.Error(denied, `want denied["allowed"] == false && len(denied["reasons"].([]any)) == 1 && strings.Contains(denied["detail"].(string), "1 check")`)
		}
	})
	row("GET /promotions?model=&state=", func(t *testing.T, p *controlplanetest.Plane) {
		list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/promotions?model=jpcp&state=pending", nil), promotionMembers)
		if len(list) != 1 || list[0]["id"] != id {
			t.Error(list, `want len(list) == 1 && list[0]["id"] == id`)
		}
		for _, state := range []string{"pending", "approved", "promoted", "failed", "rejected", "expired", "superseded"} {
			p.Want(200, "GET", "/promotions?state="+state, all, nil)
		}
		p.Refused(422, "validation_error", "GET", "/promotions?state=done", all, nil)
		expectPaging(p, "/promotions", false)
	})
	row("GET /promotions/{id}", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, callWithScope(p, 200, "read", "GET", "/promotions/"+id, nil), promotionMembers)
		p.Refused(404, "promotion_not_found", "GET", "/promotions/"+id, controlplanetest.Foreign, nil)
	})
	row("POST /promotions/{id}/approve", func(t *testing.T, p *controlplanetest.Plane) {
		expectUnknownKeyRefused(p, "POST", "/promotions/"+id+"/approve", doc{})
		d := decodeObject(t, callWithScope(p, 200, "approve", "POST", "/promotions/"+id+"/approve", doc{"reason": "go"}), promotionMembers)
		if d["state"] != "promoted" || p.Tracker.Holder("jpcp", "Production") != v1 {
			t.Error(d, `want d["state"] == "promoted" && p.Tracker.Holder("jpcp", "Production") == v1`)
		}
	})
	row("POST /promotions/{id}/reject", func(t *testing.T, p *controlplanetest.Plane) {
		other := p.PendingPromotion("MACK") // opened by the ladder
		if d := decodeObject(t, callWithScope(p, 200, "approve", "POST", "/promotions/"+other+"/reject", nil), promotionMembers); d["state"] != "rejected" {
			t.Error(d, `want d["state"] == "rejected"`)
		}
	})
	var v2 string
	row("POST /aliases/{m}/{alias}/rollback", func(t *testing.T, p *controlplanetest.Plane) {
		v2 = p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 9.0))
		p.Tracker.Move("jpcp", "Staging", v2)
		p.Want(200, "POST", "/promotions", all, doc{"model": "JPCP", "version": v2, "approve": true})
		expectUnknownKeyRefused(p, "POST", "/aliases/jpcp/production/rollback", doc{"reason": "worse"})
		p.Refused(422, "validation_error", "POST", "/aliases/jpcp/production/rollback", all, doc{}) // the reason is required
		never := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 9.0))
		if r := p.Call("POST", "/aliases/jpcp/production/rollback", all, doc{"version": never, "reason": "x"}); r.Status < 400 || r.Status >= 500 {
			t.Errorf("to one that never held it: %d %s", r.Status, r.Body)
		}
		callWithScope(p, 200, "approve", "POST", "/aliases/jpcp/production/rollback", doc{"reason": "worse"})
		if h := p.Tracker.Holder("jpcp", "Production"); h != v1 {
			t.Errorf("Production is %s, want %s", h, v1)
		}
	})
	row("GET /alias-history?model=&alias=&at=", func(t *testing.T, p *controlplanetest.Plane) {
		list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/alias-history?model=jpcp&alias=production", nil), holderMembers)
		var via []string
		for _, h := range list {
			via = append(via, fmt.Sprint(h["version"], " ", h["via"], " ", h["actor"]))
		}
		if want := []string{v1 + " rollback only-approve", v2 + " promotion walker", v1 + " promotion only-approve"}; !slices.Equal(via, want) {
			t.Errorf("%q, want %q", via, want)
		}
		expectPaging(p, "/alias-history", false)
		at := decodeItems(t, p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production&at="+list[2]["from"].(string), all, nil), holderMembers)
		if len(at) != 1 || at[0]["version"] != v1 || at[0]["via"] != "promotion" {
			t.Errorf(`at its first instant: %v; want len(at) == 1 && at[0]["version"] == v1 && at[0]["via"] == "promotion"`, at)
		}
	})
}

func driftRows(row rows, serving *controlplanetest.Serving) {
	const settings = "model enabled dataset_name? min_z cooldown_seconds gate kind last_triggered_at? last_outcome? updated_by updated_at"
	row("PUT /auto-retrain/{m}", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/auto-retrain/jpcp", doc{"enabled": true}), settings)
		for name, want := range (doc{"model": "JPCP", "min_z": 3.0, "cooldown_seconds": 3600.0, "gate": "approval"}) {
			if d[name] != want {
				t.Errorf("default of %s is %v; want d[name] == %v", name, d[name], want)
			}
		}
		for _, kind := range []string{"input", "any", "prediction"} {
			p.Want(200, "PUT", "/auto-retrain/mack", all, doc{"enabled": false, "gate": "direct", "kind": kind, "dataset_name": "JobEmbeddings"})
		}
		expectUnknownKeyRefused(p, "PUT", "/auto-retrain/jpcp", doc{"enabled": true})
	})
	row("GET /auto-retrain", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/auto-retrain", nil), settings)
		expectPaging(p, "/auto-retrain", false)
	})
	row("POST /drift/trigger", func(t *testing.T, p *controlplanetest.Plane) {
		z := 4.0
		serving.Drift("prediction", "JPCP", "Production", "CRITICAL", &z, "")
		serving.Drift("prediction", "MACK", "Production", "WARNING", &z, "")
		one := func(body any) doc {
			results := decodeObject(t, p.Want(200, "POST", "/drift/trigger", onlyScope("retrain"), body), "results")["results"].([]any)
			if len(results) != 1 {
				t.Fatal(results, "want len(results) == 1")
			}
			return expectContractMembers(t, results[0].(doc), "model z_score? outcome flow_run_id? approval_id? reason?")
		}
		refusedWithout(p, "retrain", "POST", "/drift/trigger", nil)
		if d := one(doc{"dry_run": true, "model": "jpcp"}); d["outcome"] != "would_trigger" || d["z_score"] != z {
			t.Error(d, `want d["outcome"] == "would_trigger" && d["z_score"] == z`)
		}
		if d := one(nil); d["outcome"] != "requested" || p.Approval(d["approval_id"].(string))["origin"] != "drift" {
			t.Error(d, `want d["outcome"] == "requested" && p.Approval(d["approval_id"].(string))["origin"] == "drift"`)
		}
		if d := one(nil); d["outcome"] != "already_pending" && d["outcome"] != "cooling_down" {
			t.Error(d, `want (d["outcome"] == "already_pending" || d["outcome"] == "cooling_down")`)
		}
		expectUnknownKeyRefused(p, "POST", "/drift/trigger", doc{"model": "jpcp"})
	})
	row("GET /alerts", func(t *testing.T, p *controlplanetest.Plane) {
		var r controlplanetest.Response
		testenv.Eventually(t, 20*time.Second, func() error {
			if r = p.Want(200, "GET", "/alerts", all, nil); len(r.Object(t)["items"].([]any)) < 2 {
				return fmt.Errorf("%s", r.Body)
			}
			return nil
		})
		list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/alerts", nil), "id source severity state title labels since")
		if list[0]["id"] != "drift:JPCP:Production" || list[0]["source"] != "drift" || list[0]["severity"] != "critical" || list[0]["state"] != "firing" {
			t.Error(list[0], `want list[0]["id"] == "drift:JPCP:Production" && list[0]["source"] == "drift" && list[0]["severity"] == "critical" && list[0]["state"] == "firing"`)
		}
		expectPaging(p, "/alerts", false)
	})
}
