package orchestratord

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images from scratch have no zone files

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"

	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord/store"
)

// ahead is how many runs of a schedule exist before their time.
const ahead = 3

type cronDoc struct {
	Cron     string `json:"cron"`
	Timezone string `json:"timezone"`
	DayOr    bool   `json:"day_or"`
}

type scheduleDoc struct {
	ID               uuid.UUID       `json:"id"`
	Created          time.Time       `json:"created"`
	Updated          time.Time       `json:"updated"`
	DeploymentID     uuid.UUID       `json:"deployment_id"`
	Schedule         cronDoc         `json:"schedule"`
	Active           bool            `json:"active"`
	MaxScheduledRuns *int32          `json:"max_scheduled_runs"`
	Parameters       json.RawMessage `json:"parameters"`
	Slug             *string         `json:"slug"`
}

func scheduleOf(r store.DeploymentSchedule) scheduleDoc {
	return scheduleDoc{
		r.ID, r.Created.UTC(), r.Updated.UTC(), r.DeploymentID, cronDoc{r.Cron, r.Timezone, true},
		r.Active, r.MaxScheduledRuns, r.Parameters, r.Slug,
	}
}

type cronIn struct {
	Schedule struct {
		Cron     string  `json:"cron"`
		Timezone *string `json:"timezone"`
		DayOr    *bool   `json:"day_or"`
		Interval any     `json:"interval"`
		RRule    any     `json:"rrule"`
	} `json:"schedule"`
	Active           *bool   `json:"active"`
	MaxScheduledRuns *int32  `json:"max_scheduled_runs"`
	Parameters       object  `json:"parameters"`
	Slug             *string `json:"slug"`
}

func (c cronIn) zone() string {
	if c.Schedule.Timezone == nil || *c.Schedule.Timezone == "" {
		return "UTC"
	}
	return *c.Schedule.Timezone
}

func (c cronIn) check() error {
	const loc = "schedules.schedule"
	switch s := c.Schedule; {
	case s.Interval != nil || s.RRule != nil:
		return invalidMember(loc, "this server offers cron schedules alone")
	case s.DayOr != nil && !*s.DayOr:
		return invalidMember(loc+".day_or", "this server offers day_or true alone: a day matches if its day of month or its day of week does")
	case c.MaxScheduledRuns != nil && *c.MaxScheduledRuns < 1:
		return invalidMember("schedules.max_scheduled_runs", "Input should be greater than 0")
	}
	plan, zone, err := parseCron(c.Schedule.Cron, c.zone())
	if err != nil {
		return invalidMember(loc+".cron", "%v", err)
	}
	if plan.Next(time.Now().In(zone)).IsZero() {
		return invalidMember(loc+".cron", "%q names no day in the next five years", c.Schedule.Cron)
	}
	return nil
}

func (c cronIn) row(deployment uuid.UUID, now time.Time) store.InsertScheduleParams {
	return store.InsertScheduleParams{
		ID: newID(), Now: now, DeploymentID: deployment, Cron: c.Schedule.Cron, Timezone: c.zone(),
		Active: c.Active == nil || *c.Active, MaxScheduledRuns: c.MaxScheduledRuns,
		Parameters: c.Parameters.json(), Slug: c.Slug,
	}
}

var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCron(spec, zone string) (cron.Schedule, *time.Location, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, nil, fmt.Errorf("time zone %q is not known", zone)
	}
	// Extensions of the library that are no cron expressions.
	if strings.Contains(spec, "TZ=") || strings.HasPrefix(spec, "@every") {
		return nil, nil, fmt.Errorf("%q is not a cron expression of five fields", spec)
	}
	plan, err := fiveFields.Parse(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("%q is not a cron expression of five fields: %w", spec, err)
	}
	return plan, loc, nil
}

// scheduleAhead makes the next runs of a deployment's active schedules. Their
// idempotency keys name schedule and time, so that doing it again makes none.
func (s *Server) scheduleAhead(ctx context.Context, q *store.Queries, id uuid.UUID) error {
	rows, err := q.Deployments(ctx, store.DeploymentsParams{Ids: []uuid.UUID{id}, Now: s.now()})
	if err != nil || len(rows) == 0 || rows[0].Deployment.Paused {
		return err
	}
	schedules, err := q.Schedules(ctx, []uuid.UUID{id})
	if err != nil {
		return err
	}
	for _, sc := range schedules {
		if !sc.Active {
			continue
		}
		plan, zone, err := parseCron(sc.Cron, sc.Timezone)
		if err != nil {
			return err
		}
		n := ahead
		if sc.MaxScheduledRuns != nil {
			n = min(n, int(*sc.MaxScheduledRuns))
		}
		at := s.now().In(zone)
		for range n {
			if at = plan.Next(at); at.IsZero() {
				break
			}
			when := at.UTC()
			key := fmt.Sprintf("scheduled %s %s %s", id, sc.ID, when.Format(time.RFC3339))
			parameters, err := overlayObjects(rows[0].Deployment.Parameters, sc.Parameters)
			if err != nil {
				return err
			}
			_, _, err = s.insertRun(ctx, q, rows[0].Deployment, newRun{
				parameters: parameters, key: &key, at: when, auto: true, schedule: &sc.ID,
				tags: append([]string{"auto-scheduled"}, rows[0].Deployment.Tags...),
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// scheduleAll does so for every deployment.
func (s *Server) scheduleAll(ctx context.Context) error {
	ids, err := s.q.ActiveDeployments(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := s.tx(ctx, func(q *store.Queries) error {
			if _, err := q.LockDeployment(ctx, id); isNoRows(err) {
				return nil
			} else if err != nil {
				return err
			}
			return s.scheduleAhead(ctx, q, id)
		})
		if err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "schedule runs", slog.String("deployment_id", id.String()), slog.Any("err", err))
		}
	}
	return ctx.Err()
}

// overlayObjects lays the members of the objects over each other, the last on top.
func overlayObjects(objects ...json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, o := range objects {
		if len(o) == 0 {
			continue
		}
		if err := json.Unmarshal(o, &all); err != nil {
			return nil, refuseRequest(http.StatusUnprocessableEntity, "parameters must be an object: %v", err)
		}
	}
	return json.Marshal(all)
}

func (s *Server) listSchedules(r *http.Request) (any, error) {
	d, err := s.readDeployment(r)
	if err != nil {
		return nil, err
	}
	return d.(deploymentDoc).Schedules, nil
}

// createSchedules adds schedules to the deployment's.
func (s *Server) createSchedules(r *http.Request) (any, error) {
	var in []cronIn
	if err := decodeBody(r, &in); err != nil {
		return nil, err
	}
	for _, c := range in {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	var out []scheduleDoc
	_, err := s.changeSchedules(r, http.StatusCreated, func(q *store.Queries, deployment uuid.UUID) error {
		out = nil
		for _, c := range in {
			row := c.row(deployment, s.now())
			if err := q.InsertSchedule(r.Context(), row); err != nil {
				return err
			}
			out = append(out, scheduleDoc{row.ID, row.Now, row.Now, deployment, cronDoc{row.Cron, row.Timezone, true}, row.Active, row.MaxScheduledRuns, row.Parameters, row.Slug})
		}
		return nil
	})
	return answer{http.StatusCreated, out}, err
}

// updateSchedule changes the members in the body.
func (s *Server) updateSchedule(r *http.Request) (any, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return s.changeSchedules(r, http.StatusNoContent, func(q *store.Queries, deployment uuid.UUID) error {
		all, err := q.Schedules(r.Context(), []uuid.UUID{deployment})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(sc store.DeploymentSchedule) bool { return sc.ID.String() == r.PathValue("schedule") })
		if i < 0 {
			return notFound("Schedule")
		}
		old := all[i]
		in := cronIn{Active: &old.Active, MaxScheduledRuns: old.MaxScheduledRuns, Parameters: object{old.Parameters}, Slug: old.Slug}
		in.Schedule.Cron, in.Schedule.Timezone = old.Cron, &old.Timezone
		if err := decodeBytes(body, &in); err != nil {
			return err
		}
		if err := in.check(); err != nil {
			return err
		}
		row := in.row(deployment, s.now())
		_, err = q.UpdateSchedule(r.Context(), store.UpdateScheduleParams{ID: old.ID, DeploymentID: deployment, Now: row.Now, Cron: row.Cron,
			Timezone: row.Timezone, Active: row.Active, MaxScheduledRuns: row.MaxScheduledRuns, Parameters: row.Parameters, Slug: row.Slug})
		return err
	})
}

func (s *Server) deleteSchedule(r *http.Request) (any, error) {
	return s.changeSchedules(r, http.StatusNoContent, func(q *store.Queries, deployment uuid.UUID) error {
		id, err := uuid.Parse(r.PathValue("schedule"))
		if err != nil {
			return notFound("Schedule")
		}
		n, err := q.DeleteSchedule(r.Context(), store.DeleteScheduleParams{ID: id, DeploymentID: deployment})
		if err == nil && n == 0 {
			err = notFound("Schedule")
		}
		return err
	})
}

// changeSchedules runs change under the lock of the deployment, then recreates the runs ahead.
func (s *Server) changeSchedules(r *http.Request, status int, change func(*store.Queries, uuid.UUID) error) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	err = s.tx(r.Context(), func(q *store.Queries) error {
		if _, err := q.LockDeployment(r.Context(), id); err != nil {
			return absentAsNotFound(err, "Deployment")
		}
		if err := change(q, id); err != nil {
			return err
		}
		return s.reschedule(r.Context(), q, id)
	})
	s.poke()
	return answer{status: status}, err
}
