//go:build e2e

package stranger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// holdVariable lists the addresses that the stranger occupies.
const holdVariable = "STRANGER_HOLD"

// defaultAddresses are those of docs/standalone.md.
const defaultAddresses = "127.0.0.1:8099 127.0.0.1:8098 127.0.0.1:18001 127.0.0.1:18002 127.0.0.1:18003 127.0.0.1:18004 127.0.0.1:18005 " +
	"127.0.0.1:8770 127.0.0.1:15000 127.0.0.1:14200 127.0.0.1:4222"

// holdPorts listens until its input ends. An address already in use serves as well.
func holdPorts(addresses []string) int {
	for _, addr := range addresses {
		if l, err := net.Listen("tcp", addr); err == nil {
			defer l.Close()
		} else if !errors.Is(err, syscall.EADDRINUSE) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// Another user holds every default port and folder name: a start with the defaults ends with one sentence that names
// the settings to change, and one that changes them is seeded and serves.
func TestStartBesideAStranger(t *testing.T) {
	holder := exec.CommandContext(t.Context(), strangersBinary(t))
	asStranger(holder)
	holder.Env = []string{holdVariable + "=" + defaultAddresses}
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = holder.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the stranger: got %q, %v, want held", line, err)
	}

	work := t.TempDir()
	if err := os.Chown(work, 0, 0); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(work, ".data")
	if err := os.Mkdir(theirs, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, strangerID, strangerID); err != nil {
		t.Fatal(err)
	}
	wantSentence(t, work, nil, "belongs to user", "PLATFORM_DATA_DIR")
	wantSentence(t, work, []string{"PLATFORM_DATA_DIR=" + filepath.Join(work, "ours")}, "is in use", "DASHBOARD_ADDR")

	p := harness.New(t) // on free ports, in a separate directory
	took := p.Start(t, 3*time.Minute)
	p.WaitOutput(t, "Next:", 15*time.Minute, time.Now())
	health := harness.Want(t, http.StatusOK, "GET", p.Env["SERVING_URL"]+"/health", "", nil).JSON(t)
	if models, _ := health["models"].(map[string]any); len(models) != 5 {
		t.Errorf("got models %v, want the five samples", models)
	}
	t.Logf("ready after %s beside the stranger, then seeded", took.Round(time.Millisecond))
}

// wantSentence starts the platform, which must end with exit code 1 and one line with all of the words.
func wantSentence(t *testing.T, dir string, env []string, words ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Bin(t, "platform"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("got %v, want exit code 1\n%s", err, errOut.String())
	}
	lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
	last := lines[len(lines)-1]
	for _, w := range words {
		if !strings.Contains(last, w) {
			t.Errorf("got %q, want it to say %q", last, w)
		}
	}
	fmt.Println(last)
}
