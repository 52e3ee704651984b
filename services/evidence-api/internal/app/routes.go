package app

import (
	"net/http"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// readable is the Allow header of readable endpoints.
const readable = "GET, HEAD"

// route applies the checks to the request in a fixed order: capacity, Host, preflight, the paths that need no token,
// version, token, route, method, query names, Accept. The rest, framing or store and then values, is up to the
// endpoint.
func (a *App) route(x *exchange.Exchange) {
	r := x.Request
	if !(r.Path == "/healthz" && isRead(r.Method)) {
		if f := x.Admit(); f != nil {
			x.Fail(f)
			return
		}
	}
	if !loopback.GoodHost(r) {
		x.Fail(catalogue.New(catalogue.InvalidHost))
		return
	}
	op, id := route.Match(r.Path)
	if r.Method == http.MethodOptions {
		f := catalogue.New(catalogue.PreflightNotSupported)
		f.Allow = readable
		if op != nil {
			f.Allow = op.Allow()
		}
		x.Fail(f)
		return
	}
	if r.Path == "/" || r.Path == "/index.html" {
		a.page.Serve(x)
		return
	}
	if op == nil || !op.Open {
		if f := a.checkAccess(x, op); f != nil {
			x.Fail(f)
			return
		}
	}
	if !op.Takes(r.Method) {
		x.Fail(&catalogue.Fault{Code: catalogue.MethodNotAllowed, Allow: op.Allow()})
		return
	}
	values, ok := query.Parse(r.RawQuery, op.Query)
	if !ok {
		x.Fail(catalogue.UnexpectedParameter(op.Query))
		return
	}
	if op.Negotiates() {
		if _, ok := negotiate.Accept(r.Header.Values("Accept"), op.Stream); !ok {
			x.Fail(notAcceptable(op.Stream))
			return
		}
	}
	a.answer(x, op, id, values)
}

// checkAccess checks version, token and route: what stands before everything that an
// endpoint knows of itself, so that a stranger learns nothing of the routes.
func (a *App) checkAccess(x *exchange.Exchange, op *route.Op) *catalogue.Fault {
	versioned := strings.HasPrefix(x.Request.Path, route.Prefix)
	if strings.HasPrefix(x.Request.Path, "/api/") && !versioned {
		return catalogue.New(catalogue.UnsupportedAPIVersion, "supported_versions", canon.Array{document.APIVersion})
	}
	if (versioned || op != nil) && !loopback.TokenMatches(x.Request, a.Token) {
		return catalogue.New(catalogue.InvalidSessionToken)
	}
	if op == nil {
		return catalogue.New(catalogue.NotFound)
	}
	return nil
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func notAcceptable(stream bool) *catalogue.Fault {
	supported := catalogue.TextArray(negotiate.JSON, negotiate.Vendor)
	if stream {
		supported = append(supported, negotiate.EventStream)
	}
	return catalogue.New(catalogue.NotAcceptable, "supported", supported)
}

// answer answers a request that passed the common checks.
func (a *App) answer(x *exchange.Exchange, op *route.Op, id string, values query.Values) {
	switch op.ID {
	case route.Health:
		x.Text("text/plain; charset=utf-8", "ok\n")
	case route.Readiness:
		x.Document(document.NewReadiness(a.Version))
	case route.Prometheus:
		x.Text(metrics.TextType, string(a.counters.Document(a.gauges()).Text()))
	case route.Status:
		x.JSON(200, a.status)
	case route.OpenAPI:
		x.JSON(200, a.openapi)
	case route.Metrics:
		x.Document(a.counters.Document(a.gauges()))
	case route.Inspect:
		a.inspect.Serve(x)
	default:
		switch {
		case a.Reader == nil:
			x.Fail(catalogue.New(catalogue.StoreNotConfigured))
		case op.Stream:
			a.stream.Serve(x, values)
		default:
			a.reads.Serve(x, op, id, values)
		}
	}
}

// gauges returns the metrics that are not counters.
func (a *App) gauges() metrics.Gauges {
	s := a.Admission.Stats()
	return metrics.Gauges{
		Version: a.Version, StoreConfigured: a.Reader != nil,
		Requests: s.Requests, MaxRequests: s.MaxRequests, Streams: s.Streams, MaxStreams: s.MaxStreams,
		Overloaded: s.Overloaded, Drained: s.Drained,
	}
}
