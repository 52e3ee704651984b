package fit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/external"
)

// writeForeign writes a graph whose output has the name.
func writeForeign(t *testing.T, file, output string) {
	t.Helper()
	b := graph.New("M", "test", "1")
	b.Node("Identity", output, []string{b.Input("x", graph.Float, -1, 1)})
	b.Output(output, graph.Float, -1, 1)
	data, err := b.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A fit that fails on test leaves no session of ONNX Runtime open. It counts the process's threads, of which a session
// has one, so it runs beside no other test.
func TestFailedFitsCloseTheirGraphs(t *testing.T) { //nolint:paralleltest // see above
	dir := t.TempDir()
	writeForeign(t, filepath.Join(dir, "good"), "prediction")
	writeForeign(t, filepath.Join(dir, "bad"), "other")
	argv := []string{"sh", "-c", fmt.Sprintf(`if [ -e "$TRAIN_DIR/validation.csv" ]; then cp %[1]s/good "$OUT_DIR/model.onnx"; else cp %[1]s/bad "$OUT_DIR/model.onnx"; fi`, dir)}
	rows := &dataset.Rows{N: 200, Num: map[string][]float64{"x": make([]float64, 200), "run": make([]float64, 200)}}
	for i := range rows.N {
		rows.Num["x"][i], rows.Num["run"][i] = float64(i), float64(i)+1
	}
	md := &modelrepo.ModelDataset{Name: "Jobs", Target: modelrepo.Target{Column: "run"}, Features: []modelrepo.Feature{{Column: "x", Kind: modelrepo.Number, Transform: "none"}}}
	m := &modelrepo.Model{Name: "M", Type: modelrepo.Regression, Split: modelrepo.Split{Kind: "random", Fractions: []float64{0.6, 0.2, 0.2}, Seed: 1},
		Estimator: modelrepo.Estimator{Kind: modelrepo.EstimatorCommand, Command: argv}}
	s, err := rows.Sample(m.Type, md)
	if err != nil {
		t.Fatal(err)
	}
	commands := Commands{Dir: dir, Config: external.Config{Allow: [][]string{argv}, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)}}
	const fits = 30
	before := 0
	for i := range fits + 1 {
		_, err := Run(context.Background(), m, s, &modelrepo.Dataset{}, md, commands, func(float64) {})
		if want := "model.onnx must answer prediction"; err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
		if i == 0 { // the library and Go have started their own threads
			before = countThreads(t)
		}
	}
	if got := countThreads(t) - before; got >= fits/2 {
		t.Errorf("%d more threads after %d failed fits, want none of their sessions", got, fits)
	}
}

func countThreads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}
