package completion_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/completion"
)

func scriptFor(t *testing.T, shell string) string {
	t.Helper()
	s, err := completion.Script("mlp", "/usr/bin/"+shell)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A candidate may be another user's text: bash must take it literally, never expand
// it.
func TestBashCompletionExpandsNothing(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("no bash here")
	}
	dir := t.TempDir()
	line := `mlp() { printf '%s\n' '$(touch expanded)' '` + "`touch expanded`" + `' '*' 'two words' "$*"; }
` + scriptFor(t, "bash") + `
COMP_WORDS=(mlp predict 'J(CP'); COMP_CWORD=2
_mlp
printf '[%s]\n' "${COMPREPLY[@]}"
`
	c := exec.CommandContext(t.Context(), bash, "--norc", "-c", line)
	c.Dir = dir
	out, err := c.CombinedOutput()
	want := "[$(touch expanded)]\n[`touch expanded`]\n[*]\n[two words]\n[__complete -- predict J(CP]\n"
	if err != nil || string(out) != want {
		t.Fatalf("%v\n%s; want string(out) == want", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Fatalf("completion ran a command: %v; want len(left) <= 0", left)
	}
}

// The scripts are at least syntax to their shells.
func TestCompletionScriptsParse(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		file := filepath.Join(t.TempDir(), "mlp")
		if err := os.WriteFile(file, []byte(scriptFor(t, shell)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path, already, err := completion.Install("svc", "/bin/bash", home)
	if err != nil || already || path != filepath.Join(home, ".local/share/bash-completion/completions/svc") {
		t.Fatal(path, already, err, `want !already && path == filepath.Join(home, ".local/share/bash-completion/completions/svc")`)
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), "complete -o default -F _svc svc\n") || strings.Contains(string(data), "APP") {
		t.Fatalf("%v\n%s; want strings.Contains(string(data), \"complete -o default -F _svc svc\\n\") && !strings.Contains(string(data), \"APP\")", err, data)
	}
	if _, already, err := completion.Install("svc", "/bin/bash", home); err != nil || !already {
		t.Error(already, err, "want already")
	}
	if _, _, err := completion.Install("svc", "/bin/csh", home); !errors.Is(err, completion.ErrShell) {
		t.Error(err, "want errors.Is(err, completion.ErrShell)")
	}
	if _, _, err := completion.Install("svc", "/bin/zsh", ""); !errors.Is(err, completion.ErrHome) {
		t.Error(err, "want errors.Is(err, completion.ErrHome)")
	}
	if _, _, err := completion.Install("svc", "/bin/fish", path); err == nil {
		t.Error("a file in place of the folder gave no error")
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	app := &cli.App{Flags: []cli.Flag{&cli.BoolFlag{Name: "version"}}, Commands: []*cli.Command{
		{Name: "run", Subcommands: []*cli.Command{{Name: "list", Flags: []cli.Flag{&cli.StringFlag{Name: "store"}}}}},
		{Name: "hidden", Hidden: true},
	}}
	for words, want := range map[string][]string{
		"":              {"run"},
		"--v":           {"--version"},
		"run ":          {"list"},
		"run list --st": {"--store"},
		"nothing ":      {"run"},
	} {
		if got, _ := completion.Candidates(app, strings.Split(words, " ")); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	for words, want := range map[string]completion.Query{
		"run list --store ":                {Typed: ""},
		"run list --store s":               {Typed: "s"},
		"run list --store=s":               {Typed: "s", Prefix: "--store="},
		"run list --store =":               {Typed: ""}, // as bash splits the word
		"run list --store = s":             {Typed: "s"},
		"run list --store run --store sto": {Typed: "sto"},
	} {
		got, q := completion.Candidates(app, strings.Split(words, " "))
		if len(got) > 0 || q.Option == nil || q.Option.Names()[0] != "store" || q.Command == nil || q.Command.Name != "list" || q.Typed != want.Typed || q.Prefix != want.Prefix {
			t.Errorf("%q: got %q and %+v, want the option store, %+v", words, got, q, want)
		}
	}
	if got, _ := completion.Candidates(app, nil); !slices.Equal(got, []string{"run"}) {
		t.Error(got, `want slices.Equal(got, []string{"run"})`)
	}
}
