// Package trackertest checks a tracking server through package tracker: one
// suite for every server that speaks the interface.
package trackertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
)

// Run checks the server at url. The names it makes there are new each time.
func Run(t *testing.T, url string) {
	s := suite{tracker.New(url, nil), strings.ToLower(rand.Text()[:10])}
	if err := s.c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(*testing.T){
		"Experiments":         s.experiments,
		"RunLife":             s.runLife,
		"LargeBatch":          s.largeBatch,
		"SpecialMetrics":      s.specialMetrics,
		"ParamsAreFinal":      s.paramsAreFinal,
		"SearchRuns":          s.searchRuns,
		"Artifacts":           s.artifacts,
		"BadArtifactPaths":    s.badArtifactPaths,
		"Registry":            s.registry,
		"Aliases":             s.aliases,
		"DownloadModel":       s.downloadModel,
		"VersionsInRace":      s.versionsInRace,
		"AliasIsNeverAbsent":  s.aliasIsNeverAbsent,
		"AbsentThings":        s.absentThings,
		"SearchInManyPages":   s.manyPages,
		"FilterIsNoInjection": s.injection,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t) })
	}
}

type suite struct {
	c      *tracker.Client
	unique string
}

func (s suite) name(t *testing.T) string {
	return strings.ToLower(filepath.Base(t.Name())) + "_" + s.unique
}

func checkErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *tracker.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
	if e.Message == "" {
		t.Errorf(`code %s comes without a message; want e.Message != ""`, code)
	}
}

func checkEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func (s suite) run(t *testing.T, n tracker.NewRun) tracker.Run {
	t.Helper()
	if n.ExperimentID == "" {
		e, err := s.c.EnsureExperiment(t.Context(), s.name(t))
		checkErr(t, err)
		n.ExperimentID = e.ID
	}
	r, err := s.c.CreateRun(t.Context(), n)
	checkErr(t, err)
	return r
}

func (s suite) experiments(t *testing.T) {
	ctx, name := t.Context(), s.name(t)
	id, err := s.c.CreateExperiment(ctx, name, map[string]string{"tenant": "default"})
	checkErr(t, err)
	_, err = s.c.CreateExperiment(ctx, name, nil)
	wantCode(t, err, tracker.CodeAlreadyExists)
	if !errors.Is(err, tracker.ErrExists) {
		t.Errorf("%v is no ErrExists; want errors.Is(err, tracker.ErrExists)", err)
	}
	e, err := s.c.EnsureExperiment(ctx, name)
	checkErr(t, err)
	checkEqual(t, "experiment", e.ID, id)
	checkEqual(t, "tag", e.Tags["tenant"], "default")
	checkEqual(t, "deleted", e.Deleted, false)
	checkEqual(t, "artifact location", e.ArtifactLocation, "mlflow-artifacts:/"+id)
	_, err = s.c.GetExperimentByName(ctx, name+"-none")
	wantCode(t, err, tracker.CodeNotFound)
	_, err = s.c.CreateExperiment(ctx, "", nil)
	wantCode(t, err, tracker.CodeInvalidParameter)
	// At once from many: one is made, all get it.
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			e, err := s.c.EnsureExperiment(ctx, name+"-shared")
			if err != nil {
				t.Error(err)
			}
			ids[i] = e.ID
		})
	}
	wg.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("one name gave experiments %v; want len(slices.Compact(ids)) == 1", ids)
	}
}

func (s suite) runLife(t *testing.T) {
	ctx := t.Context()
	start := time.Now().Add(-time.Minute).Truncate(time.Millisecond).UTC()
	r := s.run(t, tracker.NewRun{Name: "Runtime_NASA", Start: start, Tags: map[string]string{"tenant": "default"}})
	checkEqual(t, "status", r.Status, tracker.Running)
	checkEqual(t, "start", r.Start, start)
	checkErr(t, s.c.LogBatch(ctx, r.ID, []tracker.Metric{{Key: "rmse", Value: 2, Step: 2}, {Key: "rmse", Value: 1, Step: 1}},
		map[string]string{"seed": "7", "depth": "ü"}, map[string]string{"dummy": "false"}))
	checkErr(t, s.c.LogBatch(ctx, r.ID, nil, nil, nil))
	checkErr(t, s.c.SetTag(ctx, r.ID, "dummy", "true"))
	end := start.Add(time.Minute)
	checkErr(t, s.c.UpdateRun(ctx, r.ID, tracker.Finished, end))
	got, err := s.c.GetRun(ctx, r.ID)
	checkErr(t, err)
	checkEqual(t, "name", got.Name, "Runtime_NASA")
	checkEqual(t, "status", got.Status, tracker.Finished)
	checkEqual(t, "end", got.End, end)
	checkEqual(t, "metric of the last step", got.Metrics["rmse"], 2)
	checkEqual(t, "tag", got.Tags["dummy"], "true")
	checkEqual(t, "param", got.Params["seed"], "7")
	checkEqual(t, "param in another script", got.Params["depth"], "ü")
	var history []float64
	for m, err := range s.c.MetricHistory(ctx, r.ID, "rmse") {
		checkErr(t, err)
		history = append(history, m.Value)
	}
	checkEqual(t, "history", fmt.Sprint(history), "[1 2]")
}

func (s suite) largeBatch(t *testing.T) {
	ctx, r := t.Context(), s.run(t, tracker.NewRun{})
	metrics, params, tags := map[string]float64{}, map[string]string{}, map[string]string{}
	for i := range 1500 {
		metrics[fmt.Sprintf("m%04d", i)] = float64(i)
	}
	for i := range 230 {
		params[fmt.Sprintf("p%04d", i)] = strings.Repeat("x", 400)
		tags[fmt.Sprintf("t%04d", i)] = fmt.Sprint(i)
	}
	checkErr(t, s.c.LogBatch(ctx, r.ID, tracker.Metrics(metrics, time.Now()), params, tags))
	got, err := s.c.GetRun(ctx, r.ID)
	checkErr(t, err)
	if !maps.Equal(got.Metrics, metrics) || !maps.Equal(got.Params, params) {
		t.Errorf("%d metrics and %d params came back, want 1500 and 230", len(got.Metrics), len(got.Params))
	}
	checkEqual(t, "tag", got.Tags["t0229"], "229")
}

func (s suite) specialMetrics(t *testing.T) {
	ctx, r := t.Context(), s.run(t, tracker.NewRun{})
	checkErr(t, s.c.LogBatch(ctx, r.ID, tracker.Metrics(map[string]float64{
		"nan": math.NaN(), "inf": math.Inf(1), "ninf": math.Inf(-1), "tiny": 5e-324, "val/r2": -0.25}, time.Now()), nil, nil))
	got, err := s.c.GetRun(ctx, r.ID)
	checkErr(t, err)
	if !math.IsNaN(got.Metrics["nan"]) {
		t.Errorf(`NaN came back as %v; want math.IsNaN(got.Metrics["nan"])`, got.Metrics["nan"])
	}
	if got.Metrics["inf"] < 1e308 || got.Metrics["ninf"] > -1e308 {
		t.Errorf(`infinities came back as %v and %v; want got.Metrics["inf"] >= 1e308 && got.Metrics["ninf"] <= -1e308`, got.Metrics["inf"], got.Metrics["ninf"])
	}
	checkEqual(t, "smallest number", got.Metrics["tiny"], 5e-324)
	checkEqual(t, "metric with a slash", got.Metrics["val/r2"], -0.25)
	for _, key := range []string{"../up", "/abs", "a//b", "bad!", "", strings.Repeat("k", 251)} {
		err := s.c.LogBatch(ctx, r.ID, []tracker.Metric{{Key: key, Value: 1}}, nil, nil)
		wantCode(t, err, tracker.CodeInvalidParameter)
	}
}

func (s suite) paramsAreFinal(t *testing.T) {
	ctx, r := t.Context(), s.run(t, tracker.NewRun{})
	checkErr(t, s.c.LogBatch(ctx, r.ID, nil, map[string]string{"seed": "7"}, nil))
	checkErr(t, s.c.LogBatch(ctx, r.ID, nil, map[string]string{"seed": "7", "depth": "3"}, nil))
	err := s.c.LogBatch(ctx, r.ID, nil, map[string]string{"seed": "8", "more": "1"}, nil)
	wantCode(t, err, tracker.CodeInvalidParameter)
	got, err := s.c.GetRun(ctx, r.ID)
	checkErr(t, err)
	checkEqual(t, "param", got.Params["seed"], "7")
	if _, ok := got.Params["more"]; ok {
		t.Error("a refused batch left a parameter")
	}
}

func runNames(runs []tracker.Run) string {
	var out []string
	for _, r := range runs {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

func (s suite) searchRuns(t *testing.T) {
	ctx := t.Context()
	e, err := s.c.EnsureExperiment(ctx, s.name(t))
	checkErr(t, err)
	begin := time.UnixMilli(1700000000000)
	for i, r := range []struct {
		name    string
		metrics map[string]float64
		params  map[string]string
		tags    map[string]string
	}{
		{"one", map[string]float64{"rmse": 1, "val/a b": 2}, map[string]string{"p": "10", "q_": "x"}, map[string]string{"t": "it's"}},
		{"two", map[string]float64{"rmse": 2}, map[string]string{"p": "9"}, nil},
		{"three", map[string]float64{"rmse": math.NaN()}, nil, map[string]string{"t": `a\b`}},
	} {
		run := s.run(t, tracker.NewRun{ExperimentID: e.ID, Name: r.name, Start: begin.Add(time.Duration(i) * time.Second), Tags: r.tags})
		checkErr(t, s.c.LogBatch(ctx, run.ID, tracker.Metrics(r.metrics, begin), r.params, nil))
	}
	for _, c := range []struct{ filter, order, want string }{
		{"", "", "three two one"},
		{"", "start_time ASC", "one two three"},
		{"", "metrics.rmse ASC", "one two three"}, // NaN last
		{"", "metrics.rmse DESC", "two one three"},
		{"", "params.p ASC", "one two three"},
		{"", "metrics.`val/a b`", "one three two"},
		{"metrics.rmse > 1", "", "two"},
		{"metrics.rmse >= 1 and metrics.rmse < 2e0", "", "one"},
		{"metrics.rmse != 1", "", "three two"},
		{"metrics.`val/a b` = 2", "", "one"},
		{"params.p LIKE '1%'", "", "one"},
		{"params.p = '9' AND metrics.rmse = 2 AND status = 'RUNNING'", "", "two"},
		{`tags.t = "it's"`, "", "one"},
		{"tags.t != 'x'", "", "three one"},
		{"tags.t IS NULL", "", "two"},
		{"tags.t IS NOT NULL", "", "three one"},
		{"run_name ILIKE 'T%'", "", "three two"},
		{"start_time > 1700000000000", "", "three two"},
		{"metrics.none > 0", "", ""},
	} {
		q := tracker.RunQuery{ExperimentIDs: []string{e.ID}, Filter: c.filter}
		if c.order != "" {
			q.OrderBy = []string{c.order}
		}
		runs, next, err := s.c.SearchRuns(ctx, q)
		if err != nil {
			t.Errorf("%q by %q: %v", c.filter, c.order, err)
			continue
		}
		if runNames(runs) != c.want || next != "" {
			t.Errorf("%q by %q gives %q (next %q), want %q", c.filter, c.order, runNames(runs), next, c.want)
		}
	}
	for _, f := range []string{"metrics.rmse = 'x'", "params.p > '1'", "params.p = 10", "nothing = '1'", "foo.bar = '1'", "status = 'RUN",
		"run_id = 'a' OR run_id = 'b'", "status", "status =", "= 'x'", "run_id IN ()", "(status = 'RUNNING')"} {
		_, _, err := s.c.SearchRuns(ctx, tracker.RunQuery{ExperimentIDs: []string{e.ID}, Filter: f})
		var te *tracker.Error
		if !errors.As(err, &te) || te.Code != tracker.CodeInvalidParameter {
			t.Errorf("filter %q: %v, want %s", f, err, tracker.CodeInvalidParameter)
		}
	}
	_, _, err = s.c.SearchRuns(ctx, tracker.RunQuery{ExperimentIDs: []string{e.ID}, OrderBy: []string{"metrics.rmse SIDEWAYS"}})
	wantCode(t, err, tracker.CodeInvalidParameter)
	_, _, err = s.c.SearchRuns(ctx, tracker.RunQuery{ExperimentIDs: []string{e.ID}, PageToken: "garbage"})
	wantCode(t, err, tracker.CodeInvalidParameter)
}

func (s suite) injection(t *testing.T) {
	ctx := t.Context()
	r := s.run(t, tracker.NewRun{Name: "kept"})
	for _, f := range []string{
		"tags.t = '1'; drop table run", "tags.`x' or '1'='1` = '1'", `tags."' or 1=1 --" = 'x'`, "params.p = '1'' or ''1''=''1'",
		"run_name = 'kept' -- comment' and tags.t = 'x'", "metrics.`a'); delete from run; --` > 0",
	} {
		runs, _, err := s.c.SearchRuns(ctx, tracker.RunQuery{ExperimentIDs: []string{r.ExperimentID}, Filter: f})
		var te *tracker.Error
		if err != nil && (!errors.As(err, &te) || te.Status >= 500) || err == nil && strings.Contains(f, "x") && len(runs) > 0 {
			t.Errorf(`%q: %d runs, %v; want (err == nil || !!errors.As(err, &te) || te.Status >= 500) && ((an error || !strings.Contains(f, "x")) || len(runs) <= 0)`, f, len(runs), err)
		}
	}
	_, err := s.c.GetRun(ctx, r.ID)
	checkErr(t, err)
}

func (s suite) artifacts(t *testing.T) {
	ctx, r := t.Context(), s.run(t, tracker.NewRun{})
	big := make([]byte, 5<<20)
	_, err := rand.Read(big)
	checkErr(t, err)
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "model/data/big.bin", bytes.NewReader(big)))
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "model/MLmodel", io.MultiReader(strings.NewReader("flavors:"), strings.NewReader(" {}")))) // no length known
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "model/MLmodel", strings.NewReader("flavors: {onnx: 1}")))
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "empty", strings.NewReader("")))
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "a b/größe & 5%.txt", strings.NewReader("x")))
	var got bytes.Buffer
	checkErr(t, s.c.DownloadArtifact(ctx, "runs:/"+r.ID+"/model/data/big.bin", &got))
	if !bytes.Equal(got.Bytes(), big) {
		t.Errorf("%d bytes came back, not the %d sent; want bytes.Equal(got.Bytes(), big)", got.Len(), len(big))
	}
	for uri, want := range map[string]string{
		"runs:/" + r.ID + "/model/MLmodel":      "flavors: {onnx: 1}",
		r.ArtifactURI + "/model/MLmodel":        "flavors: {onnx: 1}",
		"runs:/" + r.ID + "/empty":              "",
		"runs:/" + r.ID + "/a b/größe & 5%.txt": "x",
	} {
		got.Reset()
		checkErr(t, s.c.DownloadArtifact(ctx, uri, &got))
		checkEqual(t, uri, got.String(), want)
	}
	for uri, want := range map[string]string{
		"runs:/" + r.ID:            "a b/ empty model/",
		"runs:/" + r.ID + "/model": "MLmodel data/",
		r.ArtifactURI + "/a b":     "größe & 5%.txt",
		"runs:/" + r.ID + "/none":  "",
		"runs:/" + r.ID + "/empty": "",
	} {
		files, err := s.c.ListArtifacts(ctx, uri)
		checkErr(t, err)
		var list []string
		for _, f := range files {
			if f.Dir {
				f.Path += "/"
			}
			list = append(list, f.Path)
		}
		slices.Sort(list)
		checkEqual(t, uri, strings.Join(list, " "), want)
	}
	err = s.c.DownloadArtifact(ctx, "runs:/"+r.ID+"/none", io.Discard)
	if !errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("absent artifact: %v, want ErrNotFound", err)
	}
	small := tracker.New(s.c.URL(), nil, tracker.MaxDownload(1000))
	got.Reset()
	if err := small.DownloadArtifact(ctx, "runs:/"+r.ID+"/model/data/big.bin", &got); !errors.Is(err, tracker.ErrTooLarge) || got.Len() > 1000 {
		t.Errorf("a file over the bound: %v with %d bytes; want errors.Is(err, tracker.ErrTooLarge) && got.Len() <= 1000", err, got.Len())
	}
}

func (s suite) badArtifactPaths(t *testing.T) {
	ctx, r := t.Context(), s.run(t, tracker.NewRun{})
	for _, p := range []string{"", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a\x00b", `..\x`, "a/", "./a"} {
		if err := s.c.UploadArtifact(ctx, r.ID, p, strings.NewReader("x")); err == nil {
			t.Errorf("%q was stored; want an error", p)
		}
	}
	for _, uri := range []string{"mlflow-artifacts:/../x", "mlflow-artifacts:/a/%2e%2e/%2e%2e/x", "file:///etc/passwd", "s3://b/k",
		"mlflow-artifacts://elsewhere/x", "http://elsewhere/x", "runs:/", "models:/x", "nothing", ""} {
		if err := s.c.DownloadArtifact(ctx, uri, io.Discard); err == nil {
			t.Errorf("%q was read; want an error", uri)
		}
	}
}

// version makes a version of name from a run with one artifact.
func (s suite) version(t *testing.T, name string, tags map[string]string) tracker.ModelVersion {
	t.Helper()
	ctx := t.Context()
	r := s.run(t, tracker.NewRun{})
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "model/MLmodel", strings.NewReader(r.ID)))
	checkErr(t, s.c.UploadArtifact(ctx, r.ID, "model/data/weights.bin", strings.NewReader("w")))
	v, err := s.c.CreateModelVersion(ctx, name, r.ArtifactURI+"/model", r.ID, tags)
	checkErr(t, err)
	checkEqual(t, "run of the version", v.RunID, r.ID)
	return v
}

func (s suite) registry(t *testing.T) {
	ctx, name := t.Context(), s.name(t)
	_, err := s.c.CreateRegisteredModel(ctx, name, map[string]string{"project": "hpc"})
	checkErr(t, err)
	_, err = s.c.CreateRegisteredModel(ctx, name, nil)
	wantCode(t, err, tracker.CodeAlreadyExists)
	_, err = s.c.EnsureRegisteredModel(ctx, strings.ToUpper(name), nil) // names know case
	checkErr(t, err)
	m, err := s.c.EnsureRegisteredModel(ctx, name, nil)
	checkErr(t, err)
	checkEqual(t, "tag", m.Tags["project"], "hpc")
	for _, bad := range []string{"", "a/b", "a:b"} {
		_, err := s.c.CreateRegisteredModel(ctx, bad, nil)
		wantCode(t, err, tracker.CodeInvalidParameter)
	}
	v1 := s.version(t, name, map[string]string{"framework": "onnx"})
	v2 := s.version(t, name, nil)
	checkEqual(t, "numbers", v1.Version+" "+v2.Version, "1 2")
	checkEqual(t, "status", v2.Status, "READY")
	checkErr(t, s.c.SetModelVersionTag(ctx, name, "1", "artifact_digest", strings.Repeat("a", 64)))
	got, err := s.c.GetModelVersion(ctx, name, "1")
	checkErr(t, err)
	checkEqual(t, "tags", fmt.Sprint(got.Tags), fmt.Sprint(map[string]string{"framework": "onnx", "artifact_digest": strings.Repeat("a", 64)}))
	var versions []string
	for v, err := range s.c.SearchModelVersions(ctx, "name = "+tracker.Quote(name)) {
		checkErr(t, err)
		versions = append(versions, v.Version)
	}
	checkEqual(t, "versions", strings.Join(versions, " "), "2 1")
	for v, err := range s.c.SearchModelVersions(ctx, "run_id = "+tracker.Quote(v1.RunID)) {
		checkErr(t, err)
		checkEqual(t, "version of the run", v.Version, "1")
	}
	var models []string
	for m, err := range s.c.SearchRegisteredModels(ctx, "name ILIKE "+tracker.Quote(name)) {
		checkErr(t, err)
		models = append(models, m.Name)
	}
	checkEqual(t, "models", strings.Join(models, " "), strings.ToUpper(name)+" "+name)
	m, err = s.c.GetRegisteredModel(ctx, name)
	checkErr(t, err)
	checkEqual(t, "newest", m.Latest[0].Version, "2")
	_, err = s.c.CreateModelVersion(ctx, name, "mlflow-artifacts:/../../etc", v1.RunID, nil)
	wantCode(t, err, tracker.CodeInvalidParameter)
	_, err = s.c.CreateModelVersion(ctx, name, "/etc", v1.RunID, nil)
	wantCode(t, err, tracker.CodeInvalidParameter)
}

func (s suite) aliases(t *testing.T) {
	ctx, name := t.Context(), s.name(t)
	_, err := s.c.EnsureRegisteredModel(ctx, name, nil)
	checkErr(t, err)
	s.version(t, name, nil)
	s.version(t, name, nil)
	_, err = s.c.GetByAlias(ctx, name, "Production")
	wantCode(t, err, tracker.CodeNotFound)
	checkErr(t, s.c.SetAlias(ctx, name, "Production", "1"))
	checkErr(t, s.c.SetAlias(ctx, name, "Production", "2"))
	checkErr(t, s.c.SetAlias(ctx, name, "Staging", "1"))
	v, err := s.c.GetByAlias(ctx, name, "Production")
	checkErr(t, err)
	checkEqual(t, "Production", v.Version, "2")
	checkEqual(t, "aliases of the version", strings.Join(v.Aliases, " "), "Production")
	m, err := s.c.GetRegisteredModel(ctx, name)
	checkErr(t, err)
	checkEqual(t, "aliases", fmt.Sprint(m.Aliases), "map[Production:2 Staging:1]")
	_, err = s.c.GetByAlias(ctx, name, "production") // aliases know case
	wantCode(t, err, tracker.CodeNotFound)
	wantCode(t, s.c.SetAlias(ctx, name, "Canary", "9"), tracker.CodeNotFound)
	for _, bad := range []string{"", "latest", "v1", "a b", "a/b"} {
		wantCode(t, s.c.SetAlias(ctx, name, bad, "1"), tracker.CodeInvalidParameter)
	}
	checkErr(t, s.c.DeleteAlias(ctx, name, "Production"))
	checkErr(t, s.c.DeleteAlias(ctx, name, "Production"))
	_, err = s.c.GetByAlias(ctx, name, "Production")
	wantCode(t, err, tracker.CodeNotFound)
}

func hexSHA256(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (s suite) downloadModel(t *testing.T) {
	ctx, name := t.Context(), s.name(t)
	_, err := s.c.EnsureRegisteredModel(ctx, name, nil)
	checkErr(t, err)
	v := s.version(t, name, nil)
	byRun, err := s.c.CreateModelVersion(ctx, name, "runs:/"+v.RunID+"/model", v.RunID, nil)
	checkErr(t, err)
	want := map[string]string{"MLmodel": hexSHA256(v.RunID), "data/weights.bin": hexSHA256("w")}
	for _, v := range []tracker.ModelVersion{v, byRun} {
		dir := filepath.Join(t.TempDir(), "new")
		files, err := s.c.DownloadModel(ctx, v, dir)
		checkErr(t, err)
		if !maps.Equal(files, want) {
			t.Errorf("files are %v, want %v", files, want)
		}
		b, err := os.ReadFile(filepath.Join(dir, "data", "weights.bin"))
		checkErr(t, err)
		checkEqual(t, "content", string(b), "w")
		if _, err := s.c.DownloadModel(ctx, v, dir); err == nil {
			t.Error("a folder that is not empty was written to")
		}
	}
	small, dir := tracker.New(s.c.URL(), nil, tracker.MaxDownload(32)), t.TempDir() // the first file fills it
	if _, err := small.DownloadModel(ctx, v, dir); !errors.Is(err, tracker.ErrTooLarge) {
		t.Errorf("a model over the bound: %v; want errors.Is(err, tracker.ErrTooLarge)", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a failed download leaves %v, %v; want len(left) <= 0", left, err)
	}
	files, err := s.c.ListArtifacts(ctx, "models:/"+name+"/1")
	checkErr(t, err)
	checkEqual(t, "files of the version", len(files), 2)
	copied, err := s.c.CreateModelVersion(ctx, name, "models:/"+name+"/1", "", nil) // a version made of a version
	checkErr(t, err)
	checkEqual(t, "run of the copy", copied.RunID, v.RunID)
	files, err = s.c.ListArtifacts(ctx, "models:/"+name+"/"+copied.Version)
	checkErr(t, err)
	checkEqual(t, "files of the copy", len(files), 2)
	none, err := s.c.CreateModelVersion(ctx, name, "runs:/"+v.RunID+"/none", v.RunID, nil)
	checkErr(t, err)
	if _, err := s.c.DownloadModel(ctx, none, t.TempDir()); !errors.Is(err, tracker.ErrNotFound) {
		t.Errorf("a model without files: %v, want ErrNotFound", err)
	}
}

func (s suite) versionsInRace(t *testing.T) {
	ctx, name := t.Context(), s.name(t)
	_, err := s.c.EnsureRegisteredModel(ctx, name, nil)
	checkErr(t, err)
	r := s.run(t, tracker.NewRun{})
	const n = 12
	got := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			v, err := s.c.CreateModelVersion(ctx, name, r.ArtifactURI+"/model", r.ID, nil)
			if err != nil {
				t.Error(err)
			}
			got[i] = fmt.Sprintf("%02s", v.Version)
		})
	}
	wg.Wait()
	slices.Sort(got)
	for i, v := range got {
		if v != fmt.Sprintf("%02d", i+1) {
			t.Fatalf("versions are %v, want 1 to %d", got, n)
		}
	}
}

// aliasIsNeverAbsent moves an alias to and fro while others read it.
func (s suite) aliasIsNeverAbsent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := s.name(t)
	_, err := s.c.EnsureRegisteredModel(ctx, name, nil)
	checkErr(t, err)
	r := s.run(t, tracker.NewRun{})
	for range 2 {
		_, err := s.c.CreateModelVersion(ctx, name, r.ArtifactURI+"/model", r.ID, nil)
		checkErr(t, err)
	}
	checkErr(t, s.c.SetAlias(ctx, name, "Production", "1"))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				v, err := s.c.GetByAlias(ctx, name, "Production")
				if ctx.Err() == nil && (err != nil || v.Version != "1" && v.Version != "2") {
					t.Errorf(`alias names %q, %v; want (ctx.Err() != nil || !err != nil || v.Version != "1" && v.Version != "2")`, v.Version, err)
					return
				}
			}
		})
	}
	for i := range 30 {
		checkErr(t, s.c.SetAlias(ctx, name, "Production", fmt.Sprint(i%2+1)))
	}
	cancel()
	wg.Wait()
}

func (s suite) absentThings(t *testing.T) {
	ctx := t.Context()
	none := strings.Repeat("0", 32)
	_, err := s.c.GetRun(ctx, none)
	wantCode(t, err, tracker.CodeNotFound)
	wantCode(t, s.c.SetTag(ctx, none, "a", "b"), tracker.CodeNotFound)
	wantCode(t, s.c.UpdateRun(ctx, none, tracker.Failed, time.Now()), tracker.CodeNotFound)
	_, err = s.c.GetRegisteredModel(ctx, "none-"+s.unique)
	wantCode(t, err, tracker.CodeNotFound)
	_, err = s.c.GetModelVersion(ctx, "none-"+s.unique, "1")
	wantCode(t, err, tracker.CodeNotFound)
	_, err = s.c.GetByAlias(ctx, "none-"+s.unique, "Production")
	wantCode(t, err, tracker.CodeNotFound)
	_, err = s.c.GetLoggedModel(ctx, "m-"+none)
	wantCode(t, err, tracker.CodeNotFound)
	_, err = s.c.CreateRun(ctx, tracker.NewRun{ExperimentID: "999999"})
	wantCode(t, err, tracker.CodeNotFound)
}

func (s suite) manyPages(t *testing.T) {
	ctx := t.Context()
	e, err := s.c.EnsureExperiment(ctx, s.name(t))
	checkErr(t, err)
	const n = 7
	for i := range n {
		s.run(t, tracker.NewRun{ExperimentID: e.ID, Name: fmt.Sprint(i), Start: time.UnixMilli(int64(1000 - i))})
	}
	var got []tracker.Run
	for r, err := range s.c.Runs(ctx, tracker.RunQuery{ExperimentIDs: []string{e.ID}, PageSize: 3}) {
		checkErr(t, err)
		got = append(got, r)
	}
	checkEqual(t, "runs", runNames(got), "0 1 2 3 4 5 6")
}
