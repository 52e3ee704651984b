//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/cli/terminaltest"
)

// terminal is a person's end of a pseudo-terminal with a program at the other.
type terminal struct {
	t      testing.TB
	person *os.File
	ended  chan error

	mu   sync.Mutex
	text strings.Builder // guarded by mu: all output so far, without control sequences
	mark int             // guarded by mu: output before it was already checked
}

// controls are the sequences that move a cursor, colour, or query the terminal.
var controls = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>]|[()][0AB])|[\r\x08]`)

const (
	askCursor  = "\x1b[6n"
	tellCursor = "\x1b[1;1R"
)

// atTerminal starts a program at a terminal of 120 columns.
func atTerminal(t testing.TB, cmd *exec.Cmd) *terminal {
	t.Helper()
	person, side := terminaltest.Open(t, 120)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	side.Close()
	k := &terminal{t: t, person: person, ended: make(chan error, 1)}
	var reading sync.WaitGroup
	reading.Go(k.read)
	go func() { k.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		person.Close()
		reading.Wait()
	})
	return k
}

func (k *terminal) read() {
	buf, held := make([]byte, 32<<10), ""
	for {
		n, err := k.person.Read(buf)
		if err != nil {
			return // the program is gone, or the test
		}
		raw := held + string(buf[:n])
		held = ""
		// A sequence may be cut in two.
		if i := strings.LastIndexByte(raw, '\x1b'); i >= 0 && len(raw)-i < 24 && controls.FindStringIndex(raw[i:]) == nil {
			raw, held = raw[:i], raw[i:]
		}
		for range strings.Count(raw, askCursor) {
			_, _ = io.WriteString(k.person, tellCursor) // the program may be gone
		}
		k.mu.Lock()
		k.text.WriteString(controls.ReplaceAllString(raw, ""))
		k.mu.Unlock()
	}
}

// shown returns the output since the last awaited text.
func (k *terminal) shown() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()[k.mark:]
}

// see waits for output that matches, and returns everything before and including it.
func (k *terminal) see(pattern string) string {
	k.t.Helper()
	expr := regexp.MustCompile(pattern)
	var seen string
	err := retryUntil(30*time.Second, func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		rest := k.text.String()[k.mark:]
		at := expr.FindStringIndex(rest)
		if at == nil {
			return fmt.Errorf("the terminal does not show %s", pattern)
		}
		seen = rest[:at[1]]
		k.mark += at[1]
		return nil
	})
	if err != nil {
		k.t.Fatalf("%v; it shows\n%q", err, k.shown())
	}
	return seen
}

// press sends keys unchanged.
func (k *terminal) press(keys string) {
	k.t.Helper()
	if _, err := io.WriteString(k.person, keys); err != nil {
		k.t.Fatal(err)
	}
}

// enter types a line.
func (k *terminal) enter(line string) {
	k.t.Helper()
	k.press(line + "\r")
}

// leave ends the program with an end of input.
func (k *terminal) leave() {
	k.t.Helper()
	k.press("\x04")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	select {
	case err := <-k.ended:
		if err != nil {
			k.t.Errorf("the program ended with %v; it shows\n%q", err, k.shown())
		}
	case <-ctx.Done():
		k.t.Fatalf("the program does not end; it shows\n%s", k.shown())
	}
}
