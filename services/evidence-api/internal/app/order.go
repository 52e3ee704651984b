package app

import (
	"net/http"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// readable is the Allow header of what is read.
const readable = "GET, HEAD"

// serve puts the request through the checks in their one order: room, Host, preflight,
// the paths that need no token, version, token, route, method, query names, Accept.
// What is left, framing or store and then values, is the endpoint's own.
func (x *exchange) serve() {
	r := x.r
	if !(r.Path == "/healthz" && isRead(r.Method)) {
		if f := x.admit(); f != nil {
			x.fail(f)
			return
		}
	}
	if !loopback.GoodHost(r) {
		x.fail(catalogue.New(catalogue.InvalidHost))
		return
	}
	op, id := route.Match(r.Path)
	if r.Method == http.MethodOptions {
		f := catalogue.New(catalogue.PreflightNotSupported)
		f.Allow = readable
		if op != nil {
			f.Allow = op.Allow()
		}
		x.fail(f)
		return
	}
	if r.Path == "/" || r.Path == "/index.html" {
		x.page()
		return
	}
	if op == nil || !op.Open {
		if f := x.enter(op); f != nil {
			x.fail(f)
			return
		}
	}
	if !op.Takes(r.Method) {
		x.fail(&catalogue.Fault{Code: catalogue.MethodNotAllowed, Allow: op.Allow()})
		return
	}
	values, ok := query.Parse(r.RawQuery, op.Query)
	if !ok {
		x.fail(unexpectedParameter(op.Query))
		return
	}
	if op.Negotiates() {
		if _, ok := negotiate.Accept(r.Header.Values("Accept"), op.Stream); !ok {
			x.fail(notAcceptable(op.Stream))
			return
		}
	}
	x.endpoint(op, id, values)
}

// enter checks version, token and route: what stands before everything that an
// endpoint knows of itself, so that a stranger learns nothing of the routes.
func (x *exchange) enter(op *route.Op) *catalogue.Fault {
	versioned := strings.HasPrefix(x.r.Path, route.Prefix)
	if strings.HasPrefix(x.r.Path, "/api/") && !versioned {
		return catalogue.New(catalogue.UnsupportedAPIVersion, "supported_versions", canon.Array{document.APIVersion})
	}
	if (versioned || op != nil) && !loopback.TokenMatches(x.r, x.app.Token) {
		return catalogue.New(catalogue.InvalidSessionToken)
	}
	if op == nil {
		return catalogue.New(catalogue.NotFound)
	}
	return nil
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func unexpectedParameter(allowed []string) *catalogue.Fault {
	return catalogue.New(catalogue.UnexpectedQueryParameters, "allowed", textArray(allowed...))
}

func notAcceptable(stream bool) *catalogue.Fault {
	supported := textArray(negotiate.JSON, negotiate.Vendor)
	if stream {
		supported = append(supported, negotiate.EventStream)
	}
	return catalogue.New(catalogue.NotAcceptable, "supported", supported)
}

func textArray(list ...string) canon.Array {
	out := canon.Array{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
