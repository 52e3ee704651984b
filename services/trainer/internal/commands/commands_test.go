package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/trainer"
)

const repo = "../../../../deploy/modelrepo"

// The tests of this package follow each other: the library keeps its --help and --version flags in package variables.
func runCommand(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = App(nil, &o, &e).RunContext(t.Context(), append([]string{"trainer"}, args...))
	return o.String(), e.String(), err
}

func TestFeatures(t *testing.T) {
	out, _, err := runCommand(t, "heldout", "--repo", repo, "--n", "2")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID     string
		Actual float64
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 || list[0].Actual < 0 {
		t.Fatalf("%v: %s; want len(list) == 2 && list[0].Actual >= 0", err, out)
	}
	out, errOut, err := runCommand(t, "features", "--repo", repo, "--log", repo+"/data/nasa-ipsc-1993.swf.gz", "--job", list[1].ID)
	var body struct{ Features map[string]float64 }
	if err != nil || errOut != "" || json.Unmarshal([]byte(out), &body) != nil || len(body.Features) != 21 {
		t.Errorf(`%v, %s, %s; want errOut == "" && json.Unmarshal([]byte(out), &body) == nil && len(body.Features) == 21`, err, errOut, out)
	}
	// A job the model has seen is printed too, with a word of warning apart from the body.
	out, errOut, err = runCommand(t, "features", "--repo", repo, "--job", "1")
	if err != nil || !strings.Contains(errOut, "among the rows the model learns from") || !json.Valid([]byte(out)) {
		t.Errorf(`%v, %s, %s; want strings.Contains(errOut, "among the rows the model learns from") && json.Valid([]byte(out))`, err, errOut, out)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"train", 2, "--model"},
		{"train --model JPCP --parameters {", 2, "--parameters"},
		{"train --flavor x", 2, "flavor"},
		{"heldout --n -1", 2, "--n"},
		{"features", 2, "--job"},
		{"train --repo " + repo + " --model Oracle", 1, "unknown model"},
		{"heldout --repo " + repo + " --model Oracle", 1, "unknown model"},
		{"features --repo " + repo + " --job 999999", 1, "no job"},
		{"features --repo /nowhere --job 1", 1, "model repository"},
		{"features --repo " + repo + " --log /nowhere/x.swf --job 1", 1, "/nowhere"},
	} {
		_, _, err := runCommand(t, strings.Fields(c.args)...)
		if err == nil || ExitCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%d), want %d, %q", c.args, err, ExitCode(err), c.code, c.want)
		}
	}
}

// mlp's folder is the trainer's too, unless MODELREPO_DIR names another.
func TestModelRepositoryOfTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"PLATFORM_MODELREPO=" + repo}, ""},
		{[]string{"PLATFORM_MODELREPO=/nowhere", "MODELREPO_DIR=" + repo}, ""},
		{[]string{"PLATFORM_MODELREPO=" + repo, "MODELREPO_DIR=/nowhere"}, "/nowhere"},
		{[]string{"PLATFORM_MODELREPO=/nowhere"}, "/nowhere"},
	} {
		var out, errOut bytes.Buffer
		err := App(c.environ, &out, &errOut).RunContext(t.Context(), []string{"trainer", "heldout", "--n", "1"})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: got %v, want no error", c.environ, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: got %v, want an error about %s", c.environ, err, c.want)
		}
	}
}

// Without its flow run, a version looks like one from outside: its promotion stays pending.
func TestFlowRunOfTheTraining(t *testing.T) {
	const id = "0195f3b2-0000-7000-8000-00000000000a"
	for name, c := range map[string]struct{ flag, variable, want, fault string }{
		"none":               {"", "", "", ""},
		"flag":               {id, "", id, ""},
		"variable":           {"", id, id, ""},
		"flag over variable": {id, "0195f3b2-0000-7000-8000-00000000000b", id, ""},
		"another spelling":   {strings.ToUpper(id), "", id, ""},
		"no UUID":            {"latest", "", "", `the flow run "latest" is no UUID`},
	} {
		got, err := flowRunID(c.flag, trainer.Config{FlowRunID: c.variable})
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && (ExitCode(err) != 2 || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: got %q, %v; want %q, %q", name, got, err, c.want, c.fault)
		}
	}
	if _, _, err := runCommand(t, "train", "--model", "JPCP", "--flow-run", "latest"); err == nil || !strings.Contains(err.Error(), "no UUID") {
		t.Errorf("got %v, want a refusal before anything is trained", err)
	}
}

// An evaluation needs neither tracker nor control plane; its folder holds the report and the charts.
func TestEvaluateWritesItsReport(t *testing.T) {
	dir := t.TempDir()
	out, _, err := runCommand(t, "evaluate", "--repo", repo, "--model", "JPCP", "--report", dir)
	var report trainer.Report
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.Model != "JPCP" || report.Metrics["rmse"] <= 0 {
		t.Fatalf("got %v, %s; want the report of JPCP with its rmse", err, out)
	}
	for _, name := range []string{"report.json", "predicted_actual.svg", "importance.svg"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(data) == 0 {
			t.Errorf("%s: got %d bytes, %v; want a file", name, len(data), err)
		}
	}
}

func TestFiguresAreWrittenAsReadersWantThem(t *testing.T) {
	for v, want := range map[float64]string{0.7634: "0.763", 99.9994: "99.999", 583.4: "583", 1499: "1,499", -1234567: "-1,234,567"} {
		if got := formatFigure(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if got := describeMetric("male", "s"); got != "mean absolute error of log(1 + seconds)" {
		t.Errorf("got %q", got)
	}
}
