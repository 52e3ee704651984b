package inference_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

type shadowRule struct {
	Model     string    `json:"model"`
	Alias     string    `json:"alias"`
	Percent   int       `json:"percent"`
	Applied   bool      `json:"applied"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
	Warnings  []string  `json:"warnings"`
}

func (i *instance) setShadow(model, body string) (r shadowRule) {
	i.T.Helper()
	s, _, out := i.Do(http.MethodPut, "/shadow-rules/"+model, body)
	if err := json.Unmarshal([]byte(out), &r); err != nil || s != http.StatusOK {
		i.T.Fatalf("PUT /shadow-rules/%s: %d %s, want 200", model, s, out)
	}
	return r
}

// shadows is shadow_total of a model by status.
func (i *instance) shadows(model string) map[string]int {
	i.T.Helper()
	_, text := i.Get("/metrics")
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^shadow_total\{alias="\w+",model="`+model+`",status="(\w+)"\} (\d+)$`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			i.T.Fatal(err)
		}
		out[m[1]] += n
	}
	return out
}

func TestShadowScoresBesideTheAnswer(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	set := i.setShadow("jpcp", `{"alias": "canary", "percent": 100}`)
	want := shadowRule{Model: "JPCP", Alias: "Canary", Percent: 100, Applied: true, UpdatedAt: set.UpdatedAt, UpdatedBy: "anonymous", Warnings: []string{}}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("rule differs from want:\n%s", diff)
	}
	for range 5 {
		if got, want := i.aliasFor(row), "Production 1"; got != want {
			t.Errorf("answered by %s, want %s", got, want)
		}
	}
	i.aliasFor(`{"features": {"x": 1}, "alias": "Canary"}`) // is scored by Canary already
	i.aliasFor(row, "X-Platform-Probe", "1")
	i.infer("/v2/models/jpcp/infer", `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [3, 1], "data": [1, 2, 3]}]}`)
	testenv.Eventually(t, testWait, func() error {
		got := map[string]int{}
		for _, s := range i.snapshots("JPCP") {
			got[s.source+" "+s.alias+" "+s.version]++
		}
		want := map[string]int{"http Production 1": 5, "http Canary 2": 1, "v2 Production 1": 3, "shadow Canary 2": 8}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("snapshots differ from want:\n%s", diff)
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"success": 6}, i.shadows("JPCP")); diff != "" {
		t.Errorf("shadow_total differs from want:\n%s", diff)
	}
	if _, text := i.Get("/metrics"); !strings.Contains(text, `predict_requests_total{alias="Canary",model="JPCP",status="success"} 1`+"\n") {
		t.Error("shadows count as requests; want them in shadow_total alone")
	}
}

// A shadow that takes other columns, fails or is slow changes no answer; requests beyond its pool are dropped and
// counted.
func TestShadowNeverTouchesTheAnswer(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	x := func(weight float32) map[string][]byte {
		return fixturetest.Linear(t, "m", 0, fixturetest.Column{Name: "x", Kind: "number", Weight: weight})
	}
	for name, canary := range map[string]map[string][]byte{
		"other": fixturetest.Linear(t, "m", 0, fixturetest.Column{Name: "y", Kind: "number", Weight: 1}), "failing": x(3e38), "slow": fixturetest.SlowFor(t, "m", 20),
	} {
		reg.Alias(name, "Production", reg.Register(name, x(2), nil))
		reg.Alias(name, "Canary", reg.Register(name, canary, nil))
	}
	reg.Alias("absent", "Production", reg.Register("absent", x(2), nil))
	i := start(t, reg)
	for _, c := range []struct{ model, status string }{
		{"other", "mismatch"}, {"failing", "error"}, {"absent", "not_loaded"}, {"slow", "dropped"}, // last: it fills the pool of all models
	} {
		model, status := c.model, c.status
		testenv.Eventually(t, testWait, func() error { // loading may take longer than readiness waits for it
			if s, body := i.Post("/predict/"+model, `{"features": {"x": 4}, "alias": "Canary"}`); s == http.StatusServiceUnavailable {
				return fmt.Errorf("%s", body)
			}
			return nil
		})
		i.setShadow(model, `{"alias": "Canary", "percent": 100}`)
		requests := 3
		if model == "slow" { // sixteen are scored and sixty-four wait
			requests = 120
		}
		for range requests {
			s, body := i.Post("/predict/"+model, `{"features": {"x": 4}}`)
			if s != http.StatusOK || !strings.Contains(body, `"prediction":8,`) {
				t.Fatalf("%s: %d %s, want 200 with 8", model, s, body)
			}
		}
		testenv.Eventually(t, testWait, func() error {
			if got := i.shadows(strings.ToUpper(model)); got[status] < 1 {
				return fmt.Errorf("%s: shadow_total %v, want %s", model, got, status)
			}
			return nil
		})
	}
}

// Of 400 requests a rule of 25 % takes about 100.
func TestShadowTakesItsShare(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	if got := i.setShadow("jpcp", `{"alias": "Staging", "percent": 25}`).Warnings; len(got) != 1 || !strings.Contains(got[0], "No version is loaded under Staging") {
		t.Errorf("warnings %q, want that Staging has no version", got)
	}
	for range 400 {
		if s, body := i.Post("/predict/jpcp", row); s != http.StatusOK {
			t.Fatalf("%d %s, want 200", s, body)
		}
	}
	testenv.Eventually(t, testWait, func() error {
		got := i.shadows("JPCP")
		// Six standard deviations of a binomial distribution: once in 500 million runs chance alone leaves them.
		if n := got["not_loaded"] + got["dropped"]; n < 48 || n > 152 {
			return fmt.Errorf("%v of 400 requests were taken, want about 100", got)
		}
		return nil
	})
}

func TestShadowRulesAreListedAndDeleted(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		s, _, body := i.Do(method, "/shadow-rules/jpcp", nil)
		if s != http.StatusNotFound || inferencetest.ProblemOf(t, s, body).Code != "no_shadow_rule" {
			t.Errorf("%s without a rule: %d %s, want 404 no_shadow_rule", method, s, body)
		}
	}
	for body, want := range map[string]string{
		`{}`: "body.alias: this member is missing; body.percent: this member is missing", `{"alias": "Canary"}`: "body.percent: this member is missing",
		`{"alias": "Shadow", "percent": 1}`:               "body.alias: is no alias; the aliases are Production, Canary, Staging",
		`{"alias": null, "percent": null}`:                "body.alias: is no alias",
		`{"alias": "Canary", "percent": 101}`:             "body.percent: must be a whole number from 0 to 100",
		`{"alias": "Canary", "percent": 0.5}`:             "body.percent: must be a whole number from 0 to 100",
		`{"alias": "Canary", "percent": 1, "extra": 1}`:   "body.extra: this member is unknown",
		`{"alias": "Canary", "percent": 1, "percent": 2}`: "", `[]`: "", ``: "",
	} {
		s, _, out := i.Do(http.MethodPut, "/shadow-rules/jpcp", body)
		p := inferencetest.ProblemOf(t, s, out)
		if s != http.StatusUnprocessableEntity || p.Code != "validation_error" || !strings.Contains(p.ErrorList(), want) {
			t.Errorf("%s: %d %s, want 422 with %q", body, s, out, want)
		}
	}
	i.setShadow("jpcp", `{"alias": "Canary", "percent": 10}`)
	i.setShadow("B", `{"alias": "staging", "percent": 0}`)
	var list struct {
		Items []shadowRule `json:"items"`
		Next  *string      `json:"next_cursor"`
	}
	if s, body := i.Get("/shadow-rules?limit=1"); s != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil || len(list.Items) != 1 || list.Items[0].Model != "B" || list.Next == nil {
		t.Fatalf("first page: %d %s, want B and a cursor", s, body)
	}
	if s, body := i.Get("/shadow-rules?cursor=" + *list.Next); s != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil || len(list.Items) != 1 || list.Items[0].Percent != 10 {
		t.Errorf("second page: %d %s, want the rule of JPCP", s, body)
	}
	if s, body := i.Get("/shadow-rules?model=x"); s != http.StatusUnprocessableEntity {
		t.Errorf("unknown parameter: %d %s, want 422", s, body)
	}
	if s, body := i.Get("/shadow-rules/jpcp"); s != http.StatusOK || !strings.Contains(body, `"alias":"Canary","model":"JPCP","percent":10`) {
		t.Errorf("get: %d %s, want the rule", s, body)
	}
	if s, _, body := i.Do(http.MethodDelete, "/shadow-rules/jpcp", nil); s != http.StatusNoContent {
		t.Errorf("delete: %d %s, want 204", s, body)
	}
}

func TestShadowChangesAreToldAndAudited(t *testing.T) {
	t.Parallel()
	i := start(t, splitRegistry(t))
	i.setShadow("jpcp", `{"alias": "Canary", "percent": 10}`)
	i.setShadow("jpcp", `{"alias": "Canary", "percent": 10}`) // no change, no event
	if s, _, body := i.Do(http.MethodDelete, "/shadow-rules/jpcp", nil); s != http.StatusNoContent {
		t.Fatalf("delete: %d %s, want 204", s, body)
	}
	ten, none := map[string]any{"Canary": 10.0}, map[string]any{}
	want := []map[string]any{{"model": "JPCP", "rules": ten, "previous": none}, {"model": "JPCP", "rules": none, "previous": ten}}
	if diff := cmp.Diff(want, i.events("deploy", "shadow_changed")); diff != "" {
		t.Errorf("events differ from want:\n%s", diff)
	}
	var got []string
	for _, f := range i.events("audit", "recorded") {
		if action := f["action"].(string); strings.HasPrefix(action, "shadow.") {
			got = append(got, fmt.Sprint(action, " ", f["target"], " ", f["details"]))
		}
	}
	wantFacts := []string{
		"shadow.set model:JPCP map[new:map[Canary:10] old:map[]]", "shadow.set model:JPCP map[new:map[Canary:10] old:map[Canary:10]]",
		"shadow.clear model:JPCP map[new:map[] old:map[Canary:10]]",
	}
	if diff := cmp.Diff(wantFacts, got); diff != "" {
		t.Errorf("audit facts differ from want:\n%s", diff)
	}
}
