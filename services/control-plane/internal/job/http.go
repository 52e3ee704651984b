package job

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Parts are the dependencies of a Service.
type Parts struct {
	Store *store.Store
	Now   func() time.Time
}

// Service stores the jobs.
type Service struct{ Parts }

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("job", p); err != nil {
		return nil, err
	}
	return &Service{p}, nil
}

// List serves GET /jobs.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	q := store.ListJobsParams{
		Cluster: wire.OptionalText(c.QueryParam("cluster")), ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))),
		Before: page.After, MaxRows: page.Fetch(),
	}
	if v := c.QueryParam("state"); v != "" {
		q.States = strings.Split(strings.ToUpper(v), ",")
		for _, state := range q.States {
			if !api.JobState(state).Valid() {
				return fault.Invalid("must be states such as PENDING or SUBMITTED,PENDING", "query", "state")
			}
		}
	}
	rows, err := s.Store.ListJobs(ctx, q)
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Job) uuid.UUID { return r.ID })
	out := api.JobList{Items: make([]api.Job, 0, len(rows)), NextCursor: next}
	now := s.Now()
	for _, r := range rows {
		out.Items = append(out.Items, toJob(r, now))
	}
	return c.JSON(http.StatusOK, out)
}

// Get serves GET /jobs/{id}: of several jobs with that id the last submitted.
func (s *Service) Get(c echo.Context) error {
	q := store.FindJobParams{JobID: c.Param("id"), Cluster: wire.OptionalText(c.QueryParam("cluster"))}
	if v := c.QueryParam("scheduler"); v != "" {
		if !api.Scheduler(v).Valid() {
			return fault.Invalid("must be slurm, flux or mock", "query", "scheduler")
		}
		q.Scheduler = &v
	}
	row, err := s.Store.FindJob(c.Request().Context(), q)
	switch {
	case store.None(err):
		return fault.JobNotFound.New("None of the requested schedulers or clusters has reported such a job; GET /jobs lists the known jobs.")
	case err != nil:
		return err
	}
	return c.JSON(http.StatusOK, toJob(row, s.Now()))
}

// Summary serves GET /jobs/summary: the facility now, or one cluster of it.
func (s *Service) Summary(c echo.Context) error {
	ctx := c.Request().Context()
	clusters, err := s.Store.JobClusters(ctx)
	if err != nil {
		return err
	}
	parts, err := s.Store.JobPartitions(ctx, wire.OptionalText(c.QueryParam("cluster")))
	if err != nil {
		return err
	}
	f := api.Facility{Clusters: append([]string{}, clusters...), Partitions: make([]api.FacilityPartition, 0, len(parts))}
	for _, p := range parts {
		f.NodesAllocated += p.Nodes
		f.GpusAllocated += p.Gpus
		f.JobsRunning += p.Running
		f.QueueDepth += p.Queued
		f.Partitions = append(f.Partitions, api.FacilityPartition{Name: p.Name, Running: p.Running, Queued: p.Queued, GpusAllocated: p.Gpus})
	}
	return c.JSON(http.StatusOK, api.JobSummary{Facility: f})
}

// Put serves PUT /jobs/{scheduler}/{id}.
func (s *Service) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.JobInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	r, err := parseReport(c.Param("scheduler"), c.Param("id"), body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	// The store has microsecond precision, so the record must have no more to equal its stored copy.
	now := s.Now().UTC().Truncate(time.Microsecond)
	var row store.Job
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		var err error
		row, err = putJob(ctx, tx, r, p, now)
		return err
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, toJob(row, s.Now()))
}
