//go:build unix

package config

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks the file until it is closed; false without an error when another program has it locked.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
