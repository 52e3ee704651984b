package job_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

func putJob(p *controlplanetest.Plane, path, body string) map[string]any {
	p.T.Helper()
	return p.Want(200, "PUT", "/jobs/"+path, controlplanetest.Trainer, body).Object(p.T)
}

func getDocument(p *controlplanetest.Plane, path string) map[string]any {
	p.T.Helper()
	return p.Want(200, "GET", path, controlplanetest.Reader, nil).Object(p.T)
}

// A job from its submission to its end: every change is published once, and its end is final.
func TestLife(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	first := putJob(p, "slurm/4711", `{"model":"jpcp","dataset":"JobEmbeddings","cluster":"alpha","partition":"gpu","state":"PENDING",
		"resources":{"nodes":2,"gpus":8,"cpus":64},"timing":{"submit":"2026-01-02T03:04:05.5+01:00"},"flowRunId":"f1"}`)
	timing := first["timing"].(map[string]any)
	if first["id"] != "4711" || first["scheduler"] != "slurm" || first["cluster"] != "alpha" || first["model"] != "JPCP" || first["dataset"] != "JobEmbeddings" ||
		first["state"] != "PENDING" || first["partition"] != "gpu" || first["exitCode"] != nil || first["flowRunId"] != "f1" || first["trackerRunId"] != nil ||
		fmt.Sprint(first["resources"]) != "map[cpus:64 gpus:8 nodes:2]" || first["updated_by"] != "trainer" {
		t.Errorf(`%v; want first["id"] == "4711" && first["scheduler"] == "slurm" && first["cluster"] == "alpha" && first["model"] == "JPCP" && first["dataset"] == "JobEmbeddings" && …`, first)
	}
	if timing["submit"] != "2026-01-02T02:04:05.5Z" || timing["start"] != nil || timing["end"] != nil || timing["runSeconds"] != nil {
		t.Errorf(`timing %v; want timing["submit"] == "2026-01-02T02:04:05.5Z" && timing["start"] == nil && timing["end"] == nil && timing["runSeconds"] == nil`, timing)
	}
	// It is still waiting: its queue time counts up to now.
	waited := time.Since(time.Date(2026, 1, 2, 2, 4, 5, 5e8, time.UTC)).Seconds()
	if q := timing["queueSeconds"].(float64); q < waited-60 || q > waited {
		t.Errorf("queueSeconds %v, waited %v; want q >= waited - 60 && q <= waited", q, waited)
	}
	again := putJob(p, "slurm/4711", `{"state":"PENDING"}`) // nothing new
	if again["updated_at"] != first["updated_at"] {
		t.Errorf(`updated by nothing: %v; want again["updated_at"] == %v`, again, first["updated_at"])
	}
	running := putJob(p, "slurm/4711", `{"state":"RUNNING","timing":{"start":"2026-01-02T02:10:05.5Z"},"resources":{"gpus":4}}`)
	if tm := running["timing"].(map[string]any); tm["queueSeconds"] != 360.0 || tm["start"] != "2026-01-02T02:10:05.5Z" || fmt.Sprint(running["resources"]) != "map[cpus:64 gpus:4 nodes:2]" {
		t.Errorf(`running %v; want tm["queueSeconds"] == 360.0 && tm["start"] == "2026-01-02T02:10:05.5Z" && fmt.Sprint(running["resources"]) == "map[cpus:64 gpus:4 nodes:2]"`, running)
	}
	done := putJob(p, "slurm/4711", `{"state":"COMPLETED","timing":{"end":"2026-01-02T03:10:05.5Z"}}`)
	if tm := done["timing"].(map[string]any); done["state"] != "COMPLETED" || tm["runSeconds"] != 3600.0 {
		t.Errorf(`done %v; want done["state"] == "COMPLETED" && tm["runSeconds"] == 3600.0`, done)
	}
	// Ended jobs take no other state; late details about the same end are kept.
	for _, state := range []string{"RUNNING", "FAILED", "UNKNOWN"} {
		if late := putJob(p, "slurm/4711", `{"state":"`+state+`","model":"MACK","exitCode":1}`); late["state"] != "COMPLETED" || late["model"] != "JPCP" || late["exitCode"] != nil {
			t.Errorf(`%s: %v; want late["state"] == "COMPLETED" && late["model"] == "JPCP" && late["exitCode"] == nil`, state, late)
		}
	}
	late := putJob(p, "slurm/4711", `{"state":"COMPLETED","exitCode":0,"trackerRunId":"r1"}`)
	if late["exitCode"] != 0.0 || late["trackerRunId"] != "r1" {
		t.Errorf(`late %v; want late["exitCode"] == 0.0 && late["trackerRunId"] == "r1"`, late)
	}
	for _, bearer := range []string{controlplanetest.Reader, controlplanetest.Foreign} { // every tenant
		if got := p.Want(200, "GET", "/jobs/4711", bearer, nil).Object(t); fmt.Sprint(got) != fmt.Sprint(late) {
			t.Errorf("got %v; want fmt.Sprint(got) == fmt.Sprint(late)", got)
		}
	}

	var told []string
	for _, e := range p.Events("job.state_changed") {
		if e.Tenant != "platform" || e.Actor != "trainer" || len(e.Data) != 5 || e.Data["job_id"] != "4711" || e.Data["scheduler"] != "slurm" || e.Data["model"] != "JPCP" {
			t.Errorf(`event %v; want e.Tenant == "platform" && e.Actor == "trainer" && len(e.Data) == 5 && e.Data["job_id"] == "4711" && e.Data["scheduler"] == "slurm" && e.Data["model"] == "JPCP"`, e)
		}
		told = append(told, fmt.Sprint(e.Data["previous"], ">", e.Data["state"]))
	}
	if got := strings.Join(told, " "); got != "UNKNOWN>PENDING PENDING>RUNNING RUNNING>COMPLETED" {
		t.Errorf(`events %s; want "UNKNOWN>PENDING PENDING>RUNNING RUNNING>COMPLETED"`, got)
	}
	recorded, updated := p.Audits("job.recorded"), p.Audits("job.updated")
	if len(recorded) != 1 || len(updated) != 3 || recorded[0]["target"] != "job:slurm/alpha/4711" || recorded[0]["tenant"] != "platform" || updated[2]["actor"] != "trainer" {
		t.Fatalf(`audit %v %v; want len(recorded) == 1 && len(updated) == 3 && recorded[0]["target"] == "job:slurm/alpha/4711" && recorded[0]["tenant"] == "platform" && updated[2]["actor"] == "trainer"`, recorded, updated)
	}
	details := updated[1]["details"].(map[string]any)
	if details["actor_tenant"] != "default" || details["old"].(map[string]any)["state"] != "RUNNING" || details["new"].(map[string]any)["state"] != "COMPLETED" {
		t.Errorf(`audit %v; want details["actor_tenant"] == "default" && details["old"].(map[string]any)["state"] == "RUNNING" && details["new"].(map[string]any)["state"] == "COMPLETED"`, details)
	}
}

// An id may be reused on another cluster or scheduler.
func TestEqualIDs(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	body := func(cluster, model, submit string) string {
		return fmt.Sprintf(`{"model":%q,"cluster":%q,"state":"PENDING","timing":{"submit":%q}}`, model, cluster, submit)
	}
	putJob(p, "slurm/1", body("alpha", "JPCP", "2026-01-02T00:00:00Z"))
	putJob(p, "slurm/1", `{"state":"RUNNING"}`) // the existing one
	putJob(p, "slurm/1", body("beta", "MACK", "2026-01-03T00:00:00Z"))
	putJob(p, "flux/1", `{"model":"MCBound","state":"PENDING","timing":{"submit":"2026-01-01T00:00:00Z"}}`)
	p.Refused(409, "job_ambiguous", "PUT", "/jobs/slurm/1", controlplanetest.Trainer, `{"state":"RUNNING"}`)
	putJob(p, "slurm/1", `{"state":"CANCELLED","cluster":"beta"}`)
	for path, want := range map[string]string{
		"/jobs/1": "MACK CANCELLED beta", "/jobs/1?cluster=alpha": "JPCP RUNNING alpha", "/jobs/1?scheduler=flux": "MCBOUND PENDING flux",
		"/jobs/1?scheduler=slurm&cluster=alpha": "JPCP RUNNING alpha",
	} {
		if j := getDocument(p, path); fmt.Sprint(j["model"], " ", j["state"], " ", j["cluster"]) != want {
			t.Errorf(`%s: %v; want fmt.Sprint(j["model"], " ", j["state"], " ", j["cluster"]) == %v`, path, j, want)
		}
	}
	p.Refused(404, "job_not_found", "GET", "/jobs/1?scheduler=mock", controlplanetest.Reader, nil)
	p.Refused(404, "job_not_found", "GET", "/jobs/1?scheduler=flux&cluster=alpha", controlplanetest.Reader, nil)
	p.Refused(404, "job_not_found", "GET", "/jobs/2", controlplanetest.Reader, nil)
	p.Refused(404, "job_not_found", "GET", "/jobs/%00", controlplanetest.Reader, nil)
	p.Refused(422, "validation_error", "GET", "/jobs/1?scheduler=pbs", controlplanetest.Reader, nil)
}

// Concurrent first reports of one job make one record; each state is published once.
func TestReportsAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	out := make([]controlplanetest.Response, 16)
	for i := range out {
		wg.Go(func() {
			state := "PENDING"
			if i%2 == 1 {
				state = "FAILED"
			}
			out[i], _ = p.Try("PUT", "/jobs/mock/mock-0a1b2c3d", controlplanetest.Trainer, `{"model":"JPCP","state":"`+state+`"}`)
		})
	}
	wg.Wait()
	for _, r := range out {
		if r.Status != 200 {
			t.Fatalf("%d %s; want r.Status == 200", r.Status, r.Body)
		}
	}
	if rows := getDocument(p, "/jobs")["items"].([]any); len(rows) != 1 || rows[0].(map[string]any)["state"] != "FAILED" {
		t.Fatalf(`%v; want len(rows) == 1 && rows[0].(map[string]any)["state"] == "FAILED"`, rows)
	}
	previous, n := "UNKNOWN", 0
	for _, e := range p.Events("job.state_changed") {
		if e.Data["previous"] != previous {
			t.Errorf(`%v after %s; want e.Data["previous"] == %v`, e.Data, previous, previous)
		}
		previous, n = e.Data["state"].(string), n+1
	}
	if previous != "FAILED" || n > 2 || len(p.Audits("job.recorded")) != 1 {
		t.Errorf(`%d events, last %s, %v; want previous == "FAILED" && n <= 2 && len(p.Audits("job.recorded")) == 1`, n, previous, p.Audits("job.recorded"))
	}
}

func TestListAndSummary(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for _, path := range []string{"/jobs/summary", "/jobs/summary?cluster=nowhere"} {
		if f := getDocument(p, path)["facility"]; fmt.Sprint(f) != "map[clusters:[] gpusAllocated:0 jobsRunning:0 nodesAllocated:0 partitions:[] queueDepth:0]" {
			t.Errorf(`empty: %v; want fmt.Sprint(f) == "map[clusters:[] gpusAllocated:0 jobsRunning:0 nodesAllocated:0 partitions:[] queueDepth:0]"`, f)
		}
	}
	for i, j := range []struct {
		cluster, model, state, partition string
		nodes, gpus                      int
	}{
		{"alpha", "JPCP", "RUNNING", "gpu", 2, 8}, {"alpha", "JPCP", "RUNNING", "gpu", 1, 4}, {"alpha", "MACK", "PENDING", "gpu", 50, 100},
		{"alpha", "MACK", "SUBMITTED", "cpu", 7, 0}, {"alpha", "JPCP", "COMPLETED", "gpu", 9, 9}, {"beta", "JPCP", "RUNNING", "", 3, 1}, {"beta", "JPCP", "UNKNOWN", "cpu", 5, 5},
	} {
		body := map[string]any{"model": j.model, "cluster": j.cluster, "state": j.state, "resources": map[string]any{"nodes": j.nodes, "gpus": j.gpus, "cpus": 1}}
		if j.partition != "" {
			body["partition"] = j.partition
		}
		putJob(p, fmt.Sprint("slurm/", i), controlplanetest.MustJSON(body))
	}
	for path, want := range map[string]string{
		"/jobs/summary": "map[clusters:[alpha beta] gpusAllocated:13 jobsRunning:3 nodesAllocated:6 partitions:[" +
			"map[gpusAllocated:0 name:cpu queued:1 running:0] map[gpusAllocated:1 name:default queued:0 running:1] map[gpusAllocated:12 name:gpu queued:1 running:2]] queueDepth:2]",
		"/jobs/summary?cluster=beta": "map[clusters:[alpha beta] gpusAllocated:1 jobsRunning:1 nodesAllocated:3 partitions:[" +
			"map[gpusAllocated:1 name:default queued:0 running:1]] queueDepth:0]",
		"/jobs/summary?cluster=gamma": "map[clusters:[alpha beta] gpusAllocated:0 jobsRunning:0 nodesAllocated:0 partitions:[] queueDepth:0]",
	} {
		if got := fmt.Sprint(getDocument(p, path)["facility"]); got != want {
			t.Errorf("%s: %s\nwant %s", path, got, want)
		}
	}
	ids := func(path string) (out string, next any) {
		page := getDocument(p, path)
		for _, j := range page["items"].([]any) {
			out += j.(map[string]any)["id"].(string)
		}
		return out, page["next_cursor"]
	}
	for query, want := range map[string]string{
		"": "6543210", "?cluster=beta": "65", "?state=running": "510", "?state=SUBMITTED,PENDING": "32", "?model=mack": "32", "?model=JPCP&state=RUNNING&cluster=alpha": "10", "?model=NOPE": "",
	} {
		if got, next := ids("/jobs" + query); got != want || next != nil {
			t.Errorf("%s: %s; want got == want && next == nil", query, got)
		}
	}
	a, next := ids("/jobs?limit=4")
	b, end := ids(fmt.Sprint("/jobs?limit=4&cursor=", next))
	if a != "6543" || b != "210" || end != nil {
		t.Errorf(`pages %s %s %v; want a == "6543" && b == "210" && end == nil`, a, b, end)
	}
	for _, query := range []string{"state=DONE", "state=RUNNING,", "limit=501", "cursor=x", "cluster=%00"} {
		p.Refused(422, "validation_error", "GET", "/jobs?"+query, controlplanetest.Reader, nil)
	}
}

func TestBadReports(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for _, c := range []struct{ path, body, field string }{
		{"pbs/1", `{"model":"JPCP","state":"PENDING"}`, "scheduler"}, {"slurm/%00", `{"model":"JPCP","state":"PENDING"}`, "id"},
		{"slurm/" + strings.Repeat("x", 129), `{"model":"JPCP","state":"PENDING"}`, "id"}, {"slurm/1", `{"state":"PENDING"}`, "model"},
		{"slurm/1", `{"model":"JPCP"}`, "state"}, {"slurm/1", `{"model":"JPCP","state":"pending"}`, "state"}, {"slurm/1", `{"model":"a b","state":"PENDING"}`, "model"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","id":"2"}`, "id"}, {"slurm/1", `{"model":"JPCP","state":"PENDING","scheduler":"flux"}`, "scheduler"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","cluster":""}`, "cluster"}, {"slurm/1", `{"model":"JPCP","state":"PENDING","partition":"a\u0007"}`, "partition"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","resources":{"nodes":-1}}`, "nodes"}, {"slurm/1", `{"model":"JPCP","state":"PENDING","resources":{"gpus":10000001}}`, "gpus"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","resources":{"cpus":1.5}}`, "cpus"}, {"slurm/1", `{"model":"JPCP","state":"PENDING","resources":{"tpus":1}}`, "tpus"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","timing":{"submit":"yesterday"}}`, ""}, {"slurm/1", `{"model":"JPCP","state":"PENDING","timing":{"submit":"1969-12-31T23:59:59Z"}}`, "submit"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","timing":{"queueSeconds":1}}`, "queueSeconds"},
		{"slurm/1", `{"model":"JPCP","state":"PENDING","timing":{"start":"2026-01-01T00:00:00Z"}}`, "start"},
		{"slurm/1", `{"model":"JPCP","state":"RUNNING","timing":{"end":"2026-01-01T00:00:00Z"}}`, "end"},
		{"slurm/1", `{"model":"JPCP","state":"RUNNING","timing":{"submit":"2026-01-02T00:00:00Z","start":"2026-01-01T00:00:00Z"}}`, "start"},
		{"slurm/1", `{"model":"JPCP","state":"FAILED","timing":{"start":"2026-01-02T00:00:00Z","end":"2026-01-01T00:00:00Z"}}`, "end"},
		{"slurm/1", `{"model":"JPCP","state":"FAILED","exitCode":2147483648}`, "exitCode"}, {"slurm/1", `{"model":"JPCP","state":"FAILED","trackerRunId":""}`, "trackerRunId"},
	} {
		if r := p.Refused(422, "validation_error", "PUT", "/jobs/"+c.path, controlplanetest.Operator, c.body); !strings.Contains(string(r.Body), c.field) {
			t.Errorf("%s does not name %s; want strings.Contains(string(r.Body), c.field)", r.Body, c.field)
		}
	}
	if rows := getDocument(p, "/jobs")["items"].([]any); len(rows) != 0 || len(p.Events("job.state_changed")) != 0 {
		t.Errorf(`recorded %v; want len(rows) == 0 && len(p.Events("job.state_changed")) == 0`, rows)
	}
}
