package controlplane_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

const entryMembers = "tenant seq event_id ts source actor action target outcome request_id details prev_hash hash"

func auditRows(row rows) {
	row("POST /audit/events", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"source": "cli", "action": "pipeline.promote", "target": "model:JPCP", "outcome": "failed", "details": doc{"why": "x"}}
		decodeObject(t, callWithScope(p, 202, anyWrite, "POST", "/audit/events", body), "event_id")
		for _, source := range []string{"bridge", "agent", "dashboard"} { // outcome and details are optional
			p.Want(202, "POST", "/audit/events", all, doc{"source": source, "action": "a", "target": "b"})
		}
		p.Refused(422, "validation_error", "POST", "/audit/events", all, doc{"source": "control-plane", "action": "a", "target": "b"})
		p.Refused(422, "validation_error", "POST", "/audit/events", all, doc{"source": "cli", "action": "a", "target": "b", "details": doc{"x": strings.Repeat("x", 16<<10)}})
		expectUnknownKeyRefused(p, "POST", "/audit/events", body)
	})
	row("GET /audit/events?model=&action=&source=&actor=&since=&until=", func(t *testing.T, p *controlplanetest.Plane) {
		query := "/audit/events?model=jpcp&action=pipeline.promote&source=cli&actor=operator&since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z"
		testenv.Eventually(t, 20*time.Second, func() error {
			if n := p.Want(200, "GET", query, all, nil).Object(t)["count"]; n != 1.0 {
				return fmt.Errorf("count %v", n)
			}
			return nil
		})
		r := callWithScope(p, 200, "read", "GET", query, nil)
		e := decodeItems(t, r, entryMembers)[0]
		if e["actor"] != "operator" || e["source"] != "cli" || e["outcome"] != "failed" || e["tenant"] != "default" || len(e["hash"].(string)) != 64 {
			t.Error(e, `want e["actor"] == "operator" && e["source"] == "cli" && e["outcome"] == "failed" && e["tenant"] == "default" && len(e["hash"].(string)) == 64`)
		}
		decodeObject(t, r, "items next_cursor count")
		list := decodeItems(t, p.Want(200, "GET", "/audit/events", all, nil), entryMembers)
		for i, e := range list[1:] {
			if e["seq"].(float64) >= list[i]["seq"].(float64) {
				t.Errorf(`not newest first at %d; want e["seq"].(float64) < list[i]["seq"].(float64)`, i)
			}
		}
		expectPaging(p, "/audit/events", false)
	})
	row("GET /audit/verify", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/audit/verify?from=1&to=5", nil), "verified checked head first_bad_seq? reason? verified_at signed_seq")
		expectContractMembers(t, d["head"].(doc), "seq hash")
		if d["verified"] != true || d["checked"].(float64) < 5 {
			t.Error(d, `want d["verified"] == true && d["checked"].(float64) >= 5`)
		}
	})
	row("POST /audit/checkpoints", func(t *testing.T, p *controlplanetest.Plane) {
		refusedWithout(p, "manage", "POST", "/audit/checkpoints", nil)
		r := p.Call("POST", "/audit/checkpoints", onlyScope("manage"), nil)
		if r.Status != 201 && r.Status != 200 {
			t.Fatalf("%d %s; want (r.Status == 201 || r.Status == 200)", r.Status, r.Body)
		}
		decodeObject(t, r, "seq hash ts key_id signature")
	})
	row("GET /audit/checkpoints", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/audit/checkpoints", nil), "seq hash ts key_id signature")
	})
	row("GET /audit/keys", func(t *testing.T, p *controlplanetest.Plane) {
		k := decodeItems(t, callWithScope(p, 200, "read", "GET", "/audit/keys", nil), "key_id public_key")[0]
		if len(k["key_id"].(string)) != 16 {
			t.Error(k, `want len(k["key_id"].(string)) == 16`)
		}
	})
	row("GET /audit/export", func(t *testing.T, p *controlplanetest.Plane) {
		lines := strings.Split(strings.TrimSpace(string(callWithScope(p, 200, "read", "GET", "/audit/export?since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z", nil).Body)), "\n")
		var trailer map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &trailer); err != nil || len(lines) < 4 {
			t.Fatalf("%d lines, %v; want len(lines) >= 4", len(lines), err)
		}
		if !strings.Contains(lines[len(lines)-1], `"count"`) || !strings.Contains(lines[len(lines)-1], `"head"`) {
			t.Errorf("trailer %v; want strings.Contains(lines[len(lines)-1], `\"count\"`) && strings.Contains(lines[len(lines)-1], `\"head\"`)", trailer)
		}
	})
}

const byWhom = " updated_at updated_by"

func costRows(row rows) {
	body := doc{"model": "jpcp", "version": "1", "run_id": "r", "scheduler": "slurm", "job_id": "7", "gpu_hours": 2, "cpu_hours": 8, "project": "power"}
	row("POST /costs", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "manage", "POST", "/costs", body), "recorded cost_usd kwh co2e_g synthetic")
		for name, want := range (doc{"recorded": true, "cost_usd": 5.0, "kwh": 1.26, "co2e_g": 378.0, "synthetic": false}) {
			if got := fmt.Sprint(d[name]); got != fmt.Sprint(want) {
				t.Errorf("%s is %v, want %v", name, d[name], want)
			}
		}
		if d := p.Want(200, "POST", "/costs", all, body).Object(t); d["recorded"] != false {
			t.Errorf(`a repeat: %v; want d["recorded"] == false`, d)
		}
		if d := p.Want(200, "POST", "/costs", all, doc{"model": "jpcp", "version": "1", "scheduler": "mock", "job_id": "m"}).Object(t); d["synthetic"] != true {
			t.Errorf(`mock: %v; want d["synthetic"] == true`, d)
		}
		// One kind of scheduler bills GPUs only, the other cores as well.
		flux := doc{"model": "jpcp", "version": "1", "run_id": "r", "scheduler": "flux", "job_id": "8", "gpu_hours": 0, "cpu_hours": 8, "project": "cores"}
		if d := p.Want(200, "POST", "/costs", all, flux).Object(t); fmt.Sprint(d["cost_usd"]) != "0.4" {
			t.Errorf(`cores: %v; want fmt.Sprint(d["cost_usd"]) == "0.4"`, d)
		}
		expectUnknownKeyRefused(p, "POST", "/costs", body)
	})
	row("GET /costs", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/costs", nil), "model version run_id scheduler job_id gpu_hours cpu_hours project cost_usd kwh co2e_g synthetic"+byWhom)
		expectPaging(p, "/costs", false)
	})
	row("GET /costs/summary", func(t *testing.T, p *controlplanetest.Plane) {
		for _, by := range []string{"model", "project"} {
			d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/costs/summary?by="+by, nil), "cost unitEconomics")
			cost := expectContractMembers(t, d["cost"].(doc), "rows total_gpu_hours total_cost_usd")
			expectContractMembers(t, d["unitEconomics"].(doc), "costPerTrainingRun")
			r := expectContractMembers(t, cost["rows"].([]any)[0].(doc), "dimension key gpuHours costUsd runs")
			if r["dimension"] != by || cost["total_gpu_hours"] != 2.0 {
				t.Errorf(`%v; want r["dimension"] == by && cost["total_gpu_hours"] == 2.0`, cost)
			}
		}
		p.Refused(422, "validation_error", "GET", "/costs/summary?by=user", all, nil)
	})
	row("GET /carbon", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/carbon", nil), "totals co2e_kg uncertainty methodology byModel scope")
		expectContractMembers(t, d["totals"].(doc), "kwh co2e_g")
		if d["uncertainty"] != 0.3 || d["scope"] != "operational" {
			t.Error(d, `want d["uncertainty"] == 0.3 && d["scope"] == "operational"`)
		}
		for _, word := range []string{"400", "5 W", "1.5", "300", "estimate", "not a measurement"} {
			if !strings.Contains(d["methodology"].(string), word) {
				t.Errorf(`the methodology does not say %s: %s; want strings.Contains(d["methodology"].(string), word)`, word, d["methodology"])
			}
		}
	})
	const budget = "project period costBudget consumedCostUsd costRatio? overBudget"
	row("PUT /budgets/{project}", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/budgets/power", doc{"cost_budget": 2.5, "gpu_hours_budget": 10, "period": "monthly"}), budget)
		if d["costRatio"] != 2.0 || d["overBudget"] != true || d["period"] != "monthly" {
			t.Error(d, `want d["costRatio"] == 2.0 && d["overBudget"] == true && d["period"] == "monthly"`)
		}
		p.Want(200, "PUT", "/budgets/other", all, doc{}) // every member is optional
		expectUnknownKeyRefused(p, "PUT", "/budgets/power", doc{"cost_budget": 1})
	})
	row("GET /budgets", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/budgets", nil), budget+byWhom)
		expectPaging(p, "/budgets", false)
	})
	row("DELETE /budgets/{project}", func(t *testing.T, p *controlplanetest.Plane) {
		callWithScope(p, 204, "manage", "DELETE", "/budgets/other", nil)
	})
	const job = "id cluster model dataset state resources timing exitCode flowRunId trackerRunId scheduler partition?"
	row("PUT /jobs/{scheduler}/{id}", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"model": "jpcp", "state": "RUNNING", "cluster": "alpha", "resources": doc{"nodes": 2, "gpus": 8, "cpus": 64}}
		d := decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/jobs/slurm/1", body), job)
		expectContractMembers(t, d["resources"].(doc), "nodes gpus cpus")
		expectContractMembers(t, d["timing"].(doc), "submit start end queueSeconds runSeconds")
		p.Want(200, "PUT", "/jobs/flux/2", all, doc{"model": "MACK", "state": "PENDING"})
		p.Want(200, "PUT", "/jobs/mock/3", all, doc{"model": "MACK", "state": "COMPLETED"})
		if d := p.Want(200, "PUT", "/jobs/mock/3", all, doc{"state": "RUNNING"}).Object(t); d["state"] != "COMPLETED" {
			t.Errorf(`an ended state moved: %v; want d["state"] == "COMPLETED"`, d)
		}
		expectUnknownKeyRefused(p, "PUT", "/jobs/slurm/1", body)
	})
	row("GET /jobs?cluster=&state=&model=", func(t *testing.T, p *controlplanetest.Plane) {
		if list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/jobs?cluster=alpha&state=RUNNING&model=jpcp", nil), job+byWhom); len(list) != 1 {
			t.Error(list, "want len(list) == 1")
		}
		expectPaging(p, "/jobs", false)
	})
	row("GET /jobs/{id}", func(t *testing.T, p *controlplanetest.Plane) {
		decodeObject(t, callWithScope(p, 200, "read", "GET", "/jobs/2", nil), job)
		p.Refused(404, "job_not_found", "GET", "/jobs/99", all, nil)
	})
	row("GET /jobs/summary", func(t *testing.T, p *controlplanetest.Plane) {
		f := expectContractMembers(t, decodeObject(t, callWithScope(p, 200, "read", "GET", "/jobs/summary", nil), "facility")["facility"].(doc),
			"nodesAllocated gpusAllocated jobsRunning queueDepth clusters partitions")
		if f["nodesAllocated"] != 2.0 || f["gpusAllocated"] != 8.0 || f["jobsRunning"] != 1.0 || f["queueDepth"] != 1.0 {
			t.Error(f, `want f["nodesAllocated"] == 2.0 && f["gpusAllocated"] == 8.0 && f["jobsRunning"] == 1.0 && f["queueDepth"] == 1.0`)
		}
		expectContractMembers(t, f["partitions"].([]any)[0].(doc), "name running queued gpusAllocated")
	})
}

func governanceRows(row rows) {
	const eval = "model version suite status metrics run_id? passRate"
	row("POST /evals", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"model": "jpcp", "version": "1", "suite": "s", "status": "passed", "metrics": []doc{{"metric": "rmse", "value": 1, "baseline": 2, "passed": true}, {"metric": "mae", "value": 1, "passed": false}}}
		d := decodeObject(t, callWithScope(p, 200, "manage", "POST", "/evals", body), eval)
		expectContractMembers(t, d["metrics"].([]any)[0].(doc), "metric value baseline? passed")
		if d["passRate"] != 0.5 || d["model"] != "JPCP" {
			t.Error(d, `want d["passRate"] == 0.5 && d["model"] == "JPCP"`)
		}
		p.Want(200, "POST", "/evals", all, doc{"model": "jpcp", "version": "2", "suite": "s", "status": "passed", "metrics": []doc{}})
		expectUnknownKeyRefused(p, "POST", "/evals", body)
	})
	row("GET /evals?model=&latest=", func(t *testing.T, p *controlplanetest.Plane) {
		expectPaging(p, "/evals", false)
		list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/evals?model=jpcp&latest=true", nil), eval+byWhom)
		if len(list) != 1 || list[0]["version"] != "2" || list[0]["passRate"] != nil {
			t.Errorf(`the latest run, which has no metrics: %v; want len(list) == 1 && list[0]["version"] == "2" && list[0]["passRate"] == nil`, list)
		}
	})
	const endpoint = "model engine hostedModelId maxModelLen tensorParallel dtype enabled"
	row("PUT /llm/endpoints/{model}", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"engine": "vllm", "hostedModelId": "m", "maxModelLen": 8192, "tensorParallel": 2, "dtype": "bf16", "enabled": true}
		decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/llm/endpoints/llama", body), endpoint)
		p.Want(200, "PUT", "/llm/endpoints/qwen", all, body)
		expectUnknownKeyRefused(p, "PUT", "/llm/endpoints/llama", body)
	})
	row("GET /llm/endpoints", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/llm/endpoints", nil), endpoint+byWhom)
		expectPaging(p, "/llm/endpoints", false)
	})
	row("DELETE /llm/endpoints/{model}", func(t *testing.T, p *controlplanetest.Plane) {
		callWithScope(p, 204, "manage", "DELETE", "/llm/endpoints/qwen", nil)
	})
	row("PUT /compliance/{m}/{version}", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"riskClass": "high", "technicalFilePath": "docs/jpcp.pdf", "provenanceHash": controlplanetest.Digest}
		d := decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/compliance/jpcp/1", body), "model version riskClass technicalFile provenance")
		if d["technicalFile"] != "docs/jpcp.pdf" || d["provenance"] != controlplanetest.Digest {
			t.Error(d, `want d["technicalFile"] == "docs/jpcp.pdf" && d["provenance"] == controlplanetest.Digest`)
		}
		for _, class := range []string{"minimal", "limited", "prohibited"} {
			p.Want(200, "PUT", "/compliance/jpcp/2", all, doc{"riskClass": class})
		}
		p.Refused(422, "validation_error", "PUT", "/compliance/jpcp/2", all, doc{"riskClass": "some"})
		expectUnknownKeyRefused(p, "PUT", "/compliance/jpcp/1", body)
	})
	row("GET /compliance", func(t *testing.T, p *controlplanetest.Plane) {
		decodeItems(t, callWithScope(p, 200, "read", "GET", "/compliance", nil), "model version riskClass technicalFile provenance"+byWhom)
		expectPaging(p, "/compliance", false)
	})
	row("PUT /model-cards/{m}", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"markdown": "# Card", "version": "1", "source": "cli"}
		decodeObject(t, callWithScope(p, 200, "manage", "PUT", "/model-cards/jpcp", body), "model version? markdown source")
		p.Want(200, "PUT", "/model-cards/mack", all, doc{"markdown": strings.Repeat("x", 256<<10)})
		p.Refused(422, "validation_error", "PUT", "/model-cards/mack", all, doc{"markdown": strings.Repeat("x", 256<<10+1)})
		expectUnknownKeyRefused(p, "PUT", "/model-cards/jpcp", body)
	})
	row("GET /model-cards/{m}", func(t *testing.T, p *controlplanetest.Plane) {
		if d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/model-cards/jpcp", nil), "model version? markdown source"); d["model"] != "JPCP" {
			t.Error(d, `want d["model"] == "JPCP"`)
		}
	})
	row("GET /model-cards", func(t *testing.T, p *controlplanetest.Plane) {
		r := callWithScope(p, 200, "read", "GET", "/model-cards", nil)
		decodeItems(t, r, "model version? markdown source"+byWhom)
		decodeObject(t, r, "withCard withoutCard coverage total")
		expectPaging(p, "/model-cards", false)
	})
	row("GET /governance/posture", func(t *testing.T, p *controlplanetest.Plane) {
		d := decodeObject(t, callWithScope(p, 200, "read", "GET", "/governance/posture", nil), "controls satisfied total")
		want := []string{"GOVERN-1.1", "MAP-1.1", "MEASURE-2.1", "MANAGE-4.1"}
		if d["total"] != 4.0 || len(d["controls"].([]any)) != 4 {
			t.Fatal(d, `want d["total"] == 4.0 && len(d["controls"].([]any)) == 4`)
		}
		for i, c := range d["controls"].([]any) {
			if c := expectContractMembers(t, c.(doc), "control function title status evidence"); c["control"] != want[i] {
				t.Error(c, "want c[\"control\"] ==", want[i])
			}
		}
	})
}

func operationRows(row rows) {
	poison := func(p *controlplanetest.Plane) string {
		id := uuid.Must(uuid.NewV7()).String()
		p.SQL(`insert into control_plane.outbox (id, tenant, namespace, name, payload, actor, refusals, poison_at, last_error)
			values ($1, 'default', 'job', 'started', '{"model":"JPCP"}', 'alice', 5, now(), 'too large')`, id)
		return id
	}
	var id string
	row("GET /outbox?state=poison", func(t *testing.T, p *controlplanetest.Plane) {
		id = poison(p)
		list := decodeItems(t, callWithScope(p, 200, "read", "GET", "/outbox?state=poison", nil),
			"id seq tenant namespace name subject_id payload actor request_id created_at next_attempt_at refusals published_at stream_seq poison_at last_error")
		if len(list) != 1 || list[0]["id"] != id || list[0]["refusals"] != 5.0 || list[0]["last_error"] != "too large" {
			t.Error(list, `want len(list) == 1 && list[0]["id"] == id && list[0]["refusals"] == 5.0 && list[0]["last_error"] == "too large"`)
		}
		expectPaging(p, "/outbox?state=published", false)
	})
	row("POST /outbox/{id}/replay", func(t *testing.T, p *controlplanetest.Plane) {
		if d := decodeObject(t, callWithScope(p, 200, "manage", "POST", "/outbox/"+id+"/replay", nil), "id refusals poison_at"); d["refusals"] != 0.0 || d["poison_at"] != nil {
			t.Error(d, `want d["refusals"] == 0.0 && d["poison_at"] == nil`)
		}
	})
	row("DELETE /outbox/{id}", func(t *testing.T, p *controlplanetest.Plane) {
		if r := p.Call("DELETE", "/outbox/"+id, all, nil); r.Status != 409 {
			t.Errorf("only poison is dropped: %d %s; want r.Status == 409", r.Status, r.Body)
		}
		id = poison(p)
		callWithScope(p, 204, "manage", "DELETE", "/outbox/"+id, nil)
		n := 0
		for _, e := range p.Events("audit.recorded") {
			if details, _ := e.Data["details"].(doc); strings.Contains(e.Data["target"].(string)+fmt.Sprint(details), id) && details["digest"] != nil && e.Data["actor"] == "only-manage" {
				n++
			}
		}
		if n == 0 {
			t.Error("the drop is not audited with its digest")
		}
	})
	row("POST /outbox/republish", func(t *testing.T, p *controlplanetest.Plane) {
		body := doc{"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
		callWithScope(p, 200, "manage", "POST", "/outbox/republish", body)
		expectUnknownKeyRefused(p, "POST", "/outbox/republish", body)
	})
}
