package pyfunc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ports are those that servers were given and may not have bound yet. The zero value is ready.
type ports struct {
	mu    sync.Mutex // guards taken
	taken map[int]bool
}

// portTries limits the attempts to find a port that no server has.
const portTries = 2 * maxStarted

// take reserves a free loopback port, and does not return it again before free.
func (p *ports) take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range portTries {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("no port for a scoring server: %w", err)
		}
		defer ln.Close() // only at the end, so that each is another
		port := ln.Addr().(*net.TCPAddr).Port
		if p.taken[port] {
			continue
		}
		if p.taken == nil {
			p.taken = map[int]bool{}
		}
		p.taken[port] = true
		return port, nil
	}
	return 0, errors.New("no port for a scoring server: all that were found are in use")
}

func (p *ports) free(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, port)
}

// listens is who listens on a port of loopback.
type listens int

const (
	nobodyListens listens = iota // as far as can be seen: the port may be forwarded
	ownListens
	strangerListens
)

// whoListens compares the sockets that listen on the port with those of the process leader, its group and its
// descendants. Sockets of users that could do anything to the server anyway count as its own: root's, as of a
// container's forwarder, and those of the user that the command has changed to.
func whoListens(port, leader int) listens {
	sockets := listeners(port)
	if len(sockets) == 0 {
		return nobodyListens
	}
	own, users := socketsOf(leader)
	for _, s := range sockets {
		if !own[s.inode] && !slices.Contains(users, s.uid) {
			return strangerListens
		}
	}
	return ownListens
}

// socket is a row of /proc/net/tcp.
type socket struct {
	inode string
	uid   uint32
}

// listeners returns the sockets that accept connections to 127.0.0.1 at the port; none if the kernel does not list
// them.
func listeners(port int) (out []socket) {
	const listening = "0A"
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			f := strings.Fields(string(line))
			if len(f) < 10 || f[3] != listening {
				continue
			}
			host, at, _ := strings.Cut(f[1], ":")
			if n, err := strconv.ParseUint(at, 16, 16); err != nil || int(n) != port || !acceptsLoopback(host) {
				continue
			}
			uid, err := strconv.ParseUint(f[7], 10, 32)
			if err != nil {
				continue
			}
			out = append(out, socket{f[9], uint32(uid)})
		}
	}
	return out
}

// acceptsLoopback reads a local address of /proc/net/tcp: words of 32 bits in the machine's order.
func acceptsLoopback(host string) bool {
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw)%4 != 0 {
		return false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	a, ok := netip.AddrFromSlice(raw)
	return ok && (a.IsUnspecified() || a.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1}))
}

// socketsOf are the inodes of the sockets that the server's processes hold, and the users whose sockets count as theirs.
func socketsOf(leader int) (inodes map[string]bool, users []uint32) {
	inodes = map[string]bool{}
	if os.Geteuid() != 0 {
		users = append(users, 0)
	}
	for _, pid := range processesOf(leader) {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		fds, err := os.ReadDir(filepath.Join(dir, "fd"))
		if errors.Is(err, os.ErrPermission) { // it runs as another user
			if st, err := os.Stat(dir); err == nil {
				users = append(users, st.Sys().(*syscall.Stat_t).Uid)
			}
			continue
		}
		for _, fd := range fds {
			target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
			if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
				inodes[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return inodes, users
}

// processesOf are the process leader, those of its group, and their descendants.
func processesOf(leader int) (out []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// The name before the bracket may hold anything; state, parent and group follow.
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(f) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(f[1])
		group, _ := strconv.Atoi(f[2])
		children[parent] = append(children[parent], pid)
		if pid == leader || group == leader {
			out = append(out, pid)
		}
	}
	seen := map[int]bool{}
	for i := 0; i < len(out); i++ {
		for _, pid := range children[out[i]] {
			if !seen[pid] && !slices.Contains(out, pid) {
				seen[pid] = true
				out = append(out, pid)
			}
		}
	}
	return out
}
