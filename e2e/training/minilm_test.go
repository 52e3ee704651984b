//go:build e2e && full

package training

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// described is a job of the real log as text, as a job script's comment would describe it.
type described struct {
	text, procs, length string
}

// examples/minilm turns descriptions of real jobs into sentence embeddings of MiniLM; a model learns from these how
// long jobs take, better than a constant prediction, and answers embeddings of unseen jobs.
func TestMiniLMEmbeddings(t *testing.T) {
	jobs := describeJobs(t, 1200)
	var texts strings.Builder
	for _, j := range jobs {
		texts.WriteString(j.text + "\n")
	}
	vectors := embed(t, texts.String())
	if len(vectors) != len(jobs) {
		t.Fatalf("got %d embeddings of %d jobs", len(vectors), len(jobs))
	}
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 4*time.Minute)
	repo := newCommandRepo(t)
	const learned = 1000
	rows := strings.Builder{}
	for i, j := range jobs[:learned] {
		fmt.Fprintf(&rows, "\"%s\",%s,%s\n", vectors[i], j.procs, j.length)
	}
	repo.write("repo/data/jobs.csv", "embedding,num_nodes,length\n"+rows.String())
	repo.write("repo/datasets/Jobs.yaml", `name: Jobs
format: csv
files: [data/jobs.csv]
backends: {local: {}}
columns:
  embedding: {type: vector, length: 384, available: submit}
  num_nodes: {type: number, available: submit}
  length: {type: category, available: end}
`)
	repo.write("repo/models/performance_prediction/DescribedJobs/model.yaml", `name: DescribedJobs
task_type: performance_prediction
type: classification
estimator:
  kind: random_forest
  hyperparameters: {n_estimators: 60, max_features: sqrt}
  seed: 7
datasets:
  - name: Jobs
    target: {column: length, labels: [short, long]}
    features:
      - {column: embedding, kind: vector, length: 384}
      - {column: num_nodes, kind: number}
split: {kind: random, allow_duplicates: true}
`)
	made, log, err := repo.train(p, "DescribedJobs", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if got := made.Metrics["f1_macro"]; got < 0.7 {
		t.Errorf("f1_macro on test: got %v, want at least 0.7; always saying the same gets below 0.5", got)
	}
	harness.Want(t, 200, "POST", p.Tracker()+"/api/2.0/mlflow/registered-models/alias", "", map[string]any{"name": "describedjobs", "alias": "Staging", "version": made.Version})
	right := 0
	for i, j := range jobs[learned:] {
		right += askPipeline(t, p, vectors[learned+i], j)
	}
	if asked := len(jobs) - learned; right*10 < asked*7 {
		t.Errorf("%d of %d later jobs were told right, want 70 %%", right, asked)
	}
}

// askPipeline queries a job's length over the route for embeddings, and returns 1 if the answer is right.
func askPipeline(t *testing.T, p *harness.Platform, vector string, j described) (right int) {
	t.Helper()
	body := map[string]any{"model_name": "DescribedJobs", "alias": "Staging", "embedding": json.RawMessage(vector), "num_nodes": json.Number(j.procs), "user_id": "e2e"}
	harness.Eventually(t, time.Minute, func() error { // the first request may come before the model is loaded
		a := harness.Call(t, "POST", p.Env["SERVING_URL"]+"/infer-pipeline/infer", p.Env["SERVING_TOKEN"], body)
		if a.Status != 200 {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		if a.JSON(t)["prediction"] == j.length {
			right = 1
		}
		return nil
	})
	return right
}

// embed makes examples/minilm embed each line, and returns JSON arrays.
func embed(t *testing.T, texts string) []string {
	t.Helper()
	root := harness.Root(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".cache", "venv-minilm", "bin", "python"), filepath.Join(root, "examples", "minilm", "embed.py"))
	cmd.Stdin = strings.NewReader(texts)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: run scripts/setup.sh e2e-full\n%s", err, talk.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// describeJobs reads the first n jobs that ran of the sample log, in the Standard Workload Format: run time, processors,
// user, group and application are its fields 4, 5, 12, 13 and 14.
func describeJobs(t *testing.T, n int) (jobs []described) {
	t.Helper()
	f, err := os.Open(filepath.Join(harness.Root(t), "deploy", "modelrepo", "data", "nasa-ipsc-1993.swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() && len(jobs) < n {
		v := strings.Fields(lines.Text())
		if len(v) < 18 || strings.HasPrefix(v[0], ";") || v[3] == "-1" {
			continue
		}
		length := "short"
		if len(v[3]) > 2 { // 100 s and more
			length = "long"
		}
		jobs = append(jobs, described{fmt.Sprintf("user %s of group %s runs application %s on %s nodes", v[11], v[12], v[13], v[4]), v[4], length})
	}
	if err := errors.Join(lines.Err(), z.Close()); err != nil || len(jobs) < n {
		t.Fatalf("got %d jobs, %v; want %d", len(jobs), err, n)
	}
	return jobs
}
