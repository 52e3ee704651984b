//go:build e2e

// Package tours follows the tours of docs/tours as a reader does, against one running platform.
package tours

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

var pages = []string{"train.md", "cluster.md", "audit.md"}

// maxWords keeps a tour on one page, commands included.
const maxWords = 500

// Each command of the tours works, and prints what the page shows.
func TestTours(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false", "KUBECONFIG=") // the sample cluster
	p.Start(t, time.Minute)
	for _, page := range pages {
		t.Run(strings.TrimSuffix(page, ".md"), func(t *testing.T) { follow(t, p, page) })
	}
}

// follow runs the blocks of a page in order, in a folder that looks like the checkout to the reader.
func follow(t *testing.T, p *harness.Platform, page string) {
	text, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "tours", page))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(text))); n > maxWords {
		t.Errorf("docs/tours/%s has %d words; want at most %d", page, n, maxWords)
	}
	r := newReader(t, p, page)
	blocks := readBlocks(t, page, string(text))
	for _, b := range blocks {
		out, failedLine, err := r.run(t, b)
		if err != nil {
			t.Fatalf("docs/tours/%s:%d: %v\n%s", page, failedLine, err, out)
		}
		if b.want == "" {
			continue
		}
		if at, ok := matchOutput(out, b.want); !ok {
			t.Fatalf("docs/tours/%s:%d: got\n%s\nwant\n%s", page, b.wantLine+at, out, b.want)
		}
	}
}

// block is commands of a page, and the output that the page shows below them.
type block struct {
	script   string
	line     int // of the page, of the first command
	want     string
	wantLine int
}

// readBlocks returns the blocks of commands of a page. A block of text belongs to the commands before it.
func readBlocks(t *testing.T, page, text string) (blocks []block) {
	t.Helper()
	var lines []string
	kind, start := "", 0
	for i, line := range strings.Split(text, "\n") {
		fence, fenced := strings.CutPrefix(line, "```")
		switch {
		case !fenced && kind != "":
			lines = append(lines, line)
		case fenced && kind == "":
			kind, start, lines = fence, i+2, nil
		case fenced:
			content := strings.Join(lines, "\n")
			switch last := len(blocks) - 1; {
			case kind == "sh":
				blocks = append(blocks, block{script: content, line: start})
			case kind == "text" && last >= 0 && blocks[last].want == "":
				blocks[last].want, blocks[last].wantLine = content, start
			default:
				t.Fatalf("docs/tours/%s:%d: a block of %q; want sh, or text after sh", page, start-1, kind)
			}
			kind = ""
		}
	}
	if len(blocks) == 0 || kind != "" {
		t.Fatalf("docs/tours/%s has %d blocks of commands and ends in a block of %q; want some, all closed", page, len(blocks), kind)
	}
	return blocks
}

// reader is a user with one shell in the checkout.
type reader struct {
	page, dir, notes string // notes has what one block leaves to the next
	env              []string
}

func newReader(t *testing.T, p *harness.Platform, page string) *reader {
	t.Helper()
	r := &reader{page: page, dir: t.TempDir(), notes: t.TempDir()}
	for name, target := range map[string]string{"bin": filepath.Join(harness.Root(t), "bin"), ".data": p.Dir} {
		if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, kv := range p.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if _, exported := p.Env[name]; !exported { // the page itself runs platform env
			r.env = append(r.env, kv)
		}
	}
	r.env = append(r.env, "HOME="+t.TempDir(), "GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.org",
		"GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.org")
	return r
}

// run runs a block and returns its output, or the line of the page that failed. Exported variables, functions and the
// folder are those that the block before left, as in one shell.
func (r *reader) run(t *testing.T, b block) (out string, failedLine int, err error) {
	t.Helper()
	state, failed := filepath.Join(r.notes, "state"), filepath.Join(r.notes, "failed")
	before := fmt.Sprintf("set -E; [ ! -e %[1]s ] || . %[1]s; trap 'echo $LINENO ${BASH_LINENO[*]} >%[2]s' ERR; rm -f %[2]s", state, failed)
	after := fmt.Sprintf("{ declare -px; declare -f; printf 'cd %%q\\n' \"$PWD\"; } >%s", state)
	// The commands have the page's name and line numbers in bash's own messages.
	script := filepath.Join(r.notes, r.page)
	content := before + strings.Repeat("\n", b.line-1) + b.script + "\n" + after + "\n"
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	raw, err := cmd.CombinedOutput()
	failedLine = b.line // unless bash ended without a failed command, as for an unset variable
	if note, readErr := os.ReadFile(failed); readErr == nil {
		failedLine = lineOfPage(t, string(note))
	}
	return string(raw), failedLine, err
}

// lineOfPage returns the line of the outermost command that failed. A note has the line of the innermost one, the lines of
// the calls of functions that led to it, innermost first, and 0.
func lineOfPage(t *testing.T, note string) int {
	t.Helper()
	lines := strings.Fields(note)
	at := lines[0]
	if len(lines) > 2 {
		at = lines[len(lines)-2]
	}
	line, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

var spaces = regexp.MustCompile(`[ \t]+`)

// matchOutput reports whether an output is what a page shows, and otherwise the first line of the page that it is not.
// On the page, … is any text of a line, and a line of it alone any lines. Widths of columns vary.
func matchOutput(out, want string) (line int, ok bool) {
	normal := func(text string) []string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(spaces.ReplaceAllString(lines[i], " "))
		}
		return lines
	}
	wanted := normal(want)
	// reached has the numbers of output lines that the lines of the page so far can account for.
	got, reached := normal(out), []int{0}
	for i, w := range wanted {
		var next []int
		for _, n := range reached {
			switch {
			case w == "…":
				for ; n <= len(got); n++ {
					next = append(next, n)
				}
			case n < len(got) && linePattern(w).MatchString(got[n]):
				next = append(next, n+1)
			}
		}
		slices.Sort(next)
		if reached = slices.Compact(next); len(reached) == 0 {
			return i, false
		}
	}
	return len(wanted) - 1, slices.Contains(reached, len(got))
}

func linePattern(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
}
