// Package facility holds the views of the batch clusters: allocation, queue and single jobs. Clusters belong to no
// tenant; all may see them.
package facility

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// The states of jobs that wait; schedulers also report the short forms.
var waiting = []string{"SUBMITTED", "PENDING", "PD", "CONFIGURING", "CF"}

const (
	pageLimit = 500
	// maxText limits a cluster's name and a job's id, in characters, as the control plane does.
	maxText = 128
)

// Parts are the dependencies of Views.
type Parts struct {
	Pool    *compose.Pool
	Clients *upstream.Clients
	// Now is the clock; default time.Now.
	Now func() time.Time `part:"optional"`
}

// Views serve the routes of the facility.
type Views struct {
	Parts
	summary compose.Source[string, controlplane.Facility]
	queue   compose.Source[string, []controlplane.Job]
	job     compose.Source[jobKey, *controlplane.Job]
}

// jobKey names a job; an empty cluster means whichever has it.
type jobKey struct{ id, cluster string }

// New refuses a missing part.
func New(p Parts) (*Views, error) {
	if err := service.RequireParts("facility", p); err != nil {
		return nil, err
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	v := &Views{Parts: p}
	v.summary = compose.ControlPlaneSource("jobs", "summary of jobs", v.readSummary)
	v.queue = compose.ControlPlaneSource("jobs", "waiting jobs", v.readQueue)
	v.job = compose.ControlPlaneSource("jobs", "job", v.readJob)
	return v, nil
}

// Overview serves GET /api/v1/facility/overview.
func (v *Views) Overview(c echo.Context) error {
	cluster, err := readCluster(c)
	if err != nil {
		return err
	}
	view := v.Pool.Begin(c)
	out := api.Facility{Clusters: []string{}, Partitions: []api.Partition{}}
	if f, ok := compose.Ask(view, v.summary, cluster).Get(); ok {
		out = api.Facility{
			NodesAllocated: int(f.NodesAllocated), GpusAllocated: int(f.GpusAllocated), JobsRunning: int(f.JobsRunning), QueueDepth: int(f.QueueDepth),
			Clusters: append([]string{}, f.Clusters...), Partitions: make([]api.Partition, len(f.Partitions)),
		}
		for i, p := range f.Partitions {
			out.Partitions[i] = api.Partition{Name: p.Name, Running: int(p.Running), Queued: int(p.Queued), GpusAllocated: int(p.GpusAllocated)}
		}
	}
	return view.Answer(api.FacilityView{Facility: out})
}

// Queue serves GET /api/v1/facility/queue.
func (v *Views) Queue(c echo.Context) error {
	cluster, err := readCluster(c)
	if err != nil {
		return err
	}
	view := v.Pool.Begin(c)
	out := api.Queue{Jobs: []api.QueueJob{}}
	if jobs, ok := compose.Ask(view, v.queue, cluster).Get(); ok {
		now := v.Now()
		for _, j := range jobs {
			if slices.Contains(waiting, strings.ToUpper(string(j.State))) {
				out.Jobs = append(out.Jobs, queueJob(j, now))
			}
		}
		slices.SortFunc(out.Jobs, func(a, b api.QueueJob) int {
			return cmp.Or(a.SubmitTime.Compare(*b.SubmitTime), cmp.Compare(a.Id, b.Id), cmp.Compare(a.Cluster, b.Cluster))
		})
	}
	out.Count = len(out.Jobs)
	return view.Answer(api.QueueView{Queue: out})
}

func queueJob(j controlplane.Job, now time.Time) api.QueueJob {
	submit := j.Timing.Submit.UTC()
	return api.QueueJob{
		Id: j.Id, Cluster: j.Cluster, Model: optionalText(j.Model), Dataset: j.Dataset, State: string(j.State), Partition: j.Partition,
		WaitSec: max(int(now.Sub(submit)/time.Second), 0), Nodes: int(j.Resources.Nodes), Gpus: int(j.Resources.Gpus), SubmitTime: &submit,
	}
}

// Job serves GET /api/v1/facility/job/{job_id}.
func (v *Views) Job(c echo.Context) error {
	cluster, err := readCluster(c)
	if err != nil {
		return err
	}
	id := c.Param("job_id")
	if !isName(id) {
		return invalid([]string{"path", "job_id"})
	}
	view := v.Pool.Begin(c)
	var out api.JobView
	if j, ok := compose.Ask(view, v.job, jobKey{id, cluster}).Get(); ok {
		if j == nil {
			where := "No cluster"
			if cluster != "" {
				where = "Cluster " + problem.Shorten(cluster) + " is not one that"
			}
			return fault.JobNotFound.Errorf("%s has reported a job %s; GET /api/v1/facility/queue lists those that wait.", where, problem.Shorten(id))
		}
		job := jobDetail(*j)
		out.Job = &job
	}
	return view.Answer(out)
}

func jobDetail(j controlplane.Job) api.Job {
	submit := j.Timing.Submit.UTC()
	out := api.Job{
		Id: j.Id, Cluster: j.Cluster, Model: optionalText(j.Model), Dataset: j.Dataset, State: string(j.State), FlowRunId: j.FlowRunId, TrackerRunId: j.TrackerRunId,
		Resources: api.Job_Resources{Nodes: int(j.Resources.Nodes), Gpus: int(j.Resources.Gpus), Cpus: int(j.Resources.Cpus)},
		Timing: api.Job_Timing{
			Submit: &submit, Start: j.Timing.Start, End: j.Timing.End, QueueSeconds: narrow(j.Timing.QueueSeconds), RunSeconds: narrow(j.Timing.RunSeconds),
		},
		ExitCode: narrow(j.ExitCode),
	}
	return out
}

func narrow[N int32 | int64](v *N) *int {
	if v == nil {
		return nil
	}
	n := int(*v)
	return &n
}

func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// readCluster returns the only parameter of these routes; empty means all clusters.
func readCluster(c echo.Context) (string, error) {
	if err := input.CheckQuery(c, "cluster"); err != nil {
		return "", err
	}
	cluster := c.QueryParam("cluster")
	if cluster != "" && !isName(cluster) {
		return "", invalid([]string{"query", "cluster"})
	}
	return cluster, nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func invalid(loc []string) error {
	msg := fmt.Sprintf("must be 1 to %d characters, without control characters", maxText)
	return fault.ValidationFailed.New("The parameter " + loc[1] + " " + msg + ".").WithErrors(problem.Field{Loc: loc, Msg: msg})
}

func (v *Views) readSummary(ctx context.Context, who caller.Caller, cluster string) (controlplane.Facility, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.Facility{}, err
	}
	s, err := wire.Decode[controlplane.JobSummary](client.JobSummary(ctx, &controlplane.JobSummaryParams{Cluster: optionalText(cluster)}))
	return s.Facility, err
}

func (v *Views) readQueue(ctx context.Context, who caller.Caller, cluster string) ([]controlplane.Job, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit, states := pageLimit, "SUBMITTED,PENDING" // the control plane knows no other that waits
	return compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Job, *string, error) {
		page, err := wire.Decode[controlplane.JobList](client.ListJobs(ctx, &controlplane.ListJobsParams{
			Cluster: optionalText(cluster), State: &states, Limit: &limit, Cursor: cursor,
		}))
		return page.Items, page.NextCursor, err
	})
}

// readJob returns nil for a job that was never reported.
func (v *Views) readJob(ctx context.Context, who caller.Caller, k jobKey) (*controlplane.Job, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	j, err := wire.Decode[controlplane.Job](client.GetJob(ctx, k.id, &controlplane.GetJobParams{Cluster: optionalText(k.cluster)}))
	var p *problem.Error
	if errors.As(err, &p) && p.Status() == http.StatusNotFound {
		return nil, nil
	}
	return &j, err
}
