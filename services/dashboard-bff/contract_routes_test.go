package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
)

// The tables of routes.
const (
	authentication = "authentication and identity"
	views          = "view endpoints"
	additions      = "additions of the decisions"
	probes         = "probes"
)

// row is one route of a table.
type row struct {
	table    string
	route    string // method and path, as the API's document has them
	role     string // public, viewer or admin
	operator bool   // for an operator's tenant only
	path     string // of the request; empty: that of the route
	body     string
	status   int
	cache    string // Cache-Control; empty: private, no-cache
	// members are the contract's names of members, by the path of their object; "" is the body.
	members map[string]string
	// ends marks a route that ends the caller's session: it is called with one made for it.
	ends bool
	// open marks an answer that does not end: its head is all that is looked at.
	open  bool
	check func(w *world, a answer)
}

const (
	noStore      = "no-store"
	freshMembers = "_as_of _sources"
	day          = "&from=2026-11-22T00:00:00Z&to=2026-11-23T00:00:00Z&step=3600"
)

func wantValue(path string, want any) func(*world, answer) {
	return func(w *world, a answer) {
		if got := a.at(path); fmt.Sprint(got) != fmt.Sprint(want) {
			w.t.Errorf("%s: got %s = %v, want %v; all of it: %s", a.request, path, got, want, a.body)
		}
	}
}

// rows are all routes of the contract's pages.
var rows = slices.Concat(authenticationRows, viewRows, additionRows)

func wantLocation(want string) func(*world, answer) {
	return func(_ *world, a answer) { a.hasHeader("Location", want) }
}

// checkAuthorizationRequest checks the request sent to the provider: the code flow with PKCE, and a step-up.
func checkAuthorizationRequest(w *world, a answer) {
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), w.issuer.URL+"/authorize?") {
		w.t.Fatalf("got Location %q, want the provider's", a.header.Get("Location"))
	}
	q := to.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "dashboard", "code_challenge_method": "S256", "redirect_uri": w.url + "/api/auth/sso/callback", "scope": "openid profile email",
		"acr_values": "gold", "max_age": "0", "prompt": "login",
	} {
		if got := q.Get(name); got != want {
			w.t.Errorf("got %s=%q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if q.Get(name) == "" {
			w.t.Errorf("got no %s in %s", name, to)
		}
	}
}

func checkLongestWaitFirst(w *world, a answer) {
	jobs, _ := a.at("queue.jobs").([]any)
	waits := make([]float64, len(jobs))
	for i, job := range jobs {
		waits[i], _ = memberAt(job, "waitSec").(float64)
	}
	if len(waits) < 2 || !slices.IsSortedFunc(waits, func(a, b float64) int { return int(b - a) }) {
		w.t.Errorf("%s: got waits %v, want two at least, the longest first", a.request, waits)
	}
}

// startForRows starts a world whose services answer every row's request.
func startForRows(t *testing.T) *world {
	t.Helper()
	w := startWorld(t)
	w.services.Serving.Answer("/traffic-rules", 200, `{"items":[{"model":"JPCP","rules":{"Production":90,"Canary":10},"updated_at":"2026-11-23T08:00:00Z","updated_by":"operator"}],"next_cursor":null}`)
	w.services.ControlPlane.Answer("/approvals/"+effectOf+"/effect", 200, `{"approval_id":"`+effectOf+`","kind":"retrain","model_id":"JPCP","decidable":true,"action":"Approve and train","sentences":["The model is trained."]}`)
	for path, body := range map[string]string{
		"/runs": `{"items":[{"flow_run_id":"r1","model_id":"JPCP","dataset_name":"JobsPower","origin":"api","state_type":"COMPLETED","commit_sha":null,
			"approval_id":null,"model_version":"1","started_at":"2026-11-22T22:00:00Z","ended_at":"2026-11-22T22:01:30Z","is_dummy":false,"requested_by":"operator",
			"metrics":{"rmse":9.5}}],"next_cursor":null}`,
		"/costs": `{"items":[],"next_cursor":null}`, "/approvals": `[]`,
	} {
		w.services.ControlPlane.Answer(path, 200, body)
	}
	w.services.ControlPlane.Handle("/jobs", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") == "" { // the search's
			rw.Header().Set("Content-Type", "application/json")
			_, _ = rw.Write([]byte(`{"items":[],"next_cursor":null}`))
			return
		}
		w.services.ControlPlane.Replay(rw, r)
	})
	w.services.Tracker.Handle("/echo", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(map[string]any{"method": r.Method, "header": r.Header})
	})
	return w
}

func TestContractAuthenticationAndIdentity(t *testing.T) { walkRoutes(t, authentication) }
func TestContractViewEndpoints(t *testing.T)             { walkRoutes(t, views) }
func TestContractAdditions(t *testing.T)                 { walkRoutes(t, additions, probes) }

// walkRoutes calls each route of the tables with every kind of caller, and reads the answer to one who may.
func walkRoutes(t *testing.T, tables ...string) {
	t.Parallel()
	w := startForRows(t)
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	strangers := w.signOn(map[string]any{"sub": "9", "org": "other"})
	for _, r := range rows {
		if !slices.Contains(tables, r.table) {
			continue
		}
		t.Run(r.route, func(t *testing.T) {
			w := w.on(t)
			r.checkRefusals(w, viewer, provenCookie(strangers), person{"Cookie", strangers})
			who := viewer
			switch {
			case r.role == "public":
				who = nobody
			case r.role == "admin":
				who = admin
			case r.ends:
				who = w.signIn(viewerPassword)
			}
			a := r.callAs(w, who)
			if a.status != r.status {
				t.Fatalf("%s: got %d %s, want %d", a.request, a.status, a.body, r.status)
			}
			for path, names := range r.members {
				a.hasMembers(path, names)
			}
			cache := r.cache
			if cache == "" {
				cache = "private, no-cache"
			}
			a.hasHeader("Cache-Control", cache)
			checkEveryHeader(a)
			if strings.Contains(r.members[""], freshMembers) {
				r.checkETag(w, who, a)
			}
			if r.check != nil {
				r.check(w, a)
			}
		})
	}
}

func (r row) request() (method, path string) {
	method, path, _ = strings.Cut(r.route, " ")
	if r.path != "" {
		path = r.path
	}
	return method, strings.NewReplacer("{", "", "}", "").Replace(path)
}

func (r row) callAs(w *world, who person) answer {
	w.t.Helper()
	method, path := r.request()
	if r.open {
		return w.head(who, path)
	}
	return w.call(who, method, path, r.body)
}

// checkRefusals asks as everybody who may not.
func (r row) checkRefusals(w *world, viewer, stranger, unproven person) {
	w.t.Helper()
	method, path := r.request()
	if r.role == "public" {
		return
	}
	w.refused(401, "unauthenticated", nobody, method, path, r.body).hasHeader("WWW-Authenticate", `Bearer realm="dashboard"`)
	w.refused(401, "invalid_token", bearer("x.y.z"), method, path, r.body)
	if r.role == "admin" {
		w.refused(403, "role_required", viewer, method, path, r.body)
	}
	if method != "GET" {
		w.refused(403, "csrf_refused", unproven, method, path, r.body)
	}
	if r.operator {
		w.refused(403, "operator_tenant_required", stranger, method, path, r.body)
	}
}

// checkEveryHeader checks the headers that every response has.
func checkEveryHeader(a answer) {
	a.t.Helper()
	if !strings.Contains(a.request, "/api/proxy/") {
		a.hasHeader("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	}
	a.hasHeader("X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer", "X-Frame-Options", "DENY",
		"Cross-Origin-Opener-Policy", "same-origin", "Cross-Origin-Resource-Policy", "same-origin", "Strict-Transport-Security", "", "Access-Control-Allow-Origin", "")
	if got := a.header.Get("Permissions-Policy"); !strings.Contains(got, "camera=()") || strings.Contains(got, "=(self") || strings.Contains(got, "=*") {
		a.t.Errorf("%s: got Permissions-Policy %q, want nothing allowed", a.request, got)
	}
	if a.header.Get("X-Request-Id") == "" {
		a.t.Errorf("%s: got no X-Request-Id", a.request)
	}
}

// checkETag repeats the request with the answer's ETag. Some answers contain how many seconds a job has waited, so a
// request made a second later gets another body and another tag; it is then repeated with that tag.
func (r row) checkETag(w *world, who person, a answer) {
	w.t.Helper()
	method, path := r.request()
	again := a
	for range 5 {
		tag := again.header.Get("ETag")
		if tag == "" {
			break
		}
		again = w.call(who, method, path, "", "If-None-Match", tag)
		if again.status == http.StatusNotModified && len(again.body) == 0 {
			return
		}
		if again.header.Get("ETag") == tag {
			break
		}
	}
	w.t.Errorf("%s with the If-None-Match of the answer before: got %d %s with ETag %q, want 304 without a body", a.request, again.status, again.body, again.header.Get("ETag"))
}

// TestEveryOperationHasARow compares the API's document with the tables: an operation without a row has no contract
// test, and a row without an operation is a route missing from the document.
func TestEveryOperationHasARow(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal(api.Document, &doc); err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, r := range rows {
		if slices.Contains(known, r.route) {
			t.Errorf("%s has two rows", r.route)
		}
		known = append(known, r.route)
	}
	documented := 0
	for path, operations := range doc.Paths {
		for method := range operations {
			if method == "parameters" {
				continue
			}
			documented++
			if route := strings.ToUpper(method) + " " + path; !slices.Contains(known, route) {
				t.Errorf("%s is in clients/go/dashboard/openapi.yaml and has no row here; add one to the table of its contract", route)
			}
		}
	}
	if documented < len(known) {
		t.Errorf("the document has %d operations, the tables %d rows: a row has no operation", documented, len(known))
	}
}

// head reads the head of an answer that does not end.
func (w *world) head(who person, path string, header ...string) answer {
	w.t.Helper()
	res := w.open(who, path, header...)
	defer res.Body.Close()
	return answer{w.t, "GET " + path, res.StatusCode, res.Header, nil}
}

// open sends a GET whose answer the caller reads and closes.
func (w *world) open(who person, path string, header ...string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "GET", w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, pairs := range [][]string{who, header} {
		for i := 0; i+1 < len(pairs); i += 2 {
			req.Header.Set(pairs[i], pairs[i+1])
		}
	}
	res, err := (&http.Client{Transport: client.Transport}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}
