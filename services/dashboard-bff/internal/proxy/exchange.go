package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// Why an exchange ends early.
var (
	errIdle     = errors.New("no byte arrived in time")
	errDraining = errors.New("the dashboard is shutting down")
)

// exchange is one forwarded request with its answer.
type exchange struct {
	proxy   *Proxy
	origin  *origin
	in      *http.Request
	who     caller.Caller
	service upstream.Service
	path    string   // the service's path, escaped as received
	target  *url.URL // the configured address, without the final slash
	links   *linkMap

	clientIP    string
	socket      bool // a WebSocket upgrade is requested
	acceptsGzip bool
	raw         bool // the caller wants the body as the service sent it

	out       *responseWriter
	cancel    context.CancelCauseFunc
	stopWatch func()          // ends the watch over an open stream or socket
	recorded  bool            // the audit fact of this write is in the ledger
	stripped  map[string]bool // tags that the caller knows with the mark of the rewritten body
	failure   error           // why there is no answer from the service
}

type exchangeKey struct{}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// serve forwards a request of who. An error has not been answered.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, o *origin, who caller.Caller) error {
	s, path, err := splitPath(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	if o.tools && s == upstream.ControlPlane {
		return fault.UnknownService.New("The control plane is not served on the tools origin; use the dashboard.")
	}
	x := &exchange{
		proxy: p, origin: o, in: r, who: who, service: s, path: path, clientIP: p.cfg.ClientIP(r),
		socket: isWebSocket(r), acceptsGzip: acceptsGzip(r.Header), raw: r.Header.Get(headerRewrite) == "off",
	}
	if err := x.admit(); err != nil {
		return err
	}
	if path == "" { // relative links of the service's first page need the slash
		http.Redirect(w, r, withQuery(prefix(s)+"/", r.URL.RawQuery), http.StatusPermanentRedirect)
		return nil
	}
	if err := checkPath(path); err != nil {
		return err
	}
	if x.target, err = p.address(s); err != nil {
		return err
	}
	if o.tools && !isSafe(r.Method) {
		for _, action := range stepUpActions(r.Method, s, path) {
			if err := p.cfg.StepUp(r.Context(), who, action); err != nil {
				return err
			}
		}
	}
	if err := x.prepareAudit(); err != nil {
		return err
	}
	return x.forward(w)
}

// address returns the root of a service as a URL.
func (p *Proxy) address(s upstream.Service) (*url.URL, error) {
	text, err := p.cfg.Upstreams.Address(s)
	if errors.Is(err, upstream.ErrNotConfigured) {
		return nil, fault.ServiceNotConfigured.New("There is no address for " + string(s) + "; an admin sets " + string(s) + "_url in the configuration.")
	}
	if err != nil {
		return nil, err
	}
	u := p.targets.get(string(s)+" "+text, func() *url.URL {
		u, _ := parseAddress(s, text)
		return u
	})
	if u == nil {
		return nil, fault.ServiceNotConfigured.New("The address of " + string(s) + " is no http or https URL; an admin corrects " + string(s) + "_url in the configuration.")
	}
	return u, nil
}

// parseAddress reads a service's address. That of the orchestrator names its API, which is below its root.
func parseAddress(s upstream.Service, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("not an http or https URL")
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if s == upstream.Orchestrator {
		path = strings.TrimSuffix(path, "/api")
	}
	root := &url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host}
	if root.Path, err = url.PathUnescape(path); err != nil {
		return nil, err
	}
	root.RawPath = path
	return root, nil
}

// forward sends the request and copies the answer.
func (x *exchange) forward(w http.ResponseWriter) error {
	p, r := x.proxy, x.in
	controller := http.NewResponseController(w)
	if r.ContentLength > p.cfg.MaxBody {
		return p.bodyTooLarge()
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), exchangeKey{}, x))
	defer cancel(nil)
	x.cancel = cancel
	x.out = &responseWriter{under: w, controller: controller, header: http.Header{}, idle: p.timeouts.idle}
	out := r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = &requestBody{ReadCloser: http.MaxBytesReader(w, r.Body, p.cfg.MaxBody), controller: controller, idle: p.timeouts.idle}
	}
	if x.socket {
		x.stopWatch = x.endWithSession(ctx)
	}
	defer func() { // also when the copy panics, as it does when one side breaks off
		if x.stopWatch != nil {
			x.stopWatch()
		}
	}()
	p.reverse.ServeHTTP(x.out, out)
	x.out.sendTrailers()
	return x.failure
}

// watchEvery is how often a long exchange asks whether its session still stands.
const watchEvery = time.Second

// endWithSession cancels the exchange when its session ends, and when the dashboard stops. The caller calls stop, which
// waits.
func (x *exchange) endWithSession(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-x.proxy.life.Done():
				x.cancel(context.Cause(x.proxy.life))
				return
			case <-tick.C:
			}
			err := x.proxy.cfg.Alive(ctx, x.who)
			if err == nil && !x.who.ExpiresAt.IsZero() && !time.Now().Before(x.who.ExpiresAt) {
				err = fault.InvalidToken.New("The session has expired.")
			}
			if err != nil && ctx.Err() == nil {
				x.cancel(err)
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// rewriteRequest builds the request that goes to the service.
func rewriteRequest(pr *httputil.ProxyRequest) {
	x := exchangeFrom(pr.In.Context())
	pr.Out.URL = x.upstreamURL()
	pr.Out.Host = x.target.Host
	x.cleanRequest(pr.Out.Header)
	x.translateValidators(pr.Out.Header)
}

// upstreamURL returns the address of the request at the service: the path and query exactly as they came.
func (x *exchange) upstreamURL() *url.URL {
	raw := x.target.EscapedPath() + x.path
	decoded, err := url.PathUnescape(raw)
	if err != nil { // cannot be: net/http has parsed it
		decoded = raw
	}
	return &url.URL{Scheme: x.target.Scheme, Host: x.target.Host, Path: decoded, RawPath: raw, RawQuery: x.in.URL.RawQuery, ForceQuery: x.in.URL.ForceQuery}
}

// roundTripper signs each request for its caller.
type roundTripper struct{}

func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeFrom(r.Context())
	return x.proxy.cfg.Upstreams.Authorize(x.service, x.who, x.proxy.transport).RoundTrip(r)
}

// modifyResponse judges and cleans the service's answer. An error replaces it.
func modifyResponse(res *http.Response) error {
	x := exchangeFrom(res.Request.Context())
	if err := x.refuseStatus(res); err != nil {
		return err
	}
	if err := x.recordWrite(res.Request.Context(), res.StatusCode); err != nil {
		return err
	}
	cleanResponse(res.Header)
	if res.StatusCode == http.StatusSwitchingProtocols {
		// The answer is written past the responseWriter: it has only the headers that are in it.
		res.Header.Set("X-Request-Id", x.out.under.Header().Get("X-Request-Id"))
		return nil
	}
	if err := x.rewriteLocation(res); err != nil {
		return err
	}
	x.isolate()
	res.Body = x.watchBody(res)
	return x.rewriteResponse(res)
}

// keepFailure records why there is no answer; serve returns it.
func keepFailure(_ http.ResponseWriter, r *http.Request, err error) {
	x := exchangeFrom(r.Context())
	x.failure = x.explain(r.Context(), err)
	if err := x.recordWrite(r.Context(), 0); err != nil { // whether the service carried it out is unknown
		x.failure = err
	}
}

// explain converts a failed call to a problem for the caller.
func (x *exchange) explain(ctx context.Context, err error) error {
	var known *problem.Error
	if errors.As(err, &known) {
		return known
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return x.proxy.bodyTooLarge()
	}
	cause := context.Cause(ctx)
	var slow net.Error
	var unknown *net.DNSError
	switch name := string(x.service); {
	case errors.As(cause, &known):
		return known
	case errors.Is(cause, context.Canceled):
		return problem.ClientClosed.New("The caller closed the connection.").WithCause(err)
	case errors.Is(err, outbound.ErrForbiddenAddress):
		return fault.UpstreamUnavailable.New("The configured address of " + name + " leads to an address that the proxy never connects to (link-local, multicast, unspecified, cloud metadata, or loopback that is not configured as such); correct " + name + "_url.").WithCause(err)
	case errors.As(err, &unknown):
		return fault.UpstreamUnavailable.New("The host of " + name + " has no address; check " + name + "_url in the configuration.").WithCause(err)
	case errors.Is(cause, errIdle), errors.As(err, &slow) && slow.Timeout():
		return fault.UpstreamTimeout.New(name + " did not answer in time; look at its health, then try again.").WithCause(err)
	}
	return fault.UpstreamUnavailable.New(string(x.service) + " cannot be reached or broke off; look at its health, then try again.").WithCause(err)
}

func (p *Proxy) bodyTooLarge() error {
	return problem.BodyTooLarge.Errorf("The request body is larger than %d bytes; DASHBOARD_PROXY_MAX_BODY sets the limit.", p.cfg.MaxBody)
}

func isWebSocket(r *http.Request) bool {
	if r.Method != http.MethodGet || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	for token := range strings.SplitSeq(strings.Join(r.Header["Connection"], ","), ",") {
		if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
			return true
		}
	}
	return false
}

func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}
