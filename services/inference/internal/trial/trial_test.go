package trial_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// folder is an artifact in memory.
type folder map[string][]byte

func (f folder) ReadFile(name string, limit int64) ([]byte, error) {
	data, ok := f[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if int64(len(data)) > limit {
		return nil, errors.New("too large")
	}
	return data, nil
}

func (f folder) Size() (n int64) {
	for _, data := range f {
		n += int64(len(data))
	}
	return n
}

func newRunner(t *testing.T, limit time.Duration) (*trial.Runner, string) {
	t.Helper()
	dir := t.TempDir()
	r, err := trial.New(trial.Config{Dir: dir, Memory: 768 << 20, Time: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

// renamed gives the graph another name, under which only the process looks at it.
func renamed(files folder) folder {
	return folder{
		"MLmodel": []byte("flavors:\n  onnx:\n    data: other.onnx\n"), "platform.json": files["platform.json"], "other.onnx": files["model.onnx"],
	}
}

// maxRSS limits the resident memory of a trial's process, in bytes.
const maxRSS = 700 << 20

func TestTryAcceptsWhatIsServed(t *testing.T) {
	t.Parallel()
	r, dir := newRunner(t, time.Minute)
	for name, files := range map[string]folder{
		"linear": fixturetest.Linear(t, "m", 1, fixturetest.Column{Name: "x", Kind: "number", Weight: 1}),
		"trees":  fixturetest.Trees(t, "m", 18, 100, 6),
	} {
		res, err := r.Try(t.Context(), files, model.Options{Threads: 1, Rows: 32, RunLimit: 10 * time.Second}, false)
		if err != nil || res.Bounds.Rows != 32 || len(res.Files) != 3 {
			t.Errorf("%s: got %d rows, %d files, %v; want 32 rows, 3 files", name, res.Bounds.Rows, len(res.Files), err)
		}
		t.Logf("%s: %v, peak %d MiB", name, res.Duration, res.PeakRSS>>20)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("trials left %v, %v; want an empty folder", left, err)
	}
}

// Whatever makes the process fail (a refusal, excessive use, a crash) is returned as a reason; its memory stays
// limited.
func TestTryRefuses(t *testing.T) {
	t.Parallel()
	onnx := func(raw []byte) folder {
		files := fixturetest.Linear(t, "m", 1, fixturetest.Column{Name: "x", Kind: "number", Weight: 1})
		files["model.onnx"] = raw
		return files
	}
	for name, c := range map[string]struct {
		files folder
		limit time.Duration
		want  string
	}{
		"endless loop":    {files: fixturetest.EndlessLoop(t, "m"), want: "the operator Loop is not served"},
		"ConstantOfShape": {files: fixturetest.MemoryBomb(t, "m", "ConstantOfShape", 1<<31), want: "MiB of memory"},
		"Expand":          {files: fixturetest.MemoryBomb(t, "m", "Expand", 1<<31), want: "MiB of memory"},
		"Tile":            {files: fixturetest.MemoryBomb(t, "m", "Tile", 1<<31), want: "MiB of memory"},
		"nested graphs":   {files: onnx(fixturetest.NestedGraphs(5000)), want: "nests messages more than 64 deep"},
		"empty nodes":     {files: onnx(fixturetest.EmptyNodes(500_000)), want: "once decoded"},
		"seven rows":      {files: fixturetest.SizedByRows(t, "m", 7, 1<<34), want: "MiB of memory"},
		"slow":            {files: fixturetest.SlowFor(t, "m", 20_000), limit: time.Second, want: "more than 1 s of processor time"},
		"deep MLmodel":    {files: folder{"MLmodel": []byte(strings.Repeat("[", 50_000))}, want: "MLmodel"},
		"loop in process": {files: renamed(fixturetest.EndlessLoop(t, "m")), want: "the operator Loop is not served"},
		"deep in process": {files: renamed(onnx(fixturetest.NestedGraphs(5000))), want: "nests messages more than 64 deep"},
		"no files":        {files: folder{}, want: "no readable MLmodel"},
		"file outside":    {files: folder{"MLmodel": []byte("flavors:\n  onnx:\n    data: ../../etc/passwd\n")}, want: "outside the artifact"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := c.limit
			if limit == 0 {
				limit = time.Minute
			}
			r, dir := newRunner(t, limit)
			res, err := r.Try(t.Context(), c.files, model.Options{Threads: 1, Rows: 32, RunLimit: time.Minute}, false)
			var refusal *trial.Refusal
			_ = errors.As(err, &refusal)
			// A machine on which the second takes twenty by the clock ends it first.
			late := name == "slow" && refusal != nil && strings.Contains(refusal.Reason, "more than 20s by the clock")
			if refusal == nil || !late && !strings.Contains(refusal.Reason, c.want) {
				t.Fatalf("got %v, want a refusal with %q", err, c.want)
			}
			if res.PeakRSS > maxRSS {
				t.Errorf("the process had %d MiB, want at most %d", res.PeakRSS>>20, int64(maxRSS)>>20)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("the trial left %v, %v; want an empty folder", left, err)
			}
		})
	}
}

// Another version of the platform may check more: artifacts that passed under it are tried again.
func TestConditionsNameThePlatform(t *testing.T) {
	t.Parallel()
	r, _ := newRunner(t, time.Minute)
	if got, err := r.Conditions(model.Options{Threads: 1, Rows: 32}); err != nil || !strings.Contains(got, "platform "+service.Version+",") {
		t.Errorf("got %q, %v; want the version %s in it", got, err, service.Version)
	}
}

func TestTryEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	r, _ := newRunner(t, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := r.Try(ctx, folder(fixturetest.Slow(t, "m")), model.Options{Threads: 1, Rows: 32}, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's deadline", err)
	}
}

// The files are one request of each other's size; the reason comes from a process that a model may have taken over.
func TestReasonsAreOneCleanLine(t *testing.T) {
	t.Parallel()
	r, _ := newRunner(t, time.Minute)
	files := fixturetest.Linear(t, "m", 1, fixturetest.Column{Name: "x", Kind: "number", Weight: 1})
	files["MLmodel"] = []byte("flavors:\n  \"\\e[2Jevil\\n" + strings.Repeat("x", 5000) + "\": {}\n")
	_, err := r.Try(t.Context(), folder(files), model.Options{Threads: 1, Rows: 1}, false)
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 1000 {
		t.Errorf("got %q, want one short line without control characters", fmt.Sprint(err))
	}
}
