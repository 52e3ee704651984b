package inference_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// tagged is a model whose prediction contains its version: 1000·version + x.
func tagged(t testing.TB, version int) map[string][]byte {
	return fixturetest.Linear(t, "tagged", float32(1000*version), fixturetest.Column{Name: "x", Kind: "number", Weight: 1})
}

func (i *instance) version(model string) string {
	i.T.Helper()
	var p inferencetest.Prediction
	s, body := i.Post("/predict/"+model, `{"features": {"x": 1}}`)
	if s != http.StatusOK {
		return fmt.Sprintf("%d %s", s, body)
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		i.T.Fatal(err)
	}
	return p.ModelVersion
}

func (i *instance) becomes(model, version string) {
	i.T.Helper()
	testenv.Eventually(i.T, 15*time.Second, func() error {
		if got := i.version(model); got != version {
			return fmt.Errorf("model %s answers as %s, want version %s", model, got, version)
		}
		return nil
	})
}

// slow makes polls rare, so that changes come from something else.
func slow(c *inference.Config) { c.ReloadPollSeconds = 3600 }

type reloaded struct {
	Reloaded  []string
	Count     int
	Unchanged []string
	Failed    []struct{ Model, Alias, Version, Reason string }
}

func TestFollowsAliasesByPoll(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	i := start(t, reg)
	if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 404 || !strings.Contains(body, "Nothing is loaded") {
		t.Fatalf(`%d %s; want s == 404 && strings.Contains(body, "Nothing is loaded")`, s, body)
	}
	if _, body := i.Get("/health"); !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, `"models_loaded":0`) {
		t.Errorf("health of an empty service: %s; want strings.Contains(body, `\"status\":\"degraded\"`) && strings.Contains(body, `\"models_loaded\":0`)", body)
	}
	reg.Alias("tagged", "Production", v1)
	i.becomes("tagged", v1)
	reg.Alias("tagged", "Production", v2)
	i.becomes("tagged", v2)

	reg.Down(true)
	testenv.Eventually(t, 10*time.Second, func() error {
		if _, body := i.Get("/health"); !strings.Contains(body, `"ok":false`) {
			return fmt.Errorf("health does not show the tracker down: %s", body)
		}
		return nil
	})
	if got := i.version("tagged"); got != v2 {
		t.Errorf("with the tracker down: %s; want %v", got, v2)
	}
	if s, body := i.Get("/readyz"); s != 200 || !strings.Contains(body, "warn") {
		t.Errorf(`readiness with the tracker down: %d %s; want s == 200 && strings.Contains(body, "warn")`, s, body)
	}
	if s, body := i.Post("/reload", nil); s != 503 || inferencetest.ProblemOf(t, s, body).Code != "tracker_unavailable" {
		t.Errorf(`reload with the tracker down: %d %s; want s == 503 && inferencetest.ProblemOf(t, s, body).Code == "tracker_unavailable"`, s, body)
	}
	if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}, "version": "1"}`); s != 503 || inferencetest.ProblemOf(t, s, body).Code != "tracker_unavailable" {
		t.Errorf(`lazy load with the tracker down: %d %s; want s == 503 && inferencetest.ProblemOf(t, s, body).Code == "tracker_unavailable"`, s, body)
	}
	reg.Down(false)
	reg.Alias("tagged", "Production", "")
	testenv.Eventually(t, 10*time.Second, func() error {
		if s, _ := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 404 {
			return fmt.Errorf("still %d after the alias has gone", s)
		}
		return nil
	})
}

func TestFollowsAliasesByEvent(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	i := start(t, reg, slow)
	i.becomes("tagged", v1)
	reg.Alias("tagged", "Production", v2)

	nc, err := nats.Connect(i.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	told, err := nc.SubscribeSync("platform.platform.deploy.model_loaded")
	if err != nil {
		t.Fatal(err)
	}
	e, err := json.Marshal(outbox.Envelope{
		SpecVersion: "1.0", ID: uuid.Must(uuid.NewV7()), Source: "/services/control-plane", Type: "platform.deploy.alias_changed",
		Time: time.Now(), DataContentType: "application/json", Tenant: "platform",
		Data: json.RawMessage(`{"model": "TAGGED", "alias": "Production", "version": "2", "via": "promotion"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("platform.platform.deploy.alias_changed", e); err != nil {
		t.Fatal(err)
	}
	i.becomes("tagged", v2)
	for { // the first load may be told before or after the subscription
		msg, err := told.NextMsg(15 * time.Second)
		if err != nil {
			t.Fatalf("the load was not told: %v", err)
		}
		e, err := outbox.ParseEnvelope(msg.Data)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Data), `"version": "2"`) || strings.Contains(string(e.Data), `"version":"2"`) {
			if e.Tenant != "platform" || e.Actor != "system:inference" || e.Source != "/services/inference" {
				t.Errorf(`the load was told as %+v; want e.Tenant == "platform" && e.Actor == "system:inference" && e.Source == "/services/inference"`, e)
			}
			return
		}
	}
}

func TestReloadReports(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	reg.Alias("tagged", "Staging", v1)
	other := reg.Register("other", tagged(t, 9), map[string]string{"data_origin": "generated"})
	reg.Alias("other", "Production", other)
	i := start(t, reg, slow)

	var r reloaded
	i.OK("/reload", nil, &r)
	if r.Count != 0 || !slices.Equal(r.Unchanged, []string{"OTHER", "TAGGED"}) {
		t.Errorf(`nothing changed: %+v; want r.Count == 0 && slices.Equal(r.Unchanged, []string{"OTHER", "TAGGED"})`, r)
	}
	reg.Alias("tagged", "Production", v2)
	bad := reg.Register("other", tagged(t, 10), nil)
	reg.Corrupt("other", bad, "model.onnx", []byte("garbage"))
	reg.Alias("other", "Production", bad)
	i.OK("/reload/Tagged", nil, &r)
	if r.Count != 1 || !slices.Equal(r.Reloaded, []string{"TAGGED"}) || len(r.Failed) != 0 {
		t.Errorf(`one model: %+v; want r.Count == 1 && slices.Equal(r.Reloaded, []string{"TAGGED"}) && len(r.Failed) == 0`, r)
	}
	i.OK("/reload", nil, &r)
	if r.Count != 0 || len(r.Failed) != 1 || r.Failed[0].Model != "OTHER" || !strings.Contains(r.Failed[0].Reason, "artifact digest") {
		t.Errorf(`a corrupt artifact: %+v; want r.Count == 0 && len(r.Failed) == 1 && r.Failed[0].Model == "OTHER" && strings.Contains(r.Failed[0].Reason, "artifact digest")`, r)
	}
	if got := i.version("other"); got != other {
		t.Errorf("the last good version is %s, %s answers; want got == %v", other, got, other)
	}
	if _, body := i.Get("/health"); !strings.Contains(body, `"last_error":"Production, version 2: artifact digest`) || !strings.Contains(body, `"models_loaded":2`) {
		t.Errorf("health: %s; want strings.Contains(body, `\"last_error\":\"Production, version 2: artifact digest`) && strings.Contains(body, `\"models_loaded\":2`)", body)
	}
	if s, body := i.Post("/reload/nosuch", nil); s != 404 {
		t.Errorf("reload of an unknown model: %d %s; want s == 404", s, body)
	}

	var models []struct {
		Name     string `json:"model_name"`
		Version  string `json:"model_version"`
		Alias    string
		Origin   string `json:"data_origin"`
		Verified bool
		Inputs   []struct{ Name, Kind string }
	}
	_, body := i.Get("/models?alias=*")
	if err := json.Unmarshal([]byte(body), &models); err != nil || len(models) != 3 {
		t.Fatalf("models: %s; want len(models) == 3", body)
	}
	if m := models[0]; m.Name != "OTHER" || m.Origin != "generated" || !m.Verified || m.Inputs[0].Name != "x" {
		t.Errorf(`models: %s; want m.Name == "OTHER" && m.Origin == "generated" && m.Verified && m.Inputs[0].Name == "x"`, body)
	}
	_, header, page := i.Do(http.MethodGet, "/models?alias=*&limit=2", nil)
	next := header.Get("X-Next-Cursor")
	_, rest := i.Get("/models?alias=*&limit=2&cursor=" + next)
	if next == "" || strings.Count(page, "model_name") != 2 || strings.Count(rest, "model_name") != 1 || !strings.Contains(rest, "Staging") {
		t.Errorf(`pages %s and %s; want next != "" && strings.Count(page, "model_name") == 2 && strings.Count(rest, "model_name") == 1 && strings.Contains(rest, "Staging")`, page, rest)
	}
	if s, body := i.Get("/models?alias=Champion"); s != 422 {
		t.Errorf("unknown alias: %d %s; want s == 422", s, body)
	}
}

// askTagged predicts with the model from so many clients until stop is called, which waits for them. Each answer must be
// that of the version it names: a half-loaded or mixed-up model would not give its own version's number.
func (i *instance) askTagged(clients int, answered, failed *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for w := range clients {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				x := float64(w*1000 + n%1000)
				body := fmt.Sprintf(`{"features": {"x": %g}}`, x/1000)
				s, out := i.Post("/predict/tagged", body)
				var p inferencetest.Prediction
				if s != 200 || json.Unmarshal([]byte(out), &p) != nil {
					failed.Add(1)
					i.T.Errorf("%d %s; want s == 200 && json.Unmarshal([]byte(out), &p) == nil", s, out)
					return
				}
				want := float64(float32(1000*mustAtoi(p.ModelVersion)) + float32(x/1000))
				if got, ok := p.Prediction.(float64); !ok || math.Abs(got-want) > 0.01 {
					failed.Add(1)
					i.T.Errorf("version %s answered %v, want %v", p.ModelVersion, p.Prediction, want)
					return
				}
				answered.Add(1)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// No move of the alias waits for a load: ten moves a second for three seconds, each with a reload, under prediction
// requests. No answer fails or mixes versions, and the last move wins.
func TestTenAliasMovesASecondMixNoAnswers(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	var versions []string
	for n := range 4 {
		versions = append(versions, reg.Register("tagged", tagged(t, n+1), nil))
	}
	reg.Alias("tagged", "Production", versions[0])
	i := start(t, reg)
	var answered, failed atomic.Int64
	stop := i.askTagged(8, &answered, &failed)
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	var reloads sync.WaitGroup
	for n := range 30 {
		<-pace.C
		reg.Alias("tagged", "Production", versions[n%len(versions)])
		reloads.Go(func() {
			if s, body := i.Post("/reload/tagged", nil); s != 200 {
				t.Errorf("move %d: got %d %s, want 200", n, s, body)
			}
		})
	}
	reloads.Wait()
	last := versions[29%len(versions)]
	testenv.Eventually(t, 30*time.Second, func() error {
		var p inferencetest.Prediction
		i.OK("/predict/tagged", `{"features": {"x": 0}}`, &p)
		if p.ModelVersion != last {
			return fmt.Errorf("version %s answers, want %s, to which the alias was moved last", p.ModelVersion, last)
		}
		return nil
	})
	stop()
	if failed.Load() != 0 || answered.Load() == 0 {
		t.Errorf("got %d failed and %d answered, want none failed", failed.Load(), answered.Load())
	}
}

// Requests must not notice that copies change under them: not the swaps, not a corrupt version promoted in between, not
// the aliases that are added and removed.
func TestNoRequestFailsWhileModelsChange(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	var versions []string
	for n := range 6 {
		versions = append(versions, reg.Register("tagged", tagged(t, n+1), nil))
	}
	bad := reg.Register("tagged", tagged(t, 7), nil)
	reg.Corrupt("tagged", bad, "platform.json", []byte(`{}`))
	reg.Alias("tagged", "Production", versions[0])
	i := start(t, reg, slow)

	var answered, failed atomic.Int64
	stop := i.askTagged(16, &answered, &failed)
	for n := range 30 {
		target := versions[n%len(versions)]
		if n%5 == 4 {
			target = bad
		}
		reg.Alias("tagged", "Production", target)
		var r reloaded
		i.OK("/reload", nil, &r)
		if (target == bad) != (len(r.Failed) == 1) {
			t.Errorf("promoting version %s: %+v; want (target == bad) == (len(r.Failed) == 1)", target, r)
		}
		seen := answered.Load()
		testenv.Eventually(t, 10*time.Second, func() error {
			if answered.Load() < seen+20 && failed.Load() == 0 {
				return fmt.Errorf("%d requests answered since the change", answered.Load()-seen)
			}
			return nil
		})
	}
	stop()
	if failed.Load() != 0 || answered.Load() < 600 {
		t.Errorf("%d failed, %d answered; want failed.Load() == 0 && answered.Load() >= 600", failed.Load(), answered.Load())
	}
	t.Logf("%d requests answered", answered.Load())

	// The failure is an event, once; the loads are events too.
	testenv.Eventually(t, 10*time.Second, func() error {
		loads, failures := i.events("deploy", "model_loaded"), i.events("deploy", "load_failed")
		if len(failures) == 0 || len(loads) < 6 {
			return fmt.Errorf("%d loads and %d failures in the outbox", len(loads), len(failures))
		}
		if f := failures[0]; f["model"] != "TAGGED" || f["version"] != bad || !strings.Contains(f["reason"].(string), "artifact digest") || f["replica"] == "" {
			return fmt.Errorf("load_failed says %v", f)
		}
		return nil
	})
}

func mustAtoi(s string) int {
	n := 0
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

// events are the payloads of the outbox, oldest first.
func (i *instance) events(namespace, name string) []map[string]any {
	i.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, i.Database)
	if err != nil {
		i.T.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "select payload from inference.outbox where namespace = $1 and name = $2 order by seq", namespace, name)
	if err != nil {
		i.T.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
	if err != nil {
		i.T.Fatal(err)
	}
	return out
}

func TestRawVersions(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	for n := range 10 {
		reg.Register("tagged", tagged(t, n+1), nil)
	}
	reg.Alias("tagged", "Production", "1")
	wrong := reg.Register("tagged", tagged(t, 11), map[string]string{"artifact_digest": strings.Repeat("0", 64)})
	unsigned := reg.Register("tagged", tagged(t, 12), map[string]string{"artifact_digest": ""})
	i := start(t, reg, slow, func(c *inference.Config) { c.RequireDigest = false })
	ask := func(version string) (int, string) {
		return i.Post("/predict/tagged", `{"features": {"x": 1}, "version": "`+version+`"}`)
	}
	perVersion := 3 // files of an artifact
	before := reg.Downloads("tagged")
	var wg sync.WaitGroup
	for range 8 { // one load for all that wait
		wg.Go(func() {
			if s, body := ask("2"); s != 200 || !strings.Contains(body, `"prediction":2001`) || strings.Contains(body, "alias") {
				t.Errorf("%d %s; want s == 200 && strings.Contains(body, `\"prediction\":2001`) && !strings.Contains(body, \"alias\")", s, body)
			}
		})
	}
	wg.Wait()
	if n := reg.Downloads("tagged") - before; n != perVersion {
		t.Errorf("%d files downloaded for eight requests of one version, want %d", n, perVersion)
	}
	for n := 3; n <= 10; n++ { // the ninth pushes version 2 out
		if s, body := ask(fmt.Sprint(n)); s != 200 {
			t.Fatalf("version %d: %d %s; want s == 200", n, s, body)
		}
	}
	if s, body := ask("2"); s != 200 {
		t.Errorf("%d %s; want s == 200", s, body)
	}
	if s, body := ask(wrong); s != 404 || !strings.Contains(body, "artifact digest") {
		t.Errorf(`a wrong digest: %d %s; want s == 404 && strings.Contains(body, "artifact digest")`, s, body)
	}
	if s, body := ask(unsigned); s != 200 {
		t.Errorf("an absent digest: %d %s; want s == 200", s, body)
	}
}

// Files without a registered digest are refused, unless the configuration allows them.
func TestRequireDigest(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 1), map[string]string{"artifact_digest": ""}))
	i := start(t, reg)
	if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}}`); s != 404 || !strings.Contains(body, "REQUIRE_DIGEST is set") {
		t.Errorf(`%d %s; want s == 404 && strings.Contains(body, "REQUIRE_DIGEST is set")`, s, body)
	}
}

// An alias that is not kept loaded is loaded by a request for it.
func TestPreloadAliases(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	v1, v2 := reg.Register("tagged", tagged(t, 1), nil), reg.Register("tagged", tagged(t, 2), nil)
	reg.Alias("tagged", "Production", v1)
	reg.Alias("tagged", "Canary", v2)
	i := start(t, reg, slow, func(c *inference.Config) { c.PreloadAliases = "production" })
	if _, body := i.Get("/models?alias=*"); strings.Contains(body, "Canary") {
		t.Errorf(`Canary is loaded: %s; want !strings.Contains(body, "Canary")`, body)
	}
	var p inferencetest.Prediction
	i.OK("/predict/tagged", `{"features": {"x": 1}, "alias": "canary"}`, &p)
	if p.Prediction != 2001.0 || p.Alias != "Canary" || p.ModelVersion != v2 {
		t.Errorf(`%+v; want p.Prediction == 2001.0 && p.Alias == "Canary" && p.ModelVersion == v2`, p)
	}
	if s, body := i.Post("/predict/tagged", `{"features": {"x": 1}, "alias": "staging"}`); s != 404 {
		t.Errorf("%d %s; want s == 404", s, body)
	}
}
