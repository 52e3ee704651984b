package problem

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// diskFullState is Postgres' SQLSTATE for a full disk (manual, appendix A).
const diskFullState = "53100"

// DescribeFullDisk reports whether err means that a disk, or the quota on it,
// is full: for a file of this process or for the database. The sentence names
// which one and the remedy.
func DescribeFullDisk(err error) (detail string, full bool) {
	var database interface{ SQLState() string }
	if errors.As(err, &database) && database.SQLState() == diskFullState {
		return "The disk of the database is full. Free some space there, then try again.", true
	}
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return "", false
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return "The disk that holds " + filepath.Dir(file.Path) + " is full. Free some space there, then try again.", true
	}
	return "A disk of the service is full. Free some space there, then try again.", true
}
