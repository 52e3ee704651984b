package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/service"
)

func TestHelpAndVersionCommands(t *testing.T) {
	t.Parallel()
	for line, same := range map[string]string{
		"help": "--help", "help models": "models --help", "help models list": "models list --help", "version": "--version", "help version": "version --help",
	} {
		got, want := runMLP(t, nil, "", strings.Fields(line)...), runMLP(t, nil, "", strings.Fields(same)...)
		if got != want || got.code != 0 || got.out == "" {
			t.Errorf("mlp %s: got %+v, want %+v", line, got, want)
		}
	}
	if got, want := runMLP(t, nil, "", "version").out, "mlp "+service.Version+"\n"; got != want {
		t.Errorf("mlp version: got %q, want %q", got, want)
	}
	for line, want := range map[string]string{
		"help modles":      "error: unknown command \"modles\" for mlp\nhint: did you mean: mlp models\n",
		"help predict it":  "error: mlp predict has no subcommands\nhint: see: mlp predict --help\n",
		"version of today": "error: unexpected argument of\nhint: see: mlp version --help\n",
	} {
		if got := runMLP(t, nil, "", strings.Fields(line)...); got.code != 2 || got.err != want || got.out != "" {
			t.Errorf("mlp %s: got %+v, want exit 2 and %q", line, got, want)
		}
	}
}

func TestHelpAndVersionAsDocuments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]map[string]string{
		"help models list": {"help": runMLP(t, nil, "", "models", "list", "--help").out},
		"help":             {"help": runMLP(t, nil, "", "--help").out},
		"version":          {"version": service.Version},
		"--version":        {"version": service.Version},
	} {
		got := runMLP(t, nil, "", append([]string{"--json"}, strings.Fields(line)...)...)
		var doc map[string]string
		if err := json.Unmarshal([]byte(got.out), &doc); err != nil || got.code != 0 || !maps.Equal(doc, want) {
			t.Errorf("mlp --json %s: got %+v (%v), want the document %v", line, got, err, want)
		}
	}
	if got := runMLP(t, nil, "", "--json", "help", "modles"); got.code != 2 || got.err != "" || !json.Valid([]byte(got.out)) {
		t.Errorf("got %+v, want exit 2 and one document", got)
	}
}

// A missing option is one line and exit 2; the flag library would print the whole help and exit 1.
func TestMissingOptionIsAUsageError(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"predict JPCP":           "error: missing option --features; see: mlp predict --help\n",
		"predict":                "error: missing option --features; see: mlp predict --help\n",
		"pipeline run --dry-run": "error: missing option --model; see: mlp pipeline run --help\n",
	} {
		if got := runMLP(t, nil, "", strings.Fields(line)...); got != (result{err: want, code: 2}) {
			t.Errorf("mlp %s: got %+v, want exit 2 and %q", line, got, want)
		}
	}
}

func TestLongListsOfModelsEndAfterFive(t *testing.T) {
	t.Parallel()
	var models []string
	for i := range 12 {
		models = append(models, fmt.Sprintf(`{"model_name":"MODEL%02d"}`, i))
	}
	url := serveAnswer(t, 200, "application/json", "["+strings.Join(models, ",")+"]")
	got := runMLP(t, map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "CONTROL_PLANE_TOKEN": "t"}, "", "retrain", "NOBODY")
	const want = "the control plane knows no model NOBODY; it knows MODEL00, MODEL01, MODEL02, MODEL03, MODEL04 and 7 more\n"
	if got.code != 1 || !strings.HasPrefix(got.err, "error: "+want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}
