package pyfunc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// modelFiles is an artifact in memory.
type modelFiles map[string][]byte

func (f modelFiles) ReadFile(name string, _ int64) ([]byte, error) {
	if data, ok := f[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (f modelFiles) LinkTo(dir string) error {
	for name, data := range f {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// starting is Servers that start the shell's script with the model's folder as $1 and the port as $2.
func starting(t *testing.T, script string) (*Servers, Version) {
	t.Helper()
	s, err := New(Config{Command: []string{"sh", "-c", script, "sh", modelMark, portMark}, Dir: t.TempDir(), RunLimit: time.Second, Sessions: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	files := modelFiles(fixturetest.Python(`[{"type": "double", "name": "a"}]`, `[{"type": "double"}]`))
	return s, Version{Name: "forest", Version: "1", Files: files, Rows: 1}
}

// isAskable reports whether the catalog would ask again at each poll.
func isAskable(err error) bool {
	var gone *model.ServerError
	return errors.As(err, &gone)
}

// Each try of a server that never gets ready costs a process for minutes, so polls must not try again at once.
func TestStartedServerThatIsNeverReadyIsAFaultOfTheVersion(t *testing.T) {
	t.Parallel()
	s, v := starting(t, "exec sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	m, err := s.Open(ctx, v)
	if m != nil || err == nil || isAskable(err) || !strings.HasPrefix(err.Error(), reasonPrefix) {
		t.Errorf("got %v, %v, want a fault %sthat is no ServerError", m, err, reasonPrefix)
	}
	for range maxStarted {
		s.started <- struct{}{}
	}
	if _, err = s.Open(t.Context(), v); err == nil || isAskable(err) || !strings.Contains(err.Error(), "16 scoring servers run here") {
		t.Errorf("with all servers started: got %v, want a fault that is no ServerError", err)
	}
	if left, err := os.ReadDir(s.cfg.Dir); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v, want nothing", left, err)
	}
}

// A process that takes the port before the server does gets no requests.
func TestStrangerOnThePortIsNotBelieved(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "port")
	s, v := starting(t, fmt.Sprintf(`echo "$2" > %s.new; mv %s.new %s; exec sleep 600`, file, file, file))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opened := make(chan error, 1)
	go func() {
		m, err := s.Open(ctx, v)
		if m != nil {
			err = errors.Join(m.Close(), errors.New("the model was opened"))
		}
		opened <- err
	}()
	var port string
	testenv.Eventually(t, 20*time.Second, func() error {
		raw, err := os.ReadFile(file)
		port = strings.TrimSpace(string(raw))
		return err
	})
	ln, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	stranger := &fixturetest.Scoring{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		stranger.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	time.AfterFunc(2*time.Second, cancel)
	if err := <-opened; err == nil || strings.Contains(err.Error(), "was opened") || asked.Load() > 1 { // one may have been on its way
		t.Errorf("got %v after %d requests to the stranger, want a fault and none", err, asked.Load())
	}
}

func TestWhoListens(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	for _, address := range []string{"127.0.0.1:0", ":0", "0.0.0.0:0"} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		if own, stranger := whoListens(port, os.Getpid()), whoListens(port, other.Process.Pid); own != ownListens || stranger != strangerListens {
			t.Errorf("%s: got %d for its process and %d for another, want %d and %d", address, own, stranger, ownListens, strangerListens)
		}
		_ = ln.Close()
	}
	for host, want := range map[string]bool{"00000000": true, "00000000000000000000000000000000": true, "zz": false, "": false} {
		if got := acceptsLoopback(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}

func TestPortsAreGivenOutOnce(t *testing.T) {
	t.Parallel()
	var p ports
	seen := map[int]bool{}
	for range 1000 {
		port, err := p.take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("got port %s twice", strconv.Itoa(port))
		}
		seen[port] = true
	}
	for port := range seen {
		p.free(port)
	}
	if len(p.taken) > 0 {
		t.Errorf("got %d ports taken after all were freed, want none", len(p.taken))
	}
}
