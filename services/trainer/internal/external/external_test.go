package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

// logBuffer collects the log; the command writes while the test reads.
type logBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func part(values ...float64) Part {
	p := Part{Target: frame.Target{Name: "run", Values: values}, Table: frame.Table{Rows: len(values), Columns: []frame.Column{
		{Name: "procs", Kind: modelrepo.Number}, {Name: "user", Kind: modelrepo.Category}, {Name: "emb", Kind: modelrepo.Vector, Length: 2}}}}
	for i := range values {
		p.Table.Columns[0].Num = append(p.Table.Columns[0].Num, float32(i)+0.5)
		p.Table.Columns[1].Cat = append(p.Table.Columns[1].Cat, "a,b")
		p.Table.Columns[2].Vec = append(p.Table.Columns[2].Vec, []float32{1, 2})
	}
	return p
}

// shell allows one script and returns the command that runs it.
func shell(script string) (Config, []string, *logBuffer) {
	argv := []string{"sh", "-c", script}
	log := &logBuffer{}
	return Config{Allow: [][]string{argv}, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil))}, argv, log
}

// The command finds the rows and its specification, no credential, and a folder for its model; its output is in the
// log.
func TestProtocol(t *testing.T) {
	t.Setenv("MLFLOW_TRACKING_TOKEN", "secret-of-the-trainer")
	c, argv, log := shell(`set -e; cat "$TRAIN_DIR/train.csv" "$TRAIN_DIR/validation.csv"; ls "$TRAIN_DIR"; env >&2; cp "$TRAIN_DIR/spec.json" "$OUT_DIR/model.onnx"`)
	val := part(7)
	spec := Spec{Model: "M", Type: "regression", Seed: 3, Hyperparameters: map[string]any{"depth": 4}, Target: Target{Column: "run", Transform: "log1p"}}
	model, err := c.Fit(context.Background(), argv, t.TempDir(), spec, part(5, 6), &val)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"depth": 4`, `"seed": 3`, `"refit": false`, `"transform": "log1p"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("spec.json is %s; want %s in it", got, want)
		}
	}
	text := log.String()
	for _, want := range []string{"procs,user,emb,run", `0.5,\"a,b\",\"[1,2]\",5`, `line="0.5,\"a,b\",\"[1,2]\",7"`, `line="TRAIN_DIR=`, "line=spec.json", "line=validation.csv"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log is %s; want %s in it", text, want)
		}
	}
	if strings.Contains(text, "secret-of-the-trainer") {
		t.Error("the command sees a credential of the trainer")
	}
	if _, err := c.Fit(context.Background(), argv, t.TempDir(), spec, part(5), nil); err == nil || !strings.Contains(err.Error(), "validation.csv") {
		t.Errorf("%v; want no validation rows at a refit", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, script := range map[string]string{
		"exit status 3: one / two":              "echo one; echo two >&2; exit 3",
		"wrote no model.onnx":                   "true",
		"is no file of at most":                 `mkdir "$OUT_DIR/model.onnx"`,
		"the command took longer than":          "sleep 600",
		"the command failed: signal: segmentat": "kill -SEGV $$",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c, argv, _ := shell(script)
			if strings.HasPrefix(script, "sleep") {
				c.Timeout = 100 * time.Millisecond
			}
			if _, err := c.Fit(context.Background(), argv, t.TempDir(), Spec{}, part(1), nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	c, argv, _ := shell("true")
	for _, other := range [][]string{argv[:2], append(argv[:2:2], "false"), append(argv[:3:3], "more"), {"python3"}} {
		if _, err := c.Fit(context.Background(), other, t.TempDir(), Spec{}, part(1), nil); err == nil || !strings.Contains(err.Error(), "TRAINER_COMMAND_ALLOW") {
			t.Errorf("%q: %v, want a refusal", other, err)
		}
	}
}

// A cancelled fit ends the command and every process that it started, also one that has left its parent; so does the
// command's own end.
func TestChildrenAreKilled(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{"cancelled": "wait", "ended": `cp "$TRAIN_DIR/spec.json" "$OUT_DIR/model.onnx"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pidFile := filepath.Join(dir, "pid")
			c, argv, _ := shell("(sh -c 'echo $$ > " + pidFile + ".new && mv " + pidFile + ".new " + pidFile + "; exec sleep 600' >/dev/null 2>&1 &) ; while [ ! -e " + pidFile + " ]; do sleep 0.02; done; sleep 600 & " + rest)
			ctx, cancel := context.WithCancelCause(context.Background())
			t.Cleanup(func() { cancel(nil) })
			stopped := errors.New("stopped by the test")
			ended := make(chan error, 1)
			go func() {
				_, err := c.Fit(ctx, argv, dir, Spec{}, part(1), nil)
				ended <- err
			}()
			testenv.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(pidFile); return err })
			if name == "cancelled" {
				cancel(stopped)
			}
			if err := <-ended; name == "cancelled" && !errors.Is(err, stopped) || name == "ended" && err != nil {
				t.Errorf("%v", err)
			}
			text, err := os.ReadFile(pidFile)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, 30*time.Second, func() error {
				if isRunning(pid) {
					return fmt.Errorf("process %d still runs", pid)
				}
				return nil
			})
		})
	}
}

// isRunning reports whether the process is there and no zombie, which a container without an init keeps.
func isRunning(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
