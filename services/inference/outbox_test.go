package inference_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// sql puts the database into a state that no request can.
func (i *instance) sql(statement string, args ...any) {
	i.T.Helper()
	conn, err := pgx.Connect(i.T.Context(), i.Database)
	if err != nil {
		i.T.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(i.T.Context())) }()
	if _, err := conn.Exec(i.T.Context(), statement, args...); err != nil {
		i.T.Fatal(err)
	}
}

const (
	askSecret   = "ask-0123456789abcdef"
	adminSecret = "admin-0123456789abcdef"
	scoped      = `{"` + askSecret + `": {"principal": "app", "tenant": "default", "scopes": ["predict"]},
		"` + adminSecret + `": {"principal": "operator", "tenant": "default", "scopes": ["admin"]}}`
)

// The outbox is the administrators' to see and mend, as in the control plane.
func TestOutboxRoutes(t *testing.T) {
	t.Parallel()
	i := start(t, fixturetest.NewRegistry(t), func(c *inference.Config) { c.Credentials = scoped; c.EventRelayEnabled = false })
	poison := func(tenant string) string {
		id := uuid.Must(uuid.NewV7())
		i.sql(`insert into inference.outbox (id, tenant, namespace, name, payload, actor, refusals, poison_at, last_error)
			values ($1, $2, 'drift', 'reset', '{"model": "A"}', 'alice', 5, now(), 'refused')`, id, tenant)
		return id.String()
	}
	id, foreign := poison("default"), poison("other")
	ask := func(bearer, method, path string, body any) (int, string) {
		s, _, b := i.Do(method, path, body, "Authorization", "Bearer "+bearer)
		return s, b
	}
	for _, r := range [][2]string{{"GET", "/outbox"}, {"POST", "/outbox/" + id + "/replay"}, {"DELETE", "/outbox/" + id}, {"POST", "/outbox/republish"}} {
		if s, b := ask(askSecret, r[0], r[1], nil); s != 403 || inferencetest.ProblemOf(t, s, b).Code != "insufficient_scope" {
			t.Errorf(`%v by predict: %d %s; want s == 403 && inferencetest.ProblemOf(t, s, b).Code == "insufficient_scope"`, r, s, b)
		}
	}
	s, b := ask(adminSecret, "GET", "/outbox", nil)
	var page struct {
		Items []struct{ ID, Digest, State string }
	}
	if err := json.Unmarshal([]byte(b), &page); err != nil || s != 200 || len(page.Items) != 1 || page.Items[0].ID != id || page.Items[0].State != "poison" {
		t.Fatalf(`%d %s; want s == 200 && len(page.Items) == 1 && page.Items[0].ID == id && page.Items[0].State == "poison"`, s, b)
	}
	for _, r := range [][2]string{{"POST", "/outbox/" + foreign + "/replay"}, {"DELETE", "/outbox/" + foreign}} {
		if s, b := ask(adminSecret, r[0], r[1], nil); s != 404 || inferencetest.ProblemOf(t, s, b).Code != "event_not_found" {
			t.Errorf(`%v of another tenant: %d %s; want s == 404 && inferencetest.ProblemOf(t, s, b).Code == "event_not_found"`, r, s, b)
		}
	}
	if s, b := ask(adminSecret, "POST", "/outbox/"+id+"/replay", nil); s != 200 || !strings.Contains(b, `"state":"pending"`) {
		t.Errorf("replay: %d %s; want s == 200 && strings.Contains(b, `\"state\":\"pending\"`)", s, b)
	}
	if s, b := ask(adminSecret, "DELETE", "/outbox/"+id, nil); s != 409 || inferencetest.ProblemOf(t, s, b).Code != "event_not_poison" {
		t.Errorf(`drop of a pending one: %d %s; want s == 409 && inferencetest.ProblemOf(t, s, b).Code == "event_not_poison"`, s, b)
	}
	i.sql("update inference.outbox set poison_at = now() where id = $1", id)
	if s, b := ask(adminSecret, "DELETE", "/outbox/"+id, nil); s != 204 {
		t.Errorf("drop: %d %s; want s == 204", s, b)
	}
	now := time.Now()
	if s, b := ask(adminSecret, "POST", "/outbox/republish", map[string]any{"from": now.Add(-time.Hour), "to": now}); s != 200 || !strings.Contains(b, `"republished":0`) {
		t.Errorf("republish: %d %s; want s == 200 && strings.Contains(b, `\"republished\":0`)", s, b)
	}
	for _, action := range []string{"outbox.replayed", "outbox.drop", "outbox.dropped", "outbox.republished"} {
		found := false
		for _, e := range i.events("audit", "recorded") {
			details := e["details"].(map[string]any)
			if e["action"] == action {
				found = e["actor"] == "operator" && e["source"] == "inference" && (action == "outbox.republished" || details["digest"] == page.Items[0].Digest)
			}
		}
		if !found {
			t.Errorf("no audit fact %s as it should be", action)
		}
	}
}

// A person behind another service predicts as often as their token lives, and
// writes once with it.
func TestDelegation(t *testing.T) {
	t.Parallel()
	d, err := auth.NewDelegator("dashboard", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, func(c *inference.Config) {
		c.Credentials = scoped
		c.DelegationTrust = service.Secret(`{"dashboard": {"public_key": "` + d.PublicKey() + `", "tenants": ["default"], "scopes": ["predict", "admin"]}}`)
	})
	mint := func(audience string, scopes ...string) string {
		token, err := d.Mint(audience, auth.Person{Name: "alice", Tenant: "default", Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ask := func(want int, code, bearer, method, path string, body any) {
		t.Helper()
		s, _, b := i.Do(method, path, body, "Authorization", "Bearer "+bearer)
		if s != want || code != "" && inferencetest.ProblemOf(t, s, b).Code != code {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, s, b, want, code)
		}
	}
	predict := `{"features": {"x": 1}}`
	token := mint("inference", "admin")
	for range 3 {
		ask(200, "", token, "POST", "/predict/tagged", predict)
	}
	ask(200, "", token, "POST", "/reload", nil)
	ask(401, "invalid_credential", token, "POST", "/reload", nil)
	ask(200, "", token, "POST", "/predict/tagged", predict)
	ask(403, "insufficient_scope", mint("inference", "predict"), "POST", "/reload", nil)
	ask(401, "invalid_credential", mint("control-plane", "admin"), "POST", "/predict/tagged", predict)
	testenv.Eventually(t, 10*time.Second, func() error {
		for _, e := range i.events("audit", "recorded") {
			if e["action"] == "models.reload" && e["actor"] == "alice" {
				return nil
			}
		}
		return fmt.Errorf("the reload is not told as alice's")
	})
}
