//go:build e2e

package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// runScript runs a container's program in a process of this host, without its network, in an empty folder, for five
// seconds at most. One that runs for longer is ended by SIGKILL, and its output until then is its log.
func runScript(s Script) (log string, exit int32, err error) {
	dir, err := os.MkdirTemp("", "eval-")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	program := []string{"sh", "-c"}
	if s.Language == "python" {
		program = []string{"python3", "-I", "-u", "-c"}
	}
	// A separate network and process space: it reaches no service of the host, and whatever it starts ends with it.
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--"}, append(program, s.Text)...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LANG=C.UTF-8"}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if bytes.HasPrefix(out, []byte("unshare: ")) {
		return "", 0, fmt.Errorf("the script cannot be kept from the network here: %s", bytes.TrimSpace(out))
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return string(out), 0, nil
	case !errors.As(err, &ended):
		return "", 0, fmt.Errorf("running the script: %w", err)
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return string(out), 128 + int32(status.Signal()), nil // as a kubelet reports it
	}
	return string(out), int32(ended.ExitCode() & 0xff), nil
}
