//go:build unix

package loopback

import (
	"os/exec"
	"syscall"
)

// detachProcess gives the opener a new session, out of reach of the terminal's
// Ctrl-C.
func detachProcess(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
