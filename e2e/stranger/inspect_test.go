//go:build e2e

package stranger

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// inspect reads from the system which ports, files and sockets the platform's processes have open.
func inspect(t *testing.T, p *harness.Platform) plan {
	t.Helper()
	m := plan{Pids: descendants(t, p.Pid()), Dir: p.Dir}
	inodes := map[string]bool{} // of their sockets
	for _, pid := range m.Pids {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, e := range entries {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
			if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
				inodes[strings.TrimSuffix(inode, "]")] = true
			} else if strings.HasPrefix(to, "/") && !strings.HasSuffix(to, " (deleted)") {
				m.Files = append(m.Files, to)
			}
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(maps)) {
			if i := strings.IndexByte(line, '/'); i > 0 && !strings.HasSuffix(line, " (deleted)\n") {
				m.Files = append(m.Files, strings.TrimSpace(line[i:]))
			}
		}
	}
	slices.Sort(m.Files)
	m.Files = slices.Compact(m.Files)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		eachLine(t, table, func(fields []string) {
			const listening = "0A"
			if len(fields) > 9 && fields[3] == listening && inodes[fields[9]] {
				m.Ports = append(m.Ports, decodeAddress(t, fields[1]))
			}
		})
	}
	eachLine(t, "/proc/net/unix", func(fields []string) {
		if len(fields) > 7 && inodes[fields[6]] {
			m.Sockets = append(m.Sockets, fields[7])
		}
	})
	slices.Sort(m.Ports)
	m.Ports = slices.Compact(m.Ports)
	m.Secrets = secretsOf(t, p.Dir)
	return m
}

// descendants returns the process and all of its descendants.
func descendants(t *testing.T, root int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
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
		// The name in parentheses may hold spaces.
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], pid)
		}
	}
	out := []int{root}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}

func eachLine(t *testing.T, path string, fn func(fields []string)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		return // no IPv6 here
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fn(strings.Fields(s.Text()))
	}
}

// decodeAddress parses the kernel's form: the address as little-endian words, then the port.
func decodeAddress(t *testing.T, s string) string {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(raw).String(), strconv.FormatUint(number, 10))
}

func secretsOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]string
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		out = append(out, s)
	}
	if password, err := os.ReadFile(filepath.Join(dir, "postgres", "password")); err == nil {
		out = append(out, strings.TrimSpace(string(password)))
	}
	return out
}

// hostOf returns the host and port of a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

func toolsAddress(p *harness.Platform) string { return p.Setting("DASHBOARD_TOOLS_ADDR") }
