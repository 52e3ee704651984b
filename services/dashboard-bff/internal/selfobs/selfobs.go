// Package selfobs reports this service's own state: its dependencies, and the results of its last requests. It also
// records people's actions in the UI that leave no other trace.
package selfobs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/health"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// order of the dependencies in the answer.
var order = []string{"postgres", "nats", "coordinator", "session_store", "control_plane", "inference", "tracker", "orchestrator", "assistant"}

// remote are the dependencies behind HTTP.
var remote = map[string]struct {
	service upstream.Service
	path    string
}{
	"control_plane": {upstream.ControlPlane, "/livez"},
	"inference":     {upstream.Serving, "/livez"},
	"tracker":       {upstream.Tracker, "/health"},
	"orchestrator":  {upstream.Orchestrator, "/health"},
	"assistant":     {upstream.Assistant, "/livez"},
}

// checkTimeout of each dependency.
const checkTimeout = 2 * time.Second

// Parts are the dependencies of Self.
type Parts struct {
	Clients  *upstream.Clients
	Requests *Requests
	Pool     *pgxpool.Pool
	Log      *slog.Logger
	// Checks are the dependencies that this process talks to itself: postgres, nats, coordinator, session_store.
	Checks map[string]func(ctx context.Context) error
}

// Self serves the routes of self-observability.
type Self struct {
	Parts
	client *http.Client
	round  health.Round[[]api.Dependency]
}

// New refuses a missing part and an unknown check.
func New(p Parts) (*Self, error) {
	if err := service.RequireParts("selfobs", p); err != nil {
		return nil, err
	}
	for name := range p.Checks {
		if _, behind := remote[name]; behind || !slices.Contains(order, name) {
			return nil, errors.New("selfobs: there is no check " + name)
		}
	}
	s := &Self{Parts: p, client: service.HTTPClient(checkTimeout)}
	s.round.Measure = s.measure
	return s, nil
}

// Status serves GET /api/v1/selfobs/status.
func (s *Self) Status(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	all, _, ok := s.round.Read(c.Request().Context())
	if !ok {
		return c.Request().Context().Err()
	}
	out := api.SelfStatus{Status: api.SelfStatusStatusUp, Dependencies: all, Metrics: s.Requests.summarize()}
	if slices.ContainsFunc(all, func(d api.Dependency) bool { return d.Status == api.DependencyStatusDown }) {
		out.Status = api.SelfStatusStatusDegraded
	}
	return c.JSON(http.StatusOK, out)
}

// measure checks all dependencies in parallel. One that is not configured is no dependency.
func (s *Self) measure(ctx context.Context) []api.Dependency {
	checks := maps.Clone(s.Checks)
	for name, r := range remote {
		address, err := s.Clients.Address(r.service)
		if err != nil {
			continue
		}
		checks[name] = func(ctx context.Context) error {
			status, err := health.Probe(ctx, s.client, address+r.path)
			if err == nil && status/100 != 2 {
				err = errors.New(http.StatusText(status))
			}
			return err
		}
	}
	found := make([]*api.Dependency, len(order))
	var wg sync.WaitGroup
	for i, name := range order {
		if check := checks[name]; check != nil {
			wg.Go(func() { found[i] = runCheck(ctx, name, check) })
		}
	}
	wg.Wait()
	out := make([]api.Dependency, 0, len(order))
	for _, d := range found {
		if d != nil {
			out = append(out, *d)
		}
	}
	return out
}

func runCheck(ctx context.Context, name string, check func(context.Context) error) *api.Dependency {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	d := &api.Dependency{Name: name, Status: api.DependencyStatusDown}
	if check(ctx) == nil {
		ms := float64(time.Since(began).Microseconds()) / 1000
		d.Status, d.LatencyMs = api.DependencyStatusUp, &ms
	}
	return d
}

// Limits of what the UI may record, in characters.
const (
	maxTarget  = 256
	maxDetails = 4000
)

// actionRule is the syntax of an action's name. It is recorded with the prefix ui., so that a browser cannot forge the
// ledger entries of another part of the platform.
var actionRule = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,63}$`)

// Action serves POST /api/v1/selfobs/action.
func (s *Self) Action(c echo.Context) error {
	var body api.UIAction
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	var faults []problem.Field
	bad := func(name, msg string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if !actionRule.MatchString(body.Action) {
		bad("action", "must be 1 to 64 lower-case letters, digits, dots, dashes and underscores, beginning with a letter")
	}
	if n := utf8.RuneCountInString(body.Target); n == 0 || n > maxTarget {
		bad("target", "must be 1 to 256 characters")
	}
	if body.Details != nil && utf8.RuneCountInString(*body.Details) > maxDetails {
		bad("details", "must be at most 4,000 characters")
	}
	if len(faults) > 0 {
		return fault.ValidationFailed.New("The action cannot be recorded: " + faults[0].Loc[1] + " " + faults[0].Msg + ".").WithErrors(faults...)
	}
	ctx := c.Request().Context()
	err := s.record(ctx, caller.From(c), body)
	if err != nil {
		s.Log.ErrorContext(ctx, "action of the UI not recorded", slog.String("action", body.Action), slog.Any("err", err))
	}
	return c.JSON(http.StatusOK, api.Audited{Audited: err == nil})
}

// record writes the fact. Its actor is the role, as the contract has it for this route; the person is in the details.
func (s *Self) record(ctx context.Context, who caller.Caller, body api.UIAction) error {
	details := map[string]any{"principal": who.Subject}
	if body.Details != nil {
		details["details"] = *body.Details
	}
	fact := outbox.Audit(outbox.AuditFact{
		Tenant: who.Tenant, Actor: string(who.Role), Action: "ui." + body.Action, Target: body.Target, Outcome: announce.OK,
		Source: announce.Source, Details: details, RequestID: service.RequestID(ctx),
	})
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return postgres.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return announce.Insert(ctx, tx, fact) })
}
