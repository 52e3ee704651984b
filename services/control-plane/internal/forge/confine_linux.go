package forge

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits of a child.
const (
	childMemory  = 640 << 20 // of data, beyond the program's own at its start
	childFile    = maxFetch + 64<<20
	childSeconds = 45 // of CPU time
	childFiles   = 256
)

// childAttributes start a child in its own process group: a signal to this process does not reach it, and whatever the
// child started ends with it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killChild ends a child and the processes that it left in its group.
func killChild(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// confine limits this process: memory, file sizes, CPU time, open files, no core dump, no new privileges.
func confine() error {
	data, err := dataSize()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(childMemory * 3 / 4)
	debug.SetGCPercent(50)
	for _, l := range []struct {
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_DATA, data + childMemory}, {unix.RLIMIT_FSIZE, childFile}, {unix.RLIMIT_CPU, childSeconds},
		{unix.RLIMIT_NOFILE, childFiles}, {unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("read limit %d: %w", l.resource, err)
		}
		limit := min(l.limit, now.Max)
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("set limit %d: %w", l.resource, err)
		}
	}
	syscall.Umask(0o077)
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// dataSize returns the writable memory of this process, as RLIMIT_DATA counts it.
func dataSize() (uint64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmData:"); ok {
			kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmData")
}
