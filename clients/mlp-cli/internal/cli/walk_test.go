package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// exampleLines returns the arguments of each command's example: a new command is covered by these tests once it has
// one.
func exampleLines(t *testing.T) [][]string {
	t.Helper()
	var lines [][]string
	var walk func(c *cli.Command, path string)
	walk = func(c *cli.Command, path string) {
		for _, s := range c.Subcommands {
			walk(s, strings.TrimSpace(path+" "+s.Name))
		}
		if c.Hidden || len(c.Subcommands) > 0 && c.Name != "audit" {
			return
		}
		example := examples[path]
		if example == "" {
			t.Fatalf("mlp %s has no example", path)
		}
		line := splitExample(strings.TrimPrefix(example, "mlp "))
		if line[0] == "--json" {
			line = line[1:]
		}
		lines = append(lines, slices.DeleteFunc(line, func(word string) bool { return word == "--watch" || word == "--follow" }))
	}
	for _, c := range newApp(&Env{Getenv: func(string) string { return "" }}).Commands {
		walk(c, c.Name)
	}
	return lines
}

// splitExample splits a line at blanks outside of single quotes, all the quoting that examples have.
func splitExample(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// world is the environment of a run of mlp.
type world struct {
	vars map[string]string
	http *http.Client
	out  io.Writer
}

// worldAt returns a world with every service at one address.
func worldAt(t *testing.T, url string) world {
	t.Helper()
	return world{vars: map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "SERVING_URL": url, "TRACKING_URI": url, "ORCHESTRATOR_API_URL": url,
		"DASHBOARD_URL": url, "ASSISTANT_URL": url, "BUS_BRIDGE_URL": url, "CONTROL_PLANE_TOKEN": "t", "DASHBOARD_TOKEN": "t", "ASSISTANT_KEY": "k", "DOCKER_HOST": "unix:///nonexistent"}}
}

func (w world) run(ctx context.Context, line ...string) result {
	var out, errOut bytes.Buffer
	env := &Env{In: io.NopCloser(strings.NewReader("")), Out: &out, Err: &errOut, Now: time.Now, Format: output.Table, HTTP: w.http,
		Getenv: func(k string) string { return w.vars[k] }}
	if w.out != nil {
		env.Out = w.out
	}
	one.Lock()
	defer one.Unlock()
	ctx, stop := context.WithTimeout(ctx, 30*time.Second) // one that waits longer is interrupted, and so detected
	defer stop()
	code := Main(ctx, env, append([]string{"mlp"}, line...))
	return result{out.String(), errOut.String(), code}
}

// checkFailure wants sentences instead of internals: `error:` once at most, no stack, nothing of Go, no page.
func checkFailure(t *testing.T, line []string, r result) {
	t.Helper()
	shown := "mlp " + strings.Join(line, " ")
	for _, internal := range []string{"goroutine ", "panic", "runtime error", "<html", "invalid character", "unexpected end of JSON", "json: cannot", "dial tcp", "%!", "context deadline", "nil pointer"} {
		if strings.Contains(r.err+r.out, internal) {
			t.Errorf("%s: got %q in\n%s%s\nwant a sentence", shown, internal, r.out, r.err)
		}
	}
	if n := strings.Count(r.err, "error: "); r.code != 0 && n != 1 || r.code == 0 && n != 0 {
		t.Errorf("%s: got exit %d and %d times `error:` in\n%s\nwant one if it failed, else none", shown, r.code, n, r.err)
	}
	if strings.Contains(r.err+r.out, "interrupted: context") || strings.Contains(r.err, "stopped w") {
		t.Errorf("%s: got %s; want an end by itself", shown, r.err)
	}
	if r.code < 0 || r.code > 2 {
		t.Errorf("%s: got exit %d; want 0, 1 or 2", shown, r.code)
	}
}

// Every command in each faulty world prints a sentence for people or one document for programs, and does not wait for
// an answer that will not come.
func TestEveryCommandInBadWorlds(t *testing.T) {
	t.Chdir(t.TempDir()) // some write a file into the working directory
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if strings.HasPrefix(r.URL.Path, "/502") {
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprint(w, "<html><body>hello</body></html>")
	}))
	t.Cleanup(html.Close)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server sees that its client left only once it has read all
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	broken := worldAt(t, "http://127.0.0.1:1")
	file := filepath.Join(broken.vars["HOME"], ".config", "platform", "config.toml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("[urls]\nserving = \"http://\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	homeless := worldAt(t, "http://127.0.0.1:1")
	delete(homeless.vars, "HOME")
	fileHome := worldAt(t, "http://127.0.0.1:1")
	fileHome.vars["HOME"] = file // a home that cannot be read as a directory
	slow := worldAt(t, hangs.URL)
	slow.http = httpClient()
	slow.http.Timeout = 5 * time.Millisecond
	for name, w := range map[string]world{
		"nobody answers": worldAt(t, "http://127.0.0.1:1"), "pages instead of JSON": worldAt(t, html.URL), "pages of a proxy": worldAt(t, html.URL+"/502"),
		"no answer in time": slow, "broken configuration file": broken, "no home": homeless, "home is a file": fileHome,
	} {
		for _, line := range exampleLines(t) {
			if name == "no answer in time" && line[0] == "chat" {
				continue // an answer may be slow; its limit on silence has a separate test
			}
			checkFailure(t, line, w.run(t.Context(), line...))
			if line[0] == "--context" {
				continue
			}
			r := w.run(t.Context(), append([]string{"--json"}, line...)...)
			checkFailure(t, append([]string{"--json"}, line...), result{out: r.out})
			dec := json.NewDecoder(strings.NewReader(r.out))
			var doc, more any
			if err := dec.Decode(&doc); err != nil || r.err != "" {
				t.Errorf("%s: mlp --json %s: got %v\n%s%s\nwant one document and nothing on stderr", name, strings.Join(line, " "), err, r.out, r.err)
			} else if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
				t.Errorf("%s: mlp --json %s: got more than one document\n%s", name, strings.Join(line, " "), r.out)
			}
		}
	}
}

// closedPipe is a reader that went away, as `head` does.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// `mlp … | head -1` ends quietly: whatever a command would print, its reader is gone, and it does not mention a pipe.
func TestEveryCommandIntoAClosedPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	w := worldAt(t, "http://127.0.0.1:1")
	w.out = closedPipe{}
	for _, line := range exampleLines(t) {
		r := w.run(t.Context(), line...)
		checkFailure(t, line, r)
		if help := w.run(t.Context(), append(slices.Clone(line), "--help")...); help != (result{}) {
			t.Errorf("mlp %s --help: got %+v, want exit 0 and silence", strings.Join(line, " "), help)
		}
		if strings.Contains(r.err, "broken pipe") {
			t.Errorf("mlp %s: got %q, want nothing about a pipe", strings.Join(line, " "), r.err)
		}
	}
}

// Ctrl-C ends each command while it waits for a service: exit 1 and a sentence that reports it.
func TestEveryCommandInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range exampleLines(t) {
		if line[0] == "chat" {
			continue // it reads the key itself, to cancel an answer and continue: cmd/mlp tests it at a terminal
		}
		ctx, interrupt := context.WithCancel(t.Context())
		var asked atomic.Bool // one command may ask several services at once
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked.Store(true)
			_, _ = io.Copy(io.Discard, r.Body)
			interrupt()
			<-r.Context().Done()
		}))
		r := worldAt(t, srv.URL).run(ctx, line...)
		interrupt()
		srv.Close()
		checkFailure(t, line, r)
		if asked.Load() && (r.code != 1 || !strings.Contains(r.err, "interrupted")) {
			t.Errorf("mlp %s: got exit %d\n%s%s\nwant exit 1 and that it was interrupted", strings.Join(line, " "), r.code, r.out, r.err)
		}
	}
}

// A typo in any command or option is answered with the nearest match.
func TestEverySlipGetsTheNearest(t *testing.T) {
	t.Parallel()
	w := worldAt(t, "http://127.0.0.1:1")
	slip := func(name string) string { return name + "q" }
	var walk func(c *cli.Command, path []string)
	walk = func(c *cli.Command, path []string) {
		if c.Hidden {
			return
		}
		line := append(slices.Clone(path), slip(c.Name))
		if r := w.run(t.Context(), line...); r.code != 2 || r.out != "" || !strings.Contains(r.err, "did you mean: mlp "+strings.Join(append(slices.Clone(path), c.Name), " ")+"\n") {
			t.Errorf("mlp %s: got %+v, want exit 2 and the nearest command", strings.Join(line, " "), r)
		}
		path = append(slices.Clone(path), c.Name)
		for _, s := range c.Subcommands {
			walk(s, path)
		}
		if len(c.Subcommands) > 0 {
			return
		}
		for _, f := range c.Flags {
			name := f.Names()[0]
			if len(name) < 3 {
				continue
			}
			line := append(slices.Clone(path), "--"+slip(name))
			if r := w.run(t.Context(), line...); r.code != 2 || r.out != "" || !strings.Contains(r.err, "did you mean: --"+name+"\n") {
				t.Errorf("mlp %s: got %+v, want exit 2 and the nearest option", strings.Join(line, " "), r)
			}
		}
	}
	for _, c := range newApp(&Env{Getenv: func(string) string { return "" }}).Commands {
		walk(c, nil)
	}
}
