//go:build e2e

package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/embedded/child"
)

// engine is a Docker daemon.
type engine struct {
	environ []string // for its clients
	pid     int      // of a daemon that this test started; 0 for one that was running
}

// openEngine returns the running engine, or else a new one that ends with the test.
func openEngine(t *testing.T) *engine {
	t.Helper()
	running := &engine{environ: os.Environ()}
	if _, err := running.docker(t.Context(), nil, "info"); err == nil {
		return running
	}
	return startEngine(t)
}

// startDaemon runs as the first process of new namespaces. Everything a daemon leaves behind when it ends (bridge,
// firewall rules, sysctls, mounts) ends with them, also when this test is killed.
const startDaemon = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
exec dockerd --data-root "$1/data" --exec-root "$1/exec" -H "unix://$1/docker.sock" -p "$1/docker.pid" --cgroup-parent "/$2"
`

func startEngine(t *testing.T) *engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine-") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	group := "platform-" + filepath.Base(dir)
	logFile := filepath.Join(dir, "dockerd.log")
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("sh", "-c", startDaemon, "dockerd", dir, group)
	// A plain su omits the directories of the daemon and iptables.
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC}
	daemon, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatalf("no container engine can run here: a daemon needs root and network, mount and process namespaces of its own, and got %v; run as root or start Docker", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := daemon.Stop(ctx, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		removeGroups(t, group)
	})
	e := &engine{environ: append(os.Environ(), "DOCKER_HOST=unix://"+filepath.Join(dir, "docker.sock")), pid: daemon.PID()}
	for deadline := time.Now().Add(30 * time.Second); ; {
		_, err := e.docker(t.Context(), nil, "info")
		if err == nil {
			return e
		}
		select {
		case <-daemon.Done():
			t.Fatalf("no container engine can run here: dockerd ended (%v) with %q; allow it what it lacks or start Docker", daemon.Err(), lastLine(logFile))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("no container engine can run here: dockerd did not answer within 30 s (%v), its last word was %q; want !time.Now().After(deadline)", err, lastLine(logFile))
		}
	}
}

// removeGroups removes the control groups that outlive their daemon.
func removeGroups(t *testing.T, name string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, err := filepath.Glob(pattern + name)
		if err != nil {
			t.Error(err)
		}
		for _, group := range found {
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		}
	}
}

func lastLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// docker runs the command line of the engine.
func (e *engine) docker(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env, cmd.Stdin = e.environ, in
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// command runs a program where it can reach the engine's published ports.
func (e *engine) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	if e.pid != 0 {
		args = append([]string{"--target", strconv.Itoa(e.pid), "--net", "--", program}, args...)
		program = "nsenter"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = e.environ
	return cmd
}

// event is the engine's record of a container event.
type event struct {
	Action string `json:"Action"`
	Actor  struct {
		ID         string            `json:"ID"`
		Attributes map[string]string `json:"Attributes"`
	} `json:"Actor"`
}

func (e *engine) containerEvents(t *testing.T, from, to time.Time) []event {
	t.Helper()
	out, err := e.docker(t.Context(), nil, "events", "--since", unixTime(from), "--until", unixTime(to),
		"--filter", "type=container", "--format", "{{json .}}")
	if err != nil {
		t.Fatal(err)
	}
	var events []event
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		var one event
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		events = append(events, one)
	}
	return events
}

func unixTime(at time.Time) string { return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()) }
