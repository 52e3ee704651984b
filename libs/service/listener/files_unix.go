//go:build unix

package listener

import "syscall"

// openFiles returns the limit of open files of this process.
func openFiles() (uint64, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return limit.Cur, true //nolint:unconvert // signed on some systems
}
