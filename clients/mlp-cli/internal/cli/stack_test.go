package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// checkout creates a checkout whose script records its arguments and then runs the given script: no engine runs where
// these tests run. The real script, where no engine answers, is run by e2e/mlp.
func checkout(t *testing.T, script string) (dir string, asked func() string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"compose.yaml": "", stackScript: "#!/bin/sh\necho \"$*\" >>asked\n" + script + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	return dir, func() string {
		t.Helper()
		said, err := os.ReadFile(filepath.Join(dir, "asked"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(said)
	}
}

func TestStackCommandsOfTheScript(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"stack up":                                   "up",
		"stack up --service redis":                   "compose up -d --no-build redis",
		"stack down":                                 "down",
		"stack down --volumes":                       "down --volumes",
		"stack down -s redis":                        "compose stop redis",
		"stack restart":                              "compose restart",
		"stack restart -s worker":                    "compose restart worker",
		"stack logs":                                 "compose logs --no-color --tail 50 --follow",
		"stack logs --no-follow -n 3 -s tracker":     "compose logs --no-color --tail 3 tracker",
		"--json stack logs":                          "compose logs --no-color --tail 50",
		"--json stack down":                          "down",
		"stack status":                               "compose ps -a --format json",
		"stack down --dry-run":                       "",
		"--json stack up --dry-run":                  "",
		"stack down --volumes --service redis":       "",
		"stack restart --service mainframe":          "",
		"stack logs --tail 0":                        "",
		"--json stack logs --follow":                 "",
		"--json stack logs --follow --service redis": "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir, asked := checkout(t, "")
			r := runMLP(t, map[string]string{"HOME": dir}, "", append(strings.Fields(line), "--dir", dir)...)
			if got := strings.TrimSpace(asked()); got != want {
				t.Errorf("got the script run as %q, want %q (%+v)", got, want, r)
			}
			refused := want == "" && !strings.Contains(line, "--dry-run")
			if code := r.code; refused && code != 2 || !refused && code != 0 {
				t.Errorf("got exit %d, want 2 only where the line is wrong\n%+v", code, r)
			}
			if strings.HasPrefix(line, "--json") {
				var doc any
				if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.err != "" {
					t.Errorf("got %q and %q (%v), want one document and no talk", r.out, r.err, err)
				}
			}
		})
	}
}

// Both ways in which compose prints its containers; a service without one is listed, a migration only when it failed.
func TestStackStatus(t *testing.T) {
	t.Parallel()
	nats := `{"Service":"nats","State":"running","Health":"healthy","Publishers":[{"URL":"127.0.0.1","TargetPort":4222,"PublishedPort":4222,"Protocol":"tcp"},{"URL":"","TargetPort":8222,"PublishedPort":0,"Protocol":"tcp"}]}`
	done := `{"Service":"secrets","State":"exited","Health":"","ExitCode":0,"Publishers":null}`
	failed := `{"Service":"migrate-inference","State":"exited","Health":"","ExitCode":1,"Publishers":null}`
	for name, printed := range map[string]string{"lines": nats + "\n" + done + "\n" + failed, "list": "[" + nats + "," + done + "," + failed + "]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := checkout(t, "cat <<'END'\n"+printed+"\nEND")
			r := runMLP(t, map[string]string{"HOME": dir}, "", "--json", "stack", "status", "--dir", dir)
			var rows []map[string]any
			if err := json.Unmarshal([]byte(r.out), &rows); err != nil || r.code != 0 {
				t.Fatalf("got %+v (%v), want a list", r, err)
			}
			if len(rows) != len(stackServices)+1 {
				t.Errorf("got %d rows, want %d services and the failed migration: %v", len(rows), len(stackServices), rows)
			}
			for _, row := range rows {
				switch row["service"] {
				case "nats":
					if ports, _ := row["ports"].([]any); row["health"] != "healthy" || len(ports) != 1 || ports[0] != "127.0.0.1:4222→4222" {
						t.Errorf("got %v, want healthy and its one published port", row)
					}
				case "redis":
					if row["state"] != nil {
						t.Errorf("got %v, want a service without a container as null", row)
					}
				case "migrate-inference":
					if row["state"] != "failed (exit 1)" {
						t.Errorf("got %v, want the failed migration", row)
					}
				}
			}
		})
	}
}

// The script's last complaint is the sentence; its colours and sequences act on no terminal.
func TestStackComplaints(t *testing.T) {
	t.Parallel()
	dir, _ := checkout(t, `printf 'building\033[2J\n' >&2; echo 'up: no Docker here: install it' >&2; exit 1`)
	vars := map[string]string{"HOME": dir}
	r := runMLP(t, vars, "", "stack", "up", "--dir", dir)
	if r.code != 1 || !strings.Contains(r.err, `building\x1b[2J`) || !strings.Contains(r.err, "error: no Docker here: install it\nhint: the platform runs without Docker too") {
		t.Errorf("got %+v, want exit 1, harmless talk and the complaint with a hint", r)
	}
	r = runMLP(t, vars, "", "--json", "stack", "status", "--dir", dir)
	if r.code != 1 || !strings.Contains(r.out, `"code": "no_docker"`) || r.err != "" {
		t.Errorf("got %+v, want one document of the code no_docker", r)
	}
	r = runMLP(t, vars, "", "stack", "status", "--dir", t.TempDir())
	if r.code != 1 || !strings.Contains(r.err, "is no checkout of the platform") {
		t.Errorf("got %+v, want a folder that is no checkout refused", r)
	}
	broken, _ := checkout(t, "echo nonsense")
	r = runMLP(t, vars, "", "stack", "status", "--dir", broken)
	if r.code != 1 || !strings.Contains(r.err, "docker compose ps printed no JSON") {
		t.Errorf("got %+v, want a wrong answer of compose as one sentence", r)
	}
}

// A reader that goes away, as under `| head -1`, fails the script and not the command.
func TestStackLogsIntoAClosedPipe(t *testing.T) {
	t.Parallel()
	dir, _ := checkout(t, "yes line\necho 'up: compose logs failed' >&2\nexit 1")
	reader, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	t.Cleanup(func() { closed.Close() })
	var talk bytes.Buffer
	env := &Env{In: strings.NewReader(""), Out: closed, Err: &talk, Now: time.Now, Getenv: func(string) string { return "" }}
	one.Lock()
	defer one.Unlock()
	if code := Main(t.Context(), env, []string{"mlp", "stack", "logs", "--dir", dir}); code != 0 || talk.Len() != 0 {
		t.Errorf("got exit %d and %q, want 0 and no talk", code, &talk)
	}
}
