package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNamespaces(t *testing.T) {
	t.Parallel()
	list, fails := []string{"shop", "kube-system", "vault", "default"}, error(nil)
	b := setup(t, opt{names: func(ctx context.Context) ([]string, error) {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > 2500*time.Millisecond {
			t.Errorf("deadline %v, %v; want ok && time.Until(at) <= 2500 * time.Millisecond", at, ok)
		}
		return list, fails
	}})
	doc := b.want(200, "GET", "/v1/namespaces", readonly, "")
	if got := fmt.Sprint(doc["namespaces"]); got != "[default kube-system shop]" {
		t.Errorf(`%s; want "[default kube-system shop]"`, got)
	}
	list = []string{"vault"}
	b.refused(503, "cluster_unavailable", "GET", "/v1/namespaces", readonly, "")
	fails = errors.New("dial 10.0.0.7")
	if doc := b.want(503, "GET", "/v1/namespaces", readonly, ""); doc["code"] != "cluster_unavailable" || strings.Contains(fmt.Sprint(doc), "10.0.0.7") {
		t.Errorf(`%v; want doc["code"] == "cluster_unavailable" && !strings.Contains(fmt.Sprint(doc), "10.0.0.7")`, doc)
	}
}

// A cluster that says nothing costs the caller no more than the route's time.
func TestNamespacesInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{names: func(ctx context.Context) ([]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	began := time.Now()
	b.refused(503, "cluster_unavailable", "GET", "/v1/namespaces", readonly, "")
	if took := time.Since(began); took > 13*time.Second {
		t.Errorf("took %s; want took <= 13 * time.Second", took)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	doc := b.want(200, "GET", "/v1/models", readonly, "")
	data, _ := doc["data"].([]any)
	if doc["object"] != "list" || len(data) != 2 {
		t.Fatalf(`%v; want doc["object"] == "list" && len(data) == 2`, doc)
	}
	for i, id := range []string{"cluster-assistant", "cluster-assistant-openai"} {
		one := b.want(200, "GET", "/v1/models/"+id, readonly, "")
		if one["id"] != id || one["object"] != "model" || one["owned_by"] != "mlp-platform" || fmt.Sprint(one) != fmt.Sprint(data[i]) {
			t.Errorf(`%v; want one["id"] == id && one["object"] == "model" && one["owned_by"] == "mlp-platform" && fmt.Sprint(one) == fmt.Sprint(data[i])`, one)
		}
	}
	b.refused(404, "model_not_found", "GET", "/v1/models/gpt-4o", readonly, "")
}

func TestMint(t *testing.T) {
	t.Parallel()
	off := setup(t, opt{})
	off.refused(403, "forbidden", "POST", "/v1/auth/demo-keys", operator, `{`)
	off.refused(503, "demo_keys_unavailable", "POST", "/v1/auth/demo-keys", admin, `{`)

	b := setup(t, opt{demo: "0123456789abcdef0123456789abcdef"})
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		`{`:                                 {422, "validation_error"},
		``:                                  {422, "validation_error"},
		`{"email":"nobody"}`:                {422, "validation_error"},
		`{"email":"a@b.c","ttl_hours":0}`:   {422, "validation_error"},
		`{"email":"a@b.c","x":1}`:           {422, "validation_error"},
		`{"email":"a@b.c","ttl_hours":721}`: {400, "ttl_too_long"},
		`{"email":"` + strings.Repeat("a", 20<<10) + `@b.c"}`: {413, "body_too_large"},
	} {
		b.refused(want.status, want.code, "POST", "/v1/auth/demo-keys", admin, body)
	}
	resp := b.send(t.Context(), "POST", "/v1/auth/demo-keys", admin, `{"email":"ann@example.org","ttl_hours":2}`)
	if resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf(`Cache-Control %q; want "no-store"`, resp.Header.Get("Cache-Control"))
	}
	_ = resp.Body.Close()
	doc := b.want(200, "POST", "/v1/auth/demo-keys", admin, `{"email":"ann@example.org"}`)
	key, _ := doc["api_key"].(string)
	if !strings.HasPrefix(key, "ki-ro-") || doc["email"] != "ann@example.org" || doc["expires_in_seconds"] != 168.0*3600 || len(doc) != 4 {
		t.Fatalf(`%v; want strings.HasPrefix(key, "ki-ro-") && doc["email"] == "ann@example.org" && doc["expires_in_seconds"] == 168.0 * 3600 && len(doc) == 4`, doc)
	}
	b.want(200, "GET", "/v1/models", key, "")
	b.refused(403, "forbidden", "POST", "/v1/auth/demo-keys", key, `{"email":"a@b.c"}`)
	events := b.events("demo_key_minted")
	if len(events) != 2 || events[1]["email"] != "ann@example.org" || strings.Contains(fmt.Sprint(events), key) {
		t.Errorf(`%v; want len(events) == 2 && events[1]["email"] == "ann@example.org" && !strings.Contains(fmt.Sprint(events), key)`, events)
	}
	b.clock.Forward(168 * time.Hour)
	b.refused(401, "unauthenticated", "GET", "/v1/models", key, "")
}

func TestSessions(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	for i := range 3 {
		b.say(operator, fmt.Sprintf("s-%d", i), "hello")
		b.clock.Forward(time.Second)
	}
	b.say(other, "s-9", "hello")

	ids := func(key string, limit int) (all []string) {
		query := fmt.Sprintf("?limit=%d", limit)
		for {
			doc := b.want(200, "GET", "/v1/sessions"+query, key, "")
			for _, item := range doc["items"].([]any) {
				all = append(all, item.(map[string]any)["session_id"].(string))
			}
			next, _ := doc["next_cursor"].(string)
			if next == "" {
				return all
			}
			query = fmt.Sprintf("?limit=%d&cursor=%s", limit, next)
		}
	}
	for limit := 1; limit < 5; limit++ {
		if got := ids(operator, limit); !slices.Equal(got, []string{"s-2", "s-1", "s-0"}) {
			t.Errorf(`limit %d: %v; want slices.Equal(got, []string{"s-2", "s-1", "s-0"})`, limit, got)
		}
	}
	if got := ids(admin, 50); !slices.Equal(got, []string{"s-9", "s-2", "s-1", "s-0"}) {
		t.Errorf(`an admin's list: %v; want slices.Equal(got, []string{"s-9", "s-2", "s-1", "s-0"})`, got)
	}
	b.refused(422, "validation_error", "GET", "/v1/sessions?limit=0", operator, "")
	b.refused(422, "validation_error", "GET", "/v1/sessions?cursor=x", operator, "")

	doc := b.want(200, "GET", "/v1/sessions/s-0", operator, "")
	messages := doc["messages"].([]any)
	if len(messages) != 2 || messages[1].(map[string]any)["content"] != "You asked: hello" || fmt.Sprint(doc["pending_actions"]) != "[]" || doc["session_wide_approval"] != false {
		t.Errorf(`%v; want len(messages) == 2 && messages[1].(map[string]any)["content"] == "You asked: hello" && fmt.Sprint(doc["pending_actions"]) == "[]" && doc["session_wide_approval"] == false`, doc)
	}
	b.want(200, "GET", "/v1/sessions/s-0", admin, "")
	b.refused(404, "session_not_found", "GET", "/v1/sessions/s-0", other, "")
	b.refused(404, "session_not_found", "GET", "/v1/sessions/%00", operator, "")

	b.refused(404, "session_not_found", "DELETE", "/v1/sessions/s-0", other, "")
	b.refused(403, "forbidden", "DELETE", "/v1/sessions/s-0", admin, "")
	if resp := b.send(t.Context(), "DELETE", "/v1/sessions/s-0", operator, ""); resp.StatusCode != http.StatusNoContent {
		t.Errorf("%d; want %v", resp.StatusCode, http.StatusNoContent)
	}
	b.refused(404, "session_not_found", "GET", "/v1/sessions/s-0", operator, "")
	b.refused(404, "session_not_found", "DELETE", "/v1/sessions/s-0", operator, "")
}

func TestActions(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	first, second := b.propose(operator, "s-1", "scale.."), b.propose(operator, "s-1", "scale...")
	list := "/v1/sessions/s-1/actions"
	one := func(id string) string { return list + "/" + id }

	// Its owner and anyone who may decide can read it; to others it does not exist.
	for _, key := range []string{operator, other, admin} {
		doc := b.want(200, "GET", list+"?limit=1", key, "")
		items := doc["items"].([]any)
		if len(items) != 1 || items[0].(map[string]any)["action_id"] != first {
			t.Errorf(`%v; want len(items) == 1 && items[0].(map[string]any)["action_id"] == first`, doc)
		}
		doc = b.want(200, "GET", list+"?limit=1&cursor="+doc["next_cursor"].(string), key, "")
		if items := doc["items"].([]any); len(items) != 1 || items[0].(map[string]any)["action_id"] != second || doc["next_cursor"] != nil {
			t.Errorf(`%v; want len(items) == 1 && items[0].(map[string]any)["action_id"] == second && doc["next_cursor"] == nil`, doc)
		}
		doc = b.want(200, "GET", one(first), key, "")
		if doc["state"] != "pending" || doc["human_summary"] != "kubectl scale deployment/api -n shop --replicas=2" || doc["risk_level"] != "medium" || doc["diff"] == "" {
			t.Errorf(`%v; want doc["state"] == "pending" && doc["human_summary"] == "kubectl scale deployment/api -n shop --replicas=2" && doc["risk_level"] == "medium" && doc["diff"] != ""`, doc)
		}
	}
	b.refused(404, "session_not_found", "GET", list, readonly, "")
	b.refused(404, "action_not_found", "GET", one(first), readonly, "")
	b.refused(404, "session_not_found", "GET", "/v1/sessions/s-2/actions", operator, "")
	b.refused(404, "action_not_found", "GET", "/v1/sessions/s-2/actions/"+first, operator, "")
	for _, id := range []string{"x", strings.ToUpper(first) + "0", "urn:uuid:" + first, "00000000-0000-7000-8000-000000000000"} {
		b.refused(404, "action_not_found", "GET", one(id), operator, "")
		b.refused(404, "action_not_found", "POST", one(id), operator, `{"decision":"deny"}`)
	}

	b.refused(403, "forbidden", "POST", one(first), readonly, `{"decision":"approve"}`)
	for _, body := range []string{`{}`, `{"decision":"yes"}`, `{"decision":"deny","x":1}`, `[`, `{"decision":"deny","reason":"` + strings.Repeat("a", 1001) + `"}`} {
		b.refused(422, "validation_error", "POST", one(first), operator, body)
	}
	b.refused(413, "body_too_large", "POST", one(first), operator, `{"decision":"deny","reason":"`+strings.Repeat("a", 20<<10)+`"}`)
	b.refused(415, "unsupported_media_type", "POST", one(first), operator, `{"decision":"deny"}`, "Content-Type", "text/plain")

	doc := b.want(200, "POST", one(first), other, `{"decision":"approve"}`)
	if doc["state"] != "approved" || doc["decided_by"] == doc["requested_by"] || doc["decided_role"] != "operator" {
		t.Errorf(`%v; want doc["state"] == "approved" && doc["decided_by"] != doc["requested_by"] && doc["decided_role"] == "operator"`, doc)
	}
	if writes, _ := b.cluster.Writes(t, "api"); writes != 0 {
		t.Error("the write ran before the session's next turn")
	}
	b.refused(409, "already_decided", "POST", one(first), operator, `{"decision":"deny"}`)
	doc = b.want(200, "POST", one(second), operator, `{"decision":"deny","reason":"not now"}`)
	if doc["state"] != "denied" || doc["reason"] != "not now" {
		t.Errorf(`%v; want doc["state"] == "denied" && doc["reason"] == "not now"`, doc)
	}
	if raw := b.say(operator, "s-1", "go on"); !strings.Contains(string(raw), "2 replicas, as observed.") {
		t.Errorf(`%s; want strings.Contains(string(raw), "2 replicas, as observed.")`, raw)
	}
	if writes, replicas := b.cluster.Writes(t, "api"); writes != 1 || replicas != 2 {
		t.Errorf("%d writes, %d replicas; want writes == 1 && replicas == 2", writes, replicas)
	}
	if doc := b.want(200, "GET", one(first), operator, ""); doc["state"] != "succeeded" || doc["verification"] != "2 replicas, as observed." {
		t.Errorf(`%v; want doc["state"] == "succeeded" && doc["verification"] == "2 replicas, as observed."`, doc)
	}
}

func TestActionsThatCannotBeDecided(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{fourEyes: true})
	path := func(id string) string { return "/v1/sessions/s-1/actions/" + id }
	id := b.propose(operator, "s-1", "scale..")
	b.refused(403, "forbidden", "POST", path(id), operator, `{"decision":"approve"}`)
	if refused, denied := len(b.events("action_refused")), len(b.events("access_denied")); refused != 1 || denied != 0 {
		t.Errorf("recorded %d times with the action, %d without; want refused == 1 && denied == 0", refused, denied)
	}
	b.cluster.Edit(t, "api", 5)
	doc := b.want(410, "POST", path(id), other, `{"decision":"approve"}`)
	if doc["code"] != "action_stale" || doc["replaced_by"] == nil {
		t.Errorf(`%v; want doc["code"] == "action_stale" && doc["replaced_by"] != nil`, doc)
	}
	fresh, _ := doc["replaced_by"].(string)
	b.clock.Forward(2 * time.Hour)
	b.refused(410, "action_expired", "POST", path(fresh), other, `{"decision":"approve"}`)
	if writes, _ := b.cluster.Writes(t, "api"); writes != 0 {
		t.Errorf("%d writes; want 0", writes)
	}
	b.refused(404, "action_not_found", "GET", path(fresh), readonly, "")
	b.refused(404, "not_found", "GET", chatPath+"/x", operator, "")
}
