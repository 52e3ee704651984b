//go:build e2e

// Package doctor breaks an installation in many ways, on its disk and on loopback, and reads what `platform doctor`
// reports of each. It mounts a small disk for one of them, as root.
package doctor

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/e2e/harness"
)

type finding struct{ Check, Status, Where, Detail, Fix string }

type report struct {
	State, Status string
	Findings      []finding
}

// installation is a platform with the settings of a healthy one.
type installation struct {
	*harness.Platform
	environ []string
}

// examine runs platform doctor and checks that it changed nothing.
func (i installation) examine(t *testing.T, settings ...string) (report, int) {
	t.Helper()
	before := content(t, i.Dir)
	cmd := exec.Command(harness.Bin(t, "platform"), "doctor", "--json")
	cmd.Env = append(append(i.Environ(), i.environ...), settings...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if r.State != "running" {
		if diff := cmp.Diff(before, content(t, i.Dir)); diff != "" {
			t.Errorf("doctor changed the data directory:\n%s", diff)
		}
	}
	return r, cmd.ProcessState.ExitCode()
}

// content is the mode, size and time of every file.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // of a running platform
			return nil
		}
		if err == nil {
			files[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// wantHealthy requires that every check is ok, except those named, and the one of the machine's own clock, which no test
// may set.
func wantHealthy(t *testing.T, r report, code int, except ...string) {
	t.Helper()
	if code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	excepted := " clock.synchronized " + strings.Join(except, " ") + " "
	for _, f := range r.Findings {
		if f.Status != "ok" && !strings.Contains(excepted, " "+f.Check+" ") {
			t.Errorf("healthy, but %+v", f)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// healthy starts a platform once, stops it, and sets up what a careful operator does.
func healthy(t *testing.T) installation {
	t.Helper()
	p := harness.New(t, "PLATFORM_SEED=false")
	outside := t.TempDir()
	trust := filepath.Join(outside, "iam.yaml")
	must(t, os.WriteFile(trust, []byte("version: 1\nproviders:\n- name: campus\n  issuer: https://id.example.org/realms/main\n  audience: platform\n  clients:\n    dashboard: {client_id: dashboard}\n  role_rules:\n  - {value: ml-operators, role: admin}\n"), 0o600))
	i := installation{p, []string{"PLATFORM_IAM_CONFIG=" + trust}}
	for _, kv := range os.Environ() { // the bundles of authorities of this machine
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(value, "/") && !strings.HasPrefix(name, "PATH") && strings.Contains(value, "cert") {
			i.environ = append(i.environ, name+"=")
		}
	}
	p.Set("PLATFORM_IAM_CONFIG", trust)
	p.Start(t, 2*time.Minute)
	remote := filepath.Join(outside, "models.git")
	run(t, "git", "init", "-q", "--bare", remote)
	run(t, "git", "-C", filepath.Join(p.Dir, "modelrepo"), "remote", "add", "origin", remote)
	r, code := i.examine(t)
	if r.State != "running" {
		t.Errorf("state %q, want running", r.State)
	}
	wantHealthy(t, r, code, "backup")
	p.Stop(t)
	p.Run(t, "platform", "backup", filepath.Join(outside, "backup.tar.zst"))
	return i
}

// breakage is one fault: what breaks the installation, and the finding that must name it.
type breakage struct {
	do       func(t *testing.T) (undo func())
	settings []string
	want     finding // Where, Detail and Fix need only contain the text
}

// replace writes a file anew and returns what puts it back, with its time.
func replace(t *testing.T, path string, edit func([]byte) []byte) (undo func()) {
	t.Helper()
	old, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.WriteFile(path, edit(old), 0))
	return func() {
		must(t, os.WriteFile(path, old, 0))
		must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

func with(text string) func([]byte) []byte { return func([]byte) []byte { return []byte(text) } }

func half(b []byte) []byte { return b[:len(b)/2] }

// swap replaces text that must be there.
func swap(t *testing.T, old, new string) func([]byte) []byte {
	return func(b []byte) []byte {
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("no %q in %s", old, b)
		}
		return bytes.Replace(b, []byte(old), []byte(new), 1)
	}
}

var dashboardVersion = regexp.MustCompile(`"dashboard": \d+`)

// newer gives the dashboard's schema a version that no program knows yet.
func newer(b []byte) []byte { return dashboardVersion.ReplaceAll(b, []byte(`"dashboard": 9001`)) }

func chmod(t *testing.T, path string, mode os.FileMode) (undo func()) {
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.Chmod(path, mode))
	return func() { must(t, os.Chmod(path, info.Mode().Perm())) }
}

func hide(t *testing.T, path string) (undo func()) {
	aside := filepath.Join(t.TempDir(), "aside")
	run(t, "mv", path, aside)
	return func() { run(t, "mv", aside, path) }
}

func leave(t *testing.T, path, text string) (undo func()) {
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return func() { must(t, os.Remove(path)) }
}

// certificate returns a certificate in PEM that ends at that time.
func certificate(t *testing.T, end time.Time) string {
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster.example.org"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// foreignProgram writes a program for another processor.
func foreignProgram(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(harness.Bin(t, "platform"))
	must(t, err)
	const machine, arm64 = 18, 183 // e_machine of an ELF header, EM_AARCH64
	program[machine], program[machine+1] = arm64, 0
	path := filepath.Join(t.TempDir(), "libonnxruntime.so.1")
	must(t, os.WriteFile(path, program, 0o755))
	return path
}

func TestDoctorNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	i := healthy(t)
	r, code := i.examine(t)
	if r.State != "stopped" {
		t.Errorf("state %q, want stopped", r.State)
	}
	wantHealthy(t, r, code, "services") // which cannot be ready

	in := func(elem ...string) string { return filepath.Join(append([]string{i.Dir}, elem...)...) }
	edit := func(path string, edit func([]byte) []byte) func(*testing.T) func() {
		return func(t *testing.T) func() { return replace(t, path, edit) }
	}
	scratch := t.TempDir()
	library := filepath.Join(filepath.Dir(harness.Bin(t, "platform")), "libonnxruntime.so.1")
	tracker := i.Setting("TRACKER_ADDR")
	years := time.Now().Add(-2 * 365 * 24 * time.Hour).UTC().Format("2006-01-02")
	today := time.Now().UTC().Format("2006-01-02")
	for name, b := range map[string]breakage{
		"others may enter":           {func(t *testing.T) func() { return chmod(t, i.Dir, 0o755) }, nil, finding{"data-directory", "failed", i.Dir, "mode 0755", "chmod 700 " + i.Dir}},
		"newer layout":               {edit(in("layout"), with("2\n")), nil, finding{"data-directory", "failed", i.Dir, "newer version", ""}},
		"not a layout":               {edit(in("layout"), with("x")), nil, finding{"data-directory", "failed", i.Dir, "not the number of a layout", ""}},
		"half-written secrets":       {edit(in("credentials.json"), half), nil, finding{"secrets", "failed", "credentials.json", "damaged", "mv "}},
		"secrets open to others":     {func(t *testing.T) func() { return chmod(t, in("credentials.json"), 0o644) }, nil, finding{"secrets", "failed", "credentials.json", "mode 0644", "chmod 600 "}},
		"empty delegation key":       {edit(in("delegation.key"), with("")), nil, finding{"secrets", "failed", "delegation.key", "base64 of 32", "restore "}},
		"lost ledger key":            {func(t *testing.T) func() { return hide(t, in("audit-signing.key")) }, nil, finding{"secrets", "failed", "audit-signing.key", "is gone", "backup.tar.zst"}},
		"damaged ledger key":         {edit(in("audit-signing.key"), half), nil, finding{"secrets", "failed", "audit-signing.key", "PEM", "backup.tar.zst"}},
		"lost database password":     {func(t *testing.T) func() { return hide(t, in("postgres", "password")) }, nil, finding{"secrets", "failed", "password", "missing or empty", "backup.tar.zst"}},
		"other PostgreSQL":           {edit(in("postgres", "data", "PG_VERSION"), with("13\n")), nil, finding{"postgres", "failed", "data", "made by PostgreSQL 13", "postgresql-13"}},
		"damaged PostgreSQL version": {edit(in("postgres", "data", "PG_VERSION"), with("")), nil, finding{"postgres", "failed", "data", "not a version", "restore "}},
		"stale postmaster.pid":       {func(t *testing.T) func() { return leave(t, in("postgres", "data", "postmaster.pid"), "4194303\n") }, nil, finding{"leftovers", "warning", "postmaster.pid", "4194303", "bin/platform"}},
		"interrupted initdb": {func(t *testing.T) func() {
			must(t, os.Mkdir(in("postgres", "data.part"), 0o700))
			return func() { must(t, os.Remove(in("postgres", "data.part"))) }
		}, nil, finding{"leftovers", "warning", "data.part", "interrupted", "bin/platform"}},
		"half-written file":            {func(t *testing.T) func() { return leave(t, in(".credentials.json123"), "{") }, nil, finding{"leftovers", "warning", ".credentials.json123", "half written", "rm -r "}},
		"half-written record":          {func(t *testing.T) func() { return leave(t, in("seeded.json"), "{\"done\"") }, nil, finding{"records", "failed", "seeded.json", "cannot be read", "rm "}},
		"schema of a newer version":    {edit(in("last-ready.json"), newer), nil, finding{"schema.dashboard", "failed", "dashboard", "version 9001 of dashboard, and this program knows ", ""}},
		"damaged model repository":     {edit(in("modelrepo", ".git", "HEAD"), with("")), nil, finding{"model-repository", "failed", in("modelrepo"), "cannot be read", "fsck"}},
		"damaged evidence":             {edit(in("evidence", "store.sqlite"), with("gone")), nil, finding{"evidence", "failed", "store.sqlite", "damaged", "restore "}},
		"old backup":                   {edit(in("last-backup.json"), swap(t, today, years)), nil, finding{"backup", "warning", "backup.tar.zst", "730 days old", "bin/platform backup "}},
		"no backup":                    {func(t *testing.T) func() { return hide(t, in("last-backup.json")) }, nil, finding{"backup", "warning", i.Dir, "no backup", "bin/platform backup "}},
		"old signing key":              {edit(in("credentials.times.json"), swap(t, `"dashboard_jwt_secret": "`+today, `"dashboard_jwt_secret": "`+years)), nil, finding{"secret-age.dashboard_jwt_secret", "warning", "credentials.json", "730 days old", "dashboard_jwt_secret"}},
		"clock set back":               {func(t *testing.T) func() { return later(t, in("layout")) }, nil, finding{"clock", "failed", "layout", "was written at", "timedatectl"}},
		"port in use":                  {func(t *testing.T) func() { return listen(t, tracker) }, nil, finding{"port.tracker", "failed", tracker, fmt.Sprintf("(pid %d)", os.Getpid()), "export TRACKER_ADDR="}},
		"library cut short":            {func(t *testing.T) func() { return cut(t, library, filepath.Join(scratch, "cut.so")) }, []string{"ORT_LIB=" + filepath.Join(scratch, "cut.so")}, finding{"onnxruntime", "failed", "cut.so", "cut short", "make build"}},
		"library for another machine":  {nil, []string{"ORT_LIB=" + foreignProgram(t)}, finding{"onnxruntime", "failed", "libonnxruntime.so.1", "it is for arm64, and this program for amd64", "make build"}},
		"no library":                   {nil, []string{"ORT_LIB=/nowhere/libonnxruntime.so.1"}, finding{"onnxruntime", "failed", "/nowhere", "not a readable file", "make build"}},
		"faulty variable":              {nil, []string{"PLATFORM_TRAINING_CONCURRENCY=99"}, finding{"configuration", "failed", "PLATFORM_TRAINING_CONCURRENCY", "1 to 16", "unset PLATFORM_TRAINING_CONCURRENCY"}},
		"faulty variable of a service": {nil, []string{"EVENT_MAX_ATTEMPTS=99"}, finding{"configuration", "failed", "EVENT_MAX_ATTEMPTS", "1 to 20", "unset EVENT_MAX_ATTEMPTS"}},
		"certificate that has ended": {func(t *testing.T) func() {
			return leave(t, filepath.Join(scratch, "ended.pem"), certificate(t, time.Now().Add(-time.Hour)))
		}, []string{"SSL_CERT_FILE=" + filepath.Join(scratch, "ended.pem")}, finding{"certificates", "failed", "ended.pem", "has ended", "openssl x509"}},
		"certificate that ends soon": {func(t *testing.T) func() {
			return leave(t, filepath.Join(scratch, "soon.pem"), certificate(t, time.Now().Add(5*24*time.Hour+time.Hour)))
		}, []string{"SSL_CERT_FILE=" + filepath.Join(scratch, "soon.pem")}, finding{"certificates", "warning", "soon.pem", "ends in 5 days", "openssl x509"}},
		"no identity provider": {nil, []string{"PLATFORM_IAM_CONFIG="}, finding{"sign-on", "warning", "PLATFORM_IAM_CONFIG", "no identity provider", "export PLATFORM_IAM_CONFIG="}},
		"faulty trust file": {func(t *testing.T) func() {
			return leave(t, filepath.Join(scratch, "iam.yaml"), "providers:\n- name: campus\n  isuer: x\n")
		}, []string{"PLATFORM_IAM_CONFIG=" + filepath.Join(scratch, "iam.yaml")}, finding{"sign-on", "failed", "iam.yaml", "isuer", "iam.yaml"}},
		"full disk": {func(t *testing.T) func() {
			small := filepath.Join(scratch, "small")
			must(t, errors.Join(os.MkdirAll(small, 0o700), syscall.Mount("tmpfs", small, "tmpfs", 0, "mode=0700,size=50m")))
			return func() { must(t, syscall.Unmount(small, syscall.MNT_DETACH)) }
		}, []string{"PLATFORM_DATA_DIR=" + filepath.Join(scratch, "small")}, finding{"disk", "failed", "small", "50 MB are free", "du "}},
	} {
		t.Run(name, func(t *testing.T) {
			undo := func() {}
			if b.do != nil {
				undo = b.do(t)
			}
			defer undo()
			r, code := i.examine(t, b.settings...)
			found := false
			for _, f := range r.Findings {
				found = found || f.Check == b.want.Check && f.Status == b.want.Status && strings.Contains(f.Where, b.want.Where) &&
					strings.Contains(f.Detail, b.want.Detail) && f.Fix != "" && strings.Contains(f.Fix, b.want.Fix)
			}
			if !found {
				t.Errorf("not found: %+v\nin: %+v", b.want, r.Findings)
			}
			if wantCode := map[string]int{"failed": 1, "warning": 0}[b.want.Status]; code != wantCode || r.Status != b.want.Status && b.want.Status == "failed" {
				t.Errorf("exit %d with status %q, want %d with %q", code, r.Status, wantCode, b.want.Status)
			}
		})
	}
	r, code = i.examine(t)
	wantHealthy(t, r, code, "services")
	wantNotChecked(t, i)

	i.Start(t, 2*time.Minute)
	i.Kill()
	harness.Eventually(t, 20*time.Second, i.PostgresEnded) // it writes until then
	r, code = i.examine(t)
	if code != 0 || !strings.Contains(fmt.Sprintf("%+v", r.Findings), "the last platform was killed") {
		t.Errorf("after a kill: exit %d, %+v; want 0 and a warning of it", code, r.Findings)
	}
	i.Start(t, 2*time.Minute)
	r, code = i.examine(t)
	wantHealthy(t, r, code)
	i.Stop(t)
}

// wantNotChecked runs platform doctor as another user: what that one cannot read is not checked, rather than ok or failed.
func wantNotChecked(t *testing.T, i installation) {
	t.Helper()
	cmd := exec.Command("setpriv", "--reuid=65534", "--clear-groups", harness.Bin(t, "platform"), "doctor", "--json")
	cmd.Env = append(i.Environ(), i.environ...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range r.Findings {
		if f.Check == "data-directory" && f.Status == "not checked" && strings.Contains(f.Detail, "belongs to user 0") && r.State == "unknown" {
			return
		}
	}
	t.Errorf("as another user: %s; want that the data directory is not checked", out)
}

// later gives the file a time to come.
func later(t *testing.T, path string) (undo func()) {
	info, err := os.Stat(path)
	must(t, err)
	tomorrow := time.Now().Add(24 * time.Hour)
	must(t, os.Chtimes(path, tomorrow, tomorrow))
	return func() { must(t, os.Chtimes(path, info.ModTime(), info.ModTime())) }
}

func listen(t *testing.T, addr string) (undo func()) {
	l, err := net.Listen("tcp", addr)
	must(t, err)
	return func() { must(t, l.Close()) }
}

// cut writes the first half of a file to another.
func cut(t *testing.T, from, to string) (undo func()) {
	whole, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, half(whole), 0o755))
	return func() { must(t, os.Remove(to)) }
}
