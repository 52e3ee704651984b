//go:build e2e

package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// commandRepo is a folder of one test, with a model repository in repo whose models are trained by command.
type commandRepo struct {
	*testing.T
	dir string
}

func newCommandRepo(t *testing.T) commandRepo { return commandRepo{t, t.TempDir()} }

func (r commandRepo) write(name, text string) {
	r.Helper()
	name = filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		r.Fatal(err)
	}
}

// trained is the trainer's report of a training.
type trained struct {
	Version string
	Metrics map[string]float64
}

// train runs the trainer on a model of the repository; allow is the value of TRAINER_COMMAND_ALLOW.
func (r commandRepo) train(p *harness.Platform, model, allow string) (got trained, log string, err error) {
	r.Helper()
	cmd := exec.Command(harness.Bin(r.T, "trainer"), "train", "--model", model, "--repo", filepath.Join(r.dir, "repo"))
	cmd.Env = append(os.Environ(), "TRACKING_URI="+p.Env["TRACKING_URI"], "MLFLOW_TRACKING_TOKEN="+p.Env["MLFLOW_TRACKING_TOKEN"],
		"PYTHONPATH="+filepath.Join(harness.Root(r.T), "clients", "python", "src"), "OMP_NUM_THREADS=2", "TRAINER_COMMAND_ALLOW="+allow)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err = cmd.Run(); err == nil {
		err = json.Unmarshal(out.Bytes(), &got)
	}
	if err == nil && got.Version == "" {
		err = errors.New("no version")
	}
	return got, errOut.String(), err
}

// jobsYAML declares a data set of jobs in data/jobs.csv; more are further columns.
func jobsYAML(more ...string) string {
	return `name: Jobs
format: csv
files: [data/jobs.csv]
backends: {local: {}}
columns:
  procs: {type: number, available: submit}
  user: {type: category, available: submit}
  run: {type: number, available: end}
` + strings.Join(more, "")
}

const sizeColumn = "  size: {type: category, available: end}\n"
