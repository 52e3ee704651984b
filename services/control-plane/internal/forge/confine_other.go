//go:build !linux

package forge

import (
	"os"
	"runtime/debug"
	"syscall"
)

// childMemory is a goal of the garbage collector here: only Linux enforces it.
const childMemory = 640 << 20

func childAttributes() *syscall.SysProcAttr { return nil }

func killChild(p *os.Process) error { return p.Kill() }

func confine() error {
	debug.SetMemoryLimit(childMemory)
	return nil
}
