//go:build root

package natsd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// mountDisk mounts a disk of this many bytes.
func mountDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk fills the disk that holds dir; remove the file to free it.
func fillDisk(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := bytes.Repeat([]byte{1}, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return file
		}
	}
}

func TestStreamsReturnAfterAFullDisk(t *testing.T) {
	t.Parallel()
	disk := mountDisk(t, "64m")
	s, err := Start(Config{Dir: filepath.Join(disk, "nats"), Token: "let-me-in", Users: []User{{Name: "u", Password: "of-the-user"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	publish := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := js.Publish(ctx, "s", bytes.Repeat([]byte("x"), 64<<10))
		return err
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	filler, kept := fillDisk(t, disk), 1
	for publish() == nil {
		kept++ // acknowledged messages count, also on a full disk
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for err := publish(); err != nil; err = publish() {
		if time.Now().After(deadline) {
			t.Fatalf("a minute after the disk was freed: %v; want a stored message", err)
		}
	}
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n < uint64(kept)+1 {
		t.Errorf("%d messages; want at least the %d that were acknowledged", n, kept+1)
	}
}
