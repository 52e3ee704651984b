//go:build e2e

package mlp

import (
	"bytes"
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

	"github.com/mlp-platform/platform/e2e/harness"
)

// documentLines has a line of each command that reads, and of each that writes as its dry run. RUN, APPROVAL and CHANGE
// stand for ids that name nothing: what is asked about need not exist for its answer to be a document.
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

// Each command prints exactly one document under --json, and nothing beside it: with the platform, without it, and with
// something else at its addresses.
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
}

func checkDocumentOf(t *testing.T, mlp string, world map[string]string, line string) {
	t.Helper()
	const unknown = "01930000-0000-7000-8000-000000000001"
	args := strings.Fields(strings.NewReplacer("RUN", unknown, "APPROVAL", unknown, "CHANGE", unknown).Replace(line))
	cmd := exec.CommandContext(t.Context(), mlp, append([]string{"--json"}, args...)...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "DOCKER_HOST=unix:///nonexistent"}
	for k, v := range world {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
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
