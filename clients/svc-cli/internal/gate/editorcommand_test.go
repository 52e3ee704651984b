package gate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/loopback"
)

// screen collects a command's output and signals new text.
type screen struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	came chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(p)
	select {
	case s.came <- struct{}{}:
	default:
	}
	return n, err
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// until waits for a text on the screen.
func (s *screen) until(t *testing.T, form *regexp.Regexp) []string {
	t.Helper()
	for {
		if m := form.FindStringSubmatch(s.String()); m != nil {
			return m
		}
		select {
		case <-s.came:
		case <-t.Context().Done():
			t.Fatalf("no %s in %q", form, s)
		}
	}
}

func callEditor(ctx context.Context, in io.Reader, out, errs io.Writer, token string, args ...string) error {
	e := &command.Env{
		Stdin: in, Stdout: out, Stderr: errs, Version: "test",
		Getenv: func(string) string { return token },
		OpenBrowser: func(string) error {
			return errors.New("no desktop")
		},
	}
	commands := Commands(e)
	for _, c := range commands {
		c.HideHelp = true // the library's help flag is one for all apps of a process
	}
	a := &cli.App{Commands: commands, HideHelp: true, Writer: io.Discard, ErrWriter: io.Discard, ExitErrHandler: func(*cli.Context, error) {}}
	return a.RunContext(ctx, append([]string{"svc", "gate-audit-ui"}, args...))
}

// TestServes: the command prints the page's address and never its token, prints another address for each line of input,
// warns if no browser opens, and exits with success when it is stopped.
func TestServes(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	in, lines := io.Pipe()
	out, errs := &screen{came: make(chan struct{}, 1)}, &screen{came: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() { done <- callEditor(ctx, in, out, errs, secret, "--port", "0") }()
	m := out.until(t, regexp.MustCompile(`^gate-audit-ui: (http://(127\.0\.0\.1:\d+))\nopen once: (\S+)\n`))
	errs.until(t, regexp.MustCompile(`warning: no browser was opened: no desktop\n`))
	if _, err := lines.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	second := out.until(t, regexp.MustCompile(`(?s)open once.*open once: http://[^/]+(/\S+)\n`))[1]
	for _, target := range []string{strings.TrimPrefix(m[3], m[1]), second} {
		if a := sendRaw(t, m[2], "GET", target, "", ""); !strings.Contains(a.body, secret) || !strings.Contains(a.body, "reviewer-a") {
			t.Errorf(`%s opens nothing; want strings.Contains(a.body, secret) && strings.Contains(a.body, "reviewer-a")`, target)
		}
	}
	if strings.Contains(out.String()+errs.String(), secret) {
		t.Error("the token is printed")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = lines.Close()
}

func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken, err := loopback.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := file("good.json", string(samples.File("gate/panel.json")))
	for _, c := range []struct {
		what, token, want string
		args              []string
	}{
		{"port taken", "", "port_unavailable", []string{good, "--port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)}},
		{"port beyond", "", "port_unavailable", []string{"--port", "65536"}},
		{"short token", "short", "invalid_token", []string{"--port", "0"}},
		{"no file", "", "input_read_error", []string{filepath.Join(dir, "none.json")}},
		{"a folder", "", "input_read_error", []string{dir}},
		{"no matrix", "", "missing_field", []string{file("empty.json", "{}")}},
		{"no JSON", "", "invalid_json", []string{file("bad.json", `{"a":1,"a":2}`)}},
		{"two inputs", "", "unexpected argument", []string{good, good}},
	} {
		var out, errs bytes.Buffer
		// Flags come first here; svc itself takes them anywhere.
		args := append([]string{"--no-browser"}, c.args...)
		if len(args) == 4 {
			args = []string{args[0], args[2], args[3], args[1]}
		}
		err := callEditor(t.Context(), strings.NewReader(""), &out, &errs, c.token, args...)
		var exit *command.Exit
		if !errors.As(err, &exit) || exit.Code != command.ExitFault || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: %v, stderr %q, stdout %q; want exit 2 and %s", c.what, err, errs.String(), out.String(), c.want)
		}
	}
}
