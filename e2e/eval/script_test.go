//go:build e2e

package eval

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// runScript runs a container's program in a process of this host, without its network, in an empty folder, for five seconds
// at most. One that goes on for longer is ended by SIGKILL, and what it wrote until then is its log.
func runScript(s Script) (log string, exit int32) {
	dir, err := os.MkdirTemp("", "eval-")
	if err != nil {
		return err.Error(), 125
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	program := []string{"sh", "-c"}
	if s.Language == "python" {
		program = []string{"python3", "-I", "-u", "-c"}
	}
	// A network and process space of its own: it reaches no service of the host, and what it starts ends with it.
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--"}, append(program, s.Text)...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LANG=C.UTF-8"}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return string(out), int32(max(ended.ExitCode(), -1) & 0xff)
	}
	return string(out), 0
}
