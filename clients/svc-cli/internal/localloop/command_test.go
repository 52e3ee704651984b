package localloop_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/app/apptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
)

func TestText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, out := looptest.Failing().Write(t, filepath.Join(dir, "loop")), filepath.Join(dir, "out")
	r := apptest.Run(t, "local-loop", config, "--output-dir", out)
	want := `run: run/failing-demo
state: completed_with_failures
work_unit: work/demo-0001 version 1
evidence: sha256:9f42e47b89819c4cd1024b3ed5a67f2c713a0819dec4db0d2c3ace7989b8f89c
attempt-1	verified	supported	accept_candidate	3/3	-
attempt-2	worker_error	worker_error	-	-	The worker ran out of memory.
selected: none
merge_authority: no
output: ` + out + "\n"
	if r.Code != 0 || r.Out != want || r.Err != "" {
		t.Errorf("%d %s\n%s; want r.Code == 0 && r.Out == want && r.Err == \"\"", r.Code, r.Out, r.Err)
	}
	if r := apptest.Run(t, "local-loop", config, "--replay", out); r.Code != 0 || r.Out != "replay: equal\nrun: run/failing-demo\nfiles: 6\n" {
		t.Errorf("%d %s\n%s; want r.Code == 0 && r.Out == \"replay: equal\\nrun: run/failing-demo\\nfiles: 6\\n\"", r.Code, r.Out, r.Err)
	}
	if err := os.Remove(filepath.Join(out, "evidence-report.md")); err != nil {
		t.Fatal(err)
	}
	r = apptest.Run(t, "local-loop", config, "--replay", out)
	if r.Code != 1 || r.Out != "replay: different\nrun: run/failing-demo\nevidence-report.md\t\tthe file is absent\n" || r.Err != "" {
		t.Errorf("%d %s\n%s; want r.Code == 1 && r.Out == \"replay: different\\nrun: run/failing-demo\\nevidence-report.md\\t\\tthe file is absent\\n\" && r.Err == \"\"", r.Code, r.Out, r.Err)
	}
}

func TestProgressAtATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := looptest.JSON().Write(t, filepath.Join(dir, "loop"))
	e, out, errOut := apptest.Env("")
	e.Terminal, e.ErrorTerminal, e.Width = true, true, 100
	if code := app.Main(context.WithoutCancel(t.Context()), e, []string{"svc", "local-loop", config, "--output-dir", filepath.Join(dir, "out")}); code != 0 {
		t.Fatal(code, errOut, "want code == 0")
	}
	for _, want := range []string{"work unit work/demo-0001 version 1\n", "verifier policy policy/json-demo, backend json\n", "attempt-1: fixture-result\n", "attempt-2: failed, reject_candidate\n"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q lacks %q", errOut, want)
		}
	}
	if !strings.Contains(out.String(), "RECOMMENDATION") {
		t.Error(out, `want strings.Contains(out.String(), "RECOMMENDATION")`)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, out := looptest.JSON().Write(t, filepath.Join(dir, "loop")), filepath.Join(dir, "out")
	document := func(code int, args ...string) map[string]any {
		t.Helper()
		r := apptest.Run(t, append([]string{"local-loop", config, "--json"}, args...)...)
		var doc map[string]any
		if err := json.Unmarshal([]byte(r.Out), &doc); err != nil || r.Code != code {
			t.Fatalf("%d %q %q %v; want r.Code == code", r.Code, r.Out, r.Err, err)
		}
		return doc
	}
	doc := document(0, "--output-dir", out)
	if doc["kind"] != "svc-local-loop-result" || doc["run_state"] != "completed" || doc["output_dir"] != out || doc["selected_attempt_id"] != nil || len(doc["files"].([]any)) != 7 {
		t.Error(doc, `want doc["kind"] == "svc-local-loop-result" && doc["run_state"] == "completed" && doc["output_dir"] == out && doc["selected_attempt_id"] == nil && …`)
	}
	if doc := document(0, "--replay", out); doc["kind"] != "svc-local-loop-replay" || doc["ok"] != true || len(doc["differences"].([]any)) != 0 {
		t.Error(doc, `want doc["kind"] == "svc-local-loop-replay" && doc["ok"] == true && len(doc["differences"].([]any)) == 0`)
	}
	if err := os.WriteFile(filepath.Join(out, "more"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if doc := document(1, "--replay", out); doc["ok"] != false || len(doc["differences"].([]any)) != 1 {
		t.Error(doc, `want doc["ok"] == false && len(doc["differences"].([]any)) == 1`)
	}
	if doc := document(2, "--output-dir", out); doc["ok"] != false || doc["error"].(map[string]any)["code"] != "output_not_empty" {
		t.Error(doc, `want doc["ok"] == false && doc["error"].(map[string]any)["code"] == "output_not_empty"`)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := looptest.JSON().Write(t, filepath.Join(dir, "loop"))
	broken := looptest.JSON()
	looptest.Set(broken.Config, "run_id", "no id")
	bad := broken.Write(t, filepath.Join(dir, "bad"))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no config":          {nil, "missing argument CONFIG"},
		"two configs":        {[]string{config, config}, "unexpected argument"},
		"replay and output":  {[]string{config, "--replay", "x", "--output-dir", "y"}, "--replay writes nothing"},
		"empty output":       {[]string{config, "--output-dir", ""}, "--output-dir needs the path of a folder"},
		"empty replay":       {[]string{config, "--replay", ""}, "--replay needs the path of a folder"},
		"absent config":      {[]string{filepath.Join(dir, "none.json")}, "the config cannot be read: none.json does not exist (input_read_error)"},
		"absent folder":      {[]string{filepath.Join(dir, "none", "config.json")}, "cannot be opened"},
		"a fault of the doc": {[]string{bad}, "/run_id: config.json: expected an identifier (invalid_value)"},
		"absent replay":      {[]string{config, "--replay", filepath.Join(dir, "none")}, "cannot be opened"},
		"in a candidate":     {[]string{config, "--output-dir", filepath.Join(dir, "loop/attempt-1/candidate/out")}, "output_inside_candidate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := apptest.Run(t, append([]string{"local-loop"}, c.args...)...)
			if r.Code != 2 || r.Out != "" || !strings.HasPrefix(r.Err, "error: ") || !strings.Contains(r.Err, c.want) {
				t.Errorf(`%d %q %q; want r.Code == 2 && r.Out == "" && strings.HasPrefix(r.Err, "error: ") && strings.Contains(r.Err, c.want)`, r.Code, r.Out, r.Err)
			}
		})
	}
}
