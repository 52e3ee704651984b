package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mlp-platform/platform/libs/cli/terminaltest"
)

// asProgram makes the test binary behave as mlp, so that signals and terminals can be tried on a process.
const asProgram = "MLP_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func mlpProcess(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], argv...)
	c.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "TERM=xterm"}
	return c
}

// A reader that closes its end, as under `| head -1`, is no error.
func TestClosedStdoutIsNoError(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"config show", "--json config show", "-o csv config show", "--help", "--version"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			c := mlpProcess(t, strings.Fields(line)...)
			var errOut bytes.Buffer
			c.Stdout, c.Stderr = w, &errOut
			if err := c.Run(); err != nil || errOut.Len() > 0 {
				t.Fatalf("%v\n%s; want errOut.Len() <= 0", err, errOut.String())
			}
		})
	}
}

// Ctrl-C at a prompt ends the program with 1, gives the echo back and stores nothing.
func TestCtrlCAtAPrompt(t *testing.T) {
	t.Parallel()
	for line, prompt := range map[string]string{
		"config set control_plane_token": "control_plane_token: ",
		"config init":                    "(control plane address) [http://localhost:18002]: ",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			person, side := terminaltest.Open(t, 0)
			before, err := unix.IoctlGetTermios(int(side.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			c := mlpProcess(t, strings.Fields(line)...)
			c.Stdin = side
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			talk, err := c.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			seen := make([]byte, len(prompt))
			if _, err := io.ReadFull(talk, seen); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, "token") {
				// The prompt precedes the switching off of the echo, which would throw away a Ctrl-C too early.
				look := time.NewTicker(time.Millisecond)
				defer look.Stop()
				for range look.C {
					now, err := unix.IoctlGetTermios(int(side.Fd()), unix.TCGETS)
					if err != nil {
						t.Fatal(err)
					}
					if now.Lflag&unix.ECHO == 0 {
						break
					}
				}
			}
			if _, err := person.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(talk)
			if err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(rest), "error: interrupted; nothing") {
				t.Fatalf("%v\n%s%s; want errors.As(err, &exit) && exit.ExitCode() == 1 && strings.Contains(string(rest), \"error: interrupted; nothing\")", err, seen, rest)
			}
			after, err := unix.IoctlGetTermios(int(side.Fd()), unix.TCGETS)
			if err != nil || after.Lflag != before.Lflag {
				t.Fatalf("the terminal was %x and is %x (%v); want after.Lflag == before.Lflag", before.Lflag, after.Lflag, err)
			}
		})
	}
}
