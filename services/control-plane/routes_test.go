package controlplane_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// operation is one method of one path of the OpenAPI document.
type operation struct {
	method, path string
	scope        string // empty: public
	body         bool
}

// openAPIOperations reads the document: each summary has the scope in brackets.
func openAPIOperations(t *testing.T) []operation {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.Document, &doc); err != nil {
		t.Fatal(err)
	}
	var out []operation
	for path, methods := range doc.Paths {
		for method, value := range methods {
			op, ok := value.(map[string]any)
			if !ok { // the parameters of the path
				continue
			}
			summary := op["summary"].(string)
			o := operation{method: strings.ToUpper(method), path: path, body: op["requestBody"] != nil}
			if _, public := op["security"]; !public {
				i := strings.LastIndex(summary, "[")
				if i < 0 {
					t.Fatalf("%s %s names no scope; want i >= 0", method, path)
				}
				o.scope = strings.TrimSuffix(summary[i+1:], "]")
			} else if strings.HasSuffix(summary, "(signed)") {
				o.scope = "signed"
			} else if !strings.HasSuffix(summary, "(public)") {
				t.Fatalf(`%s %s is public and does not say so; want strings.HasSuffix(summary, "(public)")`, method, path)
			}
			out = append(out, o)
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d operations; want len(out) >= 30", len(out))
	}
	return out
}

// parameter is a path parameter that a request fills in.
var parameter = regexp.MustCompile(`\{\w+\}`)

// at returns the path with an existing id for models and an unknown one for the rest.
func (o operation) at() string {
	return parameter.ReplaceAllStringFunc(o.path, func(p string) string {
		switch p {
		case "{model}":
			return "JPCP"
		case "{id}", "{flow_run_id}":
			return uuid.NewString()
		}
		return "x"
	})
}

// Every operation of the document is served, requires the scope it names, and refuses the same bad bodies in the same
// way.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "MODELREPO_WEBHOOK_SECRET=webhook-0123456789abcdef", "CHANGES_RATE_LIMIT_PER_MIN=0", "RETRAIN_RATE_LIMIT_PER_MIN=0", "DECISION_RATE_LIMIT_PER_MIN=0", "WRITE_RATE_LIMIT_PER_MIN=0")
	scoped := map[string][]string{
		"read": {controlplanetest.Reader, controlplanetest.CI, controlplanetest.Operator}, "changes": {controlplanetest.CI, controlplanetest.Operator}, "retrain": {controlplanetest.Operator, controlplanetest.Legacy}, "approve": {controlplanetest.Approver, controlplanetest.Operator}, "manage": {controlplanetest.Trainer, controlplanetest.Operator}, "govern": {controlplanetest.Governor, controlplanetest.Operator},
		"any write scope": {controlplanetest.CI, controlplanetest.Trainer, controlplanetest.Approver, controlplanetest.Operator},
	}
	lacking := map[string]string{"read": controlplanetest.Trainer, "changes": controlplanetest.Reader, "retrain": controlplanetest.CI, "approve": controlplanetest.Trainer, "manage": controlplanetest.Approver, "govern": controlplanetest.Trainer, "any write scope": controlplanetest.Reader}
	for _, o := range openAPIOperations(t) {
		name := o.method + " " + o.path
		r := p.Call(o.method, o.at(), "", nil)
		if o.method == "GET" {
			for _, bearer := range []string{"", lacking[o.scope], controlplanetest.Reader} {
				get, head := p.Call("GET", o.at(), bearer, nil), p.Call("HEAD", o.at(), bearer, nil)
				if head.Status != get.Status || len(head.Body) > 0 {
					t.Errorf("HEAD %s: %d %q, GET: %d; want head.Status == get.Status && len(head.Body) <= 0", o.path, head.Status, head.Body, get.Status)
				}
			}
		}
		if o.scope == "" {
			if r.Status >= 400 && r.Code() != "image_not_found" { // the samples have no pictures
				t.Errorf(`%s: %d %s; want (r.Status < 400 || r.Code() == "image_not_found")`, name, r.Status, r.Body)
			}
			continue
		}
		if o.scope == "signed" { // authenticated by a proof over the request, which is not a bearer
			for _, bearer := range []string{"", controlplanetest.Operator} {
				if r := p.Call(o.method, o.at(), bearer, `{}`); r.Status != 401 || r.Code() != "invalid_webhook_proof" || r.Header.Get("X-Request-Id") == "" {
					t.Errorf(`%s: %d %s; want r.Status == 401 && r.Code() == "invalid_webhook_proof" && r.Header.Get("X-Request-Id") != ""`, name, r.Status, r.Body)
				}
			}
			continue
		}
		check := func(status int, code, bearer string, body any, header ...string) {
			t.Helper()
			r := p.Call(o.method, o.at(), bearer, body, header...)
			if r.Status != status || r.Code() != code {
				t.Errorf("%s: %d %s, want %d %s: %s", name, r.Status, r.Code(), status, code, r.Body)
			}
			if r.Header.Get("X-Request-Id") == "" || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf(`%s: headers %v; want r.Header.Get("X-Request-Id") != "" && r.Header.Get("X-Content-Type-Options") == "nosniff" && r.Header.Get("Cache-Control") == "no-store"`, name, r.Header)
			}
		}
		if r.Status != 401 || r.Code() != "missing_credential" || r.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf(`%s without credential: %d %s %v; want r.Status == 401 && r.Code() == "missing_credential" && r.Header.Get("WWW-Authenticate") == "Bearer"`, name, r.Status, r.Code(), r.Header)
		}
		check(401, "invalid_credential", "nobody", nil)
		check(403, "insufficient_scope", lacking[o.scope], nil)
		for _, bearer := range scoped[o.scope] {
			if r := p.Call(o.method, o.at(), bearer, nil); r.Status == 401 || r.Status == 403 || r.Status >= 500 {
				t.Errorf("%s: %d %s; want r.Status != 401 && r.Status != 403 && r.Status < 500", name, r.Status, r.Body)
			}
		}
		if !o.body {
			continue
		}
		bearer := scoped[o.scope][len(scoped[o.scope])-1]
		big := strings.Repeat("x", 10<<20)
		check(413, "body_too_large", bearer, `{"reason":"`+big+`"}`)
		check(413, "body_too_large", bearer, io.MultiReader(strings.NewReader(`{"reason":"`), strings.NewReader(big), strings.NewReader(`"}`)))
		check(401, "missing_credential", "", `{"reason":"`+big+`"}`) // a stranger learns nothing else
		check(422, "validation_error", bearer, `{`)
		check(422, "validation_error", bearer, `[1]`)
		check(422, "validation_error", bearer, `null`)
		if o.path != "/modelrepo/config" { // the contract has it ignore unknown keys
			check(422, "validation_error", bearer, `{"surprise":1}`)
		}
		check(422, "validation_error", bearer, `{"reason":1,"reason":2}`)
		check(415, "unsupported_media_type", bearer, `{}`, "Content-Type", "text/plain")
	}
}

// A route that is not in the document does not exist.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Refused(404, "not_found", "GET", "/nothing", controlplanetest.Operator, nil)
	p.Refused(405, "method_not_allowed", "PUT", "/retrain", controlplanetest.Operator, nil)
	if r := p.Refused(405, "method_not_allowed", "DELETE", "/outbox/republish", controlplanetest.Operator, nil); r.Header.Get("Allow") != "POST" {
		t.Errorf("DELETE /outbox/republish: got Allow %q, want POST", r.Header.Get("Allow"))
	}
	features := p.Want(200, "GET", "/capabilities", "", nil).Object(t)
	if features["service"] != "control-plane" || len(features["features"].([]any)) == 0 || len(features["backends"].([]any)) != 4 {
		t.Fatalf(`capabilities %v; want features["service"] == "control-plane" && len(features["features"].([]any)) != 0 && len(features["backends"].([]any)) == 4`, features)
	}
	for _, path := range []string{"/docs", "/redoc", "/openapi.json"} {
		p.Want(200, "GET", path, "", nil)
	}
}

// Every route refuses an unknown query parameter, and the answer names it: a misspelt filter would otherwise return the
// whole list.
func TestUnknownQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CHANGES_RATE_LIMIT_PER_MIN=0", "RETRAIN_RATE_LIMIT_PER_MIN=0", "DECISION_RATE_LIMIT_PER_MIN=0", "WRITE_RATE_LIMIT_PER_MIN=0")
	probes := []string{"/livez", "/readyz", "/metrics"} // of libs/service
	for _, o := range openAPIOperations(t) {
		if slices.Contains(probes, o.path) {
			continue
		}
		bearer := map[string]string{"": "", "signed": "", "manage": controlplanetest.Trainer}[o.scope]
		if o.scope != "" && o.scope != "signed" && bearer == "" {
			bearer = controlplanetest.Operator
		}
		r := p.Call(o.method, o.at()+"?acter=bob", bearer, nil)
		if r.Status != 422 || r.Code() != "validation_error" || !strings.Contains(string(r.Body), `"acter"`) {
			t.Errorf("%s %s?acter=bob: got %d %s, want 422 that names acter", o.method, o.path, r.Status, r.Body)
		}
	}
	p.Want(200, "GET", "/audit/events?actor=bob", controlplanetest.Reader, nil)
	p.Want(200, "GET", "/runs?cursor=", controlplanetest.Reader, nil)
	p.Refused(422, "validation_error", "GET", "/runs?limit=", controlplanetest.Reader, nil)
}

// Bad input of each route answers 4xx with the field, and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CHANGES_RATE_LIMIT_PER_MIN=0", "RETRAIN_RATE_LIMIT_PER_MIN=0", "DECISION_RATE_LIMIT_PER_MIN=0")
	list := func(n int, s string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint(s, i)
		}
		return out
	}
	change := func(over map[string]any) map[string]any {
		b := map[string]any{"model_ids": []string{"JPCP"}, "commit_sha": "abc"}
		for k, v := range over {
			b[k] = v
		}
		return b
	}
	for i, c := range []struct {
		method, path string
		body         any
		status       int
		code, field  string
	}{
		{"POST", "/api/changes", change(map[string]any{"model_ids": []string{}}), 422, "validation_error", "model_ids"},
		{"POST", "/api/changes", change(map[string]any{"model_ids": nil}), 422, "validation_error", "model_ids"},
		{"POST", "/api/changes", change(map[string]any{"model_ids": list(501, "m")}), 422, "validation_error", "model_ids"},
		{"POST", "/api/changes", change(map[string]any{"model_ids": []string{"a b"}}), 422, "validation_error", "model_ids"},
		{"POST", "/api/changes", change(map[string]any{"model_ids": []string{""}}), 422, "validation_error", "model_ids"},
		{"POST", "/api/changes", change(map[string]any{"model_ids": "JPCP"}), 422, "validation_error", "model_ids"},
		{"POST", "/api/changes", change(map[string]any{"commit_sha": ""}), 422, "validation_error", "commit_sha"},
		{"POST", "/api/changes", change(map[string]any{"commit_sha": strings.Repeat("a", 129)}), 422, "validation_error", "commit_sha"},
		{"POST", "/api/changes", change(map[string]any{"changed_files": list(10_001, "f")}), 422, "validation_error", "changed_files"},
		{"POST", "/api/changes", change(map[string]any{"changed_files": []string{""}}), 422, "validation_error", "changed_files"},
		{"POST", "/api/changes", change(map[string]any{"commit_msg": strings.Repeat("m", 65537)}), 422, "validation_error", "commit_msg"},
		{"POST", "/api/changes", change(map[string]any{"commit_msg": "a\x00b"}), 422, "validation_error", "body"},
		{"POST", "/api/changes", `{"model_ids":["JPCP"],"commit_sha":"abc","commit_msg":"\ud800"}`, 422, "validation_error", "body"},
		{"POST", "/api/changes", change(map[string]any{"tenant": "other"}), 422, "validation_error", "tenant"},
		{"GET", "/approvals?status=done", nil, 422, "validation_error", "status"},
		{"GET", "/approvals?limit=0", nil, 422, "validation_error", "limit"},
		{"GET", "/approvals?limit=501", nil, 422, "validation_error", "limit"},
		{"GET", "/approvals?limit=x", nil, 422, "validation_error", "limit"},
		{"GET", "/approvals?cursor=x", nil, 422, "validation_error", "cursor"},
		{"GET", "/approvals?cursor=e30", nil, 422, "validation_error", "cursor"},
		{"GET", "/approvals?status=pending&status=approved", nil, 422, "validation_error", "status"},
		{"GET", "/approvals/not-a-uuid", nil, 404, "approval_not_found", ""},
		{"POST", "/approvals/not-a-uuid/approve", nil, 404, "approval_not_found", ""},
		{"POST", "/approve/JPCP", nil, 404, "no_pending_approval", ""},
		{"POST", "/reject/JPCP", nil, 404, "no_pending_approval", ""},
		{"POST", "/approve/JPCP", `{"approval_id":"x"}`, 422, "validation_error", ""},
		{"POST", "/approve/JPCP", `{"backend_name":"tape"}`, 422, "validation_error", "backend_name"},
		{"POST", "/approve/JPCP", `{"dataset_name":"a/b"}`, 422, "validation_error", "dataset_name"},
		{"POST", "/reject/JPCP", `{"reason":"` + strings.Repeat("r", 4097) + `"}`, 422, "validation_error", "reason"},
		{"POST", "/retrain", `{}`, 422, "validation_error", "model_name"},
		{"POST", "/retrain", `{"model_name":"JPCP"}`, 422, "validation_error", "dataset_name"},
		{"POST", "/retrain", `{"model_name":"JPCP","dataset_name":1}`, 422, "validation_error", "dataset_name"},
		{"POST", "/retrain", `{"model_name":"NOPE","dataset_name":"JobEmbeddings"}`, 400, "unknown_model", ""},
		{"POST", "/retrain", `{"model_name":"JPCP","dataset_name":"Nope"}`, 400, "unknown_dataset", ""},
		{"POST", "/retrain", `{"model_name":"JPCP","dataset_name":"JobEmbeddings","backend_name":"tape"}`, 422, "validation_error", "backend_name"},
		{"POST", "/retrain", `{"model_name":"JPCP","dataset_name":"JobEmbeddings","parameters":{"tenant":"other"}}`, 422, "validation_error", "tenant"},
		{"POST", "/retrain", `{"model_name":"JPCP","dataset_name":"JobEmbeddings","parameters":{"a":"\u0000"}}`, 422, "validation_error", "body"},
		{"POST", "/retrain", `{"model_name":"JPCP","dataset_name":"JobEmbeddings","parameters":[1]}`, 422, "validation_error", "parameters"},
		{"GET", "/retrain/nope", nil, 404, "run_not_found", ""},
		{"GET", "/runs?state=DONE", nil, 422, "validation_error", "state"},
		{"GET", "/models/nope/meta", nil, 404, "model_not_found", ""},
		{"GET", "/models/nope/readme", nil, 404, "model_not_found", ""},
		{"POST", "/versions", `{"model":"JPCP"}`, 422, "validation_error", "version"},
		{"POST", "/versions", `{"model":"JPCP","version":"v1"}`, 422, "validation_error", "version"},
		{"POST", "/versions", `{"model":"NOPE","version":"1"}`, 400, "unknown_model", ""},
		{"POST", "/versions", `{"model":"JPCP","version":"99"}`, 404, "version_not_found", ""},
		{"POST", "/versions", `{"model":"JPCP","version":"2147483648"}`, 404, "version_not_found", ""},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"rmse","operator":"le","threshold":1}`, 422, "validation_error", "operator"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"","operator":"lt","threshold":1}`, 422, "validation_error", "metric"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"a","operator":"lt","threshold":1e400}`, 422, "validation_error", "threshold"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"a","operator":"lt"}`, 422, "validation_error", "threshold"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"a","operator":"lt","threshold":null}`, 422, "validation_error", "threshold"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"a","operator":"lt","threshold":1,"from_alias":"Test"}`, 422, "validation_error", "from_alias"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"a","operator":"lt","threshold":1,"from_alias":"Production"}`, 422, "validation_error", "to_alias"},
		{"PUT", "/promotion-policies/JPCP", `{"model":"MACK","metric":"a","operator":"lt","threshold":1}`, 422, "validation_error", "model"},
		{"PUT", "/promotion-policies/JPCP", `{"metric":"a","operator":"lt","threshold":1,"approval_mode":"never"}`, 422, "validation_error", "approval_mode"},
		{"PUT", "/promotion-policies/NOPE", `{"metric":"a","operator":"lt","threshold":1}`, 404, "model_not_found", ""},
		{"DELETE", "/promotion-policies/NOPE", nil, 404, "policy_not_found", ""},
		{"GET", "/promotion-policies/NOPE", nil, 404, "policy_not_found", ""},
		{"GET", "/promotion-policies?cursor=%00", nil, 422, "validation_error", "cursor"},
		{"POST", "/promotions", `{"model":"NOPE"}`, 400, "unknown_model", ""},
		{"POST", "/promotions", `{"model":"JPCP","version":"latest"}`, 422, "validation_error", "version"},
		{"POST", "/promotions", `{"model":"JPCP","from":"Staging","to":"staging"}`, 422, "validation_error", "to"},
		{"POST", "/promotions", `{"model":"JPCP","conditions":[{"metric":"rmse","op":"eq","value":1}]}`, 422, "validation_error", "op"},
		{"POST", "/promotions", `{"model":"JPCP","conditions":[{"metric":"rmse","op":"lt","value":"1"}]}`, 422, "validation_error", ""},
		{"POST", "/promotions", `{"model":"JPCP","conditions":[{"metric":"rmse","op":"lt"}]}`, 422, "validation_error", "value"},
		{"POST", "/promotions", `{"model":"JPCP","conditions":[{"metric":"rmse","op":"lt","value":1},{"metric":"rmse","op":"lt","value":null}]}`, 422, "validation_error", "value"},
		{"GET", "/promotions?state=done", nil, 422, "validation_error", "state"},
		{"GET", "/promotions/not-a-uuid", nil, 404, "promotion_not_found", ""},
		{"POST", "/promotions/not-a-uuid/approve", nil, 404, "promotion_not_found", ""},
		{"GET", "/promotions/NOPE/gate", nil, 404, "model_not_found", ""},
		{"GET", "/promotions/JPCP/gate?version=x", nil, 422, "validation_error", "version"},
		{"GET", "/promotions/JPCP/gate?to=Test", nil, 422, "validation_error", "to"},
		{"GET", "/alias-history?alias=Test", nil, 422, "validation_error", "alias"},
		{"GET", "/runs?model=%00", nil, 422, "validation_error", "model"},
		{"GET", "/runs?model=%ff", nil, 422, "validation_error", "model"},
		{"GET", "/runs?%00=a", nil, 422, "validation_error", "query"},
		{"GET", "/promotions?model=a%00", nil, 422, "validation_error", "model"},
		{"GET", "/alias-history?model=%00", nil, 422, "validation_error", "model"},
		{"GET", "/models/%00/meta", nil, 404, "model_not_found", ""},
		{"GET", "/retrain/%00", nil, 404, "run_not_found", ""},
		{"GET", "/promotion-policies/%00", nil, 404, "policy_not_found", ""},
		{"GET", "/promotion-policies/JPCP%ff", nil, 404, "policy_not_found", ""},
		{"GET", "/promotion-policies/a%2f%00", nil, 404, "policy_not_found", ""},
		{"DELETE", "/promotion-policies/%00", nil, 404, "policy_not_found", ""},
		{"PUT", "/promotion-policies/%00", `{"metric":"a","operator":"lt","threshold":1}`, 404, "model_not_found", ""},
		{"POST", "/approve/%00", nil, 404, "no_pending_approval", ""},
		{"POST", "/reject/%00", nil, 404, "no_pending_approval", ""},
		{"GET", "/alias-history?at=now", nil, 422, "validation_error", "at"},
		{"GET", "/alias-history?at=2026-01-01T00:00:00Z", nil, 422, "validation_error", "at"},
	} {
		r := p.Call(c.method, c.path, controlplanetest.Operator, c.body)
		if r.Status != c.status || r.Code() != c.code {
			t.Errorf("%d: %s %s: %d %s, want %d %s: %.300s", i, c.method, c.path, r.Status, r.Code(), c.status, c.code, r.Body)
			continue
		}
		if c.status != 422 {
			continue
		}
		var doc struct {
			Errors []struct {
				Loc []string
				Msg string
			}
		}
		if err := json.Unmarshal(r.Body, &doc); err != nil || len(doc.Errors) == 0 || doc.Errors[0].Msg == "" {
			t.Errorf(`%s %s: no errors[]: %s; want len(doc.Errors) != 0 && doc.Errors[0].Msg != ""`, c.method, c.path, r.Body)
		} else if c.field != "" && !strings.Contains(strings.Join(doc.Errors[0].Loc, "."), c.field) && !strings.Contains(string(r.Body), c.field) {
			t.Errorf(`%s %s: errors %v do not name %s; want ((c.field == "" || strings.Contains(strings.Join(doc.Errors[0].Loc, "."), c.field)) || strings.Contains(string(r.Body), c.field))`, c.method, c.path, doc.Errors, c.field)
		}
	}
	if n := len(p.Orchestrator.All()); n != 0 {
		t.Errorf("%d flow runs; want 0", n)
	}
	if list := p.Want(200, "GET", "/approvals", controlplanetest.Operator, nil).List(t); len(list) != 0 {
		t.Errorf("approvals %v; want len(list) == 0", list)
	}
}

// The limits themselves are accepted: 500 models and 10,000 files in one notice.
func TestLargestNotice(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	models, files := make([]string, 500), make([]string, 10_000)
	for i := range models {
		models[i] = fmt.Sprintf("model-%d", i)
	}
	for i := range files {
		files[i] = fmt.Sprintf("models/some/path/file-%d.yaml", i)
	}
	models[1] = "MODEL-0" // twice the same
	body := map[string]any{"model_ids": models, "commit_sha": "abc", "commit_msg": "all", "changed_files": files}
	out := p.Want(200, "POST", "/api/changes", controlplanetest.CI, body).Object(t)
	if len(out["created"].([]any)) != 499 || len(out["warnings"].([]any)) != 499 {
		t.Fatalf(`created %d, warnings %d; want len(out["created"].([]any)) == 499 && len(out["warnings"].([]any)) == 499`, len(out["created"].([]any)), len(out["warnings"].([]any)))
	}
	again := p.Want(200, "POST", "/api/changes", controlplanetest.CI, body).Object(t)
	if len(again["created"].([]any)) != 0 || len(again["existing"].([]any)) != 499 {
		t.Fatalf(`again: %v; want len(again["created"].([]any)) == 0 && len(again["existing"].([]any)) == 499`, len(again["existing"].([]any)))
	}
	// Paging through them finds each once.
	seen := map[string]bool{}
	cursor := ""
	for {
		r := p.Want(200, "GET", "/approvals?limit=200&cursor="+cursor, controlplanetest.Reader, nil)
		var page []struct {
			ID    string          `json:"id"`
			Files json.RawMessage `json:"changed_files"` // five million names over all pages: counted, not decoded
		}
		if err := json.Unmarshal(r.Body, &page); err != nil {
			t.Fatal(err)
		}
		for _, a := range page {
			if n := bytes.Count(a.Files, []byte(`/file-`)); seen[a.ID] || n != 10_000 {
				t.Fatalf("%s: seen before %v, %d files; want a new record with 10,000", a.ID, seen[a.ID], n)
			}
			seen[a.ID] = true
		}
		if cursor = r.Header.Get("X-Next-Cursor"); cursor == "" {
			break
		}
	}
	if len(seen) != 499 {
		t.Fatalf("%d records over all pages; want 499", len(seen))
	}
}

// Public routes need no credential; /health has every member of the contract.
func TestHealthAndModels(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.AwaitTarget()
	var h map[string]any
	testenv.Eventually(t, 20*time.Second, func() error {
		h = p.Health()
		if breaker := h["circuit_breaker"].(map[string]any)["state"]; h["status"] != "ok" || breaker != "closed" {
			return fmt.Errorf("status %v, circuit breaker %v; want ok, closed", h["status"], breaker)
		}
		return nil
	})
	for _, name := range []string{
		"status", "ready", "prefect_api_url", "auth_configured", "models", "pending_approvals", "deployment", "dispatch", "circuit_breaker", "startup_checks", "poller", "runtime",
	} {
		if _, ok := h[name]; !ok {
			t.Errorf("health lacks %s; want ok", name)
		}
	}
	checks := h["startup_checks"].(map[string]any)
	for _, name := range []string{"db", "registry", "token", "coordinator", "event_publisher"} {
		if checks[name] != "ok" {
			t.Errorf(`%s: %v; want checks[name] == "ok"`, name, checks[name])
		}
	}
	runtime := h["runtime"].(map[string]any)
	for name, want := range map[string]any{
		"state_backend": "postgres", "configured_coordinator": "postgres", "active_coordination": "postgres",
		"configured_event_publisher": "nats", "event_relay_enabled": true, "horizontal_scaling_safe": false,
	} {
		if runtime[name] != want {
			t.Errorf("runtime.%s is %v; want runtime[name] == %v", name, runtime[name], want)
		}
	}
	if h["prefect_api_url"] != p.Orchestrator.URL {
		t.Errorf(`health %v; want h["prefect_api_url"] == p.Orchestrator.URL`, h)
	}
	if ds := h["models"].(map[string]any)["JPCP"].([]any); ds[0] != "JobEmbeddings" {
		t.Errorf(`datasets %v; want ds[0] == "JobEmbeddings"`, ds)
	}
	models := p.Want(200, "GET", "/models", "", nil).List(t)
	if len(models) != 5 || models[0]["model_name"] != "JPCP" {
		t.Fatalf(`models %v; want len(models) == 5 && models[0]["model_name"] == "JPCP"`, models)
	}
	meta := p.Want(200, "GET", "/models/runtimeclass/meta", "", nil).Object(t)
	if meta["name"] != "RUNTIMECLASS" || meta["trackerName"] != "runtimeclass" || meta["type"] != "classification" || meta["estimator"] != "random_forest" {
		t.Fatalf(`meta %v; want meta["name"] == "RUNTIMECLASS" && meta["trackerName"] == "runtimeclass" && meta["type"] == "classification" && meta["estimator"] == "random_forest"`, meta)
	}
	if r := p.Want(200, "GET", "/models/JPCP/readme", "", nil).Object(t); r["text"] == "" || len(r["sha"].(string)) != 64 {
		t.Fatalf(`readme %v; want r["text"] != "" && len(r["sha"].(string)) == 64`, r)
	}
	p.Notice("JPCP", "abc")
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := p.Health()["pending_approvals"]; n != 1.0 {
			return fmt.Errorf("pending_approvals %v; want 1.0", n)
		}
		return nil
	})
	metrics := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	for _, line := range []string{
		"platform_approvals_pending 1\n", `platform_approval_events_total{action="created",model_id="JPCP"} 1`, "platform_approval_age_oldest_seconds ", "platform_outbox_rows{state=\"pending\"}",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("metrics lack %s; want strings.Contains(metrics, line)", line)
		}
	}
	fresh := p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)
	if len(fresh["models"].([]any)) != 5 || fresh["last_event"] != nil {
		t.Fatalf(`freshness %v; want len(fresh["models"].([]any)) == 5 && fresh["last_event"] == nil`, fresh)
	}
}

// Events reach the broker; a request id travels from the request to them.
func TestEventsAreRelayed(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	r := p.Want(200, "POST", "/api/changes", controlplanetest.CI, `{"model_ids":["JPCP"],"commit_sha":"abc"}`, "X-Request-ID", "req-1")
	if r.Header.Get("X-Request-Id") != "req-1" {
		t.Fatalf(`%v; want r.Header.Get("X-Request-Id") == "req-1"`, r.Header)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		box := p.Health()["runtime"].(map[string]any)["outbox"].(map[string]any)
		if box["pending"] != 0.0 || box["published"].(float64) < 2 {
			return fmt.Errorf("outbox %v", box)
		}
		return nil
	})
	for _, a := range p.Audits("approval.created") {
		if a["request_id"] != "req-1" {
			t.Errorf(`audit %v; want a["request_id"] == "req-1"`, a)
		}
	}
}
