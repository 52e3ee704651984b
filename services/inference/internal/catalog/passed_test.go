package catalog

import (
	"context"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// keeping records the artifacts remembered.
type keeping struct {
	Passed
	kept []string
}

func (k *keeping) Keep(_ context.Context, digest, _ string, _ model.Bounds) {
	k.kept = append(k.kept, digest)
}

// An artifact that passes its trial and does not open is not remembered.
func TestPassedIsWhatOpens(t *testing.T) {
	t.Parallel()
	trials, err := trial.New(trial.Config{Dir: t.TempDir(), Memory: 1 << 30, Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	kept := &keeping{}
	c := &Catalog{cfg: Config{Trials: trials, Passed: kept}}
	o := model.Options{Threads: 1, Rows: 1, RunLimit: time.Minute}
	good := model.Files(fixturetest.Linear(t, "m", 1, fixturetest.Column{Name: "x", Kind: "number", Weight: 1}))
	m, err := c.openTried(t.Context(), "good", trial.Result{Files: good, Bounds: model.Bounds{Rows: 1}}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	bad := model.Files{"MLmodel": good["MLmodel"], "platform.json": good["platform.json"], "model.onnx": []byte("no graph")}
	if _, err := c.openTried(t.Context(), "bad", trial.Result{Files: bad, Bounds: model.Bounds{Rows: 1}}, o); err == nil {
		t.Error("a file without a graph was opened")
	}
	if len(kept.kept) != 1 || kept.kept[0] != "good" {
		t.Errorf("remembered %q, want the one that opens", kept.kept)
	}
}
