// Package portcheck takes the platform's addresses before anything else starts, and reports in one sentence which one
// is in use, by which process, and how to move ours.
package portcheck

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Listen takes addr for the part called name; env is the variable that moves it.
func Listen(addr, name, env string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, explainListenError(err, addr, name, env)
	}
	return l, nil
}

// Free checks that addr is free, for a part that listens on it itself.
func Free(addr, name, env string) error {
	l, err := Listen(addr, name, env)
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("free %s again: %w", addr, err)
	}
	return nil
}

func explainListenError(err error, addr, name, env string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		_, port, _ := net.SplitHostPort(addr) // net.Listen has parsed it
		by := ""
		if p, pid := Holder(port); pid != 0 {
			by = " by " + p
		}
		return fmt.Errorf("port %s of the %s is in use%s: stop that program, or set %s to another address", port, name, by, env)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("the %s may not listen on %s without privileges: set %s to an address with a port of 1024 or more", name, addr, env)
	}
	return fmt.Errorf("the %s cannot listen on %s; set %s to another address: %w", name, addr, env, err)
}

// Holder names the process that listens on the TCP port, as far as /proc shows it: not on other systems, and not for
// other users' processes. pid is 0 if it is unknown.
func Holder(port string) (name string, pid int) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0
	}
	inodes := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		addListeners(string(b), uint16(n), inodes)
	}
	if len(inodes) == 0 {
		return "", 0
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return "", 0
	}
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(link, "socket:[") {
			continue
		}
		if !inodes[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] {
			continue
		}
		process := filepath.Dir(filepath.Dir(fd))
		name := "a process"
		if b, err := os.ReadFile(filepath.Join(process, "comm")); err == nil {
			name = strings.TrimSpace(string(b))
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %d)", name, pid), pid
	}
	return "", 0
}

// addListeners adds the inodes of the sockets that listen on port, from a table of
// /proc/net/tcp: fields sl, local_address, rem_address, st, …, inode (proc(5)).
func addListeners(table string, port uint16, inodes map[string]bool) {
	const listen = "0A"
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 9 && f[3] == listen && strings.HasSuffix(f[1], suffix) {
			inodes[f[9]] = true
		}
	}
}
