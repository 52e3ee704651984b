package kubectl_test

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestHiddenCharacters: invisible characters, and those that reorder visible ones, are written as bytes, and the line
// still means the same to Parse and to a shell.
func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	for _, hidden := range []string{"\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad", "\u3164", "\ufe0f", "\u2028", "\U000e0041", "\U0001f6d1", "\u200b\u202e"} {
		value := "it's " + hidden + "}dlrow" + hidden
		for name, o := range map[string]operation.Operation{
			"annotate": {Verb: operation.Annotate, Kind: "deployment", Names: []string{"web"}, Namespace: "shop", Set: map[string]string{"note": value}},
			"env":      {Verb: operation.SetEnv, Kind: "deployment", Names: []string{"web"}, Namespace: "shop", Set: map[string]string{"NOTE": value}},
			"query":    {Verb: operation.QueryLoki, LogQL: `{app="web"} |= "` + hidden + `"`, Since: "1h"},
		} {
			line := kubectl.Render(operation.Normalize(o))
			if i := strings.IndexFunc(line, operation.Hidden); i >= 0 {
				t.Errorf("%s: %+q shows a hidden character; want i < 0", name, line)
			}
			back, err := kubectl.Parse(line)
			if err != nil || !reflect.DeepEqual(back, operation.Normalize(o)) {
				t.Errorf("%s: %s\ngot  %+v, %v\nwant %+v; want reflect.DeepEqual(back, operation.Normalize(o))", name, line, back, err, o)
			}
		}
	}
	for _, line := range []string{`kubectl get pod $'\000'`, `kubectl get pod $'\303'`, `kubectl get pod $'a'`, `kubectl get pod $'\303\251`, `kubectl get pod $''`, `kubectl get pod $x`} {
		if o, err := kubectl.Parse(line); err == nil {
			t.Errorf("%s is read as %+v; want an error", line, o)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return // dash does not know the notation yet, which has been in POSIX since 2024
	}
	line := kubectl.Render(operation.Operation{Verb: operation.Annotate, Kind: "deployment", Names: []string{"web"}, Set: map[string]string{"note": "a'\u202eb"}})
	out, err := exec.Command(bash, "-c", `kubectl() { printf '%s\n' "$@"; }; `+line).Output()
	if err != nil || !strings.Contains(string(out), "note=a'\u202eb\n") {
		t.Errorf("a shell reads %q of %s: %v; want strings.Contains(string(out), \"note=a'\\u202eb\\n\")", out, line, err)
	}
}
