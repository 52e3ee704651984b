package service

import "golang.org/x/sys/windows"

func readFreeSpace(directory string) (free freeSpace, err error) {
	path, err := windows.UTF16PtrFromString(directory)
	if err != nil {
		return freeSpace{}, err
	}
	err = windows.GetDiskFreeSpaceEx(path, &free.bytes, nil, nil)
	return free, err
}
