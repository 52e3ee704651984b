package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Import imports images into the node from an archive, as docker save writes it.
func (n *Node) Import(ctx context.Context, archive io.Reader) error {
	return n.runCtr(ctx, archive, "images", "import", "-")
}

// NameImage gives an image of the node a second name. Both need a host, as containerd has no default.
func (n *Node) NameImage(ctx context.Context, from, to string) error {
	return n.runCtr(ctx, nil, "images", "tag", from, to)
}

func (n *Node) runCtr(ctx context.Context, in io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"-a", n.path("containerd.sock"), "-n", "k8s.io"}, args...)...)
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Dial connects from within the node's network, where the addresses of pods and Services are routed. The address must
// be numeric: another thread, outside that network, would look up a name.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// A socket stays in the network in which its thread created it. A thread that cannot return stays locked and
		// ends with the goroutine. Ending every thread so would be simpler, but processes that are to die with their
		// parent are killed by the kernel as soon as the thread that started them ends.
		runtime.LockOSThread()
		leave, err := enterNetwork(n.cmd.Process.Pid)
		if err != nil { // the thread has not left its network
			runtime.UnlockOSThread()
			done <- result{err: err}
			return
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if left := leave(); left != nil {
			err = errors.Join(err, left)
			if conn != nil {
				err = errors.Join(err, conn.Close())
				conn = nil
			}
		} else {
			runtime.UnlockOSThread()
		}
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// enterNetwork moves the calling thread to the network of a process; leave moves it back.
func enterNetwork(pid int) (leave func() error, err error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	its, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	defer its.Close()
	if err := unix.Setns(int(its.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, errors.Join(fmt.Errorf("enter the node's network: %w", err), own.Close())
	}
	return func() error {
		return errors.Join(unix.Setns(int(own.Fd()), unix.CLONE_NEWNET), own.Close())
	}, nil
}

// Listen opens a port at the machine's end of the pair, which pods can reach. It is closed when the node stops.
func (n *Node) Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", n.gateway+":0")
	if err != nil {
		t.Fatal(err)
	}
	n.doors = append(n.doors, l)
	return l
}

// Open forwards a loopback address of this machine to an address of the node's network, for programs that cannot Dial.
// It is closed when the node stops.
func (n *Node) Open(t testing.TB, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.doors = append(n.doors, l)
	go forward(l, func() (net.Conn, error) { return n.Dial(context.Background(), "tcp", address) })
	return l.Addr().String()
}
