package portcheck

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestTaken(t *testing.T) {
	t.Parallel()
	l, err := Listen("127.0.0.1:0", "tracker", "TRACKER_ADDR")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{Free(addr, "tracker", "TRACKER_ADDR"), func() error { _, err := Listen(addr, "tracker", "TRACKER_ADDR"); return err }()} {
		if err == nil {
			t.Fatal("taken twice")
		}
		want := []string{"port " + port, "tracker", "TRACKER_ADDR", "in use"}
		if runtime.GOOS == "linux" {
			want = append(want, fmt.Sprintf("(pid %d)", os.Getpid()))
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q; want strings.Contains(err.Error(), w)", err, w)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is more than a sentence; want !strings.Contains(err.Error(), \"\\n\")", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Free(addr, "tracker", "TRACKER_ADDR"); err != nil {
		t.Fatalf("after close: %v", err)
	}
}

func TestOtherFaults(t *testing.T) {
	t.Parallel()
	// 192.0.2.1 is for documentation (RFC 5737): no machine's own.
	for _, addr := range []string{"192.0.2.1:18002", "127.0.0.1:x"} {
		err := Free(addr, "control plane", "CONTROL_PLANE_ADDR")
		if err == nil || !strings.Contains(err.Error(), "CONTROL_PLANE_ADDR") || !strings.Contains(err.Error(), "control plane") {
			t.Errorf(`%s: %v; want an error && strings.Contains(err.Error(), "CONTROL_PLANE_ADDR") && strings.Contains(err.Error(), "control plane")`, addr, err)
		}
	}
}

func TestListening(t *testing.T) {
	t.Parallel()
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4652 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:4652 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 20 4 30 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
 short line
`
	got := map[string]bool{}
	addListeners(table, 18002, got)
	if len(got) != 1 || !got["111"] {
		t.Fatalf("inodes %v, want 111", got)
	}
}
