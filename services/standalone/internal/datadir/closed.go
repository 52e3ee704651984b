package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/mlp-platform/platform/libs/embedded/pg"
)

// uncheckedFile exists while a directory that was open to others has not been checked, so that a start after a refused
// one does not use files that they left.
const uncheckedFile = "unchecked"

// ContainersDir is where scripts/up.sh keeps the secrets of the containers of the same checkout, which belong to their
// users. This process does not read it.
const ContainersDir = "compose"

// postgresDir holds the files of the embedded Postgres; if root started it, they belong to another user.
const postgresDir = "postgres"

// closeToOthers keeps other users out of the directory: its content opens every part of the platform. It refuses a
// directory of another user, who could open it again, one that others may rename and replace, and one in which they
// left something while it was open.
func closeToOthers(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be read: %w", dir, err)
	}
	if owner := ownerOf(info); owner != os.Geteuid() {
		return fmt.Errorf("the data directory %s belongs to user %d, who could read every secret in it: name a directory of your own in PLATFORM_DATA_DIR", dir, owner)
	}
	if err := checkAbove(dir); err != nil {
		return err
	}
	unchecked := filepath.Join(dir, uncheckedFile)
	if info.Mode().Perm()&0o077 != 0 {
		// Closed first: no one can add files during the check.
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("others may enter the data directory %s, and it cannot be closed to them: %w", dir, err)
		}
		if err := os.WriteFile(unchecked, nil, 0o600); err != nil {
			return fmt.Errorf("the data directory %s cannot be written: %w", dir, err)
		}
	} else if _, err := os.Lstat(unchecked); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkOwners(dir); err != nil {
		return err
	}
	return removeFile(unchecked)
}

// checkAbove refuses a directory that others may rename, since they may write to one above it.
func checkAbove(dir string) error {
	// Links are followed first: the parents of the real directory count.
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be read: %w", dir, err)
	}
	for above := filepath.Dir(real); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return fmt.Errorf("the data directory %s cannot be trusted: %w", dir, err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		if uid := int(stat.Uid); uid != 0 && uid != os.Geteuid() {
			return fmt.Errorf("others may replace the data directory %s, since %s belongs to user %d: name a directory elsewhere in PLATFORM_DATA_DIR", dir, above, uid)
		}
		// With the sticky bit, only the owner may rename a file, as in /tmp.
		mode := info.Mode()
		switch sticky := mode&os.ModeSticky != 0; {
		case mode.Perm()&0o002 != 0 && !sticky:
			return fmt.Errorf("others may replace the data directory %s, since everybody may write to %s (mode %04o): name a directory elsewhere in PLATFORM_DATA_DIR", dir, above, mode.Perm())
		case mode.Perm()&0o020 != 0 && !sticky && !isPrivateGroup(stat.Gid):
			return fmt.Errorf("others may replace the data directory %s, since group %d may write to %s (mode %04o): chmod g-w it, or name a directory elsewhere in PLATFORM_DATA_DIR", dir, stat.Gid, above, mode.Perm())
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

// isPrivateGroup reports whether the group has no members but root and this user: root's group, or the group of the
// user's name that many systems make for each user. There, umask 002 is usual, and makes every directory writable for
// the group.
func isPrivateGroup(gid uint32) bool {
	if gid == 0 {
		return true
	}
	me, err := user.Current()
	if err != nil || me.Gid != strconv.Itoa(int(gid)) {
		return false
	}
	group, err := user.LookupGroupId(me.Gid)
	return err == nil && group.Name == me.Username
}

// checkOwners refuses a directory in which others have left something: a repository, a file of secrets, a database.
func checkOwners(dir string) error {
	mine := []int{0, os.Geteuid()}
	postgres := mine
	if os.Geteuid() == 0 {
		postgres = append(slices.Clone(mine), pg.ServerUIDs()...)
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a platform that runs has removed it
			return nil
		}
		if err != nil {
			return fmt.Errorf("others could write to the data directory %s, and what they left cannot be looked for: %w", dir, err)
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("others could write to the data directory %s, and what they left cannot be looked for: %w", dir, err)
		}
		owners := mine
		if strings.HasPrefix(path, filepath.Join(dir, postgresDir)+string(filepath.Separator)) {
			owners = postgres
		}
		if owner := ownerOf(info); !slices.Contains(owners, owner) {
			return fmt.Errorf("others could write to the data directory %s, and %s in it belongs to user %d: remove it, or chown it if it is yours, or name another directory in PLATFORM_DATA_DIR", dir, path, owner)
		}
		if path == filepath.Join(dir, ContainersDir) && d.IsDir() { // ours; its content belongs to the containers
			return fs.SkipDir
		}
		return nil
	})
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
