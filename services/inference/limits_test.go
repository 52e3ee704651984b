package inference_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

func TestOverloadSheds(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("slow", "Production", reg.Register("slow", fixturetest.Slow(t, "slow"), nil))
	i := start(t, reg, func(c *inference.Config) { c.MaxInflight, c.BatchMax, c.QueueMax = 2, 2, 2 })
	var ok, shed atomic.Int64
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			s, header, body := i.Do(http.MethodPost, "/predict/slow", `{"features": {"x": 1}}`)
			switch {
			case s == 200 && strings.Contains(body, `"prediction":1,`):
				ok.Add(1)
			case s == 503 && inferencetest.ProblemOf(t, s, body).Code == "overloaded" && header.Get("Retry-After") == "1":
				shed.Add(1)
			default:
				t.Errorf("%d %s", s, body)
			}
		})
	}
	wg.Wait()
	if ok.Load() < 4 || shed.Load() < 1 {
		t.Errorf("%d answered, %d shed; want at least 4 answered, the rest shed", ok.Load(), shed.Load())
	}
	_, metrics := i.Get("/metrics")
	for _, want := range []string{
		fmt.Sprintf(`predict_requests_total{alias="Production",model="SLOW",status="success"} %d`, ok.Load()),
		fmt.Sprintf(`predict_requests_total{alias="Production",model="SLOW",status="shed"} %d`, shed.Load()),
		`predict_queue_depth{alias="Production",model="SLOW"} 0`, "models_loaded 1", "batch_rows_count", "snapshot_dropped_total 0",
		`reload_total{status="loaded",via="start"} 1`, "predict_seconds_count",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics have no %s", want)
		}
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("slow", "Production", reg.Register("slow", fixturetest.Slow(t, "slow"), nil))
	i := start(t, reg)
	s, _, body := i.Do(http.MethodPost, "/predict/slow", `{"features": {"x": 1}}`, "X-Request-Timeout-Ms", "1")
	if d := inferencetest.ProblemOf(t, s, body); s != 504 || d.Code != "deadline_exceeded" {
		t.Errorf(`%d %s; want s == 504 && d.Code == "deadline_exceeded"`, s, body)
	}
	// The row that was given up takes nothing with it.
	if s, body := i.Post("/predict/slow", `{"features": {"x": 2}}`); s != 200 || !strings.Contains(body, `"prediction":2,`) {
		t.Errorf("%d %s; want s == 200 && strings.Contains(body, `\"prediction\":2,`)", s, body)
	}
}

// A body that dribbles in holds a place among the model's requests no longer than a prediction may take.
func TestSlowBodyEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 1), nil))
	i := start(t, reg, func(c *inference.Config) { c.TimeoutMS = 700 })
	for _, c := range []struct {
		name, path, header string
		least, most        time.Duration
	}{
		{"the service's deadline", "/predict/tagged", "Content-Length: 29\r\n", 700 * time.Millisecond, 20 * time.Second},
		{"chunked", "/predict/tagged", "Transfer-Encoding: chunked\r\n", 700 * time.Millisecond, 20 * time.Second},
		{"the request's own", "/predict/tagged", "X-Request-Timeout-Ms: 300\r\nContent-Length: 29\r\n", 300 * time.Millisecond, 20 * time.Second},
		{"a model that is not there", "/predict/nosuch", "Content-Length: 29\r\n", 700 * time.Millisecond, 20 * time.Second},
		{"pipeline", "/infer-pipeline/infer", "Content-Length: 29\r\n", 700 * time.Millisecond, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(i.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			began := time.Now()
			if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n", c.path, c.header); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetDeadline(began.Add(c.most)); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("no answer within %v: %v", c.most, err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < c.least {
				t.Errorf("answered after %v, want at least %v", took, c.least)
			}
			if d := inferencetest.ProblemOf(t, resp.StatusCode, string(body)); d.Status != 504 || d.Code != "deadline_exceeded" || !strings.Contains(d.Detail, "body") {
				t.Errorf("got %d %s, want 504 deadline_exceeded that names the body", resp.StatusCode, body)
			}
		})
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 1), nil))
	const app, ops = "secret-of-the-application", "secret-of-the-operators"
	credentials := service.Secret(`{"` + app + `": {"principal": "app", "tenant": "default", "scopes": ["predict"]},
		"` + ops + `": {"principal": "ops", "tenant": "default", "scopes": ["admin"]}}`)
	i := start(t, reg, func(c *inference.Config) { c.Credentials = credentials })
	for _, c := range []struct {
		method, path, body string
		stranger, app, ops int
	}{
		{"GET", "/health", "", 200, 200, 200},
		{"GET", "/livez", "", 200, 200, 200},
		{"GET", "/readyz", "", 200, 200, 200},
		{"GET", "/metrics", "", 200, 200, 200},
		{"GET", "/openapi.json", "", 200, 200, 200},
		{"GET", "/docs", "", 200, 200, 200},
		{"GET", "/redoc", "", 200, 200, 200},
		{"GET", "/models", "", 401, 200, 200},
		{"POST", "/predict/tagged", `{"features": {"x": 1}}`, 401, 200, 200},
		{"POST", "/infer-pipeline/infer", `{}`, 401, 422, 422},
		{"GET", "/drift/status", "", 401, 200, 200},
		{"GET", "/series/tagged?metric=requests", "", 401, 200, 200},
		{"POST", "/reload", "", 401, 403, 200},
		{"POST", "/reload/tagged", "", 401, 403, 200},
		{"POST", "/drift/tagged/reset", "", 401, 403, 200},
		{"POST", "/drift/tagged/baseline", "", 401, 403, 409},
		{"GET", "/traffic-rules", "", 401, 200, 200},
		{"GET", "/traffic-rules/tagged", "", 401, 404, 404},
		{"POST", "/traffic-rules/tagged", `{"Production": 100}`, 401, 403, 200},
		{"PUT", "/traffic-rules/tagged", `{"Production": 100}`, 401, 403, 200},
		{"DELETE", "/traffic-rules/tagged", "", 401, 403, 204},
	} {
		for bearer, want := range map[string]int{"": c.stranger, app: c.app, ops: c.ops} {
			var body any
			if c.body != "" {
				body = c.body
			}
			header := []string{}
			if bearer != "" {
				header = append(header, "Authorization", "Bearer "+bearer)
			}
			if s, _, out := i.Do(c.method, c.path, body, header...); s != want {
				t.Errorf("%s %s as %.15s: %d, want %d: %.200s", c.method, c.path, bearer, s, want, out)
			}
		}
	}
	if s, _, body := i.Do(http.MethodGet, "/models", nil, "Authorization", "Bearer wrong"); s != 401 || inferencetest.ProblemOf(t, s, body).Code != "invalid_credential" {
		t.Errorf(`a wrong secret: %d %s; want s == 401 && inferencetest.ProblemOf(t, s, body).Code == "invalid_credential"`, s, body)
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		facts := i.events("audit", "recorded")
		for _, f := range facts {
			if f["action"] == "models.reload" && f["actor"] == "ops" && f["target"] == "model:*" && f["outcome"] == "ok" {
				return nil
			}
		}
		return fmt.Errorf("no audit fact of the reload: %v", facts)
	})
}

// An operator's typing error must not first surface as a refused caller.
func TestMalformedCredentialsRefuseTheStart(t *testing.T) {
	t.Parallel()
	const entry = `"principal": "ops", "tenant": "default", "scopes": ["admin"]`
	for name, c := range map[string]struct{ variable, value, reason string }{
		"no JSON":         {"INFERENCE_CREDENTIALS_JSON", `{"secret-of-the-operators": `, "entry 1"},
		"member missing":  {"INFERENCE_CREDENTIALS_JSON", `{"secret-of-the-operators": {"principal": "ops"}}`, `member "scopes" is missing`},
		"member unknown":  {"INFERENCE_CREDENTIALS_JSON", `{"secret-of-the-operators": {` + entry + `, "note": "x"}}`, `unknown member "note"`},
		"member of type":  {"INFERENCE_CREDENTIALS_JSON", `{"secret-of-the-operators": {"principal": 1, "tenant": "default", "scopes": ["admin"]}}`, "principal: must be a non-empty string"},
		"scope unknown":   {"INFERENCE_CREDENTIALS_JSON", `{"secret-of-the-operators": {"principal": "ops", "tenant": "default", "scopes": ["root"]}}`, `unknown scope "root"`},
		"secret twice":    {"INFERENCE_CREDENTIALS_JSON", `{"secret-of-the-operators": {` + entry + `}, "secret-of-the-operators": {` + entry + `}}`, "repeats the secret of entry 1"},
		"trust no JSON":   {"DELEGATION_TRUST_JSON", `[]`, "must be a JSON object"},
		"trust short key": {"DELEGATION_TRUST_JSON", `{"dashboard": {"public_key": "AAAA", "tenants": ["default"], "scopes": ["predict"]}}`, "public_key"},
		"trust member":    {"DELEGATION_TRUST_JSON", `{"dashboard": {"public_key": "AAAA", "tenant": ["default"], "scopes": ["predict"]}}`, `unknown member "tenant"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := inference.LoadConfig([]string{"PLATFORM_DATABASE_URL=postgres://u@localhost/d", c.variable + "=" + c.value})
			if err == nil || !strings.Contains(err.Error(), c.variable) || !strings.Contains(err.Error(), c.reason) || strings.Contains(err.Error(), "secret-of-the-operators") {
				t.Errorf("got %v, want a refusal that names %s and says %q, without the secret", err, c.variable, c.reason)
			}
		})
	}
}

func TestOtherOriginsCannotWriteToAnOpenService(t *testing.T) {
	t.Parallel()
	i := start(t, fixturetest.NewRegistry(t))
	if s, _, body := i.Do(http.MethodPost, "/reload", nil, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); s != 403 || inferencetest.ProblemOf(t, s, body).Code != "cross_origin_request" {
		t.Errorf(`%d %s; want s == 403 && inferencetest.ProblemOf(t, s, body).Code == "cross_origin_request"`, s, body)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := inference.LoadConfig([]string{
		"INFERENCE_ADDR=0.0.0.0:18001", "INFERENCE_GRPC_ADDR=0.0.0.0:18005", "TRACKING_URI=tracker", "PRELOAD_ALIASES=Champion", "BATCH_MAX=0", "QUEUE_MAX=many", "INFERENCE_ALLOWED_HOSTS=gpu01, *",
		`INFERENCE_CREDENTIALS_JSON=`,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"PLATFORM_DATABASE_URL", "INFERENCE_ADDR", "INFERENCE_GRPC_ADDR", "TRACKING_URI", "PRELOAD_ALIASES", "BATCH_MAX", "QUEUE_MAX", "INFERENCE_ALLOWED_HOSTS"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s:\n%v", want, err)
		}
	}
	if _, err := inference.LoadConfig([]string{"PLATFORM_DATABASE_URL=postgres://u@localhost/d", `INFERENCE_CREDENTIALS_JSON={"changeme-changeme": {"principal":"a","tenant":"b","scopes":["admin"]}}`}); err == nil ||
		!strings.Contains(err.Error(), "placeholder") || strings.Contains(err.Error(), "changeme") {
		t.Errorf(`a placeholder secret: %v; want an error && strings.Contains(err.Error(), "placeholder") && !strings.Contains(err.Error(), "changeme")`, err)
	}
}
