//go:build e2e

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// engine simulates a docker with three running containers, or without volumes, and records the requests it gets.
type engine struct {
	dir, secrets, log string
	// tool is the action of the stack tool, and volumes the existing volumes.
	tool, volumes string
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	dir := t.TempDir()
	e := &engine{dir: dir, secrets: filepath.Join(dir, "secrets"), log: filepath.Join(dir, "log"), tool: "exit 0", volumes: "test_postgres"}
	if err := os.Mkdir(e.secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	return e
}

// up runs scripts/up.sh on the engine.
func (e *engine) up(t *testing.T, args ...string) (string, error) {
	t.Helper()
	bin := filepath.Join(e.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := `#!/bin/sh
echo "$*" >>` + e.log + `
case "$*" in
"ps --filter label="*) printf 'c1 control-plane\nd1 postgres\nd2 redis-sentinel-1\ne1 etcd-1\n' ;;
"volume ls "*) echo ` + e.volumes + ` ;;
"volume inspect -f "*) echo postgres ;;
"volume inspect "*) exit 1 ;;
inspect*) echo healthy ;;
run*) ` + e.tool + ` ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(harness.Root(t), "scripts", "up.sh"), args...)
	cmd.Dir = e.dir
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + e.dir, "PLATFORM_SECRETS_DIR=" + e.secrets, "COMPOSE_PROJECT_NAME=test"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// asked lists the engine's commands, without read-only ones.
func (e *engine) asked(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(e.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); regexp.MustCompile(`^(stop|start|volume (create|rm)) `).MatchString(line) {
			lines = append(lines, line)
		} else if strings.HasPrefix(line, "run ") {
			lines = append(lines, "run "+regexp.MustCompile(` (backup|verify|restore)( /backup)?$`).FindString(line))
		}
	}
	return lines
}

// files lists the files beside the engine's own.
func (e *engine) files(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		if f.Name() != "bin" && f.Name() != "log" {
			names = append(names, f.Name())
		}
	}
	return names
}

// Services stop before the data services, and these before the one that elects the primary; all start again in reverse
// order, whether the backup succeeded or not.
func TestBackupStopsAndStartsInOrder(t *testing.T) {
	t.Parallel()
	want := []string{"stop c1", "stop d1 d2", "stop e1", "run  backup /backup", "start e1", "start d1 d2", "start c1"}
	t.Run("written", func(t *testing.T) {
		t.Parallel()
		e := newEngine(t)
		e.tool = "printf whole"
		out, err := e.up(t, "backup", "b.tar.zst")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := e.asked(t); !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q\n%s", got, want, out)
		}
		file := filepath.Join(e.dir, "b.tar.zst")
		if text, err := os.ReadFile(file); err != nil || string(text) != "whole" {
			t.Errorf("the file holds %q, %v; want what the tool wrote", text, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v, %v; want 0600: it holds secrets", info.Mode(), err)
		}
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		e := newEngine(t)
		e.tool = "printf half; exit 1"
		out, err := e.up(t, "backup", "b.tar.zst")
		if err == nil || !strings.Contains(out, "nothing was backed up") {
			t.Errorf("got %v\n%s\nwant that nothing was backed up", err, out)
		}
		if got := e.asked(t); !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q\n%s", got, want, out)
		}
		if got, want := e.files(t), []string{"secrets"}; !slices.Equal(got, want) {
			t.Errorf("left %q, want %q", got, want)
		}
	})
}

// A refusal is one clear sentence; nothing is stopped, and nothing is left behind.
func TestRefusedBackupsAndRestores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args          []string
		volumes, tool string
		secret        bool // it is in the folder of secrets
		want          string
		asked, left   []string
	}{
		"no file":              {args: []string{"backup"}, want: "backup takes the file of the backup", left: []string{"secrets"}},
		"nothing to back up":   {args: []string{"backup", "b"}, want: "test has no volume", left: []string{"secrets"}},
		"into no folder":       {args: []string{"backup", "none/b"}, volumes: "test_postgres", want: "there is no folder ", left: []string{"secrets"}},
		"no backup":            {args: []string{"restore", "none"}, want: "none cannot be read", left: []string{"secrets"}},
		"volumes are there":    {args: []string{"restore", "log"}, volumes: "test_postgres", want: "test has test_postgres", left: []string{"secrets"}},
		"secrets are there":    {args: []string{"restore", "log"}, secret: true, want: "holds secrets", left: []string{"secrets"}},
		"verified as damaged":  {args: []string{"restore", "log"}, tool: "exit 1", want: "nothing was restored", asked: []string{"run  verify"}},
		"restored with faults": {args: []string{"restore", "log"}, tool: `case "$*" in *verify) echo postgres; exit 0 ;; esac; exit 1`, want: "nothing was restored", asked: []string{"run  verify", "volume create --label com.docker.compose.project=test --label com.docker.compose.volume=postgres test_postgres", "run  restore /backup", "volume rm test_postgres"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t)
			e.volumes, e.tool = c.volumes, c.tool
			if e.tool == "" {
				e.tool = "exit 0"
			}
			if c.secret {
				if err := os.WriteFile(filepath.Join(e.secrets, "credentials.json"), []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(e.log, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := e.up(t, c.args...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("got %v\n%s\nwant an error and %q", err, out, c.want)
			}
			if got := e.asked(t); !slices.Equal(got, c.asked) {
				t.Errorf("asked for %q, want %q\n%s", got, c.asked, out)
			}
			if got := e.files(t); !slices.Equal(got, c.left) {
				t.Errorf("left %q, want %q\n%s", got, c.left, out)
			}
		})
	}
}

// A restore creates the volumes under the project's name, as compose would, and installs the secrets at the end.
func TestRestoreMakesVolumesAndSecrets(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.volumes, e.tool = "", `case "$*" in *verify) printf 'etcd-1\npostgres\n' ;; *" restore /backup") from=${*#*-v }; : >"${from%%:*}/credentials.json" ;; esac`
	if err := os.WriteFile(e.log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := e.up(t, "restore", "log")
	if err != nil || !strings.Contains(out, "start it with make up, with PLATFORM_HA=true") {
		t.Fatalf("got %v\n%s\nwant how to start it", err, out)
	}
	label := "volume create --label com.docker.compose.project=test --label com.docker.compose.volume="
	if got, want := e.asked(t), []string{"run  verify", label + "etcd-1 test_etcd-1", label + "postgres test_postgres", "run  restore /backup"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(e.secrets, "credentials.json")); err != nil {
		t.Errorf("the secrets: %v; want what the tool wrote", err)
	}
	if got, want := e.files(t), []string{"secrets"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}
