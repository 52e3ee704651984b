//go:build unix

package auth

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// CheckSecretOwner refuses a file whose owner controls neither the directory nor this process: that user knows its
// content, so it is no secret. It may belong to this user, to root, or to the owner of the directory.
func CheckSecretOwner(path string, info fs.FileInfo) error {
	above, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("the directory of %s cannot be read: %w", path, err)
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	dir, dirOK := above.Sys().(*syscall.Stat_t)
	if !ok || !dirOK {
		return fmt.Errorf("the owner of %s cannot be read", path)
	}
	if !slices.Contains([]uint32{0, uint32(os.Geteuid()), dir.Uid}, file.Uid) {
		return fmt.Errorf("%s belongs to user %d, who knows what is in it: delete it, or chown it if it is yours", path, file.Uid)
	}
	return nil
}
