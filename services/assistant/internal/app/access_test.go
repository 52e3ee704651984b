package app

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// protected are routes that need a key.
var protected = [][2]string{
	{"POST", chatPath}, {"GET", "/v1/events/replay/s-1"}, {"GET", "/v1/namespaces"}, {"POST", "/v1/auth/demo-keys"}, {"POST", "/v1/alerts"}, {"GET", "/v1/models"},
	{"GET", "/v1/models/cluster-assistant"}, {"GET", "/v1/sessions"}, {"GET", "/v1/sessions/s-1"}, {"DELETE", "/v1/sessions/s-1"},
	{"GET", "/v1/sessions/s-1/actions"}, {"GET", "/v1/sessions/s-1/actions/x"}, {"POST", "/v1/sessions/s-1/actions/x"},
}

func TestKeyIsNeeded(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	for _, r := range protected {
		resp := b.send(t.Context(), r[0], r[1], "", "")
		if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != `Bearer realm="assistant"` {
			t.Errorf("%v without a key: %d %q; want resp.StatusCode == 401 && resp.Header.Get(\"WWW-Authenticate\") == `Bearer realm=\"assistant\"`", r, resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
		}
		resp = b.send(t.Context(), r[0], r[1], "ki-admin-unknown", "")
		if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != `Bearer realm="assistant", error="invalid_token"` {
			t.Errorf("%v with an unknown key: %d %q; want resp.StatusCode == 401 && resp.Header.Get(\"WWW-Authenticate\") == `Bearer realm=\"assistant\", error=\"invalid_token\"`", r, resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
		}
	}
	for _, path := range []string{"/healthz", "/v1/healthz"} {
		if doc := b.want(200, "GET", path, "", ""); doc["status"] != "ok" || doc["version"] == "" || len(doc) != 2 {
			t.Errorf(`%s: %v; want doc["status"] == "ok" && doc["version"] != "" && len(doc) == 2`, path, doc)
		}
	}
	events := b.events("access_denied")
	if len(events) != 2*len(protected) {
		t.Fatalf("%d refusals recorded, want %d", len(events), 2*len(protected))
	}
	if e := events[0]; e["path"] != chatPath || e["method"] != "POST" || e["status"] != 401.0 || e["code"] != "unauthenticated" || e["address"] != "127.0.0.1" {
		t.Errorf(`%v; want e["path"] == chatPath && e["method"] == "POST" && e["status"] == 401.0 && e["code"] == "unauthenticated" && e["address"] == "127.0.0.1"`, e)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{rate: 60, burst: 3})
	limited := func(resp *http.Response) {
		t.Helper()
		wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != 429 || resp.Header.Get("X-RateLimit-Limit") != "60" || err != nil || wait < 1 {
			t.Errorf(`%d %v; want resp.StatusCode == 429 && resp.Header.Get("X-RateLimit-Limit") == "60" && wait >= 1`, resp.StatusCode, resp.Header)
		}
		if raw := b.rest(resp); !bytes.Contains(raw, []byte(`"type":"rate_limit_error"`)) {
			t.Errorf("%s; want bytes.Contains(raw, []byte(`\"type\":\"rate_limit_error\"`))", raw)
		}
	}
	for range 3 {
		b.want(200, "GET", "/v1/models", operator, "")
	}
	// Before the body is looked at, whatever is wrong with it.
	limited(b.send(t.Context(), "POST", chatPath, operator, "{", "Content-Type", "text/plain"))
	b.want(200, "GET", "/v1/models", other, "")
	for range 100 {
		b.want(200, "GET", "/healthz", "", "")
		b.want(200, "GET", "/livez", "", "")
	}
	b.clock.Forward(time.Second)
	b.want(200, "GET", "/v1/models", operator, "")

	// Who has no key is counted by address, and fills neither log nor ledger.
	for range 3 {
		b.refused(401, "unauthenticated", "GET", "/v1/models", "ki-admin-guess", "")
	}
	for range 5 {
		limited(b.send(t.Context(), "GET", "/v1/models", "ki-admin-guess", ""))
	}
	if n := len(b.events("access_denied")); n != 3 {
		t.Errorf("%d refusals recorded, want 3", n)
	}
	b.clock.Forward(time.Hour)
	b.want(200, "GET", "/v1/models", readonly, "") // keys of the same address are not held back
}

// A chat request with several faults is refused for the first of the order of the API.
func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{rate: 60, burst: 1})
	b.say(operator, "s-1", "hello")
	b.clock.Forward(time.Minute)
	large := strings.Repeat("{", 1<<20+1)
	for _, tc := range []struct {
		name, method, path, key, media, body, session string
		status                                        int
		code                                          string
	}{
		{"route", "POST", "/v1/nothing", "", "text/plain", large, "a b", 404, "not_found"},
		{"method", "PUT", chatPath, "", "text/plain", large, "a b", 405, "method_not_allowed"},
		{"key", "POST", chatPath, "", "text/plain", large, "a b", 401, "unauthenticated"},
		{"media type", "POST", chatPath, other, "text/plain", large, "a b", 415, "unsupported_media_type"},
		{"rate", "POST", chatPath, other, "text/plain", large, "a b", 429, "rate_limited"},
		{"size", "POST", chatPath, operator, "application/json", large, "a b", 413, "body_too_large"},
		{"body", "POST", chatPath, admin, "application/json", `{"stream":false}`, "a b", 422, "no_user_message"},
		{"session", "POST", chatPath, readonly, "application/json", questionBody("x"), "s-1", 403, "forbidden"},
	} {
		resp := b.send(t.Context(), tc.method, tc.path, tc.key, tc.body, "Content-Type", tc.media, "X-Session-ID", tc.session)
		if raw := b.rest(resp); resp.StatusCode != tc.status || !bytes.Contains(raw, []byte(`"code":"`+tc.code+`"`)) {
			t.Errorf("%s: %d %s; want resp.StatusCode == tc.status && bytes.Contains(raw, []byte(`\"code\":\"`+tc.code+`\"`))", tc.name, resp.StatusCode, raw)
		}
	}
	resp := b.send(t.Context(), "POST", chatPath, admin, questionBody("x"), "X-Session-ID", strings.Repeat("a", 4096))
	if resp.StatusCode != 429 { // admin has asked in this minute
		t.Errorf("%d; want 429", resp.StatusCode)
	}
	b.clock.Forward(time.Minute)
	b.refused(422, "validation_error", "POST", chatPath, admin, questionBody("x"), "X-Session-ID", strings.Repeat("a", 4096))
}

// Posting into another's session is refused and recorded; a decision is let in while something waits.
func TestForeignSession(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	b.say(operator, "s-1", "hello")
	resp := b.send(t.Context(), "POST", chatPath, other, questionBody("hello"), "X-Session-ID", "s-1")
	if resp.StatusCode != 403 || !strings.Contains(resp.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`) {
		t.Errorf("%d %v; want resp.StatusCode == 403 && strings.Contains(resp.Header.Get(\"WWW-Authenticate\"), `error=\"insufficient_scope\"`)", resp.StatusCode, resp.Header)
	}
	b.refused(403, "forbidden", "POST", chatPath, other, questionBody("yes"), "X-Session-ID", "s-1")
	if n := len(b.events("access_denied")); n != 2 {
		t.Errorf("%d refusals recorded, want 2", n)
	}
	b.propose(operator, "s-1", "scale..")
	if raw := b.say(other, "s-1", "yes"); !bytes.Contains(raw, []byte("2 replicas, as observed.")) {
		t.Errorf(`%s; want bytes.Contains(raw, []byte("2 replicas, as observed."))`, raw)
	}
}
