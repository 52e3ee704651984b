//go:build e2e && full

package release

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// debs returns the packages of a release by their names, without version and architecture.
func debs(t *testing.T) map[string]string {
	t.Helper()
	dist := os.Getenv("RELEASE_DIST")
	if dist == "" {
		dist = filepath.Join(t.TempDir(), "dist")
		makeRelease(t, dist)
	}
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dist, "*_amd64.deb"))
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "_")
		found[name] = file
	}
	if err != nil || len(found) != 2 || found["mlp-platform"] == "" || found["mlp-cli"] == "" {
		t.Fatalf("%s has the packages %v, %v; want mlp-platform and mlp-cli", dist, found, err)
	}
	return found
}

// unpack unpacks a package into the root directory, as dpkg does, without its scripts: those would make a user here.
func unpack(root, deb string) (string, error) {
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			return "", err
		}
	}
	for _, file := range []string{"status", "available"} {
		f, err := os.OpenFile(filepath.Join(root, "var/lib/dpkg", file), os.O_CREATE, 0o644)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	out, err := exec.Command("dpkg", "--root="+root, "--force-depends", "--unpack", deb).CombinedOutput()
	return string(out), err
}

// The packages unpack into a root directory. Their programs run there and find the libraries and the server that come
// with them; the service runs a program of the package.
func TestDebianPackages(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("dpkg unpacks only for root, so this test must be started as root")
	}
	packages := debs(t)
	for name, deb := range packages {
		listing, err := exec.Command("dpkg-deb", "-c", deb).Output()
		if err != nil {
			t.Fatal(err)
		}
		times := map[string]bool{}
		for line := range strings.Lines(string(listing)) {
			if f := strings.Fields(line); len(f) > 5 {
				times[f[3]+" "+f[4]] = true
				if f[1] != "root/root" || f[0][8] == 'w' && f[0][0] != 'l' {
					t.Errorf("%s: %q; want an owner root and no one else who may write", name, line)
				}
			}
		}
		if len(times) != 1 {
			t.Errorf("%s has files of the times %v, want one, so that the package can be made again", name, times)
		}
	}

	root := t.TempDir()
	if out, err := unpack(root, packages["mlp-platform"]); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	bin := filepath.Join(root, "usr/lib/mlp-platform/bin")
	data := t.TempDir()
	doctor := exec.Command(filepath.Join(bin, "platform"), "doctor", "--json")
	doctor.Env, doctor.Dir = []string{"PLATFORM_DATA_DIR=" + filepath.Join(data, "platform"), "PATH=/usr/bin:/bin"}, data
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // PostgreSQL runs as another user
		t.Fatal(err)
	}
	out, err := doctor.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Findings []struct{ Check, Status, Where string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := false
	for _, f := range report.Findings {
		found = found || f.Check == "onnxruntime" && f.Status == "ok" && f.Where == filepath.Join(bin, "libonnxruntime.so.1")
	}
	if !found {
		t.Errorf("%s; want ONNX Runtime of %s", out, bin)
	}
	for link, program := range map[string]string{"platform": "platform", "mlp": "mlp", "svc": "svc"} {
		target, err := os.Readlink(filepath.Join(root, "usr/bin", link))
		if _, statErr := os.Stat(filepath.Join(root, target)); err != nil || statErr != nil || filepath.Base(target) != program {
			t.Errorf("usr/bin/%s names %q, %v, %v; want a program of the package", link, target, err, statErr)
		}
	}
	run(t, filepath.Join(bin, "mlp"), "--version")
	run(t, filepath.Join(bin, "postgres/bin/postgres"), "--version")
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/mlp-platform.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"User=mlp-platform", "StateDirectory=platform", "ExecStart=/usr/bin/platform", "ProtectSystem=strict", "NoNewPrivileges=yes"} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("the service has no line %q", line)
		}
	}
	if out, err := unpack(root, packages["mlp-cli"]); err == nil || !strings.Contains(out, "conflicts with mlp-cli") {
		t.Errorf("both packages: %v\n%s\nwant a conflict, since both have mlp", err, out)
	}
	alone := t.TempDir()
	if out, err := unpack(alone, packages["mlp-cli"]); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	run(t, filepath.Join(alone, "usr/bin/mlp"), "--version")
	run(t, filepath.Join(alone, "usr/bin/svc"), "--version")
}
