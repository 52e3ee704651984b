// Package external fits models by a command that the operator allowed: the way to libraries of other languages.
package external

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
)

const (
	// MaxModel limits model.onnx, in bytes.
	MaxModel = 1 << 30
	// maxLine of the command's output; the rest of a longer one is cut off.
	maxLine = 4 << 10
	// tailLines of the output are part of the error.
	tailLines = 5
	// killDelay is the time that children have to close the output after the kill.
	killDelay = 5 * time.Second
)

// Config lists the allowed commands.
type Config struct {
	// Allow lists whole commands, each the words of its argv.
	Allow [][]string
	// Timeout of one fit.
	Timeout time.Duration
	Log     *slog.Logger
}

// Check reports whether the command is allowed, word for word: the arguments of a program that runs any other, such as
// a shell, matter as much as the program.
func (c Config) Check(argv []string) error {
	if slices.ContainsFunc(c.Allow, func(a []string) bool { return slices.Equal(a, argv) }) {
		return nil
	}
	return fmt.Errorf("the command %.200q is not listed in TRAINER_COMMAND_ALLOW", strings.Join(argv, " "))
}

// Spec is spec.json, the specification of the model that the command fits.
type Spec struct {
	Model           string         `json:"model"`
	Type            modelrepo.Type `json:"type"`
	Seed            int64          `json:"seed"`
	Hyperparameters map[string]any `json:"hyperparameters"`
	Features        []Feature      `json:"features"`
	Target          Target         `json:"target"`
	// Refit is set if train.csv holds all rows and there is no validation.csv.
	Refit bool `json:"refit"`
}

// Feature is an input of the graph, and a column of the files.
type Feature struct {
	Column    string         `json:"column"`
	Kind      modelrepo.Kind `json:"kind"`
	Length    int            `json:"length,omitempty"`
	Transform string         `json:"transform"`
}

// DescribeFeatures returns the features as spec.json describes them.
func DescribeFeatures(features []modelrepo.Feature) []Feature {
	out := make([]Feature, len(features))
	for i, f := range features {
		out[i] = Feature(f)
	}
	return out
}

// Target is the last column of the files: a number, or an index into the labels.
type Target struct {
	Column    string   `json:"column"`
	Transform string   `json:"transform"`
	Labels    []string `json:"labels,omitempty"`
}

// Part is rows with their target.
type Part struct {
	Table  frame.Table
	Target frame.Target
}

// Fit runs the command in a new folder below dir and returns the path of the model it wrote. validation is nil for a
// refit. When ctx ends the command is killed with all processes it started.
func (c Config) Fit(ctx context.Context, argv []string, dir string, spec Spec, train Part, validation *Part) (string, error) {
	if err := c.Check(argv); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "command-")
	if err != nil {
		return "", err
	}
	in, out := filepath.Join(work, "train"), filepath.Join(work, "out")
	if err := errors.Join(os.Mkdir(in, 0o700), os.Mkdir(out, 0o700)); err != nil {
		return "", err
	}
	spec.Refit = validation == nil
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(filepath.Join(in, "spec.json"), text, 0o600), writeCSV(filepath.Join(in, "train.csv"), train))
	if err == nil && validation != nil {
		err = writeCSV(filepath.Join(in, "validation.csv"), *validation)
	}
	if err != nil {
		return "", err
	}
	if err := c.run(ctx, argv, work, in, out); err != nil {
		return "", err
	}
	model := filepath.Join(out, "model.onnx")
	switch info, err := os.Lstat(model); {
	case err != nil:
		return "", errors.New("the command ended well, but wrote no model.onnx to OUT_DIR")
	case !info.Mode().IsRegular() || info.Size() > MaxModel:
		return "", fmt.Errorf("model.onnx is no file of at most %d MiB", MaxModel>>20)
	}
	return model, os.RemoveAll(in)
}

func (c Config) run(ctx context.Context, argv []string, work, in, out string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("the command took longer than %v", c.Timeout))
	defer cancel()
	// The kernel's parent is the thread that starts the command, so it must live as long as the command does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = work
	// No credential of the trainer is passed on. The command runs as the same user, so it could still read them in
	// /proc.
	cmd.Env = []string{"TRAIN_DIR=" + in, "OUT_DIR=" + out, "TMPDIR=" + work, "HOME=" + work}
	for _, name := range []string{"PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "OMP_NUM_THREADS"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	// A separate process group, so that a kill reaches the workers that the command started. If the trainer dies before
	// it can do that, the kernel kills the command itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	lines := &lineLog{log: c.Log.With(slog.String("command", argv[0])), ctx: context.WithoutCancel(ctx)}
	cmd.Stdout, cmd.Stderr = lines, lines
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command succeeded; its remaining children still hold its output
	}
	// Workers that outlive the command would train for nothing.
	if kerr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); kerr != nil && !errors.Is(kerr, syscall.ESRCH) {
		c.Log.WarnContext(ctx, "processes of the command not killed", slog.Any("err", kerr))
	}
	lines.flush()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("the command failed: %w: %s", err, strings.Join(lines.tail, " / "))
	}
	return nil
}

// lineLog writes each line of a command's output to the log as it arrives.
type lineLog struct {
	log  *slog.Logger
	ctx  context.Context //nolint:containedctx // of the run that the lines belong to
	part []byte
	tail []string
}

// Write implements io.Writer; exec calls it from one goroutine, since both outputs are the same writer.
func (l *lineLog) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		l.part = append(l.part, line[:min(len(line), max(0, maxLine-len(l.part)))]...)
		if found {
			l.flush()
		}
		p = rest
	}
	return n, nil
}

func (l *lineLog) flush() {
	line := strings.TrimRight(strings.ToValidUTF8(string(l.part), "?"), "\r ")
	l.part = l.part[:0]
	if line == "" {
		return
	}
	l.log.InfoContext(l.ctx, "output of the command", slog.String("line", line))
	l.tail = append(l.tail, line)
	l.tail = l.tail[max(0, len(l.tail)-tailLines):]
}

// writeCSV writes the columns by their names and the target last; a vector is a JSON array.
func writeCSV(name string, p Part) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := bufio.NewWriter(f)
	if err := writeRows(buf, p); err != nil {
		return err
	}
	return buf.Flush()
}

func writeRows(to io.Writer, p Part) error {
	w := csv.NewWriter(to)
	row := make([]string, len(p.Table.Columns)+1)
	for i, c := range p.Table.Columns {
		row[i] = c.Name
	}
	row[len(row)-1] = p.Target.Name
	if err := w.Write(row); err != nil {
		return err
	}
	for i := range p.Table.Rows {
		for k, c := range p.Table.Columns {
			switch c.Kind {
			case modelrepo.Category:
				row[k] = c.Cat[i]
			case modelrepo.Vector:
				text, err := json.Marshal(c.Vec[i])
				if err != nil {
					return err
				}
				row[k] = string(text)
			default:
				row[k] = strconv.FormatFloat(float64(c.Num[i]), 'g', -1, 32)
			}
		}
		if p.Target.Class {
			row[len(row)-1] = strconv.Itoa(p.Target.Y[i])
		} else {
			row[len(row)-1] = strconv.FormatFloat(p.Target.Values[i], 'g', -1, 64)
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
