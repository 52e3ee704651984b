package store

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is the time at which the file or its metadata last changed.
func changeTime(info fs.FileInfo) (time.Time, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(s.Ctim.Unix()), true
}
