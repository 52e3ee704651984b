package stream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/embedded/child"
)

// nchanConfig serves one channel, to subscribers of EventSource. It keeps as many messages as the stream queues for a
// client; with the ten of nchan's default a client would miss some of those that are under way in flood.
const nchanConfig = `daemon off;
load_module %[1]s/usr/lib/nginx/modules/ngx_nchan_module.so;
pid nginx.pid;
error_log error.log;
worker_processes auto;
worker_rlimit_nofile 4096;
events { worker_connections 2048; }
http {
	access_log off;
	keepalive_requests 1000000000;
	keepalive_time 1d;
	tcp_nodelay on;
	server {
		listen %[2]s;
		location = /api/v1/stream {
			nchan_subscriber eventsource;
			nchan_channel_id events;
			nchan_subscriber_first_message newest;
		}
		location = /publish {
			nchan_publisher http;
			nchan_channel_id events;
			nchan_message_buffer_length 256;
		}
	}
}
`

// startNchan runs nginx with nchan, a worker for each processor; nil: scripts/nchan.sh was not run. An event is published
// by a request on one connection, which nchan answers before the next one.
func startNchan(b *testing.B) *fanOut {
	home, err := filepath.Abs("../../../../.cache/nchan")
	if err != nil {
		b.Fatal(err)
	}
	nginx := filepath.Join(home, "usr/sbin/nginx")
	if _, err := os.Stat(nginx); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "nchan is left out: run scripts/nchan.sh") // b.Log is shown with -v only
		return nil
	}
	dir, addr := b.TempDir(), freeAddress(b)
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nchanConfig, home, addr), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", config, "-e", "error.log")
	libraries, err := filepath.Glob(filepath.Join(home, "usr/lib/*-linux-gnu*"))
	if err != nil {
		b.Fatal(err)
	}
	environment := append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	cmd.Env = environment
	check := exec.Command(nginx, "-v")
	check.Env = environment
	if out, err := check.CombinedOutput(); err != nil { // unpacked for an older system
		fmt.Fprintf(os.Stderr, "nchan is left out: %v, %s; remove .cache/nchan and run scripts/nchan.sh\n", err, out)
		return nil
	}
	// On SIGTERM, the master ends its workers; on SIGKILL, it would leave them behind.
	proc, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := proc.Stop(ctx, syscall.SIGTERM); err != nil {
			b.Error(err)
		}
	})
	conn := dialNginx(b, addr, proc, filepath.Join(dir, "error.log"))
	b.Cleanup(func() { _ = conn.Close() })
	answers := bufio.NewReader(conn)
	request := fmt.Appendf(nil, "POST /publish HTTP/1.1\r\nHost: %s\r\nX-EventSource-Event: job.started\r\nContent-Length: %d\r\n\r\n%s", addr, len(sentData), sentData)
	return &fanOut{
		name: "nchan", addr: addr,
		publish: func(n uint64) {
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				b.Fatal(err)
			}
			if _, err := conn.Write(request); err != nil {
				b.Fatal(err)
			}
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				b.Fatalf("event %d: %v", n, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
				b.Fatalf("nchan answered %s, %v; want 201, which says that there are subscribers", resp.Status, err)
			}
		},
	}
}

// dialNginx connects as soon as nginx listens.
func dialNginx(b *testing.B, addr string, proc *child.Process, errorLog string) net.Conn {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn
		}
		select {
		case <-tick.C:
			continue
		case <-proc.Done():
		case <-end:
		}
		said, _ := os.ReadFile(errorLog)
		b.Fatalf("nginx does not listen: %v, %v; it says: %s", err, proc.Err(), said)
	}
}

// freeAddress returns an address on which nothing listens.
func freeAddress(b *testing.B) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
