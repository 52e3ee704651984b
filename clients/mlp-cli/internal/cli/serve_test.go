package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

const served = `[{"model_name":"JPCP","model_version":"3","status":"ok","alias":"Production","flavor":"onnx","run_id":"r","verified":true,
	"loaded_at":"2026-01-02T03:04:05Z","output":{"kind":"number"},
	"inputs":[{"name":"embedding","kind":"vector","length":3},{"name":"nodes","kind":"integer"},{"name":"queue","kind":"category"},{"name":"gpu","kind":"boolean"}]}]`

// Predictions are requested once and without a key: a retry would hide lost connections from the measurement.
func TestPredictionsAreAskedOnce(t *testing.T) {
	t.Parallel()
	var predictions, keys, wrong, probes atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/models":
			fmt.Fprint(w, served)
		case r.URL.Path == "/health":
			fmt.Fprint(w, `{"status":"ok","models":{},"models_loaded":1}`)
		case strings.HasPrefix(r.URL.Path, "/predict/"):
			predictions.Add(1)
			if r.Header.Get("Idempotency-Key") != "" {
				keys.Add(1)
			}
			body, _ := io.ReadAll(r.Body)
			if string(body) != `{"features":{"embedding":[0.1,0.1,0.1],"gpu":true,"nodes":1,"queue":"unknown"}}` {
				wrong.Add(1)
			}
			if r.Header.Get("X-Platform-Probe") == "1" {
				probes.Add(1)
			}
			panic(http.ErrAbortHandler) // the connection is lost
		}
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "SERVING_URL": srv.URL}
	for _, line := range []string{"serve check", "serve benchmark -n 5"} {
		before := predictions.Load()
		r := runMLP(t, vars, "", append([]string{"--json"}, strings.Fields(line)...)...)
		if got := predictions.Load() - before; r.code != 1 || got != 1 {
			t.Errorf("%s: exit %d, %d requests\n%s; want r.code == 1 && got == 1", line, r.code, got, r.out)
		}
	}
	if got, want := probes.Load(), predictions.Load(); got != want {
		t.Errorf("%d of %d predictions are marked as probes, want all", got, want)
	}
	if keys.Load() != 0 || wrong.Load() != 0 {
		t.Fatalf("%d with a key, %d with another body; want keys.Load() == 0 && wrong.Load() == 0", keys.Load(), wrong.Load())
	}
}

// A file of features is text: a byte order mark is dropped, and bytes of another encoding are refused before they are sent.
func TestFeaturesFileIsText(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"model_name":"JPCP","model_version":"3","prediction":1.5,"run_id":"r"}`)
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "SERVING_URL": srv.URL}
	if r := runMLP(t, vars, "\ufeff{\"city\": \"Köln\"}\r\n", "predict", "JPCP", "-f", "-"); r.code != 0 {
		t.Errorf("with a byte order mark: got %+v, want exit 0", r)
	} else if got := <-asked; got != `{"features":{"city":"Köln"}}` {
		t.Errorf("asked %s, want the city as it was given", got)
	}
	if r := runMLP(t, vars, "{\"city\": \"K\xf6ln\"}", "--json", "predict", "JPCP", "-f", "-"); r.code != 1 || !strings.Contains(r.out, "line 1, column 12: not UTF-8 (byte 0xf6)") {
		t.Errorf("Latin-1: got %+v, want a refusal that names the place", r)
	}
}

// Benchmark's document holds every key.
func TestBenchmarkDocument(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/models" {
			fmt.Fprint(w, served)
			return
		}
		fmt.Fprint(w, `{"model_name":"JPCP","model_version":"3","prediction":1.5,"run_id":"r"}`)
	}))
	t.Cleanup(srv.Close)
	r := runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": srv.URL}, "", "--json", "serve", "benchmark", "-n", "20", "--concurrency", "3")
	var doc map[string]any
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.code != 0 || doc["requests"] != 20.0 || doc["errors"] != 0.0 || doc["version"] != "3" {
		t.Fatalf("exit %d, %v\n%s%s; want r.code == 0 && doc[\"requests\"] == 20.0 && doc[\"errors\"] == 0.0 && doc[\"version\"] == \"3\"", r.code, err, r.out, r.err)
	}
	// What inference leaves out is null here.
	r = runMLP(t, map[string]string{"HOME": t.TempDir(), "SERVING_URL": srv.URL}, "", "--json", "predict", "JPCP", "-f", `{"a":1}`)
	doc = nil
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"alias", "unit", "job_id"} {
		if v, ok := doc[k]; !ok || v != nil {
			t.Errorf("%s is %v (%v); want ok && v == nil", k, v, ok)
		}
	}
}
