package svccli

import (
	"os"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/cli/terminaltest"
)

// runAtTerminal runs svc at a terminal and returns its screen.
func runAtTerminal(t *testing.T, dir string, columns uint16, words string) string {
	t.Helper()
	person, side := terminaltest.Open(t, columns)
	c := svcProcess(t, dir, strings.Fields(words)...)
	c.Stdin, c.Stdout, c.Stderr = side, side, side
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	side.Close()
	screen := make([]byte, 64<<10) // the screens here fit the terminal's own buffer
	n, err := person.Read(screen)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(screen[:n]), "\r\n", "\n")
}

// A terminal gets tables that fit it, records if it is narrow; a pipe gets tabs.
func TestTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requireSuccess(t, runWords(t, dir, "fixtures samples --store s.db"))
	const wide = `RUN            STATE             PROJECT       WORK UNIT       ATTEMPTS  EVIDENCE
run/demo:0001  proposed          project/demo  work/demo-0001         0
run/demo:0002  awaiting_human_…  project/demo  work/demo-0001         2  sha256:d3ee44db1…
run/demo:0003  cancelled         project/demo  work/demo-0001         0
`
	if got := runAtTerminal(t, dir, 90, "run list --store s.db"); got != wide {
		t.Errorf("got:\n%s\nwant:\n%s; want got == %v", got, wide, wide)
	}
	const narrow = `run        run/demo:0003
state      cancelled
project    project/demo
work unit  work/demo-0001
attempts   0
evidence   
`
	if got := runAtTerminal(t, dir, 40, "run list --store s.db --state cancelled"); got != narrow {
		t.Errorf("got:\n%s\nwant:\n%s; want got == %v", got, narrow, narrow)
	}
	const piped = "run/demo:0003\tcancelled\tproject/demo\twork/demo-0001\t0\t\n"
	wantOut(t, runWords(t, dir, "run list --store s.db --state cancelled"), piped)
	if got := runAtTerminal(t, dir, 80, "verify s.db"); !strings.HasPrefix(got, "verify: OK\nruns: 3\n") || strings.Contains(got, "\x1b") {
		t.Errorf("got:\n%s; want strings.HasPrefix(got, \"verify: OK\\nruns: 3\\n\") && !strings.Contains(got, \"\\x1b\")", got)
	}
}

// A reader that went away, as under ` + "`| head -1`" + `, is no error.
func TestClosedStdoutIsNoError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requireSuccess(t, runWords(t, dir, "fixtures samples --store s.db"))
	for _, words := range []string{"run list --store s.db", "events list --store s.db --json", "events follow --store s.db --after 0", "--help", "--version", "verify s.db"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			c := svcProcess(t, dir, strings.Fields(words)...)
			var errOut strings.Builder
			c.Stdout, c.Stderr = w, &errOut
			if err := c.Run(); err != nil || errOut.Len() > 0 {
				t.Fatalf("%v\n%s; want errOut.Len() <= 0", err, errOut.String())
			}
		})
	}
}
