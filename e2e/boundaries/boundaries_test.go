// Package boundaries checks the import rules between the modules of the workspace.
package boundaries

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const prefix = "github.com/mlp-platform/platform/"

// mayImport reports whether module a may import module b; every import it does not name is refused.
func mayImport(from, to string) bool {
	kind := func(m string) string { k, _, _ := strings.Cut(m, "/"); return k }
	switch {
	case from == to, kind(to) == "libs":
		return true
	case from == "services/standalone":
		return true // one process joins all services
	case kind(from) == "libs":
		return false // libs import no service and no client
	case to == "clients/go":
		return kind(from) == "services" || kind(from) == "clients" || kind(from) == "e2e"
	case to == "services/trainer":
		return from == "clients/mlp-cli" // `mlp pipeline run` trains in its own process
	case to == "services/evidence-api":
		return from == "clients/svc-cli" // `svc control-tower` serves the evidence API itself
	}
	return false
}

// testOnly reports whether a package is for tests alone, so that no binary may contain it: packages that start servers
// for tests, and suites and harnesses whose names end in "test".
func testOnly(path string) bool {
	return strings.Contains(path, "libs/testenv") || strings.HasPrefix(path, prefix) && strings.HasSuffix(path, "test")
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestModuleBoundaries(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	modules := workspaceModules(t, root)
	if len(modules) < 12 {
		t.Fatalf("go.work lists only %d modules; want len(modules) >= 12", len(modules))
	}
	owner := func(path string) string {
		rel, ok := strings.CutPrefix(path, prefix)
		if !ok {
			return ""
		}
		best := ""
		for _, m := range modules {
			if (rel == m || strings.HasPrefix(rel, m+"/")) && len(m) > len(best) {
				best = m
			}
		}
		return best
	}
	seen := 0
	for _, m := range modules {
		cmd := exec.Command("go", "list", "-tags", "e2e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
		cmd.Dir = filepath.Join(root, m)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", m, err)
		}
		dec := json.NewDecoder(strings.NewReader(string(out)))
		for dec.More() {
			var p pkg
			if err := dec.Decode(&p); err != nil {
				t.Fatal(err)
			}
			seen++
			for _, imp := range p.Imports {
				if testOnly(imp) && !testOnly(p.ImportPath) && !strings.HasSuffix(p.ImportPath, "libs/testenv") {
					t.Errorf(`%s imports %s outside a test; want ((!testOnly(imp) || testOnly(p.ImportPath)) || strings.HasSuffix(p.ImportPath, "libs/testenv"))`, p.ImportPath, imp)
				}
			}
			for _, imp := range append(append(p.Imports, p.TestImports...), p.XTestImports...) {
				if to := owner(imp); to != "" && !mayImport(m, to) {
					t.Errorf("%s must not import %s", p.ImportPath, imp)
				}
			}
		}
	}
	if seen < len(modules) {
		t.Fatalf("only %d packages seen in %d modules; want seen >= len(modules)", seen, len(modules))
	}
}

// workspaceModules reads the use block of go.work.
func workspaceModules(t *testing.T, root string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if m, ok := strings.CutPrefix(strings.TrimSpace(line), "./"); ok {
			out = append(out, m)
		}
	}
	return out
}
