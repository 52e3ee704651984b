//go:build e2e

package training

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Models fitted by scikit-learn, a regression on log1p and a classification with text labels, are trained by command,
// evaluated on rows that the command never saw, and registered; a command that is not listed is refused.
func TestCommandEstimator(t *testing.T) {
	python := os.Getenv("E2E_PYTHON")
	if python == "" {
		t.Fatal("E2E_PYTHON names the Python with scikit-learn")
	}
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 2*time.Minute)
	repo := newCommandRepo(t)
	var rows strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		procs, user := math.Exp2(float64(rng.IntN(8))), rng.IntN(4)
		run := (10 + procs*float64(user+1)) * (0.9 + 0.2*rng.Float64())
		fmt.Fprintf(&rows, "%g,u%d,%g,%s\n", procs, user, run, map[bool]string{true: "long", false: "short"}[run > 60])
	}
	repo.write("repo/data/jobs.csv", "procs,user,run,size\n"+rows.String())
	repo.write("repo/datasets/Jobs.yaml", jobsYAML(sizeColumn))
	model := func(name, kind, target, hyper string) {
		repo.write("repo/models/performance_prediction/"+name+"/model.yaml", fmt.Sprintf(`name: %s
task_type: performance_prediction
type: %s
estimator:
  kind: command
  command: [%s, -m, mlp_train]
  hyperparameters: %s
datasets:
  - name: Jobs
    target: %s
    features:
      - {column: procs, kind: number, transform: standardize}
      - {column: user, kind: category, transform: onehot}
split: {kind: random, allow_duplicates: true}
`, name, kind, python, hyper, target))
	}
	model("RunSeconds", "regression", "{column: run, transform: log1p, unit: s}", "{estimator: gradient_boosting, n_estimators: [20, 80]}")
	model("RunSize", "classification", "{column: size, labels: [short, long]}", "{estimator: extra_trees, n_estimators: 30, min_samples_leaf: 5}")
	allow := "other, " + python + " -m mlp_train"
	for name, good := range map[string]func(m map[string]float64) bool{
		"RunSeconds": func(m map[string]float64) bool { return m["male"] > 0.01 && m["male"] < 0.12 && m["val_male"] > 0 },
		"RunSize":    func(m map[string]float64) bool { return m["accuracy"] > 0.9 && m["roc_auc"] > 0.95 },
	} {
		got, log, err := repo.train(p, name, allow)
		if err != nil || !good(got.Metrics) {
			t.Errorf("%s: %v, %v\n%s", name, got.Metrics, err, log)
		}
		if !strings.Contains(log, "output of the command") || !strings.Contains(log, "fitting ") {
			t.Errorf("%s: the command's output is not in the log: %s", name, log)
		}
	}
	if _, log, err := repo.train(p, "RunSize", python); err == nil || !strings.Contains(log, "is not listed in TRAINER_COMMAND_ALLOW") {
		t.Errorf("%v, %s; want a refusal", err, log)
	}
}
