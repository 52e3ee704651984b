// Package health is the aggregate health of the platform's services, which everybody may read.
package health

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// The keys of the answer that are no service behind the dashboard.
const (
	scheduler = "scheduler"
	busSim    = "bus_sim"
)

// probes are the measured services, by their key in the answer.
var probes = map[string]struct {
	service upstream.Service
	path    string // below the service's address
}{
	"tracker":       {upstream.Tracker, "/health"},
	"orchestrator":  {upstream.Orchestrator, "/health"},
	"serving":       {upstream.Serving, "/health"},
	"bus":           {upstream.Bus, "/health"},
	"metrics_store": {upstream.MetricsStore, "/-/healthy"},
	"dashboards":    {upstream.Dashboards, "/api/health"},
}

// Parts are the dependencies of Aggregate.
type Parts struct {
	Clients *upstream.Clients
	// Published are the addresses that people use, by key of the answer; a service without one shows its own address
	// only if that is loopback.
	Published map[string]string
	// AllowedHosts are the hosts this service answers for.
	AllowedHosts []string
	// SchedulerMode is PLATFORM_SCHEDULER_MODE.
	SchedulerMode string
}

// Aggregate serves GET /api/health.
type Aggregate struct {
	Parts
	client *http.Client
	round  Round[map[string]api.ServiceHealth]
}

// New refuses a missing part.
func New(p Parts) (*Aggregate, error) {
	if err := service.RequireParts("health", p); err != nil {
		return nil, err
	}
	a := &Aggregate{Parts: p, client: newProbeClient()}
	a.round.Measure = a.measure
	return a, nil
}

// Get serves GET /api/health: always 200, and complete.
func (a *Aggregate) Get(c echo.Context) error {
	found, at, ok := a.round.Read(c.Request().Context())
	if !ok {
		return c.Request().Context().Err()
	}
	host := a.requestHost(c.Request().Host)
	out := api.AggregateHealth{CheckedAt: at.UTC(), Services: make(map[string]api.ServiceHealth, len(found)), Unmeasured: []string{}}
	var measured []api.ServiceHealthStatus
	for _, key := range slices.Sorted(maps.Keys(found)) {
		h := found[key]
		if address := a.publishedURL(key, host); address != "" {
			h.Url = &address
		}
		out.Services[key] = h
		if h.Status == api.ServiceHealthStatusUnknown {
			out.Unmeasured = append(out.Unmeasured, key)
		} else {
			measured = append(measured, h.Status)
		}
	}
	out.Status = summarize(measured)
	return c.JSON(http.StatusOK, out)
}

// summarize returns one status for all that were measured.
func summarize(all []api.ServiceHealthStatus) api.AggregateHealthStatus {
	every := func(s api.ServiceHealthStatus) bool {
		return !slices.ContainsFunc(all, func(other api.ServiceHealthStatus) bool { return other != s })
	}
	switch {
	case len(all) == 0:
		return api.AggregateHealthStatusUnknown
	case every(api.ServiceHealthStatusOk):
		return api.AggregateHealthStatusOk
	case every(api.ServiceHealthStatusDown):
		return api.AggregateHealthStatusDown
	}
	return api.AggregateHealthStatusDegraded
}

// measure probes all services at once.
func (a *Aggregate) measure(ctx context.Context) map[string]api.ServiceHealth {
	out := map[string]api.ServiceHealth{
		scheduler: unmeasured("it runs off this cluster and is never probed"),
		busSim:    unmeasured("the simulated bus is never probed"),
	}
	if a.SchedulerMode == "mock" {
		out[scheduler] = unmeasured("mock mode: training runs inline, and there is nothing to probe")
	}
	var mu sync.Mutex // guards out
	var wg sync.WaitGroup
	for key, p := range probes {
		wg.Go(func() {
			h := a.probe(ctx, p.service, p.path)
			mu.Lock()
			defer mu.Unlock()
			out[key] = h
		})
	}
	wg.Wait()
	return out
}

func unmeasured(note string) api.ServiceHealth {
	return api.ServiceHealth{Status: api.ServiceHealthStatusUnknown, Note: &note}
}

func (a *Aggregate) probe(ctx context.Context, s upstream.Service, path string) api.ServiceHealth {
	address, err := a.Clients.Address(s)
	if err != nil {
		return unmeasured("not configured")
	}
	status, err := Probe(ctx, a.client, address+path)
	switch {
	case err != nil:
		note := "no connection, or no answer within 2 s"
		return api.ServiceHealth{Status: api.ServiceHealthStatusDown, Note: &note}
	case status/100 != 2:
		note := fmt.Sprintf("it answers HTTP %d", status)
		return api.ServiceHealth{Status: api.ServiceHealthStatusDegraded, Note: &note}
	}
	return api.ServiceHealth{Status: api.ServiceHealthStatusOk}
}

// requestHost returns the host that the caller used, if this service answers for it. The caller controls the Host
// header: only a known one may be returned in an answer.
func (a *Aggregate) requestHost(header string) string {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	allowed := slices.ContainsFunc(a.AllowedHosts, func(h string) bool { return strings.EqualFold(strings.Trim(h, "[]"), host) })
	if allowed || isLoopback(host) {
		return host
	}
	return ""
}

// publishedURL returns where people find a service, empty if they cannot: internal addresses are not disclosed. A
// loopback host is this machine, which the caller knows as host.
func (a *Aggregate) publishedURL(key, host string) string {
	text, published := a.Published[key], true
	if text == "" {
		p, ok := probes[key]
		if !ok {
			return ""
		}
		var err error
		if text, err = a.Clients.Address(p.service); err != nil {
			return ""
		}
		published = false
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	local := isLoopback(u.Hostname())
	if !published && !local {
		return ""
	}
	u.User = nil
	if local && host != "" {
		u.Host = joinHost(host, u.Port())
	}
	return u.String()
}

func joinHost(host, port string) string {
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}
