package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A candidate is somebody else's text: bash must take it as it is, never expand it.
func TestBashCompletionExpandsNothing(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("no bash here")
	}
	dir := t.TempDir()
	script := `mlp() { printf '%s\n' '$(touch expanded)' '` + "`touch expanded`" + `' '*' 'two words' "$*"; }
` + bashCompletion + `
COMP_WORDS=(mlp predict 'J(CP'); COMP_CWORD=2
_mlp
printf '[%s]\n' "${COMPREPLY[@]}"
`
	c := exec.Command(bash, "--norc", "-c", script)
	c.Dir = dir
	out, err := c.CombinedOutput()
	want := "[$(touch expanded)]\n[`touch expanded`]\n[*]\n[two words]\n[__complete -- predict J(CP]\n"
	if err != nil || string(out) != want {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Fatalf("completion ran a command: %v", left)
	}
}

// The scripts are at least syntax to their shells.
func TestCompletionScriptsParse(t *testing.T) {
	t.Parallel()
	for shell, script := range map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		file := filepath.Join(t.TempDir(), "mlp")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestCompleteModels(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"registered_models":[{"name":"jpcp"},{"name":"j$(reboot)"},{"name":"j k"},{"name":"--json"},{"name":"j.p-c_p2"},{"name":"mack"}]}`)
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": srv.URL}
	for line, want := range map[string]string{
		"predict j":    "J.P-C_P2\nJPCP\n",
		"predict ":     "J.P-C_P2\nJPCP\nMACK\n",
		"mod":          "models\n",
		"models ":      "list\ninfo\n",
		"retrain --du": "--dummy\n",
		"--ver":        "--verbose\n--version\n",
	} {
		if r := run(t, vars, "", append([]string{"__complete", "--"}, strings.Split(line, " ")...)...); r.out != want || r.code != 0 {
			t.Errorf("%q: exit %d, %q, want %q (%s)", line, r.code, r.out, want, r.err)
		}
	}
}
