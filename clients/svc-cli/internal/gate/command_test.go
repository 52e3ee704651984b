package gate_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/app/apptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
)

var update = flag.Bool("update", false, "rewrite the golden reports and the sample benchmark reports")

// writeSamples writes the samples of the area into a folder.
func writeSamples(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range samples.List() {
		if base, ok := strings.CutPrefix(name, "gate/"); ok {
			if err := os.WriteFile(filepath.Join(dir, base), samples.File(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// compareGolden compares bytes with a file, or writes it.
func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
	}
}

// Every report of the samples has exactly the bytes of its golden file and fits its schema.
func TestGoldenReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, line string }{
		{"audit", "gate-audit-report", "gate-audit panel.json"},
		{"audit-bootstrap", "gate-audit-report", "gate-audit panel.json --bootstrap --pretty"},
		{"audit-few", "gate-audit-report", "gate-audit few.json --bootstrap --pretty"},
		{"dependence", "gate-audit-dependence", "gate-audit-dependence panel.json --pretty"},
		{"dependence-few", "gate-audit-dependence", "gate-audit-dependence few.json"},
		{"marginal", "marginal-evidence-report", "gate-marginal panel.json --current reviewer-a reviewer-b --candidate reviewer-d --pretty"},
		{"marginal-bootstrap", "marginal-evidence-report", "gate-marginal design.json --current reviewer-b reviewer-a --bootstrap --bootstrap-replicates 200 --bootstrap-seed -23 --bootstrap-confidence-level 0.9 --pretty"},
		{"marginal-few", "marginal-evidence-report", "gate-marginal few.json --current w --bootstrap --pretty"},
		{"benchmark", "marginal-evidence-benchmark-report", "gate-marginal-benchmark benchmark.json --pretty"},
		{"benchmark-2", "marginal-evidence-benchmark-report", "gate-marginal-benchmark benchmark-2.json"},
		{"synthesis", "marginal-evidence-synthesis-report", "gate-marginal-synthesis synthesis.json --pretty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := writeSamples(t)
			const few = `{"gate_id":"gate/é","evidence_class":"observed","note":"not read","candidates":[` +
				`{"id":"a","ground_truth":"accept"},{"id":"b","ground_truth":"reject"},{"id":"p","ground_truth":"reject","probe":true}],` +
				`"verifiers":[{"id":"w","verdicts":{"a":"accept","b":"reject","p":"accept"}},{"id":"v","verdicts":{"a":"reject","b":"accept","p":"accept"}}]}`
			if err := os.WriteFile(filepath.Join(dir, "few.json"), []byte(few), 0o600); err != nil {
				t.Fatal(err)
			}
			words := strings.Fields(c.line)
			words[1] = filepath.Join(dir, words[1])
			r := apptest.Run(t, append(words, "--out", filepath.Join(dir, "report"))...)
			if r.Code != 0 || r.Out != "" || r.Err != "" {
				t.Fatalf(`%+v; want r.Code == 0 && r.Out == "" && r.Err == ""`, r)
			}
			got, err := os.ReadFile(filepath.Join(dir, "report"))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join("testdata", c.name+".json"), got)
			if err := schematest.ValidateBytes(t, c.schema, got); err != nil {
				t.Error(err)
			}
			// The same on standard output.
			if r := apptest.Run(t, words...); r.Code != 0 || r.Out != string(got) {
				t.Errorf("standard output differs: %+v", r)
			}
		})
	}
}

func TestGoldenMarkdown(t *testing.T) {
	t.Parallel()
	dir := writeSamples(t)
	md := filepath.Join(dir, "audit.md")
	r := apptest.Run(t, "gate-audit", "--bootstrap", filepath.Join(dir, "panel.json"), "--markdown", md)
	if r.Code != 0 || !strings.HasPrefix(r.Out, `{"schema":"gate-audit-report-v0.2"`) {
		t.Fatalf("%+v; want r.Code == 0 && strings.HasPrefix(r.Out, `{\"schema\":\"gate-audit-report-v0.2\"`)", r)
	}
	got, err := os.ReadFile(md)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "testdata/audit-bootstrap.md", got)
}

// The documents among the samples fit their schemas, and the sample reports are the command's output for the configs.
func TestSamples(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"panel": "gate-audit-matrix", "design": "gate-audit-matrix", "holdout": "gate-audit-matrix", "design-2": "gate-audit-matrix", "holdout-2": "gate-audit-matrix",
		"benchmark": "marginal-evidence-benchmark-config", "benchmark-2": "marginal-evidence-benchmark-config", "synthesis": "marginal-evidence-synthesis-config",
		"benchmark-report": "marginal-evidence-benchmark-report", "benchmark-2-report": "marginal-evidence-benchmark-report",
	} {
		if err := schematest.ValidateBytes(t, schema, samples.File("gate/"+name+".json")); err != nil {
			t.Error(name, err)
		}
	}
	dir := writeSamples(t)
	for _, name := range []string{"benchmark", "benchmark-2"} {
		e, out, errOut := apptest.Env("")
		e.Version = "dev"
		if code := app.Main(context.WithoutCancel(t.Context()), e, []string{"svc", "gate-marginal-benchmark", filepath.Join(dir, name+".json"), "--pretty"}); code != 0 {
			t.Fatal(errOut, "want code == 0")
		}
		compareGolden(t, filepath.Join("../samples/files/gate", name+"-report.json"), out.Bytes())
	}
}

func TestFilesThatConfigsMayNotName(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.json")
	if err := os.WriteFile(outside, samples.File("gate/holdout.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ holdout, says string }{
		{outside, "path_outside_config_folder"}, {"../holdout.json", "path_outside_config_folder"}, {"", "path_outside_config_folder"},
		{".", "path_outside_config_folder"}, {"a/../../x", "path_outside_config_folder"}, {`a\\b`, "path_outside_config_folder"},
		{"link-out.json", "path_outside_config_folder"}, {"folder-out/outside.json", "path_outside_config_folder"},
		{"design.json", "repeated_file"}, {"./design.json", "repeated_file"}, {"link.json", "repeated_file"}, {"hard.json", "repeated_file"},
		{"none.json", "input_read_error"}, {"folder", "input_read_error"}, {"broken.json", "invalid_json"}, {"panel.json", "split_mismatch"},
		{"copy.json", "split_overlap"}, {"fewer.json", "unknown_verifier"},
	} {
		t.Run(c.holdout, func(t *testing.T) {
			t.Parallel()
			dir := writeSamples(t)
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for link, target := range map[string]string{"link-out.json": outside, "folder-out": filepath.Dir(outside), "link.json": "design.json"} {
				if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Link(filepath.Join(dir, "design.json"), filepath.Join(dir, "hard.json")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
				t.Fatal(err)
			}
			write("broken.json", "{")
			write("copy.json", string(samples.File("gate/design.json"))+"\n")
			write("fewer.json", strings.ReplaceAll(string(samples.File("gate/holdout.json")), "reviewer-e", "reviewer-f"))
			write("benchmark.json", strings.Replace(string(samples.File("gate/benchmark.json")), `"holdout.json"`, `"`+c.holdout+`"`, 1))
			r := apptest.Run(t, "gate-marginal-benchmark", filepath.Join(dir, "benchmark.json"), "--json")
			if r.Code != 2 || !strings.HasPrefix(r.Err, "error: ") || !strings.Contains(r.Out, `{"error":{"code":"`+c.says+`"`) {
				t.Errorf("%+v; want %s", r, c.says)
			}
		})
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	t.Parallel()
	panel := filepath.Join(writeSamples(t), "panel.json")
	e, out, errOut := apptest.Env("")
	e.ErrorTerminal = true
	if code := app.Main(context.WithoutCancel(t.Context()), e, []string{"svc", "gate-audit", panel, "--bootstrap"}); code != 0 {
		t.Fatal(errOut, "want code == 0")
	}
	if s := errOut.String(); !strings.HasPrefix(s, "\r\x1b[Kbootstrap: 0 %\r\x1b[Kbootstrap: 3 %") || !strings.HasSuffix(s, "\r\x1b[K") || !strings.HasPrefix(out.String(), "{") {
		t.Errorf("%q; want strings.HasPrefix(s, \"\\r\\x1b[Kbootstrap: 0 %%\\r\\x1b[Kbootstrap: 3 %%\") && strings.HasSuffix(s, \"\\r\\x1b[K\") && strings.HasPrefix(out.String(), \"{\")", s)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cancel()
	e, out, errOut = apptest.Env("")
	if code := app.Main(ctx, e, []string{"svc", "gate-audit", panel, "--bootstrap"}); code != 2 || out.Len() > 0 || !strings.Contains(errOut.String(), "interrupted") {
		t.Errorf(`an interrupted bootstrap: exit %d, %q, %q; want code == 2 && out.Len() <= 0 && strings.Contains(errOut.String(), "interrupted")`, code, out, errOut)
	}
}
