package controlplane_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// The files contract_*_test.go test the contract row by row: a subtest is one row and has its name. The OpenAPI
// document specifies answers beyond the members named here; controlplanetest validates every answer against it.

// grantable lists the scopes that can be granted alone.
var grantable = []string{"read", "changes", "retrain", "approve", "manage", "govern"}

// onlyScope returns the bearer secret with only this scope, without the secret with all others; both are of the tenant
// default.
func onlyScope(scope string) string    { return "only-" + scope + "-0123456789abcdef" }
func withoutScope(scope string) string { return "without-" + scope + "-0123456789abcdef" }

// all is the bearer secret with every scope, each granted alone.
const all = "all-0123456789abcdef0123"

// anyWrite represents any scope that writes.
const anyWrite = "any write scope"

const hookSecret = "webhook-0123456789abcdef"

// startForWalk starts a control plane with the credentials of the walk besides those of controlplanetest, and without
// rate limits.
func startForWalk(t *testing.T, env ...string) *controlplanetest.Plane {
	t.Helper()
	p := controlplanetest.Neighbours(t, "MODELREPO_WEBHOOK_SECRET="+hookSecret,
		"CHANGES_RATE_LIMIT_PER_MIN=0", "RETRAIN_RATE_LIMIT_PER_MIN=0", "DECISION_RATE_LIMIT_PER_MIN=0", "WRITE_RATE_LIMIT_PER_MIN=0")
	creds := credentialsOf(t, p)
	grant := func(secret, principal string, scopes []string) {
		creds[secret] = map[string]any{"principal": principal, "tenant": "default", "scopes": scopes}
	}
	grant(all, "walker", grantable)
	for _, scope := range grantable {
		grant(onlyScope(scope), "only-"+scope, []string{scope})
		grant(withoutScope(scope), "without-"+scope, slices.DeleteFunc(slices.Clone(grantable), func(s string) bool { return s == scope }))
	}
	p.Setenv("CONTROL_PLANE_CREDENTIALS_JSON=" + controlplanetest.MustJSON(creds))
	for _, kv := range env {
		p.Setenv(kv)
	}
	p.Serve()
	return p
}

func credentialsOf(t *testing.T, p *controlplanetest.Plane) map[string]any {
	t.Helper()
	creds := map[string]any{}
	for _, kv := range p.Env {
		if raw, ok := strings.CutPrefix(kv, "CONTROL_PLANE_CREDENTIALS_JSON="); ok {
			if err := json.Unmarshal([]byte(raw), &creds); err != nil {
				t.Fatal(err)
			}
		}
	}
	return creds
}

// onSubtest returns the plane for a subtest, so that failures are reported there.
func onSubtest(t *testing.T, p *controlplanetest.Plane) *controlplanetest.Plane {
	q := *p
	q.T = t
	return &q
}

// refusedWithout asserts that a request is refused without a credential, and with one that has every scope but this
// one.
func refusedWithout(p *controlplanetest.Plane, scope, method, path string, body any) {
	p.T.Helper()
	if r := p.Refused(401, "missing_credential", method, path, "", body); r.Header.Get("WWW-Authenticate") != "Bearer" {
		p.T.Errorf(`WWW-Authenticate %q; want "Bearer"`, r.Header.Get("WWW-Authenticate"))
	}
	lacking := withoutScope(scope)
	if scope == anyWrite {
		lacking = onlyScope("read")
	}
	p.Refused(403, "insufficient_scope", method, path, lacking, body)
}

// callWithScope sends the request with a credential that has only this scope, after it was refused to all others.
func callWithScope(p *controlplanetest.Plane, status int, scope, method, path string, body any, header ...string) controlplanetest.Response {
	p.T.Helper()
	refusedWithout(p, scope, method, path, body)
	bearer := onlyScope(scope)
	if scope == anyWrite {
		for _, s := range grantable[1:] {
			p.Want(status, method, path, onlyScope(s), body, header...)
		}
		bearer = controlplanetest.Operator
	}
	return p.Want(status, method, path, bearer, body, header...)
}

// expectContractMembers asserts the members in the contract; others are allowed. A member with ? may be absent.
func expectContractMembers(t *testing.T, doc map[string]any, names string) map[string]any {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if strings.HasSuffix(name, "?") {
			continue
		}
		if _, ok := doc[name]; !ok {
			t.Errorf("no member %s in %v; want ok", name, slices.Sorted(maps.Keys(doc)))
		}
	}
	return doc
}

// decodeObject returns the answer's document and asserts these members.
func decodeObject(t *testing.T, r controlplanetest.Response, names string) map[string]any {
	t.Helper()
	return expectContractMembers(t, r.Object(t), names)
}

// decodeArray returns a bare, non-empty array of objects with these members.
func decodeArray(t *testing.T, r controlplanetest.Response, names string) []map[string]any {
	t.Helper()
	list := r.List(t)
	if len(list) == 0 {
		t.Fatal("the array is empty")
	}
	for _, item := range list {
		expectContractMembers(t, item, names)
	}
	return list
}

// decodeItems returns a non-empty list {items, next_cursor} of objects with these members.
func decodeItems(t *testing.T, r controlplanetest.Response, names string) []map[string]any {
	t.Helper()
	doc := expectContractMembers(t, r.Object(t), "items next_cursor")
	raw, _ := doc["items"].([]any)
	if len(raw) == 0 {
		t.Fatalf("no items: %s; want len(raw) != 0", r.Body)
	}
	out := make([]map[string]any, len(raw))
	for i, item := range raw {
		out[i] = expectContractMembers(t, item.(map[string]any), names)
	}
	return out
}

// expectPaging asserts the limits of limit, and that pages of one item follow each other. bare lists page by
// X-Next-Cursor.
func expectPaging(p *controlplanetest.Plane, path string, bare bool) {
	p.T.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for _, limit := range []string{"0", "501", "-1", "1.5", "x"} {
		p.Refused(422, "validation_error", "GET", path+sep+"limit="+limit, all, nil)
	}
	p.Want(200, "GET", path+sep+"limit=500", all, nil)
	r := p.Want(200, "GET", path+sep+"limit=1", all, nil)
	page := func(r controlplanetest.Response) (n int, first, next string) {
		if bare {
			list := r.List(p.T)
			if len(list) > 0 {
				first = controlplanetest.MustJSON(list[0])
			}
			return len(list), first, r.Header.Get("X-Next-Cursor")
		}
		doc := r.Object(p.T)
		list := doc["items"].([]any)
		if len(list) > 0 {
			first = controlplanetest.MustJSON(list[0])
		}
		next, _ = doc["next_cursor"].(string)
		return len(list), first, next
	}
	n, first, next := page(r)
	if n != 1 || next == "" {
		p.T.Errorf("a page of one has %d items, next %q: the list needs two", n, next)
		return
	}
	if n, second, _ := page(p.Want(200, "GET", path+sep+"limit=1&cursor="+next, all, nil)); n != 1 || second == first {
		p.T.Errorf("the second page has %d items: %s after %s; want n == 1 && second != first", n, second, first)
	}
}

// expectUnknownKeyRefused asserts that the body refuses keys it does not know.
func expectUnknownKeyRefused(p *controlplanetest.Plane, method, path string, body map[string]any) {
	p.T.Helper()
	more := maps.Clone(body)
	more["surprise"] = 1
	r := p.Refused(422, "validation_error", method, path, all, more)
	if !strings.Contains(string(r.Body), "surprise") {
		p.T.Errorf(`the refusal does not name the key: %s; want strings.Contains(string(r.Body), "surprise")`, r.Body)
	}
}
