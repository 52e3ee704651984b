package service

import (
	"context"
	"fmt"
)

// minFreeDisk is the space in bytes below which a disk counts as full. A database that cannot add a segment of its log,
// 16 MiB in Postgres, stops.
const minFreeDisk = 16 << 20

// CheckDisk makes the replica unready while the directory's disk is full.
func (s *Server) CheckDisk(directory string) {
	s.Check("disk", func(context.Context) Check { return checkDisk(directory) })
}

// freeSpace of a disk, as far as unprivileged users may take it: the database runs as one.
type freeSpace struct {
	bytes    uint64
	noInodes bool
}

func checkDisk(directory string) Check {
	free, err := readFreeSpace(directory)
	if err != nil {
		return Check{Warn, fmt.Sprintf("the free space of the disk that holds %s cannot be read: %v", directory, err)}
	}
	if free.bytes < minFreeDisk {
		return Check{Fail, fmt.Sprintf("the disk that holds %s has %d MiB left; free some space there", directory, free.bytes>>20)}
	}
	if free.noInodes {
		return Check{Fail, fmt.Sprintf("the disk that holds %s has no inodes left; remove some files there", directory)}
	}
	return Check{Status: OK}
}
