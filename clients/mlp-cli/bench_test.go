package mlpcli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkStart measures how long a person waits for mlp: for its help, for the list of models beyond the tracker's
// own response time, and for the completion of a name. Its floor is a program that does nothing.
func BenchmarkStart(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "mlp")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-tags", "urfave_cli_no_docs", "-buildvcs=false", "-trimpath", "-o", bin, "./cmd/mlp").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	tracker := serveModels(b, 200)
	environ := []string{"HOME=" + b.TempDir(), "TRACKING_URI=" + tracker, "SHELL=/bin/bash"}
	program := func(argv ...string) func() error {
		return func() error {
			c := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
			c.Env, c.Stderr = environ, os.Stderr
			return c.Run()
		}
	}
	timed := map[string][]time.Duration{}
	measure := func(name string, call func() error) {
		start := time.Now()
		if err := call(); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		timed[name] = append(timed[name], time.Since(start))
	}
	// In turn, so that a busy moment of the machine slows all of them.
	for b.Loop() {
		measure("floor", program("/bin/true"))
		measure("help", program(bin, "--help"))
		measure("api", func() error { return readModels(tracker) })
		measure("models-list", program(bin, "models", "list"))
		measure("complete", program(bin, "__complete", "models", "info", "MODEL01"))
	}
	median := func(name string) float64 {
		slices.Sort(timed[name])
		return float64(timed[name][len(timed[name])/2].Microseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op")
	for _, name := range []string{"floor", "help", "api", "models-list", "complete"} {
		b.ReportMetric(median(name), name+"-ms")
	}
	b.ReportMetric(median("models-list")-median("api"), "models-list-adds-ms")
	b.ReportMetric(median("help")/median("floor"), "help/floor")
}

// serveModels serves a fake tracker with count models.
func serveModels(b *testing.B, count int) string {
	b.Helper()
	type alias struct {
		Alias   string `json:"alias"`
		Version string `json:"version"`
	}
	type model struct {
		Name    string  `json:"name"`
		Aliases []alias `json:"aliases"`
	}
	var list struct {
		Models []model `json:"registered_models"`
	}
	for i := range count {
		list.Models = append(list.Models, model{fmt.Sprintf("MODEL%03d", i), []alias{{"Production", "3"}, {"Staging", "4"}}})
	}
	body, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// readModels reads the models from the API directly, over a new connection as mlp needs one, to measure the API's time
// alone.
func readModels(url string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url + "/api/2.0/mlflow/registered-models/search")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
