//go:build e2e

package mlp

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/e2e/harness"
)

// documentLines has a line of each command that reads, and of each that writes as its dry run. RUN, APPROVAL and CHANGE
// are unknown ids: an answer about an absent object is still a document.
var documentLines = []string{
	"status", "models list", "models info JPCP", "models diff JPCP 1 1", "models lineage JPCP", "models cost JPCP", "models history JPCP",
	"models at 1m", "models rollback JPCP --reason x --dry-run", "predict JPCP --features {}", "retrain JPCP --dry-run", "runs list", "runs show RUN",
	"runs logs RUN", "runs cancel RUN --dry-run", "approvals list --all", "approvals show JPCP", "approvals approve JPCP --dry-run",
	"approvals reject JPCP --dry-run", "drift status", "drift report JPCP", "drift input status", "drift input baseline JPCP --dry-run", "drift input reset JPCP --dry-run", "drift baseline JPCP --dry-run", "drift reset JPCP --dry-run",
	"drift auto-retrain enable JPCP --dry-run", "drift auto-retrain disable JPCP --dry-run", "drift auto-retrain status", "drift trigger --dry-run",
	"alerts list", "alerts ack drift.JPCP --dry-run", "costs", "serve check", "serve benchmark -n 20", "serve reload --dry-run", "serve infer-check",
	"serve traffic JPCP", "modelrepo status", "modelrepo events", "modelrepo sync --dry-run", "modelrepo config", "bus list", "bus init-uuids --dry-run",
	"bus regen-uuid JPCP --dry-run", "bus status", "scaffold Document --dry-run", "pipeline list", "pipeline validate", "pipeline run -m JPCP --dry-run",
	"pipeline deploy --dry-run", "pipeline export-registry", "pipeline validate-model JPCP", "pipeline promote --list", "guarded-changes list",
	"guarded-changes show CHANGE", "guarded-changes approve CHANGE --dry-run", "guarded-changes reject CHANGE --dry-run", "audit", "audit verify",
	"audit export", "chat what is wrong in shop", "stack up --dry-run", "stack down --dry-run", "stack restart --dry-run", "stack logs", "stack status",
	"auth login", "auth whoami", "auth logout", "auth validate", "config show", "config set serving http://localhost:1", "config unset serving",
	"config init", "config contexts", "config use nowhere", "help", "version",
}

// Each command prints exactly one document under --json, and nothing else: with the platform, without it, and with
// another server at its addresses.
func checkDocuments(t *testing.T, p *harness.Platform, mlp string) {
	reference, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "mlp.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^### `mlp ([a-z -]+?)(?: [<\\[].*)?`$").FindAllStringSubmatch(string(reference), -1) {
		command := m[1]
		if !slices.ContainsFunc(documentLines, func(line string) bool { return line == command || strings.HasPrefix(line, command+" ") }) {
			t.Errorf("mlp %s is in docs/mlp.md; want a line of it in documentLines", command)
		}
	}
	running := environment(t, p)
	away, wrong := map[string]string{}, map[string]string{}
	for k, v := range running {
		away[k], wrong[k] = v, v
		if strings.HasPrefix(v, "http://") {
			away[k], wrong[k] = "http://127.0.0.1:1", running["DASHBOARD_URL"] // whose pages are HTML
		}
	}
	for name, world := range map[string]map[string]string{"the platform": running, "nobody": away, "another service": wrong} {
		t.Run(name, func(t *testing.T) {
			for _, line := range documentLines {
				checkDocumentOf(t, mlp, world, line)
			}
		})
	}
	t.Run("columns are keys", func(t *testing.T) {
		for _, line := range documentLines {
			checkColumnsAreKeys(t, mlp, running, line)
		}
	})
}

// Columns that a document has under another key, in another unit or in more detail.
var otherwiseKeyed = map[string][]string{
	"audit":               {"time"}, // at
	"drift status":        {"trend", "snapshots"},
	"runs list":           {"run", "model", "state", "version", "dataset", "commit", "age", "took"}, // as the service names them
	"models history JPCP": {"previous", "by"},
	"models at 1m":        {"previous", "by"},
}

// checkColumnsAreKeys compares the CSV of a command with its documents: each column is a key of each item of a list,
// and independent parsers can read both YAML and CSV.
func checkColumnsAreKeys(t *testing.T, mlp string, world map[string]string, line string) {
	t.Helper()
	var same any
	text, _ := runFormat(t, mlp, world, "yaml", line)
	if err := yaml.Unmarshal([]byte(text), &same); err != nil {
		t.Errorf("mlp -o yaml %s: got %v, want YAML", line, err)
	}
	text, ok := runFormat(t, mlp, world, "csv", line)
	if !ok {
		return // the document of a failure is JSON
	}
	table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Errorf("mlp -o csv %s: got %v, want CSV", line, err)
	}
	var items []map[string]any
	text, _ = runFormat(t, mlp, world, "json", line)
	if json.Unmarshal([]byte(text), &items) != nil || len(items) == 0 || len(table) == 0 {
		return // no list, or an empty one
	}
	for _, column := range table[0] {
		if _, ok := items[0][column]; !ok && !slices.Contains(otherwiseKeyed[line], column) {
			t.Errorf("mlp --json %s: got no key %q in %v, want one for each column", line, column, items[0])
		}
	}
}

// runFormat returns the output of a line in a structured format, and whether it succeeds.
func runFormat(t *testing.T, mlp string, world map[string]string, format, line string) (text string, ok bool) {
	t.Helper()
	cmd := lineOf(t, mlp, world, format, line)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out), err == nil
}

// lineOf is mlp with a line of documentLines, in a new home directory.
func lineOf(t *testing.T, mlp string, world map[string]string, format, line string) *exec.Cmd {
	t.Helper()
	const unknown = "01930000-0000-7000-8000-000000000001"
	args := strings.Fields(strings.NewReplacer("RUN", unknown, "APPROVAL", unknown, "CHANGE", unknown).Replace(line))
	cmd := exec.CommandContext(t.Context(), mlp, append([]string{"--output", format}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "DOCKER_HOST=unix:///nonexistent"}
	for k, v := range world {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

func checkDocumentOf(t *testing.T, mlp string, world map[string]string, line string) {
	t.Helper()
	cmd := lineOf(t, mlp, world, "json", line)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	if talk.Len() > 0 {
		t.Errorf("mlp --json %s: got %q on stderr, want nothing beside the document", line, talk.String())
	}
	dec := json.NewDecoder(&out)
	var doc any
	if decodeErr := dec.Decode(&doc); decodeErr != nil {
		t.Errorf("mlp --json %s (%v): got %v, want a document on stdout", line, err, decodeErr)
		return
	}
	var more any
	if decodeErr := dec.Decode(&more); !errors.Is(decodeErr, io.EOF) {
		t.Errorf("mlp --json %s: got %v after the document (%v), want one alone", line, more, decodeErr)
	}
	var exit *exec.ExitError
	failure, _ := doc.(map[string]any)
	switch code := 0; {
	case errors.As(err, &exit):
		code = exit.ExitCode()
		if got, ok := failure["exit_code"].(float64); code > 2 || ok && int(got) != code {
			t.Errorf("mlp --json %s: got exit %d and the document %v, want them to agree", line, code, doc)
		}
	case err != nil:
		t.Errorf("mlp --json %s: %v", line, err)
	}
}
