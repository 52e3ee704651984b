//go:build unix

package external

import "syscall"

// killGroup kills the command with all processes of its group.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
