package inference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// splitRegistry has the model jpcp, version 1 under Production and version 2 under Canary. Its places of 100 are
// 44 for the key user-1, 20 for user-2, 97 for local:admin and 31 for 17.
func splitRegistry(t *testing.T) *fixturetest.Registry {
	t.Helper()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("jpcp", "Production", reg.Register("jpcp", tagged(t, 1), nil))
	reg.Alias("jpcp", "Canary", reg.Register("jpcp", tagged(t, 2), nil))
	return reg
}

type trafficRule struct {
	Model     string         `json:"model"`
	Rules     map[string]int `json:"rules"`
	Applied   bool           `json:"applied"`
	UpdatedAt time.Time      `json:"updated_at"`
	UpdatedBy string         `json:"updated_by"`
	Warnings  []string       `json:"warnings"`
}

func (i *instance) setTraffic(model, body string) trafficRule {
	i.T.Helper()
	var r trafficRule
	i.OK("/traffic-rules/"+model, body, &r)
	return r
}

// aliasFor is the alias and version that answer a request, such as "Canary 2".
func (i *instance) aliasFor(body string, header ...string) string {
	i.T.Helper()
	s, _, out := i.Do(http.MethodPost, "/predict/jpcp", body, header...)
	var p inferencetest.Prediction
	if s != http.StatusOK || json.Unmarshal([]byte(out), &p) != nil {
		return fmt.Sprintf("%d %s", s, out)
	}
	return strings.TrimSpace(p.Alias + " " + p.ModelVersion)
}

const row = `{"features": {"x": 1}}`

func TestTrafficIsSplitByKey(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	if got, want := i.aliasFor(row, "X-Routing-Key", "local:admin"), "Production 1"; got != want {
		t.Errorf("without rules: %s, want %s", got, want)
	}
	set := i.setTraffic("jpcp", `{"production": 44, "CANARY": 56}`)
	want := trafficRule{Model: "JPCP", Rules: map[string]int{"Production": 44, "Canary": 56}, Applied: true, UpdatedAt: set.UpdatedAt, UpdatedBy: "anonymous", Warnings: []string{}}
	if diff := cmp.Diff(want, set); diff != "" || time.Since(set.UpdatedAt) > time.Minute {
		t.Errorf("set at %s: got differs from want:\n%s", set.UpdatedAt, diff)
	}
	for _, c := range []struct{ body, key, want string }{
		{row, "user-1", "Canary 2"},      // at 44
		{row, "user-2", "Production 1"},  // at 20
		{row, "local:admin", "Canary 2"}, // at 97
		{`{"features": {"x": 1}, "alias": "Production"}`, "user-1", "Production 1"},
		{`{"features": {"x": 1}, "alias": "canary"}`, "user-2", "Canary 2"},
		{`{"features": {"x": 1}, "version": "1"}`, "user-1", "1"},
	} {
		for range 3 { // sticky
			if got := i.aliasFor(c.body, "X-Routing-Key", c.key); got != c.want {
				t.Errorf("%s for %s: %s, want %s", c.body, c.key, got, c.want)
			}
		}
	}
	// Without a key and a principal, the request id decides.
	for id, want := range map[string]string{"user-1": "Canary 2", "user-2": "Production 1"} {
		if got := i.aliasFor(row, "X-Request-ID", id); got != want {
			t.Errorf("request %s: %s, want %s", id, got, want)
		}
		if got := i.aliasFor(row, "X-Request-ID", id, "X-Routing-Key", ""); got != want {
			t.Errorf("request %s with an empty key: %s, want %s", id, got, want)
		}
	}
}

func TestTrafficKeyIsTheUserThenThePrincipal(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	files := func(bias float32) map[string][]byte {
		return fixturetest.Linear(t, "jpcp", bias, fixturetest.Column{Name: "embedding", Kind: "vector", Length: 384, Weight: 1}, fixturetest.Column{Name: "num_nodes", Kind: "number", Weight: 1})
	}
	reg.Alias("jpcp", "Production", reg.Register("jpcp", files(1), nil))
	reg.Alias("jpcp", "Canary", reg.Register("jpcp", files(2), nil))
	const secret = "secret-of-the-application"
	i := start(t, reg, func(c *inference.Config) {
		c.Credentials = service.Secret(`{"` + secret + `": {"principal": "user-1", "tenant": "default", "scopes": ["admin"]}}`)
	})
	i.Bearer = secret
	if got, want := i.setTraffic("JPCP", `{"Production": 44, "Canary": 56}`).UpdatedBy, "user-1"; got != want {
		t.Errorf("updated_by %q, want %q", got, want)
	}
	job := `{"num_nodes": 1, "embedding": [` + strings.Repeat("0,", 383) + `0]`
	for _, c := range []struct {
		body, key, want string
	}{
		{job + `}`, "", "Canary"},                          // the principal user-1 is at 44
		{job + `, "user_id": "user-2"}`, "", "Production"}, // at 20
		{job + `, "user_id": "user\u002d2"}`, "", "Production"},
		{job + `, "user_id": 17}`, "", "Production"}, // at 31
		{job + `, "user_id": "17"}`, "", "Production"},
		{job + `, "user_id": "user-2"}`, "local:admin", "Canary"}, // at 97
	} {
		var header []string
		if c.key != "" {
			header = []string{"X-Routing-Key", c.key}
		}
		s, _, out := i.Do(http.MethodPost, "/infer-pipeline/infer", c.body, header...)
		var p inferencetest.Prediction
		if err := json.Unmarshal([]byte(out), &p); err != nil || s != http.StatusOK || p.Alias != c.want {
			t.Errorf("…%s for %q: %d %s, want %s", c.body[len(job):], c.key, s, out, c.want)
		}
	}
}

func TestTrafficOfAnAliasThatIsNotLoadedGetsProduction(t *testing.T) {
	t.Parallel()
	reg := splitRegistry(t)
	i := start(t, reg)
	set := i.setTraffic("jpcp", `{"Production": 0, "Canary": 50, "Staging": 50}`)
	if want := []string{"No version is loaded under Staging; its 50 % go to Production until there is one."}; !cmp.Equal(set.Warnings, want) {
		t.Errorf("warnings %q, want %q", set.Warnings, want)
	}
	for key, want := range map[string]string{"user-1": "Canary 2", "local:admin": "Production 1"} {
		if got := i.aliasFor(row, "X-Routing-Key", key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	const counted = `traffic_fallback_total{alias="Staging",model="JPCP"} 1`
	if _, text := i.Get("/metrics"); !strings.Contains(text, counted+"\n") {
		t.Errorf("metrics do not have %s", counted)
	}
	reg.Alias("jpcp", "Staging", "2")
	i.OK("/reload", nil, nil)
	if got, want := i.aliasFor(row, "X-Routing-Key", "local:admin"), "Staging 2"; got != want {
		t.Errorf("once Staging is loaded: %s, want %s", got, want)
	}
	if got := i.setTraffic("nosuch", `{"Production": 100}`).Warnings; len(got) != 1 || !strings.Contains(got[0], "NOSUCH is not loaded") {
		t.Errorf("warnings %q, want that NOSUCH is not loaded", got)
	}
	if s, body := i.Post("/predict/nosuch", row); s != http.StatusNotFound {
		t.Errorf("a model with rules that is not loaded: %d %s, want 404", s, body)
	}
}

// Replicas follow without a broker: each looks every half second. The bound is that of a busy machine.
func TestTrafficRulesReachEveryReplica(t *testing.T) {
	t.Parallel()
	reg := splitRegistry(t)
	alone := func(c *inference.Config) { c.EventPublisher = "log" }
	first := start(t, reg, alone)
	second := start(t, reg, alone, func(c *inference.Config) { c.DatabaseURL = service.Secret(first.Database) })
	follow := func(want string) {
		t.Helper()
		if got := first.aliasFor(row, "X-Routing-Key", "user-1"); got != want {
			t.Errorf("the replica that was asked answers by %s, want %s at once", got, want)
		}
		testenv.Eventually(t, 15*time.Second, func() error {
			if got := second.aliasFor(row, "X-Routing-Key", "user-1"); got != want {
				return fmt.Errorf("the other replica answers by %s, want %s", got, want)
			}
			return nil
		})
	}
	first.setTraffic("jpcp", `{"Canary": 100}`)
	follow("Canary 2")
	first.setTraffic("jpcp", `{"Production": 100}`)
	follow("Production 1")
	first.setTraffic("jpcp", `{"Production": 44, "Canary": 56}`)
	follow("Canary 2")
	if s, _, body := first.Do(http.MethodDelete, "/traffic-rules/jpcp", nil); s != http.StatusNoContent {
		t.Fatalf("delete: %d %s, want 204", s, body)
	}
	follow("Production 1")
	// A replica that starts has the rules with its first request.
	second.setTraffic("jpcp", `{"Canary": 100}`)
	third := start(t, reg, alone, func(c *inference.Config) { c.DatabaseURL = service.Secret(first.Database) })
	if got, want := third.aliasFor(row), "Canary 2"; got != want {
		t.Errorf("a new replica answers by %s, want %s", got, want)
	}
}

func TestTrafficRulesAreListedAndDeleted(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	if s, body := i.Get("/traffic-rules"); s != http.StatusOK || strings.TrimSpace(body) != `{"items":[],"next_cursor":null}` {
		t.Errorf("without rules: %d %s, want an empty list", s, body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		s, _, body := i.Do(method, "/traffic-rules/jpcp", nil)
		if s != http.StatusNotFound || inferencetest.ProblemOf(t, s, body).Code != "no_traffic_rules" {
			t.Errorf("%s without rules: %d %s, want 404 no_traffic_rules", method, s, body)
		}
	}
	want := i.setTraffic("jpcp", `{"Production": 90, "Canary": 10}`)
	want.Applied, want.Warnings = false, nil
	i.setTraffic("b", `{"Staging": 100}`)
	if s, _, body := i.Do(http.MethodPut, "/traffic-rules/C", `{"Production": 100}`); s != http.StatusOK {
		t.Errorf("PUT: %d %s, want 200", s, body)
	}
	var got trafficRule
	if s, body := i.Get("/traffic-rules/Jpcp"); s != http.StatusOK || json.Unmarshal([]byte(body), &got) != nil {
		t.Fatalf("get: %d %s, want 200", s, body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("get differs from what was set:\n%s", diff)
	}
	var models []string
	for path := "/traffic-rules?limit=2"; path != ""; {
		s, body := i.Get(path)
		var page struct {
			Items      []trafficRule `json:"items"`
			NextCursor *string       `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || s != http.StatusOK {
			t.Fatalf("%s: %d %s, want 200", path, s, body)
		}
		for _, item := range page.Items {
			models = append(models, item.Model)
		}
		path = ""
		if page.NextCursor != nil {
			path = "/traffic-rules?limit=2&cursor=" + url.QueryEscape(*page.NextCursor)
		}
	}
	if diff := cmp.Diff([]string{"B", "C", "JPCP"}, models); diff != "" {
		t.Errorf("models listed differ from want:\n%s", diff)
	}
	for path, status := range map[string]int{"/traffic-rules?model=x": 422, "/traffic-rules?limit=0": 422, "/traffic-rules/" + strings.Repeat("x", 129): 404, "/traffic-rules/a%00b": 404} {
		if s, body := i.Get(path); s != status {
			t.Errorf("%.40s: %d %s, want %d", path, s, body, status)
		}
	}
	for _, body := range []string{`{"Production": 90}`, `{"Production": 90, "Production": 10}`, `[]`, `null`, ``, `{"Production": 100} x`} {
		s, _, out := i.Do(http.MethodPost, "/traffic-rules/jpcp", body)
		if s != http.StatusUnprocessableEntity || inferencetest.ProblemOf(t, s, out).Code != "validation_error" {
			t.Errorf("%q: %d %s, want 422 validation_error", body, s, out)
		}
	}
}

func TestTrafficChangesAreToldAndAudited(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	i.setTraffic("jpcp", `{"Production": 90, "Canary": 10}`)
	i.setTraffic("jpcp", `{"Canary": 10, "Production": 90}`) // no change, no event
	i.setTraffic("jpcp", `{"Canary": 100}`)
	if s, _, body := i.Do(http.MethodDelete, "/traffic-rules/jpcp", nil); s != http.StatusNoContent {
		t.Fatalf("delete: %d %s, want 204", s, body)
	}
	split, canary, none := map[string]any{"Production": 90.0, "Canary": 10.0}, map[string]any{"Canary": 100.0}, map[string]any{}
	wantEvents := []map[string]any{
		{"model": "JPCP", "rules": split, "previous": none},
		{"model": "JPCP", "rules": canary, "previous": split},
		{"model": "JPCP", "rules": none, "previous": canary},
	}
	if diff := cmp.Diff(wantEvents, i.events("deploy", "traffic_changed")); diff != "" {
		t.Errorf("events differ from want:\n%s", diff)
	}
	var got []map[string]any
	for _, f := range i.events("audit", "recorded") {
		if strings.HasPrefix(f["action"].(string), "traffic.") {
			got = append(got, map[string]any{"action": f["action"], "target": f["target"], "actor": f["actor"], "outcome": f["outcome"], "details": f["details"]})
		}
	}
	fact := func(action string, old, now map[string]any) map[string]any {
		return map[string]any{"action": action, "target": "model:JPCP", "actor": "anonymous", "outcome": "ok", "details": map[string]any{"old": old, "new": now}}
	}
	want := []map[string]any{fact("traffic.set", none, split), fact("traffic.set", split, split), fact("traffic.set", split, canary), fact("traffic.clear", canary, none)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit facts differ from want:\n%s", diff)
	}
}

func TestTrafficRulesOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	var proxy *fixturetest.Proxy
	i := start(t, splitRegistry(t), func(c *inference.Config) {
		u, err := url.Parse(c.DatabaseURL.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		proxy = fixturetest.NewProxy(t, u.Host)
		u.Host = proxy.Addr
		c.DatabaseURL = service.Secret(u.String())
	})
	i.setTraffic("jpcp", `{"Canary": 100}`)
	proxy.Cut(true)
	if got, want := i.aliasFor(row), "Canary 2"; got != want {
		t.Errorf("without the database: %s, want %s", got, want)
	}
	for _, r := range []struct{ method, path, body string }{
		{http.MethodGet, "/traffic-rules", ""}, {http.MethodGet, "/traffic-rules/jpcp", ""}, {http.MethodPost, "/traffic-rules/jpcp", `{"Production": 100}`},
	} {
		s, _, body := i.Do(r.method, r.path, r.body)
		if s != http.StatusServiceUnavailable || inferencetest.ProblemOf(t, s, body).Code != "store_unavailable" {
			t.Errorf("%s %s without the database: %d %s, want 503 store_unavailable", r.method, r.path, s, body)
		}
	}
	proxy.Cut(false)
	testenv.Eventually(t, 15*time.Second, func() error {
		if s, body := i.Post("/traffic-rules/jpcp", `{"Production": 100}`); s != http.StatusOK {
			return fmt.Errorf("with the database again: %d %s", s, body)
		}
		return nil
	})
	if got, want := i.aliasFor(row), "Production 1"; got != want {
		t.Errorf("after the change: %s, want %s", got, want)
	}
}
