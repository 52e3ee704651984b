//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the script a separate process group: Ctrl-C reaches it through the context alone, and ends it with all
// processes that it started.
func ownGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return nil
}
