package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/mlp-platform/platform/libs/embedded/child"
)

var (
	redisServer once[string]
	prefixes    atomic.Int64
)

// Redis is the URL of a server that all tests of the binary share: keys and
// channels need the test's own [Prefix].
func Redis(t testing.TB) (url string) {
	t.Helper()
	addr, err := redisServer.get(startRedis)
	if err != nil {
		t.Fatalf("testenv: Redis: %v", err)
	}
	return "redis://" + addr + "/0"
}

// Prefix is unique to the call, for keys, subjects and names on shared servers.
func Prefix(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("t%s-%d:", process, prefixes.Add(1))
}

func startRedis(ctx context.Context) (string, error) {
	if addr := sharedServer(sharedRedisVariable); addr != "" {
		return addr, nil
	}
	bin, missing := exec.LookPath("redis-server")
	if missing != nil {
		missing = errors.New("redis-server is not installed")
	}
	if reason := containerReason(missing); reason != nil {
		return startContainer(ctx, reason, testcontainers.ContainerRequest{
			Image: imageName("REDIS_IMAGE", "redis:7"), ExposedPorts: []string{"6379/tcp"},
			WaitingFor: wait.ForLog("Ready to accept connections"),
		}, "6379/tcp")
	}
	r, err := runRedis(ctx, bin, 0)
	if err != nil {
		return "", err
	}
	atEnd(r.stop)
	return r.addr, nil
}

type redisProcess struct {
	addr string
	proc *child.Process
}

// runRedis starts a server that keeps nothing on disk; port 0 means a free one.
func runRedis(ctx context.Context, bin string, port int) (*redisProcess, error) {
	dir, err := workDir()
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		p := port
		if p == 0 {
			if p, err = freePort(); err != nil {
				return nil, err
			}
		}
		var log strings.Builder
		cmd := exec.Command(bin, "--port", strconv.Itoa(p), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", dir, "--logfile", "", "--daemonize", "no")
		cmd.Stdout, cmd.Stderr = &log, &log // read only after the end
		proc, err := child.Start(cmd, syscall.SIGKILL)
		if err != nil {
			return nil, err
		}
		r := &redisProcess{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(p)), proc: proc}
		if err := r.await(ctx); err == nil {
			return r, nil
		} else if r.stop(); port != 0 || try == 3 || !strings.Contains(log.String(), "Address already in use") {
			return nil, fmt.Errorf("%s did not start: %w: %s", filepath.Base(bin), err, strings.TrimSpace(log.String()))
		}
	}
}

// await pings until the server answers.
func (r *redisProcess) await(ctx context.Context) error {
	for {
		if pingServer(r.addr) == nil {
			return nil
		}
		select {
		case <-r.proc.Done():
			return fmt.Errorf("it ended: %w", r.proc.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func pingServer(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // fails on a closed connection only, as does what follows
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 7)
	if _, err := conn.Read(answer); err != nil {
		return err
	}
	if string(answer) != "+PONG\r\n" {
		return fmt.Errorf("unexpected answer %q", answer)
	}
	return nil
}

func (r *redisProcess) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = r.proc.Stop(ctx, syscall.SIGTERM) // it holds nothing worth keeping
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
