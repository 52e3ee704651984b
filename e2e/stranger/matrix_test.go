//go:build e2e

package stranger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// caller is a column of the matrix.
type caller struct {
	name   string
	header http.Header
	// levels are its scopes or roles; "*" all, nil none: it is no credential.
	levels []string
	// elsewhere means another tenant.
	elsewhere bool
	// renew signs in again, for a request that ends the session; nil: the credential cannot be ended.
	renew func() http.Header
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

const (
	readerToken   = "matrix-reader-0123456789abcdef"
	foreignToken  = "matrix-foreign-0123456789abcdef"
	predictToken  = "matrix-predict-0123456789abcdef"
	wrongToken    = "matrix-wrong-0123456789abcdef"
	markerCommit  = "5712a6e5712a6e5712a6e5712a6e5712a6e5712a"
	matrixTimeout = 8 * time.Second
)

// startWithCredentials starts a platform that knows the callers of the matrix and counts no requests, without samples
// unless more settings request them.
func startWithCredentials(t *testing.T, more ...string) *harness.Platform {
	t.Helper()
	p := harness.New(t, "PLATFORM_SEED=false", "CHANGES_RATE_LIMIT_PER_MIN=0", "RETRAIN_RATE_LIMIT_PER_MIN=0",
		"DECISION_RATE_LIMIT_PER_MIN=0", "WRITE_RATE_LIMIT_PER_MIN=0")
	for _, setting := range more {
		name, value, _ := strings.Cut(setting, "=")
		p.Set(name, value)
	}
	p.Start(t, 2*time.Minute) // makes the secrets, to which ours are added
	p.Stop(t)
	p.Set("CONTROL_PLANE_CREDENTIALS_JSON", credentialMap(t, map[string]grant{
		p.Secret(t, "operator_token"): {"operator", "default", []string{"read", "write"}},
		readerToken:                   {"reader", "default", []string{"read"}},
		foreignToken:                  {"mallory", "elsewhere", []string{"read", "write"}},
	}))
	p.Set("INFERENCE_CREDENTIALS_JSON", credentialMap(t, map[string]grant{
		p.Secret(t, "serving_token"):               {"operator", "default", []string{"admin"}},
		p.Secret(t, "serving_control_plane_token"): {"control-plane", "default", []string{"admin"}},
		predictToken: {"reader", "default", []string{"predict"}},
		foreignToken: {"mallory", "elsewhere", []string{"admin"}},
	}))
	p.Start(t, 2*time.Minute)

	// Scopes that credentials gain after the first start are withheld until approved.
	control, legacy := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	for _, c := range harness.Want(t, http.StatusOK, "GET", control+"/governance/changes?state=pending", legacy, nil).JSON(t)["items"].([]any) {
		harness.Want(t, http.StatusOK, "POST", control+"/governance/changes/"+c.(map[string]any)["id"].(string)+"/approve", legacy, nil)
	}
	return p
}

// Every operation of every document, with every kind of credential: only the callers that the document names get in.
func TestRouteCredentialTenantMatrix(t *testing.T) {
	t.Parallel()
	p := startWithCredentials(t)

	// An object of the tenant default, which another tenant must not find.
	notice := harness.Want(t, http.StatusOK, "POST", p.Env["CONTROL_PLANE_URL"]+"/api/changes", p.Secret(t, "operator_token"), map[string]any{
		"model_ids": []string{"JPCP"}, "commit_sha": markerCommit, "commit_msg": "matrix", "changed_files": []string{},
	}).JSON(t)
	approval := notice["created"].([]any)[0].(string)

	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	checked, wrong := 0, []string{}
	for _, s := range services(p) {
		callers := callersOf(t, p, s.name)
		known := map[string]string{}
		if s.name == "control plane" {
			known["id"] = approval
		}
		fmt.Fprintf(w, "\n%s\tDECLARED", s.name)
		for _, c := range callers {
			fmt.Fprintf(w, "\t%s", c.name)
		}
		fmt.Fprintln(w)
		for _, o := range operations(t, s) {
			declared := o.level
			if o.public {
				declared = "public"
			}
			fmt.Fprintf(w, "%s %s\t%s", o.method, o.template, declared)
			for _, c := range callers {
				status, body := ask(t, s, o, c, known)
				checked++
				fmt.Fprintf(w, "\t%d", status)
				if fault := judge(o, c, status, body); fault != "" {
					wrong = append(wrong, fmt.Sprintf("%s: %s %s as %s (%s): got %d, %s", s.name, o.method, o.template, c.name, declared, status, fault))
				}
			}
			fmt.Fprintln(w)
		}
	}
	_ = w.Flush() // into memory
	fmt.Printf("%s\n%d answers, %d against the documents\n", text.String(), checked, len(wrong))
	for _, s := range wrong {
		t.Error(s)
	}
}

type grant struct {
	Principal string   `json:"principal"`
	Tenant    string   `json:"tenant"`
	Scopes    []string `json:"scopes"`
}

func credentialMap(t *testing.T, m map[string]grant) string {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func callersOf(t *testing.T, p *harness.Platform, service string) []caller {
	t.Helper()
	nobody := []caller{{name: "none"}, {name: "wrong", header: bearer(wrongToken)}}
	switch service {
	case "control plane":
		return append(nobody,
			caller{name: "reader", header: bearer(readerToken), levels: []string{"read"}},
			caller{name: "admin", header: bearer(p.Secret(t, "operator_token")), levels: []string{"*"}},
			caller{name: "other tenant", header: bearer(foreignToken), levels: []string{"*"}, elsewhere: true})
	case "inference":
		return append(nobody,
			caller{name: "predict", header: bearer(predictToken), levels: []string{"predict"}},
			caller{name: "admin", header: bearer(p.Env["SERVING_TOKEN"]), levels: []string{"*"}},
			caller{name: "other tenant", header: bearer(foreignToken), levels: []string{"*"}, elsewhere: true})
	case "bus bridge":
		return append(nobody, caller{name: "reader", header: bearer(p.Env["SERVING_TOKEN"]), levels: []string{"read"}})
	case "assistant":
		return append(nobody,
			caller{name: "readonly", header: bearer(p.Env["ASSISTANT_READONLY_KEY"]), levels: []string{}},
			caller{name: "admin", header: bearer(p.Env["ASSISTANT_ADMIN_KEY"]), levels: []string{"*"}})
	case "dashboard":
		viewer := func() http.Header { return bearer(signIn(t, p, "dashboard_viewer_password")) }
		admin := func() http.Header { return bearer(signIn(t, p, "dashboard_admin_password")) }
		return append(nobody,
			caller{name: "viewer", header: viewer(), levels: []string{"viewer"}, renew: viewer},
			caller{name: "admin", header: admin(), levels: []string{"*"}, renew: admin})
	default: // the evidence API, which has a single user
		token := func(s string) http.Header { return http.Header{"X-Svc-Ui-Token": {s}} }
		return []caller{
			{name: "none"}, {name: "wrong", header: token(wrongToken)},
			{name: "token", header: token(p.Env["SVC_CONTROL_TOWER_TOKEN"]), levels: []string{"*"}},
		}
	}
}

func signIn(t *testing.T, p *harness.Platform, secret string) string {
	t.Helper()
	a := harness.Want(t, http.StatusOK, "POST", "http://"+p.Setting("DASHBOARD_ADDR")+"/api/auth/login", "", map[string]string{"password": p.Secret(t, secret)})
	token, _ := a.JSON(t)["token"].(string)
	if token == "" {
		t.Fatalf("login: got %s, want a token", a.Body)
	}
	return token
}

// ask sends one operation; of streams it reads what comes immediately.
func ask(t *testing.T, s server, o operation, c caller, known map[string]string) (int, string) {
	t.Helper()
	var body io.Reader
	if o.writes() {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequest(o.method, s.url+o.path(known), body)
	if err != nil {
		t.Fatal(err)
	}
	header := c.header
	if c.renew != nil && strings.HasSuffix(o.template, "/logout") {
		header = c.renew()
	}
	maps.Copy(req.Header, header)
	if o.writes() {
		req.Header.Set("Content-Type", "application/json")
	}
	patient := http.Client{Timeout: matrixTimeout, CheckRedirect: impatient.CheckRedirect}
	resp, err := patient.Do(req)
	if err != nil {
		t.Errorf("%s: %s %s as %s: %v, want an answer", s.name, o.method, o.template, c.name, err)
		return 0, ""
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp.StatusCode, ""
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Errorf("%s: %s %s as %s: read the answer: %v", s.name, o.method, o.template, c.name, err)
	}
	return resp.StatusCode, string(b)
}

// judge describes the fault of an answer; empty if it has none.
func judge(o operation, c caller, status int, body string) string {
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	if (c.elsewhere || c.levels == nil) && strings.Contains(body, markerCommit) {
		return "the answer holds an object of another tenant"
	}
	if c.elsewhere && strings.Contains(o.template, "/approvals/{id}") && status < 400 {
		return "want another tenant's object to look absent"
	}
	if o.public || o.level == "public" {
		if refused && !provesItself(o) {
			return "want it let in, as the document promises"
		}
		return ""
	}
	if c.levels == nil {
		// 429: too many wrong credentials from one address.
		if !refused && status != http.StatusTooManyRequests {
			return "want 401"
		}
		return ""
	}
	allowed := slices.Contains(c.levels, "*") || o.level == "" || slices.Contains(c.levels, o.level)
	switch {
	case !allowed && status != http.StatusForbidden:
		return "want 403"
	case allowed && status == http.StatusUnauthorized:
		return "want it let in"
	case allowed && status == http.StatusForbidden && !conditional(body):
		return "want it let in"
	}
	return ""
}

// provesItself reports whether a public operation refuses callers by its own proof: a password, a signature, a state.
func provesItself(o operation) bool {
	return strings.HasPrefix(o.template, "/webhooks/") || strings.HasPrefix(o.template, "/api/auth/")
}

// conditional reports whether a 403 is about the object and not about the caller's level.
func conditional(body string) bool {
	return slices.ContainsFunc([]string{"own_request", "step_up", "not_the_author", "read_only", "route_not_proxied", "write_not_allowed", "not_allowed"}, func(code string) bool {
		return strings.Contains(body, `"code":"`+code)
	})
}
