package svccli

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

var update = flag.Bool("update", false, "rewrite the output in docs/svc.md")

const docsFile = "../../docs/svc.md"

// docs serialises the sections that an update rewrites.
var docs sync.Mutex

// Every example of docs/svc.md prints what the page shows. Each section, opened by `<!-- area: NAME -->`, has a
// separate folder in which `svc fixtures .` was run, and its ```console blocks run there in order. A line that ends in
// … matches any line with that beginning. A command that does not exit 0 is followed by a line [exit N]. A block marked
// ```console interrupt ends with Ctrl-C, once its last line was printed.
func TestDocs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "<!-- area: ")
	for i, part := range parts[1:] {
		area, _, ok := strings.Cut(part, " -->")
		if !ok {
			t.Fatalf("section %d has no end of its mark; want ok", i+1)
		}
		t.Run(area, func(t *testing.T) {
			if !*update {
				t.Parallel()
			}
			runSection(t, part)
		})
	}
}

// runSection runs a section's examples, and under -update rewrites them in the page.
func runSection(t *testing.T, part string) {
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "svc")); err != nil {
		t.Fatal(err)
	}
	if r := runSVC(t, dir, "fixtures", "."); r.code != 0 {
		t.Fatalf("svc fixtures: exit %d: %s; want r.code == 0", r.code, r.err)
	}
	shell := func(line string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "sh", "-c", line)
		c.Dir = dir
		c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "TMPDIR=" + os.TempDir()}
		return c
	}
	rewritten := rewriteExamples(part, func(line string, want []string, interrupt bool) []string {
		var got []string
		if interrupt {
			got = runInterrupted(t, shell("exec "+line), max(len(want), 1))
		} else {
			got = runLine(t, shell(line))
		}
		if sameLines(got, want) {
			return want
		}
		if !*update {
			t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", line, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return got
	})
	if *update && rewritten != part {
		docs.Lock()
		defer docs.Unlock()
		data, err := os.ReadFile(docsFile)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(docsFile, []byte(strings.Replace(string(data), part, rewritten, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// rewriteExamples calls run for each command of each console block and replaces the output by its result.
func rewriteExamples(part string, run func(line string, want []string, interrupt bool) []string) string {
	var out []string
	lines := strings.Split(part, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		fence := strings.TrimSpace(lines[i])
		if fence != "```console" && fence != "```console interrupt" {
			continue
		}
		for i++; i < len(lines) && lines[i] != "```"; {
			line, isCommand := strings.CutPrefix(lines[i], "$ ")
			out = append(out, lines[i])
			i++
			if !isCommand {
				continue
			}
			for strings.HasSuffix(line, "\\") && i < len(lines) {
				line = strings.TrimSuffix(line, "\\") + strings.TrimPrefix(lines[i], "> ")
				out = append(out, lines[i])
				i++
			}
			var want []string
			for i < len(lines) && lines[i] != "```" && !strings.HasPrefix(lines[i], "$ ") {
				want = append(want, lines[i])
				i++
			}
			out = append(out, run(line, want, strings.HasSuffix(fence, " interrupt"))...)
		}
		if i < len(lines) {
			out = append(out, lines[i])
		}
	}
	return strings.Join(out, "\n")
}

func sameLines(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if begin, open := strings.CutSuffix(want[i], "…"); want[i] != got[i] && (!open || !strings.HasPrefix(got[i], begin)) {
			return false
		}
	}
	return true
}

func runLine(t *testing.T, c *exec.Cmd) []string {
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	err := c.Run()
	return endedLines(t, c, err, outputLines(b.String()))
}

func outputLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func endedLines(t *testing.T, c *exec.Cmd, err error, lines []string) []string {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err, "want (err == nil || errors.As(err, &exit))")
	}
	if code := c.ProcessState.ExitCode(); code != 0 {
		lines = append(lines, fmt.Sprintf("[exit %d]", code))
	}
	return lines
}

// runInterrupted presses Ctrl-C when n lines were printed.
func runInterrupted(t *testing.T, c *exec.Cmd, n int) []string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var lines []string
	scan := bufio.NewScanner(r)
	for len(lines) < n && scan.Scan() {
		lines = append(lines, scan.Text())
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err, "want (err == nil || errors.Is(err, os.ErrProcessDone))")
	}
	for scan.Scan() {
		lines = append(lines, scan.Text())
	}
	return endedLines(t, c, c.Wait(), lines)
}

// Every command has an example.
func TestEveryCommandIsInTheDocs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	rewriteExamples(string(data), func(line string, want []string, _ bool) []string {
		shown = append(shown, line)
		return want
	})
	all := strings.Join(shown, "\n") + "\n"
	for _, path := range leafPaths(app.New(&command.Env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }}).Commands, "svc") {
		if !strings.Contains(all, path+" ") && !strings.Contains(all, path+"\n") {
			t.Errorf("docs/svc.md has no example of %s; want (strings.Contains(all, path+\" \") || strings.Contains(all, path+\"\\n\"))", path)
		}
	}
}

func leafPaths(commands []*cli.Command, path string) []string {
	var paths []string
	for _, c := range commands {
		switch {
		case c.Hidden:
		case len(c.Subcommands) > 0:
			paths = append(paths, leafPaths(c.Subcommands, path+" "+c.Name)...)
		default:
			paths = append(paths, path+" "+c.Name)
		}
	}
	return paths
}
