// Package serving is shared by all prediction interfaces: access, the choice of the copy, deadlines and counters.
package serving

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
	"github.com/mlp-platform/platform/services/inference/internal/traffic"
)

// Config of a Core; all fields are required.
type Config struct {
	Catalog   *catalog.Catalog
	Snapshots *snapshot.Writer
	Metrics   *metrics.Set
	Log       *slog.Logger
	Traffic   *traffic.Traffic
	Shadows   *shadow.Scorer
	Timeout   time.Duration // of a request, unless it sets a shorter one
	Admit     int           // requests of one model inside at once, waiting or running
}

// Core is safe for concurrent use.
type Core struct {
	Config
	unlisted catalog.Gate // of all requests whose model has no alias in the registry
}

// New returns a Core.
func New(cfg Config) (*Core, error) {
	if err := service.RequireParts("serving", cfg); err != nil {
		return nil, err
	}
	return &Core{Config: cfg}, nil
}

// Call is one request, however it came.
type Call struct {
	Name  string // of the model, upper-case
	Probe bool   // sent by a tool that tries the service
	Bus   bool   // brought by the bus bridge
	Key   string // routing key of the caller; makes splits sticky
	Start time.Time
	Limit time.Duration // from Start
}

// Deadline is when the caller stops waiting.
func (c *Call) Deadline() time.Time { return c.Start.Add(c.Limit) }

// Source returns the origin that the call's snapshots record: route, unless a bridge forwarded it.
func (c *Call) Source(route snapshot.Source) snapshot.Source {
	if c.Bus {
		return snapshot.Bus
	}
	return route
}

// Left is the time until then.
func (c *Call) Left() time.Duration { return c.Limit - time.Since(c.Start) }

// Headers in the canonical form that net/http stores. headerProbe marks a test request of a tool. Its made-up rows are
// not recorded for drift: a benchmark alone would fill the drift window with one value.
const (
	headerProbe      = "X-Platform-Probe"
	headerSource     = "X-Platform-Source" // how a request reached the caller that forwards it
	headerTimeout    = "X-Request-Timeout-Ms"
	headerRoutingKey = "X-Routing-Key"
)

// Begin reads a request's headers. The call is usable for Refuse even with an error.
func (s *Core) Begin(h http.Header, name string) (Call, error) {
	c := Call{Name: name, Start: time.Now(), Limit: s.Timeout}
	if values := h[headerProbe]; len(values) == 1 && values[0] == "1" {
		c.Probe = true
	}
	if values := h[headerSource]; len(values) == 1 && values[0] == string(snapshot.Bus) {
		c.Bus = true
	}
	if values := h[headerRoutingKey]; len(values) > 0 {
		c.Key = values[0]
	}
	if values := h[headerTimeout]; len(values) > 0 {
		ms, err := strconv.ParseInt(values[0], 10, 32)
		if err != nil || ms < 1 {
			return c, InvalidRequest([]problem.Field{{Loc: []string{"header", headerTimeout}, Msg: "expected a whole number of milliseconds, at least 1"}})
		}
		c.Limit = min(s.Timeout, time.Duration(ms)*time.Millisecond)
	}
	return c, nil
}

// Admit limits the requests of one model before any work is done for them. weight is how many requests this one counts
// as. Names that the registry does not have share one limit: their bodies take memory as well.
func (s *Core) Admit(c *Call, weight int) (leave func(), err error) { return s.AdmitMore(c, 0, weight) }

// AdmitMore raises the weight of a request from had to weight, since its size may be known only once it was read. leave
// releases the difference.
func (s *Core) AdmitMore(c *Call, had, weight int) (leave func(), err error) {
	gate := s.Catalog.GateOf(c.Name)
	listed := gate != nil
	if !listed {
		gate = &s.unlisted
	}
	// A request larger than the whole capacity is admitted alone rather than never.
	weight = min(weight, s.Config.Admit) - min(had, s.Config.Admit)
	if !gate.EnterMany(weight, s.Config.Admit) {
		detail := fmt.Sprintf("Model %s has %d requests waiting, as many as it takes", c.Name, s.Config.Admit)
		if !listed {
			detail = fmt.Sprintf("There are %d requests for models that the registry does not have, as many as the service takes", s.Config.Admit)
		}
		return nil, s.Refuse(c, metrics.Shed, fault.Overloaded.New(detail+"; send the request again later.").After(time.Second))
	}
	if weight == 1 {
		return gate.Leave, nil
	}
	return func() { gate.LeaveMany(weight) }, nil
}

// Wanted is the copy that a request names. User is the user of the prediction, as JSON, if the body names one.
type Wanted struct {
	Alias, Version string
	User           []byte
}

// Find acquires the copy: of the version, else of the alias, else of the alias that the traffic rules choose, else of
// Production. The caller releases it.
func (s *Core) Find(ctx context.Context, c *Call, w Wanted) (*catalog.Slot, error) {
	find := ctx
	if w.Version != "" || w.Alias != "" { // may have to be loaded first
		var cancel context.CancelFunc
		find, cancel = context.WithDeadline(ctx, c.Deadline())
		defer cancel()
	} else {
		if rule := s.Traffic.Rule(c.Name); rule != nil {
			if slot := s.bySplit(ctx, c, rule, w.User); slot != nil {
				return slot, nil
			}
		}
		if slot := s.Catalog.Acquire(c.Name, catalog.Production); slot != nil { // the usual case, without a timer
			return slot, nil
		}
		var cancel context.CancelFunc
		find, cancel = context.WithDeadline(ctx, c.Deadline())
		defer cancel()
	}
	slot, err := s.Catalog.Find(find, c.Name, w.Alias, w.Version)
	if err != nil {
		return nil, s.Refuse(c, outcomeOf(err), err)
	}
	return slot, nil
}

// FindLoaded acquires the copy that an alias or the traffic rules mean, or is nil where that is not loaded. It neither
// loads nor counts anything.
func (s *Core) FindLoaded(ctx context.Context, c *Call, w Wanted) *catalog.Slot {
	alias, known := catalog.Production, true
	switch rule, e := s.Traffic.Rule(c.Name), s.Catalog.Table().Model(c.Name); {
	case w.Version != "":
		return nil // drift is watched of aliases
	case w.Alias != "":
		alias, known = catalog.CanonicalAlias(w.Alias)
	case rule != nil && e != nil:
		alias = rule.Alias(e.Tracker, func() string { return c.routingKey(ctx, w.User) })
	}
	if !known {
		return nil
	}
	return s.Catalog.Acquire(c.Name, alias)
}

// bySplit acquires the copy of the alias that a rule chooses. It is nil when that alias is not loaded: the request
// then gets Production without waiting for the load, which is counted.
func (s *Core) bySplit(ctx context.Context, c *Call, rule *traffic.Rule, user []byte) *catalog.Slot {
	tracker := s.Catalog.TrackerOf(c.Name)
	if tracker == "" {
		return nil // Find reports the fault
	}
	alias := rule.Alias(tracker, func() string { return c.routingKey(ctx, user) })
	if alias == catalog.Production {
		return nil // Find waits for it
	}
	slot := s.Catalog.AcquireOrLoad(c.Name, alias)
	if slot == nil {
		s.Metrics.TrafficFallback.WithLabelValues(c.Name, alias).Inc()
	}
	return slot
}

// routingKey returns the key that makes a split sticky: the caller's own key, else the user the prediction is for, else
// the principal, else the request id.
func (c *Call) routingKey(ctx context.Context, user []byte) string {
	if c.Key != "" {
		return c.Key
	}
	if len(user) > 0 {
		var text string
		if json.Unmarshal(user, &text) == nil {
			user = []byte(text)
		}
		if len(user) > 0 {
			return string(user)
		}
	}
	if p, ok := auth.FromContext(ctx); ok {
		return p.Name
	}
	return service.RequestID(ctx)
}

func outcomeOf(err error) int {
	switch {
	case fault.ModelNotLoaded.Has(err):
		return metrics.NotFound
	case problem.DeadlineExceeded.Has(err):
		return metrics.Timeout
	}
	return metrics.Failed
}

// Refuse counts a request that got no slot under its model's Production, or under other, and returns err.
func (s *Core) Refuse(c *Call, outcome int, err error) error {
	name, alias := c.Name, catalog.Production
	if s.Catalog.Table().Model(name) == nil {
		name, alias = metrics.Other, ""
	}
	counts := s.Metrics.For(name, alias)
	if c.Probe {
		counts = counts.Probes
	}
	counts.Count(outcome)
	return err
}

// Counts are the counters of a request that a slot answers.
func (c *Call) Counts(slot *catalog.Slot) *metrics.Predictions {
	if c.Probe {
		return slot.Metrics.Probes
	}
	return slot.Metrics
}

// InvalidRequest returns the 422 that lists the faults.
func InvalidRequest(faults []problem.Field) *problem.Error { return Faulty(problem.Validation, faults) }

// Faulty returns a problem of that kind that lists the faults.
func Faulty(kind problem.Kind, faults []problem.Field) *problem.Error {
	detail := "The request is not valid: " + strings.Join(faults[0].Loc, ".") + ": " + faults[0].Msg + "."
	if more := len(faults) - 1; more > 0 {
		detail += fmt.Sprintf(" %d more in errors.", more)
	}
	return kind.New(detail).WithErrors(faults...)
}
