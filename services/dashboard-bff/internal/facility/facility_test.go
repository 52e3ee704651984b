package facility_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/facility"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type fixture struct {
	*viewtest.Kit
	views *facility.Views
}

// now of the views: a quarter of an hour after the newest job was submitted.
var now = time.Date(2026, 11, 22, 21, 15, 0, 0, time.UTC)

func setup(t *testing.T) *fixture {
	t.Helper()
	k := viewtest.New(t)
	v, err := facility.New(facility.Parts{Pool: k.Pool, Clients: k.Clients, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{k, v}
}

func TestOverviewAddsUpRunningAndWaitingJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	got := viewtest.Get(t, f.views.Overview, "/o", "/o")
	got.WantPartial()
	got.Want(map[string]any{"facility": map[string]any{
		"nodesAllocated": 2, "gpusAllocated": 8, "jobsRunning": 1, "queueDepth": 2, "clusters": []string{"alpha", "beta"},
		"partitions": []map[string]any{
			{"name": "default", "running": 0, "queued": 1, "gpusAllocated": 0}, {"name": "gpu", "running": 1, "queued": 1, "gpusAllocated": 8},
		},
	}})
}

func TestOverviewOfAClusterStillListsAllClusters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	viewtest.Get(t, f.views.Overview, "/o", "/o?cluster=beta").Want(map[string]any{
		"facility.clusters": []string{"alpha", "beta"}, "facility.jobsRunning": 0, "facility.queueDepth": 1, "facility.partitions.0.name": "default", "facility.partitions.1": nil,
	})
}

func TestOverviewKeepsItsShapeWithoutTheControlPlane(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.ControlPlane.Break()
	got := viewtest.Get(t, f.views.Overview, "/o", "/o")
	got.WantPartial("jobs")
	got.Want(map[string]any{"facility": map[string]any{
		"nodesAllocated": 0, "gpusAllocated": 0, "jobsRunning": 0, "queueDepth": 0, "clusters": []any{}, "partitions": []any{},
	}})
}

func TestQueueHasTheLongestWaitFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	got := viewtest.Get(t, f.views.Queue, "/q", "/q")
	got.Want(map[string]any{
		"queue.count": 2, "queue.jobs.0": map[string]any{
			"id": "103", "cluster": "beta", "model": "MACK", "dataset": nil, "state": "SUBMITTED", "waitSec": 2700, "nodes": 1, "gpus": 0, "submitTime": "2026-11-22T20:30:00Z",
		},
		"queue.jobs.1.id": "102", "queue.jobs.1.waitSec": 900, "queue.jobs.1.partition": "gpu",
	})
	viewtest.Get(t, f.views.Queue, "/q", "/q?cluster=alpha").Want(map[string]any{"queue.count": 1, "queue.jobs.0.id": "102"})
}

func TestQueueOfEqualWaitsIsByIdAndHoldsOnlyWaitingJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	job := func(id, state string) string {
		return `{"id":"` + id + `","scheduler":"slurm","cluster":"a","model":"M","dataset":null,"state":"` + state + `","partition":null,"resources":{"nodes":1,"gpus":0,"cpus":1},` +
			`"timing":{"submit":"2026-11-22T21:20:00Z","start":null,"end":null,"queueSeconds":0,"runSeconds":null},"exitCode":null,"flowRunId":null,"trackerRunId":null,"updated_at":"2026-11-22T21:00:00Z","updated_by":"a"}`
	}
	f.ControlPlane.Answer("/jobs", http.StatusOK, `{"items":[`+job("3", "PD")+","+job("9", "R")+","+job("1", "CF")+","+job("8", "COMPLETING")+","+job("2", "CONFIGURING")+`],"next_cursor":null}`)
	viewtest.Get(t, f.views.Queue, "/q", "/q").Want(map[string]any{
		"queue.count": 3, "queue.jobs.0.id": "1", "queue.jobs.1.id": "2", "queue.jobs.2.id": "3",
		"queue.jobs.0.waitSec": 0, // submitted by a clock that is ahead
	})
}

func TestJobOfTwoClustersIsTheNewestUnlessAskedFor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	viewtest.Get(t, f.views.Job, "/j/:job_id", "/j/102").Want(map[string]any{"job": map[string]any{
		"id": "102", "cluster": "beta", "model": "JPCP", "dataset": nil, "state": "COMPLETED", "resources": map[string]any{"nodes": 1, "gpus": 1, "cpus": 1},
		"timing":   map[string]any{"submit": "2026-11-22T21:30:00Z", "start": "2026-11-22T21:31:00Z", "end": "2026-11-22T21:41:00Z", "queueSeconds": 60, "runSeconds": 600},
		"exitCode": 0, "flowRunId": "def", "trackerRunId": "abc",
	}})
	viewtest.Get(t, f.views.Job, "/j/:job_id", "/j/102?cluster=alpha").Want(map[string]any{"job.cluster": "alpha", "job.state": "PENDING", "job.exitCode": nil})
}

func TestJobThatNobodyReportedIs404(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, path := range []string{"/j/nosuch", "/j/101?cluster=beta"} {
		viewtest.Do(t, viewtest.Request{Route: "/j/:job_id", Path: path, Handler: f.views.Job}).WantProblem(404, "job_not_found")
	}
	f.ControlPlane.Break()
	got := viewtest.Get(t, f.views.Job, "/j/:job_id", "/j/7")
	got.WantPartial("jobs")
	got.Want(map[string]any{"job": nil})
}

func TestUnknownQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	viewtest.Do(t, viewtest.Request{Route: "/o", Path: "/o?clutser=a", Handler: f.views.Overview}).WantProblem(422, "validation_failed")
	viewtest.Do(t, viewtest.Request{Route: "/q", Path: "/q?limit=1", Handler: f.views.Queue}).WantProblem(422, "validation_failed")
	viewtest.Do(t, viewtest.Request{Route: "/q", Path: "/q?cluster=%01", Handler: f.views.Queue}).WantProblem(422, "validation_failed")
	viewtest.Do(t, viewtest.Request{Route: "/j/:job_id", Path: "/j/1?x=1", Handler: f.views.Job}).WantProblem(422, "validation_failed")
}
