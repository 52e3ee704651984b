package app_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/app/apptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	whole := apptest.Run(t, "--help")
	for _, line := range [][]string{nil, {"-h"}, {"--help", "run"}} {
		if r := apptest.Run(t, line...); r.Code != 0 || r.Err != "" || r.Out != whole.Out {
			t.Errorf(`%q: %+v; want r.Code == 0 && r.Err == "" && r.Out == whole.Out`, line, r)
		}
	}
	e, _, _ := apptest.Env("")
	var each func(commands []*cli.Command, path []string)
	each = func(commands []*cli.Command, path []string) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			words := append(append([]string{}, path...), c.Name)
			if len(path) == 0 && (c.Category == "" || !strings.Contains(whole.Out, "\n     "+c.Name+" ")) {
				t.Errorf("%s has no place in the help; want (len(path) != 0 || !c.Category == \"\" || !strings.Contains(whole.Out, \"\\n \"+c.Name+\" \"))", c.Name)
			}
			if c.Usage == "" || strings.HasSuffix(c.Usage, ".") {
				t.Errorf(`%q: usage %q; want c.Usage != "" && !strings.HasSuffix(c.Usage, ".")`, words, c.Usage)
			}
			// Help takes precedence over all other options on the line.
			r := apptest.Run(t, append(append([]string{}, words...), "--help")...)
			if c.Name == "help" {
				if r != whole {
					t.Errorf("%q: got %+v, want %+v", words, r, whole)
				}
				continue
			}
			if r.Code != 0 || r.Err != "" || !strings.Contains(r.Out, "svc "+strings.Join(words, " ")+" - "+c.Usage) {
				t.Errorf(`%q: %+v; want r.Code == 0 && r.Err == "" && strings.Contains(r.Out, "svc "+strings.Join(words, " ")+" - "+c.Usage)`, words, r)
			}
			each(c.Subcommands, words)
		}
	}
	each(app.New(e).Commands, nil)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--version", "-V"} {
		if r := apptest.Run(t, flag); r.Code != 0 || r.Out != "svc test\n" {
			t.Errorf("%+v; want r.Code == 0 && r.Out == \"svc test\\n\"", r)
		}
	}
}

// A line that is wrong before any command runs has the error document of its command.
func TestShapes(t *testing.T) {
	t.Parallel()
	for line, verdict := range map[string]bool{
		"run list --nonsense --json":              false,
		"rn --json":                               false,
		"--nonsense --json":                       false,
		"run list --nonsense --output json":       false,
		"run list --nonsense --output=json":       false,
		"doctor --nonsense --json":                true,
		"route explain --nonsense --json":         true,
		"connections list --nonsense --json":      true,
		"init --nonsense --output json":           true,
		"connections nonsense --json":             true,
		"run list --store x --json --output text": false,
	} {
		r := apptest.Run(t, strings.Fields(line)...)
		var doc struct {
			OK, Valid *bool
			Error     struct {
				Code, Message string
				Path          *string
			}
		}
		if err := json.Unmarshal([]byte(r.Out), &doc); err != nil || r.Code != 2 || !strings.HasPrefix(r.Err, "error: ") {
			t.Errorf(`%s: %v: %+v; want r.Code == 2 && strings.HasPrefix(r.Err, "error: ")`, line, err, r)
			continue
		}
		if verdict != (doc.Valid != nil && !*doc.Valid && doc.Error.Path != nil) || verdict == (doc.OK != nil && !*doc.OK && doc.Error.Path == nil) ||
			doc.Error.Code != "invalid_arguments" || doc.Error.Message == "" {
			t.Errorf("%s: %s; want verdict == (doc.Valid != nil && !*doc.Valid && doc.Error.Path != nil) && verdict != (doc.OK != nil && !*doc.OK && doc.Error.Path == nil) && …", line, r.Out)
		}
	}
	// After -- nothing is an option.
	if r := apptest.Run(t, "run", "status", "--", "--json", "more"); r.Code != 2 || r.Out != "" {
		t.Errorf(`%+v; want r.Code == 2 && r.Out == ""`, r)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"ru":              "run\n",
		"run l":           "list\n",
		"run list --cu":   "--cursor\n",
		"store ":          "migrate\nkeygen\n",
		"--show":          "--show-completion\n",
		"run list --he":   "--help\n",
		"nothing of this": "",
	} {
		if r := apptest.Run(t, append([]string{"__complete", "--"}, strings.Split(words, " ")...)...); r.Code != 0 || r.Out != want {
			t.Errorf("%q: %+v, want %q", words, r, want)
		}
	}
}

func TestInstallCompletion(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	run := func(flag, shell string) (string, string, int) {
		e, out, errOut := apptest.Env("")
		e.Getenv = func(name string) string { return map[string]string{"HOME": home, "SHELL": shell}[name] }
		code := app.Main(t.Context(), e, []string{"svc", flag})
		return out.String(), errOut.String(), code
	}
	script, _, code := run("--show-completion", "/bin/zsh")
	if code != 0 || !strings.HasPrefix(script, "#compdef svc\n") {
		t.Errorf("exit %d %q; want code == 0 && strings.HasPrefix(script, \"#compdef svc\\n\")", code, script)
	}
	if out, errOut, code := run("--install-completion", "/bin/zsh"); code != 0 || !strings.HasPrefix(out, "completion installed in "+home) {
		t.Errorf(`exit %d %q %q; want code == 0 && strings.HasPrefix(out, "completion installed in "+home)`, code, out, errOut)
	}
	if data, err := os.ReadFile(home + "/.zsh/completions/_svc"); err != nil || string(data) != script {
		t.Errorf("%v %q; want string(data) == script", err, data)
	}
	if out, _, code := run("--install-completion", "/bin/zsh"); code != 0 || !strings.Contains(out, "already installed") {
		t.Errorf(`exit %d %q; want code == 0 && strings.Contains(out, "already installed")`, code, out)
	}
	if _, errOut, code := run("--show-completion", "/bin/csh"); code != 2 || !strings.Contains(errOut, "(unknown_shell)") {
		t.Errorf(`exit %d %q; want code == 2 && strings.Contains(errOut, "(unknown_shell)")`, code, errOut)
	}
}

// A full disk behind stdout is a fault of every command, whichever way it prints.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := apptest.Run(t, "fixtures", filepath.Join(dir, "fx"), "--store", filepath.Join(dir, "s.db")); r.Code != 0 {
		t.Fatalf("%+v; want r.Code == 0", r)
	}
	db, run := filepath.Join(dir, "s.db"), filepath.Join(dir, "fx", "spine", "run.json")
	key := filepath.Join(dir, "key")
	lines := [][]string{
		{"--help"}, {"run", "--help"}, {"run"}, {"--version"}, {"--show-completion"}, {"__complete", "r"},
		{"verify", db}, {"verify", db, "--json"}, {"digest", run}, {"run", "list", "--store", db}, {"run", "status", "run/demo:0001", "--store", db},
		{"run", "create", run, "--store", filepath.Join(dir, "new.db"), "--idempotency-key", "k"},
		{"store", "migrate", db}, {"store", "keygen", key}, {"store", "keygen", key, "--json"}, {"schema", "list"},
		{"connections", "validate", filepath.Join(dir, "fx", "connectors", "profile.json")},
		{"doctor", filepath.Join(dir, "fx", "connectors", "profile.json")}, // it answers no
	}
	for _, line := range lines {
		e, _, errOut := apptest.Env("")
		e.Stdout = full{}
		e.Getenv = func(name string) string { return map[string]string{"SHELL": "bash"}[name] }
		code := app.Main(t.Context(), e, append([]string{"svc"}, line...))
		if text := errOut.String(); code != command.ExitFault || strings.Count(text, "error: ") != 1 || !strings.Contains(text, "no space left") {
			t.Errorf(`%q: %d %q; want code == command.ExitFault && strings.Count(text, "error: ") == 1 && strings.Contains(text, "no space left")`, line, code, text)
		}
	}
	if _, err := os.Stat(key); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key whose public half nobody saw: %v; want errors.Is(err, os.ErrNotExist)", err)
	}
	// The first fault is the one that is reported.
	e, _, errOut := apptest.Env("")
	e.Stdout = full{}
	if code := app.Main(t.Context(), e, []string{"svc", "verify", filepath.Join(dir, "none"), "--json"}); code != command.ExitFault || strings.Contains(errOut.String(), "space") {
		t.Errorf(`%d %q; want code == command.ExitFault && !strings.Contains(errOut.String(), "space")`, code, errOut)
	}
	// A reader that went away is no fault, and does not change the verdict.
	e.Stdout = gone{}
	if code := app.Main(t.Context(), e, []string{"svc", "verify", db}); code != command.ExitDone {
		t.Errorf("%d; want %v", code, command.ExitDone)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestHelpAndVersionCommands(t *testing.T) {
	t.Parallel()
	for line, same := range map[string]string{
		"help": "--help", "help run": "run --help", "help run create": "run create --help", "version": "--version", "help help": "help --help",
	} {
		got, want := apptest.Run(t, strings.Fields(line)...), apptest.Run(t, strings.Fields(same)...)
		if got != want || got.Code != 0 || got.Out == "" {
			t.Errorf("svc %s: got %+v, want %+v", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"help rn":       "error: unknown command \"rn\" for svc; did you mean: svc run\n",
		"help verify x": "error: svc verify has no subcommands; see: svc verify --help\n",
		"version x":     "error: unexpected argument x; see: svc version --help\n",
	} {
		if got := apptest.Run(t, strings.Fields(line)...); got.Code != 2 || got.Err != want || got.Out != "" {
			t.Errorf("svc %s: got %+v, want exit 2 and %q", line, got, want)
		}
	}
}

// Every required option that is missing is reported in one line.
func TestMissingOptionsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for line, option := range map[string]string{
		"run create p.json":           "--store",
		"run create p.json --store s": "--idempotency-key",
		"run status id":               "--store",
		"run list":                    "--store",
		"run import-evidence r --idempotency-key k": "--store",
		"connections stored":                        "--store",
		"doctor --github o.json":                    "--operation",
		"init --github --dry-run":                   "--idkmesh-ref",
		"gate-marginal m.json":                      "--current",
	} {
		got := apptest.Run(t, strings.Fields(line)...)
		if got.Code != 2 || !strings.Contains(got.Err, option) || strings.Count(got.Err, "\n") != 1 || got.Out != "" {
			t.Errorf("svc %s: got %+v, want exit 2 and one line on stderr that names %s", line, got, option)
		}
	}
}
