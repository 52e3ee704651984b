//go:build e2e && full

package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// bare are the Debian packages of the machine: what the programs need, and the tools of the walk.
const bare = "libc6,libstdc++6,libgcc-s1,zlib1g,dash,coreutils,sed,grep,tar,zstd,busybox"

// enter runs the walk as an ordinary user in a root directory, in namespaces with loopback and no other network, and
// without other processes; they all end with it. Its arguments: root, archive, walk, both of them below root.
const enter = `
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
ip link set lo up
exec setpriv --no-new-privs chroot --userspec=65534:65534 --groups= "$0" /usr/bin/env -i HOME=/home PATH=/usr/bin:/bin \
	/bin/sh -c 'cd && exec sh "$1" "$0"' "$1" "$2"`

// The archive is all that a machine needs: without a network, a compiler, a database or root, the platform serves, trains
// and predicts. RELEASE_DIST names the folder of a release that was made before.
func TestArchiveServesOnABareMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a root directory and namespaces for an ordinary user, so it must be started as root")
	}
	dist := os.Getenv("RELEASE_DIST")
	if dist == "" {
		dist = filepath.Join(t.TempDir(), "dist")
		makeRelease(t, dist)
	}
	archives, err := filepath.Glob(filepath.Join(dist, "platform_*_linux_amd64.tar.zst"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%s has the archives %v, %v; want one", dist, archives, err)
	}
	if out, err := exec.Command(filepath.Join(dist, "verify.sh"), dist).CombinedOutput(); err != nil {
		t.Errorf("verify.sh: %v: %s", err, out)
	}
	root := bareRoot(t)
	for path, from := range map[string]string{"archive.tar.zst": archives[0], "walk.sh": "testdata/walk.sh"} {
		run(t, "cp", from, filepath.Join(root, path))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	walk := exec.CommandContext(ctx, "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", enter, root, "/archive.tar.zst", "/walk.sh")
	walk.Cancel = func() error { return walk.Process.Signal(syscall.SIGTERM) }
	walk.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	walk.Stdout, walk.Stderr = &stdout, &stderr
	err = walk.Run()
	t.Logf("after the start of tar:\n%s", stdout.String())
	if err != nil {
		t.Fatalf("the walk: %v\n%s", err, stderr.String())
	}
	took := map[string]time.Duration{}
	for line := range strings.Lines(stdout.String()) {
		name, ms, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(ms)
		if err != nil {
			t.Fatalf("the walk printed %q", line)
		}
		took[name] = time.Duration(n) * time.Millisecond
	}
	for _, step := range []string{"unpacked", "ready", "dashboard", "predicted", "seeded", "retrained", "stopped"} {
		if took[step] == 0 {
			t.Errorf("the walk did not reach %q", step)
		}
	}
	if interfaces := strings.Fields(valueOf(stderr.String(), "interfaces:")); len(interfaces) != 1 || interfaces[0] != "lo" {
		t.Errorf("the walk had the network interfaces %q, want only loopback", interfaces)
	}
	if user := valueOf(stderr.String(), "user:"); user != "65534" {
		t.Errorf("the walk ran as user %q, want 65534", user)
	}
	// Far above the measured ten seconds, since the machine may be busy.
	if took["ready"] > time.Minute {
		t.Errorf("ready after %v, want at most a minute", took["ready"])
	}
}

// makeRelease makes a release of this checkout, committed or not.
func makeRelease(t *testing.T, dist string) {
	t.Helper()
	root := harness.Root(t)
	begin := time.Now()
	for _, argv := range [][]string{{"scripts/setup.sh", "release"}, {"scripts/release.sh", "0.0.0-e2e", dist}} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "RELEASE_DIRTY=true", "RELEASE_KEY=", "RELEASE_SYSTEMS=linux/amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
	t.Logf("made a release in %.0f s", time.Since(begin).Seconds())
}

// bareRoot is a root directory with the bare packages and a home for an ordinary user.
func bareRoot(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	run(t, "mmdebstrap", "--quiet", "--variant=extract", "--include="+bare, "--dpkgopt=path-exclude=/usr/share/doc/*", "bookworm", root)
	for path, mode := range map[string]os.FileMode{"proc": 0o555, "dev": 0o755, "home": 0o755, "tmp": 0o777 | os.ModeSticky} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	// initdb looks its user up.
	if err := os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0::/:\nnobody:x:65534:65534::/home:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(root, "home"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	return root
}

// valueOf returns the rest of the first line that starts with the label.
func valueOf(text, label string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, label); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out))
	}
}
