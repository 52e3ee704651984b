package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// methods that are forwarded, with the role that each needs.
var methods = map[string]caller.Role{
	http.MethodGet: caller.Viewer, http.MethodHead: caller.Viewer, http.MethodOptions: caller.Viewer,
	http.MethodPost: caller.Admin, http.MethodPut: caller.Admin, http.MethodPatch: caller.Admin, http.MethodDelete: caller.Admin,
}

const allowedMethods = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"

// isSafe reports whether a method only reads.
func isSafe(method string) bool { return methods[method] == caller.Viewer }

// viewerSockets are the WebSockets that only send data that a viewer may read anyway.
var viewerSockets = map[upstream.Service][]string{
	upstream.Orchestrator: {"/api/events/out", "/api/logs/out"},
	upstream.Dashboards:   {"/api/live/ws"},
}

// admit refuses requests that the caller may not make. Routes and guards of the dashboard have refused most of them
// before; the tools origin has only this check.
func (x *exchange) admit() error {
	r := x.in
	role, served := methods[r.Method]
	if !served {
		return problem.MethodNotAllowed.New(fmt.Sprintf("The proxy does not forward %s; it forwards %s.", quoteShort(r.Method), allowedMethods)).WithHeader("Allow", allowedMethods)
	}
	if x.socket && !slices.Contains(viewerSockets[x.service], x.path) {
		role = caller.Admin
	}
	if x.service == upstream.ControlPlane && namesLedger(x.path) {
		role = caller.Admin
	}
	if x.who.Subject == "" {
		return fault.Unauthenticated.New("Sign in to use the tools.")
	}
	if !x.proxy.cfg.Enabled(r.Context(), x.who) {
		return fault.FeatureOff.New("The proxy to the tools is switched off by the flag toolProxy; an admin can switch it on.")
	}
	if !x.who.Role.Covers(role) {
		return fault.RoleRequired.New(fmt.Sprintf("This needs the role %s; sign in with it.", role))
	}
	if err := x.proxy.checkTenant(x.who, x.service); err != nil {
		return err
	}
	return x.checkBrowser()
}

// namesLedger reports whether a path of the control plane leads to its audit ledger or to the events on their way
// there. The control plane admits all readers, for the views that show viewers a part; only admins may read the whole,
// as at /api/audit.
func namesLedger(path string) bool {
	path = strings.TrimLeft(strings.ToLower(decodeOnce(decodeOnce(path))), "/")
	if end := strings.IndexAny(path, "/;"); end >= 0 {
		path = path[:end]
	}
	return path == "audit" || path == "outbox"
}

// checkTenant keeps shared tools to the operators' tenants.
func (p *Proxy) checkTenant(who caller.Caller, s upstream.Service) error {
	if OperatorOnly(s) && !slices.Contains(p.cfg.OperatorTenants, who.Tenant) {
		return fault.OperatorTenantRequired.New(fmt.Sprintf("%s knows no tenants, so only members of an operators' tenant use it; DASHBOARD_OPERATOR_TENANTS lists them.", s))
	}
	return nil
}

// executable are destinations of requests whose answers a page would run.
var executable = []string{"script", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "xslt", "object", "embed"}

// checkBrowser refuses requests that a hostile page makes a browser send.
func (x *exchange) checkBrowser() error {
	h := x.in.Header
	if h.Get("Service-Worker") != "" || h.Get("Sec-Fetch-Dest") == "serviceworker" {
		return problem.Forbidden.New("A tool may not install a service worker: it would answer for the other tools of this origin.")
	}
	// The pages of tools run no scripts on the dashboard's origin, so a script request there comes from the
	// dashboard's own page, tricked into it: its policy allows scripts of its origin.
	if dest := h.Get("Sec-Fetch-Dest"); !x.origin.tools && slices.Contains(executable, dest) {
		return problem.Forbidden.New("The dashboard's origin does not run what tools send; open the tool on the tools origin.")
	}
	if x.socket && !x.ownOrigin() {
		return fault.CSRFRefused.New("A WebSocket needs the Origin of this site.")
	}
	if x.origin.tools && !isSafe(x.in.Method) && h.Get("Sec-Fetch-Site") != "same-origin" && !x.ownOrigin() {
		return fault.CSRFRefused.New("This request does not come from a page of the tools origin.")
	}
	return nil
}

// ownOrigin reports whether the request names this origin as its own. Programs with a bearer are no browsers, and need
// not name any.
func (x *exchange) ownOrigin() bool {
	got := x.in.Header.Values("Origin")
	if len(got) == 0 {
		return !x.origin.tools && x.who.Method != caller.SSO && x.in.Header.Get("Authorization") != ""
	}
	return len(got) == 1 && got[0] == x.origin.text
}

func quoteShort(s string) string { return fmt.Sprintf("%.20q", s) }
