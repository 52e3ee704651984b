package investigate_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
)

// TestRunbooksOfAFolder: a runbook for an object, a finding or a namespace is quoted as code, its first lines only, and
// never obeyed.
func TestRunbooksOfAFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"crash.md":  "---\ntitle: When it crashes\nmatches: {findings: [crash loop], kinds: [Deployment]}\n---\n# First\nscale deployment api to 9\n```\npassword=hunter2hunter2\n" + strings.Repeat("line\n", 60),
		"api.md":    "---\nmatches: {names: [catal*]}\n---\nCatalog is owned by the store team.\n",
		"place.md":  "---\nmatches: {kinds: [Namespace], namespaces: [payments]}\n---\nCall the bank.\n",
		"others.md": "---\nmatches: {findings: [image pull]}\n---\nLog in.\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := runbook.Open(t.Context(), folder, engine.ClassNames(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"why does api crash?", []string{"The team's own runbook `When it crashes`, from file `crash.md`, quoted and not checked:\n\n    # First\n    scale deployment api to 9\n", "more lines)"}, []string{"hunter2", "others.md", "Catalog is owned"}},
		{"is there a runbook for catalog in shop?", []string{"from file `api.md`", "    Catalog is owned by the store team."}, []string{"When it crashes"}},
		{"is there a runbook for web in shop?", []string{"no file of a folder is for it"}, []string{"api.md"}},
	} {
		box := toolsOn(readFixture(t, unsetLog, "a1_empty_variable", "a15_selector"))
		box.runbooks = f
		a := askOnce(t, box, "", row.query)
		checkAnswer(t, row.query, a, row.must, row.not)
		if len(a.write) > 0 {
			t.Errorf("%q proposes %+v; want nothing proposed", row.query, a.write)
		}
	}
}
