// Package trial loads a model and runs it for the first time in a separate process, so that a file from an untrusted
// author can crash, hang or fill that process and nothing else.
//
// The process is this binary again, called with a hidden verb, in an empty folder, with none of the service's environment
// (it gets a marker, GOTRACEBACK, HOME and TMPDIR) and no open files but its three pipes. It limits its own memory,
// processor time and files before it reads a byte, gets the files through its input, and answers how many rows a run may
// have, or why the model is refused.
package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Config of a Runner; all fields are required.
type Config struct {
	// Dir is where the empty working folders are made.
	Dir string
	// Memory limits the memory of all concurrent trials, in bytes, beyond what the binary itself needs.
	Memory int64
	// Time limits the processor time of one trial, and how long it may do nothing.
	Time time.Duration
}

const (
	// A trial gets baseMemory and timesSize the artifact: a graph is in memory as bytes, decoded, in the library's own
	// form, and packed for the processor. The size that a small file declares is not trusted.
	baseMemory = 256 << 20
	timesSize  = 8
	// killWait is how long the pipes of a killed process may stay open.
	killWait = 2 * time.Second
	// By the clock a trial takes at most timesTime its processor time, and longest at most, which is before the load that it
	// is part of gives up: a process that computes a little from time to time is never idle.
	timesTime = 20
	longest   = 9 * time.Minute
)

// Runner runs trials; it is safe for concurrent use.
type Runner struct {
	cfg     Config
	budget  *budget
	command []string      // of the process
	longest time.Duration // of one trial, by the clock
}

// New returns a Runner, which has nothing to close.
func New(cfg Config) (*Runner, error) {
	if cfg.Dir == "" || cfg.Memory <= 0 || cfg.Time <= 0 {
		return nil, errors.New("trial: folder, memory and time must be set")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("model trials: %w", err)
	}
	// The running file itself, even if an upgrade has replaced it since.
	return &Runner{cfg: cfg, budget: newBudget(cfg.Memory), command: []string{"/proc/self/exe", Verb}, longest: clockLimit(cfg.Time)}, nil
}

// clockLimit is how long a trial of that much processor time may take by the clock.
func clockLimit(processor time.Duration) time.Duration {
	return timesTime * min(processor, longest/timesTime)
}

// Source reads an artifact's files, each checked against its digest.
type Source interface {
	// ReadFile returns a file of at most limit bytes, or an error that wraps fs.ErrNotExist.
	ReadFile(name string, limit int64) ([]byte, error)
	// Size is that of all files, in bytes.
	Size() int64
}

// Result is a model that may be opened here.
type Result struct {
	Files    model.Files // the bytes that were tried
	Bounds   model.Bounds
	PeakRSS  int64 // most memory that the process had, in bytes
	Duration time.Duration
}

// Refusal is the reason why a trial ended without success. It is text for operators, of one line.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, a ...any) error { return &Refusal{cleanText(fmt.Sprintf(format, a...))} }

// Conditions returns the inputs of a verdict on an artifact other than its files. An artifact that passed under the
// same conditions need not be tried again. They include the service's version, since another one may check more, or run
// differently.
func (r *Runner) Conditions(o model.Options) (string, error) {
	if err := runtime.Init(""); err != nil {
		return "", err
	}
	return fmt.Sprintf("platform %s, ONNX Runtime %s %s, %+v, %d threads, %d rows, %s a run, %s and %d bytes a trial",
		service.Version, runtime.LibraryVersion(), goruntime.GOARCH, o.Engine, o.Threads, o.Rows, o.RunLimit, r.cfg.Time, r.cfg.Memory), nil
}

// Try runs one trial. It waits while others have the memory, part of which is reserved for known models: those that
// have served before. An error that is no Refusal is no verdict on the model.
func (r *Runner) Try(ctx context.Context, src Source, o model.Options, known bool) (Result, error) {
	if os.Getenv(marker) != "" {
		return Result{}, errors.New("a trial cannot start another: this binary does not call trial.Serve")
	}
	if err := runtime.Init(""); err != nil {
		return Result{}, err
	}
	library, err := filepath.Abs(runtime.LibraryPath())
	if err != nil {
		return Result{}, fmt.Errorf("model trial: %w", err)
	}
	memory := min(baseMemory+timesSize*src.Size(), r.cfg.Memory)
	if err := r.budget.acquire(ctx, memory, known); err != nil {
		return Result{}, err
	}
	defer r.budget.release(memory)
	if err := precheck(src); err != nil {
		return Result{}, err
	}
	began := time.Now()
	req := request{Library: library, Memory: memory, Seconds: int((r.cfg.Time + time.Second - 1) / time.Second), Threads: o.Threads, Rows: o.Rows, RunLimit: o.RunLimit,
		Engine: runtime.Engine{NoArena: o.Engine.NoArena, Optimization: o.Engine.Optimization}}
	res, err := r.run(ctx, src, req)
	res.Duration = time.Since(began)
	return res, err
}

// maxPrecheck limits the artifacts that are checked without a process, whose decoded form is some tens of megabytes.
const maxPrecheck = 1 << 20

// precheck refuses a small file by its encoding and operators, without a process.
func precheck(src Source) error {
	if src.Size() > maxPrecheck {
		return nil
	}
	data, err := readOptional(src, defaultGraphFile, maxPrecheck)
	if err != nil || data == nil { // the graph has another name, or cannot be read; the trial finds out
		return nil
	}
	unread := false
	err = runtime.Check(data, func(name string) ([]byte, error) {
		constants, err := src.ReadFile(name, maxPrecheck)
		unread = unread || err != nil
		return constants, err
	})
	if err != nil && !unread {
		return refuse("%s", err)
	}
	return nil
}

// defaultGraphFile is mlflow.onnx's name for the model file.
const defaultGraphFile = "model.onnx"

func (r *Runner) run(ctx context.Context, src Source, req request) (Result, error) {
	dir, err := os.MkdirTemp(r.cfg.Dir, ".trial-")
	if err != nil {
		return Result{}, fmt.Errorf("model trial: %w", err)
	}
	defer os.RemoveAll(dir)
	limited, cancel := context.WithTimeout(ctx, r.longest)
	defer cancel()
	cmd := exec.CommandContext(limited, r.command[0], r.command[1:]...)
	cmd.Args[0] = filepath.Base(os.Args[0])
	cmd.Dir, cmd.WaitDelay = dir, killWait
	cmd.Env = []string{marker + "=1", "GOTRACEBACK=none", "HOME=" + dir, "TMPDIR=" + dir}
	// A separate process group: the service handles Ctrl-C and ends its trials, together with any processes they
	// started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return Result{}, fmt.Errorf("model trial: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, fmt.Errorf("model trial: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("model trial: %w", err)
	}
	// A process that left its group may hold the other ends open.
	hangUp := context.AfterFunc(limited, func() {
		in.Close()
		out.Close()
	})
	files := &watched{Source: src}
	var idle atomic.Bool
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		if files.awaitIdle(limited, cmd.Process.Pid, r.cfg.Time) {
			idle.Store(true)
			cancel()
		}
	})
	res, talkErr := converse(in, newAnswers(out), files, req)
	hangUp()
	in.Close()
	// No one waits for it. Its id is not reused before Wait, even if it has ended.
	_ = killGroup(cmd.Process)
	cancel()
	waitErr := cmd.Wait()
	if state := cmd.ProcessState; state != nil {
		if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
			res.PeakRSS = usage.Maxrss << 10
		}
	}
	var refusal *Refusal
	var source *sourceError
	switch {
	case talkErr == nil, errors.As(talkErr, &refusal):
		return res, talkErr
	case ctx.Err() != nil:
		return res, ctx.Err()
	case errors.As(talkErr, &source):
		return res, source.err
	case idle.Load():
		return res, refuse("loading and trying the model did nothing for %s", r.cfg.Time)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return res, refuse("loading and trying the model took more than %s by the clock", r.longest)
	}
	return res, explainEnd(waitErr, cmd.ProcessState, stderr.String(), req)
}

// killGroup ends a process that leads its group, and all that it started and that stayed in the group.
func killGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// explainEnd is the reason when the process ended without an answer.
func explainEnd(err error, state *os.ProcessState, stderr string, req request) error {
	if state == nil {
		return fmt.Errorf("model trial: %w", err)
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory") || strings.Contains(stderr, "bad_alloc"):
		return refuseMemory(req.Memory)
	case status.Signaled() && state.UserTime()+state.SystemTime() >= time.Duration(req.Seconds-1)*time.Second:
		return refuse("loading and trying the model took more than %d s of processor time", req.Seconds)
	case status.Signaled():
		return refuse("loading or trying the model ended its process: %s", status.Signal())
	}
	return refuse("loading or trying the model ended its process: %s %s", state, firstLine(stderr))
}

func refuseMemory(memory int64) error {
	return refuse("loading and trying the model takes more than %d MiB of memory", memory>>20)
}

// converse sends the request and the files that are wanted, and reads the verdict.
func converse(in io.Writer, answers *answers, src Source, req request) (Result, error) {
	res := Result{Files: model.Files{}}
	for _, name := range descriptions {
		data, err := readOptional(src, name, schema.MaxDescription)
		if err != nil {
			return res, err
		}
		if data != nil {
			res.Files[name] = data
			req.Files = append(req.Files, fileHeader{name, int64(len(data))})
		}
	}
	if err := sendJSON(in, req); err != nil {
		return res, err
	}
	for _, f := range req.Files {
		if _, err := in.Write(res.Files[f.Name]); err != nil {
			return res, err
		}
	}
	a, err := answers.next()
	if err != nil {
		return res, err
	}
	asked := 0
	for left := int64(model.MaxGraph); a.Want != ""; {
		if asked++; asked > maxFiles {
			return res, refuse("the trial wanted more than %d files", maxFiles)
		}
		data, err := readOptional(src, a.Want, left)
		if err != nil {
			return res, err
		}
		left -= int64(len(data))
		header := fileHeader{a.Want, -1}
		if data != nil {
			res.Files[a.Want] = data
			header.Size = int64(len(data))
		}
		if err := sendJSON(in, header); err != nil {
			return res, err
		}
		if _, err := in.Write(data); err != nil {
			return res, err
		}
		if a, err = answers.next(); err != nil {
			return res, err
		}
	}
	switch {
	case a.Memory:
		return res, refuseMemory(req.Memory)
	case a.Reason != "":
		return res, refuse("%s", a.Reason)
	case a.Rows < 1 || a.Rows > max(req.Rows, 1):
		return res, refuse("the trial answered %d rows of %d", a.Rows, req.Rows)
	case a.Length < 0 || a.Length > model.MaxLength:
		return res, refuse("the trial answered a size of %d", a.Length)
	}
	res.Bounds = model.Bounds{Rows: a.Rows, Length: a.Length}
	return res, nil
}

// answers reads the process's output, which is not trusted: a model may have taken over the process.
type answers struct{ lines *json.Decoder }

// maxFiles limits the files that a process gets: a model, its description, and the files of its constants. maxAnswers
// limits its output, in bytes.
const (
	maxFiles   = 4100
	maxAnswers = 1 << 20
)

func newAnswers(r io.Reader) *answers {
	return &answers{json.NewDecoder(io.LimitReader(r, maxAnswers))}
}

func (a *answers) next() (answer, error) {
	var out answer
	err := a.lines.Decode(&out)
	return out, err
}

func sendJSON(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("model trial: %w", err)
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// tail keeps the first bytes that a process writes as it dies.
type tail struct{ buf bytes.Buffer }

const maxTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p[:min(len(p), maxTail-t.buf.Len())])
	return len(p), nil
}

func (t *tail) String() string { return t.buf.String() }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// maxReason limits the text of a refusal, in bytes.
const maxReason = 600

// cleanText makes text of a process one line that a terminal and a log can show. Each line of it is a separate fault.
func cleanText(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
	if len(s) > maxReason {
		s = s[:maxReason] + "…"
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.Join(strings.Fields(s), " ")
}
