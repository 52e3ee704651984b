//go:build unix

package service

import "golang.org/x/sys/unix"

func readFreeSpace(directory string) (freeSpace, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(directory, &disk); err != nil {
		return freeSpace{}, err
	}
	return freeSpace{bytes: disk.Bavail * uint64(disk.Bsize), noInodes: disk.Files > 0 && disk.Ffree == 0}, nil
}
