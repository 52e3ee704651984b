package mcpclient

import "os/exec"

// Windows has no process groups that a signal could end: a server's children end when they find their input closed.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended already
