package eval

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// MaxMetrics bounds the metrics of a run.
const MaxMetrics = 500

// suite holds no ':', which parts the key of an alert.
var suite = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/@+-]{0,127}$`)

const suiteRule = "must be 1 to 128 letters, digits, spaces or any of . _ / @ + -, and begin with a letter or digit"

// input is api.EvalInput that tells 0 and false from none.
type input struct {
	Model   string         `json:"model"`
	Version string         `json:"version"`
	Suite   string         `json:"suite"`
	Status  api.EvalStatus `json:"status"`
	Metrics *[]metricInput `json:"metrics"`
	RunID   *string        `json:"run_id"`
}

type metricInput struct {
	Metric   string   `json:"metric"`
	Value    *float64 `json:"value"`
	Baseline *float64 `json:"baseline"`
	Passed   *bool    `json:"passed"`
}

// Post serves POST /evals.
func (s *Service) Post(c echo.Context) error {
	ctx := c.Request().Context()
	var body input
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	r, err := body.run()
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row, err := s.Record(ctx, p, r)
	if err != nil {
		return err
	}
	out, err := view(row)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

func (b input) run() (Run, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) {
		faults = append(faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
	}
	r := Run{Model: registry.ID(b.Model), Version: b.Version, Suite: b.Suite, Status: b.Status, ID: b.RunID, Metrics: []api.EvalMetric{}}
	if !registry.ValidName(b.Model) {
		bad(registry.NameRule, "model")
	}
	if !wire.Label(b.Version) {
		bad(wire.LabelRule, "version")
	}
	if !suite.MatchString(b.Suite) {
		bad(suiteRule, "suite")
	}
	if !b.Status.Valid() {
		bad("must be passed, failed or error", "status")
	}
	if b.RunID != nil && !wire.Label(*b.RunID) {
		bad(wire.LabelRule, "run_id")
	}
	var given []metricInput
	switch {
	case b.Metrics == nil:
		bad("is missing; [] is a run without metrics", "metrics")
	case len(*b.Metrics) > MaxMetrics:
		bad(fmt.Sprintf("has %d entries; at most %d", len(*b.Metrics), MaxMetrics), "metrics")
	default:
		given = *b.Metrics
	}
	seen := map[string]bool{}
	for i, m := range given {
		at := strconv.Itoa(i)
		switch {
		case !wire.Label(m.Metric):
			bad(wire.LabelRule, "metrics", at, "metric")
		case seen[m.Metric]:
			bad("is there twice", "metrics", at, "metric")
		}
		seen[m.Metric] = true
		if m.Value == nil {
			bad("must be a number", "metrics", at, "value")
		}
		if m.Passed == nil {
			bad("must be true or false", "metrics", at, "passed")
		}
		if m.Value != nil && m.Passed != nil {
			r.Metrics = append(r.Metrics, api.EvalMetric{Metric: m.Metric, Value: *m.Value, Baseline: m.Baseline, Passed: *m.Passed})
		}
	}
	return r, fault.InvalidAll(faults)
}

// List serves GET /evals.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q := store.ListEvalsParams{
		Tenant: p.Tenant, ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), Before: page.After, MaxRows: page.Fetch(),
	}
	latest, err := wire.Flag(c, "latest")
	if err != nil {
		return err
	}
	var rows []store.Eval
	if latest {
		rows, err = s.Store.ListLatestEvals(ctx, store.ListLatestEvalsParams{Tenant: q.Tenant, ModelID: q.ModelID, Before: q.Before, MaxRows: q.MaxRows})
	} else {
		rows, err = s.Store.ListEvals(ctx, q)
	}
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Eval) uuid.UUID { return r.ID })
	out := api.EvalList{Items: make([]api.Eval, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		v, err := view(r)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, v)
	}
	return c.JSON(http.StatusOK, out)
}

func view(r store.Eval) (api.Eval, error) {
	metrics, err := Metrics(r)
	out := api.Eval{
		Id: r.ID, Tenant: r.Tenant, Model: r.ModelID, Version: r.Version, Suite: r.Suite, Status: api.EvalStatus(r.Status),
		Metrics: metrics, RunId: r.RunID, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
	if n := len(metrics); n > 0 {
		rate := float64(n-len(Failed(metrics))) / float64(n)
		out.PassRate = &rate
	}
	return out, err
}
