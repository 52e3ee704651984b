package trial_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// fetch registers the files of a model and has them in a cache.
func fetch(t *testing.T, files map[string][]byte) artifact.Artifact {
	t.Helper()
	reg := fixturetest.NewRegistry(t)
	client := tracker.New(reg.URL, nil)
	v, err := client.GetModelVersion(t.Context(), "m", reg.Register("m", files, nil))
	if err != nil {
		t.Fatal(err)
	}
	store, err := artifact.New(t.TempDir(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	a, err := store.Fetch(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The files loaded are the ones hashed: files planted in the cache afterwards are refused before the trial, and change
// nothing after it.
func TestLoadedBytesAreTheHashedOnes(t *testing.T) {
	t.Parallel()
	column := fixturetest.Column{Name: "x", Kind: "number", Weight: 1}
	hashed, planted := fixturetest.Linear(t, "m", 1, column), fixturetest.Linear(t, "m", 2, column)
	o := model.Options{Threads: 1, Rows: 8, RunLimit: time.Minute}
	for name, plant := range map[string]func(path string) error{
		"written over": func(path string) error { return os.WriteFile(path, planted["model.onnx"], 0o600) },
		"replaced by a link": func(path string) error {
			other := filepath.Join(t.TempDir(), "other.onnx")
			return errors.Join(os.WriteFile(other, planted["model.onnx"], 0o600), os.Remove(path), os.Symlink(other, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newRunner(t, time.Minute)
			a := fetch(t, hashed)
			tried, err := r.Try(t.Context(), a, o, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := plant(filepath.Join(a.Dir, "model.onnx")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(maps.Clone(hashed), map[string][]byte(tried.Files)); diff != "" {
				t.Errorf("what was tried and is opened differs from what was hashed (-hashed +tried):\n%s", diff)
			}
			if _, err := r.Try(t.Context(), a, o, false); err == nil {
				t.Error("a changed file passed the trial; want an error")
			} else if name == "written over" && !errors.Is(err, artifact.ErrDigest) {
				t.Errorf("got %v, want %v", err, artifact.ErrDigest)
			}
		})
	}
}

// The files of a model's constants are loaded as they were hashed, too, and only by the model they belong to.
func TestConstantsInOtherFilesAreTheHashedOnes(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	dir := filepath.Join("..", "model", "testdata", "external")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	weights := ""
	for _, e := range entries {
		if e.Name() == "expected.json" {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(e.Name()) == ".data" {
			weights = e.Name()
		}
	}
	r, _ := newRunner(t, time.Minute)
	o := model.Options{Threads: 1, Rows: 8, RunLimit: time.Minute}
	a := fetch(t, files)
	tried, err := r.Try(t.Context(), a, o, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, map[string][]byte(tried.Files)); diff != "" {
		t.Errorf("what was tried and is opened differs from what was hashed (-hashed +tried):\n%s", diff)
	}
	m, err := model.Open(tried.Files, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	changed := bytes.Clone(files[weights])
	changed[0] ^= 1
	if err := os.WriteFile(filepath.Join(a.Dir, weights), changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Try(t.Context(), a, o, false); !errors.Is(err, artifact.ErrDigest) {
		t.Errorf("a changed file of constants: %v, want %v", err, artifact.ErrDigest)
	}
	delete(files, weights)
	if _, err := r.Try(t.Context(), fetch(t, files), o, false); err == nil || !strings.Contains(err.Error(), weights) {
		t.Errorf("without its constants: %v, want the file named", err)
	}
}
