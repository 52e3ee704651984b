package mlops_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/mlops"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

func (f *fixture) registry(t testing.TB) viewtest.Answer {
	t.Helper()
	return viewtest.Get(t, f.views.Registry, "/api/v1/mlops/registry", "/api/v1/mlops/registry")
}

// row returns a model of the registry.
func (f *fixture) row(t testing.TB, name string) map[string]any {
	t.Helper()
	return f.registry(t).Find("registry.rows", "name", name)
}

func wantRow(t *testing.T, row map[string]any, want map[string]any) {
	t.Helper()
	for member, value := range want {
		if diff := cmp.Diff(value, row[member]); diff != "" {
			t.Errorf("%s of %v (-want +got):\n%s", member, row["name"], diff)
		}
	}
}

func TestRegistryHasOneRowForEachModelByName(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	got := f.registry(t)
	var names []any
	for _, row := range got.At("registry.rows").([]any) {
		names = append(names, row.(map[string]any)["name"])
	}
	// The tracker holds jpcp and JPCP.
	want := []any{"EMPTY-MODEL", "EXTERNAL-MODEL", "JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	got.Want(map[string]any{"registry.count": 7})
	got.WantPartial()
	wantRow(t, got.Find("registry.rows", "name", "JPCP"), map[string]any{
		"trackerName": "jpcp", "version": 1., "stage": "Production", "health": "ok", "healthReasons": []any{}, "governed": true,
		"freshnessStatus": "current", "aliases": map[string]any{"Production": 1., "Canary": 1., "Staging": 1.},
	})
}

func TestRegistryShowsModelsThatNobodyPromoted(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	got := f.registry(t)
	wantRow(t, got.Find("registry.rows", "name", "EXTERNAL-MODEL"), map[string]any{
		"trackerName": "External-Model", "version": 1., "stage": "none", "health": "unknown", "governed": false, "freshnessStatus": "unknown",
		"description": "made elsewhere",
	})
	wantRow(t, got.Find("registry.rows", "name", "EMPTY-MODEL"), map[string]any{"version": nil, "stage": "none", "health": "unknown"})
}

func TestRegistryVersionIsThatOfTheFirstAliasThatIsSet(t *testing.T) {
	t.Parallel()
	for aliases, want := range map[string]map[string]any{
		`[{"alias":"Staging","version":"4"},{"alias":"Production","version":"2"},{"alias":"Canary","version":"3"}]`: {"version": 2., "stage": "Production"},
		`[{"alias":"Staging","version":"4"},{"alias":"Canary","version":"3"}]`:                                      {"version": 3., "stage": "Canary"},
		`[{"alias":"staging","version":"4"}]`:                                                                       {"version": 4., "stage": "Staging"},
		`[{"alias":"champion","version":"4"}]`:                                                                      {"version": 5., "stage": "none"},
		`[]`:                                                                                                        {"version": 5., "stage": "none"},
	} {
		f := setup(t)
		f.Tracker.Answer(searchModels, http.StatusOK, `{"registered_models":[{"name":"m","latest_versions":[{"name":"m","version":"5"}],"aliases":`+aliases+`}]}`)
		t.Run(aliases, func(t *testing.T) { wantRow(t, f.row(t, "M"), want) })
	}
}

func TestHealthFollowsTheWorstMeasureOfDrift(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"WARNING", "CRITICAL", "CORRUPT"} {
		f := setup(t).withRules()
		f.editDrift(t, "JPCP", "Production", map[string]any{"status": "OK", "overall": level, "decided_by": "psi"})
		wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "warn", "healthReasons": []any{"drift " + level + " under Production (psi)"}})
	}
	f := setup(t).withRules()
	f.editDrift(t, "JPCP", "Canary", map[string]any{"overall": "CRITICAL", "decided_by": "z_score"})
	wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "warn", "healthReasons": []any{"drift CRITICAL under Canary (z_score)"}})
}

func TestFiguresBelongToTheVersionTheyWereMeasuredOf(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.editDrift(t, "JPCP", "Production", map[string]any{"version": "9", "z_score": 3.06, "overall": "CRITICAL", "n_snapshots": 40})
	row := f.row(t, "JPCP")
	wantRow(t, row, map[string]any{
		"version": 1., "zScore": nil, "trend": nil, "driftStatus": nil, "earlier": map[string]any{"version": 9., "zScore": 3.06}, "health": "unknown",
		"healthReasons": []any{"version 1 is not measured yet; drift CRITICAL under Production is that of version 9"},
	})
	f = setup(t).withRules()
	f.editDrift(t, "JPCP", "Production", map[string]any{"version": "1", "z_score": 0.06, "n_snapshots": 40})
	wantRow(t, f.row(t, "JPCP"), map[string]any{"zScore": 0.06, "driftStatus": "OK", "earlier": nil, "served": true, "health": "ok"})
}

func TestServedIsAbsentWithoutAnAnswerOfServing(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.Serving.Edit("/health", func(body string) string { return strings.Replace(body, `"Production":"1"`, `"Production":"7"`, 1) })
	wantRow(t, f.row(t, "JPCP"), map[string]any{"served": false})
	f = setup(t).withRules()
	f.Serving.Answer("/health", http.StatusInternalServerError, `{}`)
	wantRow(t, f.row(t, "JPCP"), map[string]any{"served": nil})
}

func TestHealthIsUnknownWithoutAComparison(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"NO_BASELINE", "INSUFFICIENT"} {
		f := setup(t).withRules()
		f.editDrift(t, "JPCP", "Production", map[string]any{"status": level, "overall": level})
		wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "unknown", "healthReasons": []any{"drift " + level + " under Production"}})
	}
}

func TestHealthWarnsOfAStaleModel(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.ControlPlane.Answer("/modelrepo/status", http.StatusOK, `{"last_event":null,"models":[{"model_id":"JPCP","status":"stale"},{"model_id":"MACK","status":"no_definition"}]}`)
	wantRow(t, f.row(t, "JPCP"), map[string]any{
		"health": "warn", "freshnessStatus": "stale", "healthReasons": []any{"stale: the model repository has changed since the last training"},
	})
	wantRow(t, f.row(t, "MACK"), map[string]any{"freshnessStatus": "unknown"})
}

func TestHealthWarnsWhenProductionIsNotServedForAMinute(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.Serving.Edit("/health", func(body string) string {
		return strings.Replace(body, `"Production":"1"`, `"Production":"7"`, 1) // of JPCP, the first by name
	})
	recent := "Production is version 1, but version 7 is served"
	wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "unknown", "healthReasons": []any{recent + "; the change is recent"}})
	f.ahead.Store(int64(57 * time.Second)) // answers are shared for 2 s
	wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "unknown"})
	f.ahead.Store(int64(60 * time.Second))
	wantRow(t, f.row(t, "JPCP"), map[string]any{"health": "warn", "healthReasons": []any{recent}})
	wantRow(t, f.row(t, "MACK"), map[string]any{"trackerName": "mack", "health": "ok"})
}

func TestHealthOfAModelThatIsServedAgainIsOK(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.Serving.Edit("/health", func(body string) string { return strings.Replace(body, `"Production":"1"`, `"Production":"7"`, 1) })
	f.row(t, "JPCP")
	f.ahead.Store(int64(time.Hour))
	f.Serving.Edit("/health", func(body string) string { return body })
	later := f.otherViews(t)
	wantRow(t, later.row(t, "JPCP"), map[string]any{"health": "ok"})
}

// otherViews creates views over the same services that share no answers.
func (f *fixture) otherViews(t *testing.T) *fixture {
	t.Helper()
	g := setup(t)
	g.Tracker, g.Serving, g.ControlPlane = f.Tracker, f.Serving, f.ControlPlane
	return g.withRules()
}

func TestRegistryFreshnessIsTheLatestOfVersionPredictionAndTraffic(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules() // the rules are the newest
	wantRow(t, f.row(t, "JPCP"), map[string]any{"freshness": "2026-11-23T08:00:00Z"})

	f = setup(t)
	f.Serving.Answer("/traffic-rules", http.StatusOK, `{"items":[],"next_cursor":null}`)
	f.editDrift(t, "JPCP", "Staging", map[string]any{"newest_at": "2026-11-22T23:59:00Z"})
	wantRow(t, f.row(t, "JPCP"), map[string]any{"freshness": "2026-11-22T23:59:00Z"})

	f = setup(t)
	f.Serving.Answer("/traffic-rules", http.StatusOK, `{"items":[],"next_cursor":null}`)
	f.Serving.Answer("/drift/status", http.StatusOK, `[]`)
	if at, _ := f.row(t, "JPCP")["freshness"].(string); !strings.HasPrefix(at, "2026-11-22T22:23:32") {
		t.Errorf("freshness %s, want when Production moved to the version, 2026-11-22T22:23:32", at)
	}
}

func TestRegistryShowsDriftOfTheStage(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	row := f.row(t, "JPCP")
	trend, _ := row["trend"].([]any)
	if z, _ := row["zScore"].(float64); z <= 0 || z > 1 || len(trend) != 24 {
		t.Errorf("zScore %v, trend of %d; want the z-score of the drift status, and its 24 newest predictions", row["zScore"], len(trend))
	}
	if trend := f.row(t, "MACK")["trend"]; len(trend.([]any)) != 0 {
		t.Errorf("trend of a model that predicts labels: %v, want none", trend)
	}
}

func TestGovernedMeansAnEnabledPolicy(t *testing.T) {
	t.Parallel()
	f := setup(t).withRules()
	f.ControlPlane.Edit("/promotion-policies", func(body string) string { return strings.Replace(body, `"enabled":true`, `"enabled":false`, 1) })
	f.ControlPlane.Edit("/promotion-policies", func(body string) string {
		var list map[string]any
		_ = json.Unmarshal([]byte(body), &list)
		list["items"].([]any)[0].(map[string]any)["enabled"] = false // JPCP's
		raw, _ := json.Marshal(list)
		return string(raw)
	})
	wantRow(t, f.row(t, "JPCP"), map[string]any{"governed": false})
	wantRow(t, f.row(t, "MACK"), map[string]any{"governed": true})
}

func TestRegistryRowsWithoutASource(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail    func(f *fixture)
		partial []string
		missing []string
	}{
		"serving away":       {func(f *fixture) { f.Serving.Break() }, []string{"drift", "serving", "traffic"}, []string{"zScore", "trend"}},
		"control plane away": {func(f *fixture) { f.ControlPlane.Break() }, []string{"freshness", "promotion"}, []string{"governed", "freshnessStatus"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t).withRules()
			test.fail(f)
			got := f.registry(t)
			got.WantPartial(test.partial...)
			row := got.Find("registry.rows", "name", "JPCP")
			wantRow(t, row, map[string]any{"health": "unknown", "version": 1., "stage": "Production"})
			for _, member := range test.missing {
				if v, ok := row[member]; ok {
					t.Errorf("%s is %v, want it missing: nobody measured it", member, v)
				}
			}
		})
	}
	f := setup(t).withRules()
	f.Tracker.Break()
	got := f.registry(t)
	got.WantPartial("tracker")
	got.Want(map[string]any{"registry": map[string]any{
		"count": 0, "rows": []any{}, "matching": 0, "served": 0, "next_cursor": nil, "severities": map[string]any{"critical": 0, "warn": 0, "unknown": 0, "ok": 0},
	}})
}

// searchModels is where the tracker lists its models.
const searchModels = "/api/2.0/mlflow/registered-models/search"

// editDrift changes members of one row of the drift status.
func (f *fixture) editDrift(t testing.TB, model, alias string, members map[string]any) {
	t.Helper()
	f.Serving.Edit("/drift/status", func(body string) string {
		var rows []map[string]any
		if err := json.Unmarshal([]byte(body), &rows); err != nil {
			t.Error(err)
		}
		for _, row := range rows {
			if row["model"] == model && row["alias"] == alias {
				for k, v := range members {
					row[k] = v
				}
			}
		}
		raw, _ := json.Marshal(rows)
		return string(raw)
	})
}

// manyModels makes the services answer n models, in pages of 500 and of 200 as they do.
func (f *fixture) manyModels(n int) {
	page := func(w http.ResponseWriter, r *http.Request, size int, token string, write func(first, last int) (string, string)) {
		first := 0
		_, _ = fmt.Sscan(r.URL.Query().Get(token), &first)
		last := min(first+size, n)
		next := ""
		if last < n {
			next = fmt.Sprint(last)
		}
		body, header := write(first, last)
		if header != "" && next != "" {
			w.Header().Set(header, next)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, body, next)
	}
	join := func(first, last int, format string) string {
		var b strings.Builder
		for i := first; i < last; i++ {
			if i > first {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, format, i, i%7+1)
		}
		return b.String()
	}
	f.Tracker.Handle(searchModels, func(w http.ResponseWriter, r *http.Request) {
		page(w, r, 200, "page_token", func(first, last int) (string, string) {
			return `{"registered_models":[` + join(first, last, `{"name":"model-%05[1]d","last_updated_timestamp":1795386212565,"latest_versions":[{"name":"model-%05[1]d","version":"%[2]d"}],"aliases":[{"alias":"Production","version":"%[2]d"}]}`) + `],"next_page_token":"%s"}`, ""
		})
	})
	recent := strings.TrimSuffix(strings.Repeat("233.218,", 24), ",")
	f.Serving.Handle("/drift/status", func(w http.ResponseWriter, r *http.Request) {
		page(w, r, 500, "cursor", func(first, last int) (string, string) {
			return `[` + join(first, last, `{"model":"MODEL-%05[1]d","alias":"Production","version":"%[2]d","status":"OK","overall":"OK","z_score":0.5,"live_mean":1,"live_std":1,"n_snapshots":100,"n_baseline":100,"measures":{},"recent":[`+recent+`]}`) + `]%.0s`, "X-Next-Cursor"
		})
	})
	f.Serving.Handle("/health", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok","models_loaded":1,"models":{` + join(0, n, `"MODEL-%05[1]d":{"version":"%[2]d","run_id":"","status":"ok","aliases":{"Production":"%[2]d"}}`) + `}}`))
	})
	f.ControlPlane.Handle("/modelrepo/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"last_event":null,"models":[` + join(0, n, `{"model_id":"MODEL-%05[1]d","status":"current"}`) + `]}`))
	})
}

func TestRegistryOfFiveThousandModelsTakesAFewCalls(t *testing.T) {
	t.Parallel()
	f := setupWithin(t, time.Minute).withRules()
	f.manyModels(5000)
	got := f.registry(t)
	got.WantPartial()
	got.Want(map[string]any{"registry.count": 5000, "registry.rows.4999.name": "MODEL-04999", "registry.rows.4999.health": "ok"})
	calls := f.Tracker.Calls("") + f.Serving.Calls("") + f.ControlPlane.Calls("")
	if want := 25 + 10 + 1 + 1 + 1 + 1; calls != want {
		t.Errorf("%d calls, want %d: one for each page of each source", calls, want)
	}
}

// names returns those of a page's rows and the cursor to the next.
func (f *fixture) page(t testing.TB, query string) (names []string, page api.Registry) {
	t.Helper()
	var v api.RegistryView
	if err := json.Unmarshal(viewtest.Get(t, f.views.Registry, "/api/v1/mlops/registry", "/api/v1/mlops/registry?"+query).Body, &v); err != nil {
		t.Fatal(err)
	}
	for _, r := range v.Registry.Rows {
		names = append(names, r.Name)
	}
	return names, v.Registry
}

// Pages end to end hold each row once, in the order of the whole, whatever it is sorted by.
func TestPagesOfTheRegistryAreTheWholeInOrder(t *testing.T) {
	t.Parallel()
	f := setupWithin(t, time.Minute).withRules()
	f.manyModels(1203)
	for _, sort := range []string{"name", "-name", "health", "-health", "version", "-version", "z", "freshness", "-governed"} {
		whole, _ := f.page(t, "sort="+sort)
		var got []string
		for cursor := ""; ; {
			names, page := f.page(t, "limit=100&sort="+sort+"&cursor="+cursor)
			got = append(got, names...)
			if page.Count != 1203 || page.Matching != 1203 || page.Served != 1203 || page.Severities["ok"] != 1203 {
				t.Fatalf("%s: counts %+v, want 1203 models, all matching, served and ok", sort, page)
			}
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		if len(whole) != 1203 || !slices.Equal(got, whole) {
			t.Errorf("%s: %d rows in pages, %d in whole; want the same in the same order", sort, len(got), len(whole))
		}
	}
	if first, _ := f.page(t, "limit=1&sort=-version"); !slices.Equal(first, []string{"MODEL-00006"}) {
		t.Errorf("highest version first: got %v, want the first of version 7", first)
	}
	if names, page := f.page(t, "limit=2&q=DEL-0012"); !slices.Equal(names, []string{"MODEL-00120", "MODEL-00121"}) || page.Matching != 10 || page.Count != 1203 {
		t.Errorf("got %v of %d of %d, want two of ten of 1203", names, page.Matching, page.Count)
	}
	for _, query := range []string{"view=attention", "view=unmeasured", "stage=none", "stage=Canary,Staging", "freshness=stale,unknown"} {
		if names, page := f.page(t, query+"&limit=5"); len(names) != 0 || page.Matching != 0 || page.Count != 1203 {
			t.Errorf("%s: got %v, want none", query, names)
		}
	}
	if names, _ := f.page(t, "limit=1&view=all&stage=Production&freshness=current"); len(names) != 1 {
		t.Error("models in Production that are current: got none")
	}
}

func TestInvalidRegistryQueriesAreRefused(t *testing.T) {
	t.Parallel()
	f := setupWithin(t, time.Minute)
	for _, query := range []string{"limit=0", "limit=501", "limit=", "cursor=x", "view=bad", "stage=production", "freshness=old", "sort=trend", "sort=--name", "q=" + strings.Repeat("x", 201), "page=2"} {
		t.Run(query, func(t *testing.T) {
			a := viewtest.Do(t, viewtest.Request{Handler: f.views.Registry, Route: "/api/v1/mlops/registry", Path: "/api/v1/mlops/registry?" + query})
			name, _, _ := strings.Cut(query, "=")
			if a.Status != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), "query."+name+": ") {
				t.Errorf("got %d %s, want 422 about %s", a.Status, a.Body, name)
			}
		})
	}
}

func TestSeverities(t *testing.T) {
	t.Parallel()
	z := func(v float64) *float64 { return &v }
	for _, tc := range []struct {
		row  api.RegistryRow
		want string
	}{
		{api.RegistryRow{Health: "ok"}, "ok"}, {api.RegistryRow{Health: "unknown", ZScore: z(9)}, "unknown"},
		{api.RegistryRow{Health: "warn", ZScore: z(2.4)}, "warn"}, {api.RegistryRow{Health: "warn", ZScore: z(3)}, "critical"},
		{api.RegistryRow{Health: "warn", HealthReasons: &[]string{"drift CORRUPT under Production (zeros)"}}, "critical"},
		{api.RegistryRow{Health: "warn", HealthReasons: &[]string{"stale: uncritically old"}}, "warn"},
	} {
		if got := mlops.SeverityOf(tc.row); string(got) != tc.want {
			t.Errorf("%+v: got %s, want %s", tc.row, got, tc.want)
		}
	}
}

func BenchmarkRegistryOfFiveThousandModels(b *testing.B) {
	f := setupWithin(b, time.Minute).withRules()
	f.manyModels(5000)
	f.registry(b)
	b.ResetTimer()
	for b.Loop() {
		f.registry(b)
	}
}
