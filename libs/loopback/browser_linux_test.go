package loopback_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback"
)

// TestOpenBrowser changes PATH to a fake opener, so it cannot run in parallel.
func TestOpenBrowser(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	const address = "http://127.0.0.1:8770/?launch=a&b=$(touch x)"
	if err := loopback.OpenBrowser(address); err == nil || !strings.Contains(err.Error(), "xdg-open is not installed") {
		t.Errorf(`%v; want an error && strings.Contains(err.Error(), "xdg-open is not installed")`, err)
	}
	// The opener reports its arguments through a pipe and then hangs until it may
	// end.
	for _, name := range []string{"got", "go"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("#!/bin/sh\necho \"$#:$1\" > %[1]s/got\nread line < %[1]s/go\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := loopback.OpenBrowser(address); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(filepath.Join(dir, "got"))
		got <- string(b)
	}()
	select {
	case text := <-got:
		if text != "1:"+address+"\n" {
			t.Errorf("%q; want text == \"1:\" + address + \"\\n\"", text)
		}
	case <-ctx.Done():
		t.Fatal("the opener was not started")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "--help", "http://evil.example/", "file:///etc/passwd", "http://127.0.0.1.evil.example:80/"} {
		if err := loopback.OpenBrowser(address); err == nil {
			t.Errorf("%q was opened; want an error", address)
		}
	}
}
