package forge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
)

// A repository is untrusted: a pack of 1.5 MB can unfold to gigabytes, and git's formats have had faults that made a
// reader run out of memory. So every read of one happens in a separate child process, which has limits and ends with
// its answer. The child is this program, started again: nothing needs to be installed, and the tests of this package
// run the same child code.

// childEnv makes a process answer one request about a repository and exit.
const childEnv = "CONTROL_PLANE_MODELREPO_CHILD"

// An init function instead of a line in each main: any program with this package, even a test, can run as the child.
func init() {
	if os.Getenv(childEnv) != "" {
		os.Exit(serveChild(os.Stdin, os.Stdout))
	}
}

// maxChildOutput limits a child's answer, in bytes.
const maxChildOutput = 32 << 20

// readers limits how many children compare commits in parallel; polls have a separate turn.
var readers = make(chan struct{}, 2)

// Operations of a child.
const (
	opHead   = "head"
	opFiles  = "files"
	opDiff   = "diff"
	opExport = "export"
)

// request is the request to a child.
type request struct {
	Op string `json:"op"`
	// URL and Slot belong to a Remote, Dir to a Local.
	URL    string `json:"url,omitempty"`
	Slot   string `json:"slot,omitempty"`
	Dir    string `json:"dir,omitempty"`
	Branch string `json:"branch,omitempty"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	// Refused is a head that could not be read before, and is not fetched again.
	Refused string        `json:"refused,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// response is one line of a child. The last one has Done; one before reports the child's progress.
type response struct {
	Done   bool     `json:"done,omitempty"`
	Stage  string   `json:"stage,omitempty"`
	Commit Commit   `json:"commit,omitzero"`
	Files  []string `json:"files,omitempty"`
	Diff   *Diff    `json:"diff,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	Kind   string   `json:"kind,omitempty"` // of the fault
	Fault  string   `json:"fault,omitempty"`
}

// stageReading means that the server has sent everything, and reading it remains.
const stageReading = "reading"

// kinds are the faults that a caller distinguishes.
var kinds = map[string]error{"no_branch": ErrNoBranch, "unknown": ErrUnknown, "malformed": ErrMalformed, "deadline": context.DeadlineExceeded}

// childFault is a fault that a child reported.
type childFault struct {
	msg  string
	kind error // nil: none that a caller distinguishes
}

func (f *childFault) Error() string { return f.msg }
func (f *childFault) Unwrap() error { return f.kind }

// environment lists the variables that a child needs: how to reach and trust servers, and how the race detector behaves
// in tests. It gets none of this process's others.
var passedOn = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ", "GORACE"}

// ask starts a child, sends it the request and returns its last answer. When ctx ends, it ends the child and returns.
// The answer's Commit is set as far as the child got, even if there is an error.
func ask(ctx context.Context, r request) (response, error) {
	program, err := os.Executable()
	if err != nil {
		return response{}, fmt.Errorf("start the reader of the model repository: %w", err)
	}
	return askCommand(ctx, exec.CommandContext(ctx, program), r)
}

// askCommand is ask with the command that starts the child, which was made with the same ctx.
func askCommand(ctx context.Context, cmd *exec.Cmd, r request) (response, error) {
	cmd.Env = append(passOn(), childEnv+"=1")
	cmd.Dir = "/"
	cmd.SysProcAttr = childAttributes()
	cmd.WaitDelay = time.Second
	cmd.Cancel = func() error { return killChild(cmd.Process) }
	var complaints tail
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe() // stays open until the child ends, so that it ends with this process
	if err != nil {
		return response{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return response{}, err
	}
	if err := cmd.Start(); err != nil {
		return response{}, fmt.Errorf("start the reader of the model repository: %w", err)
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = in.Write(append(line, '\n'))
	}
	// A process started by the child may hold the other end open.
	hangUp := context.AfterFunc(ctx, func() { _ = out.Close() })
	last, readErr := readAnswers(out, r)
	hangUp()
	_ = killChild(cmd.Process) // it has answered or ended; its id is not reused before Wait
	waitErr := cmd.Wait()
	_ = in.Close()
	switch {
	case last.Done && last.Fault != "":
		return last, &childFault{last.Fault, kinds[last.Kind]}
	case last.Done:
		return last, nil
	case ctx.Err() != nil && last.Stage == stageReading:
		return last, fmt.Errorf("%w: it takes too long to read", ErrMalformed)
	case ctx.Err() != nil:
		return last, timeoutOf(ctx, r)
	case waitErr != nil && (last.Stage == stageReading || r.Op != opHead):
		return last, fmt.Errorf("%w: reading it exceeds a reader's limits (%s)", ErrMalformed, complaints.reason(waitErr))
	}
	return last, fmt.Errorf("read the model repository: %w", errors.Join(err, readErr, waitErr))
}

// timeoutOf describes why a child was ended.
func timeoutOf(ctx context.Context, r request) error {
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case r.Dir != "":
		return &childFault{"the git repository in MODELREPO_DIR could not be read in time", context.DeadlineExceeded}
	default:
		return &childFault{"the git server did not answer in time", context.DeadlineExceeded}
	}
}

func passOn() []string {
	var out []string
	for _, name := range passedOn {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// tail keeps the beginning of a child's standard error.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	if room := 4<<10 - t.Len(); room > 0 {
		t.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// reason returns the one line that states why the child died, without its stacks.
func (t *tail) reason(err error) string {
	if line, _, _ := strings.Cut(t.String(), "\n"); strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "runtime: ") {
		return strings.TrimPrefix(line, "fatal error: ")
	}
	return err.Error()
}

// serveChild is the main of a child: it limits itself, answers one request, and returns the exit code.
func serveChild(in io.ReadCloser, out io.Writer) int {
	if err := confine(); err != nil {
		fmt.Fprintln(os.Stderr, "confine:", err)
		return 1
	}
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	var r request
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "request:", err)
		return 1
	}
	go func() { // the caller is gone
		_, _ = lines.ReadByte()
		os.Exit(1)
	}()
	answers := json.NewEncoder(out)
	last := response{}
	err = answerRequest(context.Background(), r, &last, func(step response) { _ = answers.Encode(step) })
	last.Done = true
	if err != nil {
		last.Fault = err.Error()
		for kind, is := range kinds {
			if errors.Is(err, is) {
				last.Kind = kind
			}
		}
	}
	if err := answers.Encode(last); err != nil {
		return 1
	}
	return 0
}

// answerRequest answers a child's request. tell reports its progress.
func answerRequest(ctx context.Context, r request, out *response, tell func(response)) (err error) {
	if r.Dir != "" {
		l := localReader{r.Dir, tell}
		switch r.Op {
		case opHead:
			out.Commit, err = l.head(r.Branch)
		case opFiles:
			out.Files, err = l.files(ctx, r.From, r.To)
		case opDiff:
			out.Diff, err = diffResult(l.diff(ctx, r.From, r.To))
		}
		return err
	}
	f, err := newFetcher(service.Secret(r.URL), r.Slot, r.Timeout)
	if err != nil {
		return err
	}
	f.refused, f.tell = r.Refused, tell
	switch r.Op {
	case opHead:
		out.Commit, err = f.head(ctx, r.Branch)
	case opFiles:
		out.Files, err = f.files(ctx, r.From, r.To)
	case opDiff:
		out.Diff, err = diffResult(f.diff(ctx, r.From, r.To))
	case opExport:
		out.Dir, err = f.export(ctx, r.To)
	}
	return err
}

func diffResult(d Diff, err error) (*Diff, error) { return &d, err }

// askReader is ask with a limit on parallel requests, for reads that may happen at any time.
func askReader(ctx context.Context, r request) (response, error) {
	select {
	case <-ctx.Done():
		return response{}, ctx.Err()
	case readers <- struct{}{}:
	}
	defer func() { <-readers }()
	return ask(ctx, r)
}
