package service

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// minFreeDisk is the space in bytes below which a disk counts as full. A database that cannot add a segment of its log,
// 16 MiB in Postgres, stops.
const minFreeDisk = 16 << 20

// CheckDisk makes the replica unready while the directory's disk is full.
func (s *Server) CheckDisk(directory string) {
	s.Check("disk", func(context.Context) Check { return checkDisk(directory) })
}

func checkDisk(directory string) Check {
	var disk unix.Statfs_t
	if err := unix.Statfs(directory, &disk); err != nil {
		return Check{Warn, fmt.Sprintf("the free space of the disk that holds %s cannot be read: %v", directory, err)}
	}
	// What unprivileged users may take counts: the database runs as one.
	if free := disk.Bavail * uint64(disk.Bsize); free < minFreeDisk {
		return Check{Fail, fmt.Sprintf("the disk that holds %s has %d MiB left; free some space there", directory, free>>20)}
	}
	if disk.Files > 0 && disk.Ffree == 0 {
		return Check{Fail, fmt.Sprintf("the disk that holds %s has no inodes left; remove some files there", directory)}
	}
	return Check{Status: OK}
}
