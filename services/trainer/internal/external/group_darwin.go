package external

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group, so that a kill reaches the workers that the command started.
func ownGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}
