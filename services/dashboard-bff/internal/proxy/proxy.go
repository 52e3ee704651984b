// Package proxy shows the tools behind the dashboard to a browser: it forwards requests to the configured services,
// rewrites their links, and keeps their content from acting as the dashboard.
//
// There are two origins. The dashboard's serves every service, with scripts off. The tools origin is a second address on
// which the tools' own pages run, scripts and all: it holds nothing to steal, takes no credential of the dashboard, and is
// entered with a ticket.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Config of New.
type Config struct {
	Upstreams *upstream.Clients
	// Pool holds tickets and the outbox.
	Pool *pgxpool.Pool
	// Alive reports whether the session still stands: nil, or the problem to answer with. It is asked at each request of
	// the tools origin, and once a second for each open socket and stream.
	Alive func(ctx context.Context, who caller.Caller) error
	// Touch is Alive for a request of the tools origin: it counts as activity of the session.
	Touch func(ctx context.Context, who caller.Caller) error
	// StepUp reports whether who has signed in strongly enough for an action of the tools origin: nil, or the problem.
	StepUp func(ctx context.Context, who caller.Caller, action string) error
	// Enabled is the flag toolProxy for the caller.
	Enabled func(ctx context.Context, who caller.Caller) bool
	// ClientIP is the address of the person, forwarded ones judged; default the peer's.
	ClientIP func(*http.Request) string `part:"optional"`
	// PublicAddress is the published URL of a service, empty without one; default none.
	PublicAddress func(upstream.Service) string `part:"optional"`
	Log           *slog.Logger

	// PublicURL and ToolsURL are the two origins as browsers see them, such as https://dashboard.example.
	PublicURL, ToolsURL string
	// ToolsHosts are Host values that the tools origin serves beside that of ToolsURL.
	ToolsHosts []string
	// OperatorTenants may use the shared tools.
	OperatorTenants []string
	// Keys are the dashboard's; tickets and cookies are sealed with keys derived from them.
	Keys *sealing.Keys
	// MaxBody limits a forwarded request's body in bytes; 0 means 32 MiB.
	MaxBody int64
}

// defaultMaxBody is DASHBOARD_PROXY_MAX_BODY's default.
const defaultMaxBody = 32 << 20

// Proxy forwards requests. Its methods are safe to call at once.
type Proxy struct {
	cfg       Config
	dashboard *origin
	tools     *origin
	keys      *sealing.Keys   // derived
	hosts     map[string]bool // of the tools origin
	timeouts  timeouts
	limits    limits
	transport http.RoundTripper
	reverse   *httputil.ReverseProxy
	// buffers limits the memory in which bodies wait to be rewritten.
	buffers *semaphore.Weighted
	links   cache[*linkMap]
	targets cache[*url.URL] // nil: no address
	// life ends at Drain, and with it every socket and stream.
	life context.Context
	end  context.CancelCauseFunc
}

// origin is one of the two addresses.
type origin struct {
	url   *url.URL
	text  string // scheme, host and port as browsers write them in Origin
	tools bool
}

// New checks the configuration and makes the proxy. It starts nothing.
func New(cfg Config) (*Proxy, error) {
	if err := service.RequireParts("proxy", cfg); err != nil {
		return nil, err
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.ClientIP == nil {
		cfg.ClientIP = peerAddress
	}
	if cfg.PublicAddress == nil {
		cfg.PublicAddress = func(upstream.Service) string { return "" }
	}
	p := &Proxy{cfg: cfg, timeouts: defaultTimeouts, limits: defaultLimits, hosts: map[string]bool{}}
	var err error
	if p.dashboard, err = parseOrigin("PublicURL", cfg.PublicURL); err != nil {
		return nil, err
	}
	if p.tools, err = parseOrigin("ToolsURL", cfg.ToolsURL); err != nil {
		return nil, err
	}
	if p.dashboard.text == p.tools.text {
		return nil, errors.New("proxy: the tools' pages must not run on the dashboard's own origin; set DASHBOARD_TOOLS_URL to another host or port")
	}
	p.tools.tools = true
	for _, h := range append([]string{p.tools.url.Host}, cfg.ToolsHosts...) {
		p.hosts[hostOnly(h)] = true
	}
	if p.keys, err = cfg.Keys.Derive("dashboard tools origin", nil); err != nil {
		return nil, err
	}
	p.buffers = semaphore.NewWeighted(p.limits.budget)
	p.life, p.end = context.WithCancelCause(context.Background())
	p.connect(net.DefaultResolver)
	return p, nil
}

// connect creates the transport; tests pass their own resolver.
func (p *Proxy) connect(r outbound.Resolver) {
	p.transport = newTransport(r, p.timeouts)
	p.reverse = &httputil.ReverseProxy{
		Transport: roundTripper{}, Rewrite: rewriteRequest, ModifyResponse: modifyResponse, ErrorHandler: keepFailure,
		BufferPool: newBufferPool(), ErrorLog: slog.NewLogLogger(p.cfg.Log.Handler(), slog.LevelDebug),
	}
}

// Drain ends sockets and streams; call it when the stop begins.
func (p *Proxy) Drain() { p.end(errDraining) }

// Close frees idle connections, after the last request.
func (p *Proxy) Close() {
	p.Drain()
	if t, ok := p.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// OperatorOnly reports whether a service is shared by all tenants and knows none of them, so that only those of the
// operators may use it through the proxy.
func OperatorOnly(s upstream.Service) bool { return s != upstream.ControlPlane }

func parseOrigin(name, text string) (*origin, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("proxy: %s %q is no http or https URL of an origin", name, text)
	}
	return &origin{url: u, text: originText(u)}, nil
}

func peerAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// hostOnly returns a host without port and final dot, in lower case.
func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
