package modelrepo

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const goodDataset = `name: Jobs
format: csv
files: [data/jobs.csv]
backends: {local: {}}
time: {submit: t0, end: t1}
columns:
  t0: {type: number, available: submit}
  t1: {type: number, available: end}
  procs: {type: number, available: submit}
  user: {type: category, available: submit}
  emb: {type: vector, length: 3, available: submit}
  run: {type: number, available: end}
history:
  - {by: [user], of: run, stats: [last, count]}
generator: {kind: table, seed: 1}
`

const goodModel = `name: Demo
task_type: performance_prediction
type: regression
estimator:
  kind: gbt
  hyperparameters:
    n_estimators: 10
datasets:
  - name: Jobs
    target: {column: run, transform: log1p, unit: s}
    features:
      - {column: procs, kind: number, transform: log1p}
      - {column: user, kind: category, transform: onehot}
      - {column: emb, kind: vector, length: 3}
      - {column: run_last_by_user, kind: number}
split: {kind: time}
baseline:
  by: [[user]]
  margins:
    - {metric: male, relative: 0.05}
lifecycle:
  - {name: Staging, metric: male, threshold: 1}
  - {name: Production, metric: male, threshold: 0.9, beats_baseline: true}
`

const goodRegistry = "version: 1\ndefaults:\n  schedule: {enabled: false}\nmodels:\n  - name: Demo\n    resources: {cpus: 8}\n"

// writeRepository writes files into a fresh folder; a nil value leaves a good file out.
func writeRepository(t testing.TB, files map[string]string) string {
	t.Helper()
	all := map[string]string{
		"models/performance_prediction/Demo/model.yaml": goodModel,
		"datasets/Jobs.yaml":                            goodDataset,
		"registries/base.yaml":                          goodRegistry,
	}
	maps.Copy(all, files)
	dir := t.TempDir()
	for name, text := range all {
		if text == "" {
			continue
		}
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	r, err := Open(writeRepository(t, nil), "")
	if err != nil || len(r.Faults) > 0 {
		t.Fatal(err, r.Faults, "want len(r.Faults) <= 0")
	}
	m, ok := r.Model("demo")
	if !ok {
		t.Fatal("no model")
	}
	if !m.Enabled || m.Project != "default" || m.Estimator.Seed != 42 || m.ID() != "DEMO" || m.TrackerName() != "demo" ||
		!slices.Equal(m.Split.Fractions, []float64{0.6, 0.2, 0.2}) || m.Split.Seed != 42 || !slices.Equal(m.Serving.Aliases, Aliases) ||
		m.Lifecycle[0].Direction != Lower || m.DataBackend(&m.Datasets[0]) != BackendLocal {
		t.Errorf(`defaults: %+v; want m.Enabled && m.Project == "default" && m.Estimator.Seed == 42 && m.ID() == "DEMO" && m.TrackerName() == "demo" && …`, m)
	}
	if m.Schedule != (Schedule{"0 2 * * *", "UTC", false, 1}) {
		t.Errorf(`the registry's defaults lie under the model: %+v; want m.Schedule == (Schedule{"0 2 * * *", "UTC", false, 1})`, m.Schedule)
	}
	if m.Resources != (Resources{1, 8, 0, "16G", "2:00:00"}) {
		t.Errorf(`the registry's entry lies over the model: %+v; want m.Resources == (Resources{1, 8, 0, "16G", "2:00:00"})`, m.Resources)
	}
	in := m.Inference.InputSchema
	if got := len(in["properties"].(map[string]any)); got != 4 || in["additionalProperties"] != false {
		t.Errorf(`input schema %v; want got == 4 && in["additionalProperties"] == false`, in)
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"", "dev", "staging", "prod"} {
		r, err := Open("../../deploy/modelrepo", env)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Faults {
			t.Errorf("%s: %v", env, f)
		}
		if got := r.Names(); !slices.Equal(got, []string{"JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"}) {
			t.Errorf(`%s: models %v; want slices.Equal(got, []string{"JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"})`, env, got)
		}
		m := r.Models["MACK"]
		wantBackend, wantAliases := BackendLocal, Aliases
		switch env {
		case "staging":
			wantAliases = Aliases[:2]
		case "prod":
			wantBackend, wantAliases = "object_store", Aliases[2:]
		}
		if m.Backend != wantBackend || !slices.Equal(m.Serving.Aliases, wantAliases) {
			t.Errorf("%s: backend %s, aliases %v; want m.Backend == wantBackend && slices.Equal(m.Serving.Aliases, wantAliases)", env, m.Backend, m.Serving.Aliases)
		}
		for _, m := range r.Models {
			if _, _, err := r.Readme(m); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

// Each row breaks one good file; the fault must name the place, and leave the sound files alone.
func TestFaults(t *testing.T) {
	t.Parallel()
	const model, set, reg = "models/performance_prediction/Demo/model.yaml", "datasets/Jobs.yaml", "registries/base.yaml"
	good := map[string]string{model: goodModel, set: goodDataset, reg: goodRegistry}
	for name, c := range map[string]struct {
		file, old, new string
		line           int
		msg            string
	}{
		"unknown key":           {model, "type: regression", "type: regression\nflavor: sweet", 4, `unknown field "flavor"`},
		"duplicate key":         {model, "type: regression", "type: regression\ntype: regression", 4, "already defined"},
		"broken YAML":           {model, "type: regression", "type: [regression", 4, "must be specified"},
		"wrong type":            {model, "n_estimators: 10", "n_estimators: 10\n  seed: soon", 8, "cannot unmarshal"},
		"anchor":                {model, "type: regression", "type: &t regression", 3, "anchors"},
		"name":                  {model, "name: Demo", "name: demo", 1, "PascalCase"},
		"name not folder":       {model, "name: Demo", "name: Other", 1, "folder"},
		"task":                  {model, "performance_prediction", "guessing", 2, "task_type"},
		"task not folder":       {model, "performance_prediction", "anomaly_detection", 2, "lies in"},
		"type":                  {model, "type: regression", "type: clustering", 3, "want regression, classification or anomaly"},
		"estimator":             {model, "kind: gbt", "kind: oracle", 5, "not in this build"},
		"estimator for type":    {model, "kind: gbt", "kind: logistic", 5, "does not suit"},
		"hyperparameter":        {model, "n_estimators: 10", "n_estimators: 10\n    alpha: 1", 8, `gbt has no hyperparameter "alpha"; known are colsample, `},
		"its value":             {model, "n_estimators: 10", "n_estimators: 10\n    learning_rate: [0.1, fast]", 8, "learning_rate is fast, want a number from 1e-06 to 1"},
		"its list":              {model, "n_estimators: 10", "n_estimators: []", 7, "empty list"},
		"its combinations":      {model, "n_estimators: 10", "n_estimators: [1, 2, 3, 4, 5]\n    max_depth: [1, 2, 3, 4, 5]", 7, "more than 24 combinations"},
		"bus uuid":              {model, "type: regression", "type: regression\nbus_uuid: x", 4, "no UUID"},
		"source":                {model, "type: regression", "type: regression\nsources: [../x]", 4, `no ".."`},
		"no data set":           {model, "name: Jobs", "name: Work", 9, "not declared"},
		"no such feature":       {model, "column: procs", "column: cores", 12, `no column "cores"`},
		"feature at end":        {model, "column: procs", "column: t1", 12, "known only at end"},
		"feature is target":     {model, "column: procs", "column: run", 12, "may not see what it predicts"},
		"feature twice":         {model, "column: procs, kind: number", "column: run_last_by_user, kind: number", 15, "twice"},
		"feature kind":          {model, "column: procs, kind: number", "column: user, kind: number", 12, "is a category"},
		"vector length":         {model, "length: 3", "length: 4", 14, "vector of 3"},
		"feature transform":     {model, "transform: onehot", "transform: log1p", 13, "does not suit a category"},
		"target transform":      {model, "column: run, transform: log1p", "column: run, transform: bins", 10, "does not suit a target"},
		"target column":         {model, "{column: run,", "{column: none,", 10, "no column"},
		"labels of regression":  {model, "unit: s", "labels: [a, b]", 10, "labels are for"},
		"split kind":            {model, "kind: time", "kind: magic", 16, "split kind"},
		"split fractions":       {model, "kind: time", "kind: time, fractions: [0.5, 0.2, 0.2]", 16, "add up to 1"},
		"split column":          {model, "kind: time", "kind: time, column: user", 16, "number column"},
		"split group":           {model, "kind: time", "kind: group", 16, "needs the column"},
		"baseline column":       {model, "[[user]]", "[[run]]", 18, "known at submit"},
		"margin metric":         {model, "{metric: male, relative", "{metric: f1, relative", 20, "never yields"},
		"margin":                {model, "relative: 0.05", "relative: 5", 20, "a margin is relative"},
		"rung metric":           {model, "{name: Staging, metric: male", "{name: Staging, metric: accuracy", 22, `never yields metric "accuracy"`},
		"rung name":             {model, "name: Staging", "name: Stage", 22, "rung"},
		"rung order":            {model, "name: Production", "name: Staging", 23, "in the order"},
		"rung direction":        {model, "threshold: 1}", "threshold: 1, direction: higher}", 22, "lower is better"},
		"set name":              {set, "name: Jobs", "name: Work", 1, "file's name"},
		"set format":            {set, "format: csv", "format: arrow", 2, "not read by this build"},
		"set path":              {set, "data/jobs.csv", "/etc/passwd", 3, "relative to the repository"},
		"set backend":           {set, "{local: {}}", "{}", 4, "no backend"},
		"set encoding":          {set, "format: csv", "format: csv\nencoding: klingon", 3, `encoding "klingon" is unknown`},
		"set delimiter":         {set, "format: csv", "format: csv\ndelimiter: tab", 3, `delimiter "tab" must be one character`},
		"set delimiter quote":   {set, "format: csv", "format: csv\ndelimiter: '\"'", 3, "must be one character"},
		"set decimal":           {set, "format: csv", "format: csv\ndecimal: ';'", 3, `decimal ";"; want "." or ","`},
		"set decimal delimiter": {set, "format: csv", "format: csv\ndecimal: ','\nquoting: none", 3, "both ','"},
		"set quoting":           {set, "format: csv", "format: csv\nquoting: all", 3, "quoting \"all\""},
		"set dialect of swf":    {set, "format: csv", "format: swf\nna_values: [NA]", 3, "na_values describes files of format csv"},
		"Latin-1":               {model, "unit: s", "unit: \xb5s", 10, "column 51: not UTF-8 (byte 0xb5); save the file as UTF-8"},
		"set time":              {set, "submit: t0", "submit: t9", 5, "no number column"},
		"column kind":           {set, "procs: {type: number", "procs: {type: int", 9, "want number, category or vector"},
		"column availability":   {set, "emb: {type: vector, length: 3, available: submit}", "emb: {type: vector, length: 3}", 11, "say submit or end"},
		"vector without length": {set, "length: 3, ", "", 11, "length of 1"},
		"history of":            {set, "of: run", "of: user", 14, "no number column"},
		"history by":            {set, "by: [user]", "by: [run]", 14, "known at submit"},
		"history stat":          {set, "[last, count]", "[first]", 14, "unknown statistic"},
		"generator":             {set, "kind: table", "kind: dice", 15, "unknown generator"},
		"registry version":      {reg, "version: 1", "version: 2", 1, "reads version 1"},
		"registry model":        {reg, "name: Demo", "name: Demos", 5, "does not have"},
		"registry key":          {reg, "resources: {cpus: 8}", "resource: {cpus: 8}", 6, "unknown field"},
		"registry cron":         {reg, "enabled: false", "cron: never", 3, "cron"},
		"registry zone":         {reg, "enabled: false", "timezone: Mars/Base", 3, "unknown"},
		"registry aliases":      {reg, "resources: {cpus: 8}", "serving: {aliases: [Best]}", 0, "alias"},
		"registry mem":          {reg, "cpus: 8", "mem: much", 0, "mem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good[c.file], c.old, c.new, 1)
			if text == good[c.file] {
				t.Fatalf("%q is not in %s; want text != good[c.file]", c.old, c.file)
			}
			r, err := Open(writeRepository(t, map[string]string{c.file: text}), "")
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Faults, func(f Fault) bool {
				return f.File == c.file && strings.Contains(f.Msg, c.msg) && (c.line == 0 || f.Line == c.line)
			})
			if i < 0 {
				t.Errorf("want %s:%d %q, have %v", c.file, c.line, c.msg, r.Faults)
			}
			if _, ok := r.Models["DEMO"]; ok && c.file == model {
				t.Error("a faulty model is among the sound ones")
			}
			if _, ok := r.Datasets["Jobs"]; ok && c.file == set {
				t.Error("a faulty data set is among the sound ones")
			}
		})
	}
}

// Editors of Windows write a byte order mark and line ends of their own; the lines of faults stay the same.
func TestFilesOfWindows(t *testing.T) {
	t.Parallel()
	windows := func(text string) string { return "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") }
	files := map[string]string{
		"models/performance_prediction/Demo/model.yaml": windows(goodModel), "datasets/Jobs.yaml": windows(goodDataset), "registries/base.yaml": windows(goodRegistry),
	}
	r, err := Open(writeRepository(t, files), "")
	if err != nil || len(r.Faults) > 0 || r.Models["DEMO"] == nil || r.Models["DEMO"].Resources.CPUs != 8 {
		t.Errorf("got %v, faults %v; want the sound model", err, r.Faults)
	}
	files["datasets/Jobs.yaml"] = windows(strings.Replace(goodDataset, "[last, count]", "[first]", 1))
	if r, err = Open(writeRepository(t, files), ""); err != nil || len(r.Faults) == 0 || r.Faults[0].Line != 14 {
		t.Errorf("got %v, faults %v; want one in line 14", err, r.Faults)
	}
}

func TestOneBadFileLeavesTheOthers(t *testing.T) {
	t.Parallel()
	r, err := Open(writeRepository(t, map[string]string{
		"models/performance_prediction/Broken/model.yaml": ":",
		"models/performance_prediction/_draft/model.yaml": ":",
		"models/anomaly_detection/Demo/model.yaml":        goodModel,
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Model("Demo"); !ok {
		t.Errorf("the sound model is gone: %v; want ok", r.Faults)
	}
	if slices.ContainsFunc(r.Faults, func(f Fault) bool { return strings.Contains(f.File, "_draft") }) {
		t.Error("a draft was read")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "no model repository") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "no model repository")`)
	}
	if _, err := Open(writeRepository(t, nil), "moon"); err == nil || !strings.Contains(err.Error(), "dev, staging, prod") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "dev, staging, prod")`)
	}
	r, err := Open(writeRepository(t, nil), "prod")
	if err != nil || len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Msg, "no registry") {
		t.Error(err, r.Faults, `want len(r.Faults) == 1 && strings.Contains(r.Faults[0].Msg, "no registry")`)
	}
}

// Whatever a model file holds, Open answers, and a model that it calls sound can be trained.
func FuzzOpen(f *testing.F) {
	f.Add(goodModel, goodDataset)
	f.Add("a: &a [*a]", "columns: {x: {}}")
	f.Add("name: Demo\ndatasets: [{}]", "name: Jobs\ncolumns: {'': }")
	f.Fuzz(func(t *testing.T, model, set string) {
		if model == "" || set == "" {
			return
		}
		r, err := Open(writeRepository(t, map[string]string{"models/performance_prediction/Demo/model.yaml": model, "datasets/Jobs.yaml": set}), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Models {
			if len(m.Datasets) == 0 || len(m.Datasets[0].Features) == 0 || r.Datasets[m.Datasets[0].Name] == nil || Estimators[m.Estimator.Kind] == nil {
				t.Fatalf("called sound: %+v; want len(m.Datasets) != 0 && len(m.Datasets[0].Features) != 0 && r.Datasets[m.Datasets[0].Name] != nil && Estimators[m.Estimator.Kind] != nil", m)
			}
			m.Judge(map[string]float64{})
		}
		for _, f := range r.Faults {
			if f.Msg == "" || f.Line < 0 {
				t.Fatalf(`a fault without words: %+v; want f.Msg != "" && f.Line >= 0`, f)
			}
		}
	})
}
