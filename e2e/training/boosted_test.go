//go:build e2e && full

package training

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Models boosted by XGBoost and LightGBM are trained by command, evaluated on rows that the command never saw,
// registered, and served under Staging.
func TestBoostedTreesByCommand(t *testing.T) {
	root := harness.Root(t)
	python := filepath.Join(root, ".cache", "venv-boost", "bin", "python")
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 4*time.Minute)
	repo := newCommandRepo(t)
	rows := strings.Builder{}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		procs, user := 1+rng.Float64()*100, rng.IntN(4)
		run := (10 + procs*float64(user+1)) * (0.9 + 0.2*rng.Float64())
		fmt.Fprintf(&rows, "%g,u%d,%g,%s\n", procs, user, run, map[bool]string{true: "long", false: "short"}[run > 100])
	}
	repo.write("repo/data/jobs.csv", "procs,user,run,size\n"+rows.String())
	repo.write("repo/datasets/Jobs.yaml", jobsYAML(sizeColumn))
	write := func(name, kind, hyperparameters, target string) {
		repo.write("repo/models/performance_prediction/"+name+"/model.yaml", fmt.Sprintf(`name: %s
task_type: performance_prediction
type: %s
estimator:
  kind: command
  command: [%s, -m, mlp_train]
  hyperparameters: {%s}
datasets:
  - name: Jobs
    target: %s
    features:
      - {column: procs, kind: number}
      - {column: user, kind: category, transform: onehot}
split: {kind: random, allow_duplicates: true}
`, name, kind, python, hyperparameters, target))
	}
	for _, c := range []struct{ name, kind, estimator, target, metric string }{
		{"XgbSeconds", "regression", "xgboost", "{column: run, unit: s}", "r2"},
		{"XgbSize", "classification", "xgboost", "{column: size, labels: [short, long]}", "accuracy"},
		{"LgbmSeconds", "regression", "lightgbm", "{column: run, unit: s}", "r2"},
		{"LgbmSize", "classification", "lightgbm", "{column: size, labels: [short, long]}", "accuracy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(c.name, c.kind, "estimator: "+c.estimator+", n_estimators: 80", c.target)
			trained, log, err := repo.train(p, c.name, python+" -m mlp_train")
			if err != nil {
				t.Fatalf("%v\n%s", err, log)
			}
			if got := trained.Metrics[c.metric]; math.IsNaN(got) || got < 0.9 {
				t.Errorf("%s on test is %v; want at least 0.9", c.metric, got)
			}
			name := strings.ToLower(c.name)
			harness.Want(t, 200, "POST", p.Tracker()+"/api/2.0/mlflow/registered-models/alias", "", map[string]any{"name": name, "alias": "Staging", "version": trained.Version})
			harness.Eventually(t, time.Minute, func() error {
				a := harness.Call(t, "POST", p.Env["SERVING_URL"]+"/predict/"+name, p.Env["SERVING_TOKEN"],
					map[string]any{"alias": "Staging", "features": map[string]any{"procs": 50, "user": "u3"}})
				if a.Status != 200 {
					return fmt.Errorf("%d %s", a.Status, a.Body)
				}
				switch got := a.JSON(t)["prediction"].(type) {
				case float64: // 10 + 50 × 4 seconds, ± 10 %
					if got < 160 || got > 260 {
						t.Errorf("prediction %v; want about 210", got)
					}
				default:
					if got != "long" {
						t.Errorf("prediction %v; want long", got)
					}
				}
				return nil
			})
		})
	}
	// A parameter that no constructor names would be passed to the library's core, which reads files and connects.
	for _, estimator := range []string{"xgboost", "lightgbm"} {
		write("Reader", "regression", "estimator: "+estimator+", forcedsplits_filename: /etc/passwd", "{column: run, unit: s}")
		if _, log, err := repo.train(p, "Reader", python+" -m mlp_train"); err == nil || !strings.Contains(log, "has no hyperparameter forcedsplits_filename") {
			t.Errorf("%s: %v, %s; want the hyperparameter refused", estimator, err, log)
		}
	}
}
