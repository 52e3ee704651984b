package pg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// runAs is the user that the server runs as: nil for this process' own; when
// this process is root, the owner of the existing data, else an unprivileged one.
func runAs(data string) (*syscall.Credential, error) {
	var owner *syscall.Stat_t
	switch info, err := os.Stat(data); {
	case err == nil:
		owner, _ = info.Sys().(*syscall.Stat_t)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("postgres: the data directory cannot be read: %w", err)
	}
	if me := os.Geteuid(); me != 0 {
		if owner != nil && int(owner.Uid) != me {
			return nil, fmt.Errorf("postgres: %s belongs to user %d, this process runs as %d; start as that user, or choose another directory", data, owner.Uid, me)
		}
		return nil, nil
	}
	if owner != nil && owner.Uid != 0 {
		return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}, nil
	}
	return serverUsers()[0], nil
}

// serverUsers are the users that the server may run as when this process is root, the best first.
func serverUsers() (users []*syscall.Credential) {
	// Every process of that user can enter the server's data by /proc, past the closed directories above it. So the
	// user "nobody", which many processes share, comes last.
	for _, name := range []string{"postgres", "daemon", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr == nil && gerr == nil && uid != 0 {
			users = append(users, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)})
		}
	}
	return append(users, &syscall.Credential{Uid: 65534, Gid: 65534}) // an image without a user list
}

// ServerUIDs are the users, in addition to root, that may own a cluster's files if root has made the cluster.
func ServerUIDs() (uids []int) {
	for _, u := range serverUsers() {
		uids = append(uids, int(u.Uid))
	}
	return uids
}
