package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mlp-platform/platform/libs/cli/printable"
)

// openTerminal returns the program's side of a pseudo-terminal; its output is discarded.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	t.Setenv("TERM", "xterm")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, master) // ends with EIO when the other side is closed
	}()
	t.Cleanup(func() {
		if err := slave.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err, "want (err == nil || errors.Is(err, os.ErrClosed))")
		}
		<-read
	})
	return slave
}

func returnsWithin(t *testing.T, d time.Duration, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s did not return within %s", what, d)
	}
}

func TestFlushWithBarsThatNeverEnded(t *testing.T) {
	c := New(openTerminal(t))
	if !c.tty {
		t.Fatal("a pseudo-terminal is not taken for a terminal")
	}
	returnsWithin(t, 10*time.Second, "Flush", func() {
		for _, name := range []string{"a", "b", "c", "d"} {
			c.Begin(name)
		}
		c.Progress("a", "train", 0.5)
		c.End("a", "failed: interrupted", false)
		c.Progress("b", "train", 0.1)
		c.Flush()
		c.Flush()
		c.Progress("b", "late", 0.9) // of work that ends after the flush
		c.End("b", "late", true)
		c.Begin("e")
		c.End("e", "served", true)
		c.Flush()
	})
}

func TestBarsAtOnceOnATerminal(t *testing.T) {
	c := New(openTerminal(t))
	returnsWithin(t, 30*time.Second, "the bars", func() {
		var all sync.WaitGroup
		for i := range 8 {
			name := fmt.Sprint("model", i)
			all.Go(func() {
				c.Begin(name)
				for f := range 50 {
					c.Progress(name, fmt.Sprint("stage ", f), float64(f)/50)
				}
				c.Say("said by %s", name)
				c.End(name, "done", true)
			})
		}
		all.Wait()
		c.Flush()
	})
}

func TestLinesWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	c := Writer(&out)
	c.Begin("JPCP")
	c.Progress("JPCP", "extract", 0.1)
	c.Progress("JPCP", "extract", 0.2)
	c.Progress("JPCP", "wait", 0.3)
	c.End("JPCP", "served", true)
	c.Progress("JPCP", "late", 1)
	c.Flush()
	if got := strings.Fields(out.String()); strings.Join(got, " ") != "JPCP extract JPCP wait JPCP served" {
		t.Fatalf(`lines: %q; want strings.Join(got, " ") == "JPCP extract JPCP wait JPCP served"`, out.String())
	}
}

// Writer writes plain lines to w, as for a pipe.
func Writer(w io.Writer) *Console {
	return &Console{out: w, lines: printable.NewColorWriter(w), live: map[string]*bar{}}
}
