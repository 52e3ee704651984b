//go:build e2e

package stranger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// planVariable holds the stranger's attempts, as JSON.
const planVariable = "STRANGER_PLAN"

// plan lists the stranger's attempts. The owner of the platform makes it, so that nothing is missed that the stranger
// could find only with luck.
type plan struct {
	Pids     []int     // of the platform and its children
	Ports    []string  // host:port, each that one of them listens on
	Dir      string    // the data directory
	Files    []string  // that they have open or mapped
	Sockets  []string  // Unix sockets, @ before abstract ones
	Requests []request // to send without a credential
	Secrets  []string  // that must be on no command line
}

// request is one HTTP request. Open means that everybody may send it, Guessed that its path may not exist: then
// anything but a success is a refusal.
type request struct {
	Port, Name, Method, Path, Body string
	Open, Guessed                  bool
}

// attempt is one row of the table.
type attempt struct {
	Kind, Target, Tried, Outcome string
	Success                      bool // of the stranger: a failure of the platform
}

// attemptAll tries everything in the plan.
func attemptAll(p plan) []attempt {
	return slices.Concat(attemptRequests(p), attemptProtocols(p), attemptFiles(p), attemptProcesses(p), attemptSockets(p))
}

var impatient = &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func attemptRequests(p plan) (out []attempt) {
	for _, r := range p.Requests {
		a := attempt{Kind: "HTTP", Target: r.Name, Tried: r.Method + " " + r.Path}
		status, err := send(r)
		switch {
		case err != nil:
			a.Outcome = err.Error()
		case r.Open:
			a.Outcome = fmt.Sprintf("%d, open to all", status)
		case r.Guessed:
			a.Outcome = fmt.Sprint(status)
			a.Success = status < 300
		default:
			a.Outcome = fmt.Sprint(status)
			a.Success = status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusTooManyRequests
		}
		out = append(out, a)
	}
	return out
}

func send(r request) (int, error) {
	req, err := http.NewRequest(r.Method, "http://"+r.Port+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return 0, err
	}
	if r.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := impatient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// attemptProtocols speaks NATS and Postgres to every port: one of them may accept it.
func attemptProtocols(p plan) (out []attempt) {
	for _, port := range p.Ports {
		for _, login := range []string{`{}`, `{"auth_token":""}`, `{"auth_token":"nats"}`, `{"user":"","pass":""}`} {
			reply := exchange(port, []byte("CONNECT "+login+"\r\nPUB platform.x 1\r\nx\r\nPING\r\n"))
			out = append(out, attempt{Kind: "NATS", Target: port, Tried: login, Outcome: firstLine(reply), Success: bytes.Contains(reply, []byte("PONG"))})
		}
		for _, user := range []string{"platform", "postgres", ""} {
			reply := exchange(port, postgresStartup(user))
			// R is an authentication request, and kind 0 means that the login is done.
			in := len(reply) >= 9 && reply[0] == 'R' && binary.BigEndian.Uint32(reply[5:]) == 0
			out = append(out, attempt{Kind: "Postgres", Target: port, Tried: "user " + user + " without a password", Outcome: firstLine(reply), Success: in})
		}
	}
	return out
}

func exchange(port string, message []byte) []byte {
	c, err := net.DialTimeout("tcp", port, 3*time.Second)
	if err != nil {
		return []byte(err.Error())
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write(message); err != nil {
		return []byte(err.Error())
	}
	b, _ := io.ReadAll(io.LimitReader(c, 4096)) // the data before the deadline
	return b
}

func postgresStartup(user string) []byte {
	body := binary.BigEndian.AppendUint32(nil, 3<<16)
	body = append(body, "user\x00"+user+"\x00database\x00platform\x00\x00"...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r > '~' {
			return '.'
		}
		return r
	}, string(b)), "\n")
	if len(line) > 60 {
		line = line[:60]
	}
	if line == "" {
		return "no answer"
	}
	return line
}

// attemptFiles walks the data directory as far as it can, and opens every file that the platform has open.
func attemptFiles(p plan) (out []attempt) {
	seen := 0
	_ = filepath.WalkDir(p.Dir, func(path string, _ fs.DirEntry, err error) error {
		seen++
		if err != nil {
			out = append(out, attempt{Kind: "file", Target: path, Tried: "read", Outcome: reason(err)})
			return fs.SkipDir
		}
		if path != p.Dir {
			out = append(out, attempt{Kind: "file", Target: path, Tried: "list", Outcome: "seen", Success: true})
		}
		return nil
	})
	for _, path := range append(p.Files, filepath.Join(p.Dir, "credentials.json"), filepath.Join(p.Dir, "platform.lock"), filepath.Join(p.Dir, "x")) {
		// The programs and the system's libraries may be read by everyone.
		if !ofTheSystem(path) {
			out = append(out, open(path, "read", os.O_RDONLY))
		}
		out = append(out, open(path, "write", os.O_WRONLY))
	}
	return append(out, open(filepath.Join(p.Dir, "made-by-a-stranger"), "create", os.O_WRONLY|os.O_CREATE))
}

// ofTheSystem reports whether a file is neither state nor temporary: a program, a library, a device.
func ofTheSystem(path string) bool {
	return !slices.ContainsFunc([]string{"/tmp/", "/var/", "/dev/shm/", "/run/"}, func(root string) bool { return strings.HasPrefix(path, root) })
}

func open(path, how string, flags int) attempt {
	a := attempt{Kind: "file", Target: path, Tried: how}
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		a.Outcome = reason(err)
		return a
	}
	info, err := f.Stat()
	// Everyone may write to the null device and similar ones.
	a.Outcome, a.Success = "opened", err != nil || info.Mode()&os.ModeDevice == 0
	_ = f.Close()
	return a
}

func reason(err error) string {
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // the innermost is wanted
		return e.Err.Error()
	}
	return err.Error()
}

// attemptProcesses signals the platform's processes and inspects them.
func attemptProcesses(p plan) (out []attempt) {
	for _, pid := range p.Pids {
		target := fmt.Sprintf("pid %d", pid)
		err := syscall.Kill(pid, 0)
		out = append(out, attempt{Kind: "process", Target: target, Tried: "signal", Outcome: fmt.Sprint(err), Success: err == nil})
		for _, name := range []string{"environ", "mem", "maps", "fd"} {
			a := open(fmt.Sprintf("/proc/%d/%s", pid, name), "read", os.O_RDONLY)
			a.Kind = "process"
			out = append(out, a)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		leaked := slices.ContainsFunc(p.Secrets, func(s string) bool { return bytes.Contains(line, []byte(s)) })
		a := attempt{Kind: "process", Target: target, Tried: "secrets in the command line", Outcome: "none", Success: leaked}
		if err != nil {
			a.Outcome = reason(err)
		} else if leaked {
			a.Outcome = "found"
		}
		out = append(out, a)
	}
	return out
}

func attemptSockets(p plan) (out []attempt) {
	for _, path := range p.Sockets {
		a := attempt{Kind: "Unix socket", Target: path, Tried: "connect", Outcome: "connected", Success: true}
		if c, err := net.DialTimeout("unix", path, time.Second); err != nil {
			a.Outcome, a.Success = err.Error(), false
		} else {
			_ = c.Close()
		}
		out = append(out, a)
	}
	return out
}
