package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

const samples = "../../../../deploy/modelrepo"

func sampleRepo(t testing.TB) *modelrepo.Repo {
	t.Helper()
	r, err := modelrepo.Open(samples, "")
	if err != nil || len(r.Faults) > 0 {
		t.Fatal(err, r.Faults, "want len(r.Faults) <= 0")
	}
	return r
}

func TestJobLog(t *testing.T) {
	t.Parallel()
	ds := sampleRepo(t).Datasets["IpscJobs"]
	r, err := Load(context.Background(), Source{Repo: samples, Set: ds, Backend: "local"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(samples + "/data/nasa-ipsc-1993.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	if r.N != 18239 || r.Version != "sha256:"+hex.EncodeToString(sum[:]) || r.URI != "data/nasa-ipsc-1993.swf.gz" || r.Origin != "recorded" {
		t.Errorf(`%d rows, version %s, uri %s, origin %s; want r.N == 18239 && r.Version == "sha256:" + hex.EncodeToString(sum[:]) && r.URI == "data/nasa-ipsc-1993.swf.gz" && r.Origin == "recorded"`, r.N, r.Version, r.URI, r.Origin)
	}
	// The log starts on Friday, October 1, at 00:00:03 Pacific time; job 59 came 26,613 s later.
	if r.Num["job"][6] != 59 || r.Num["hour"][0] != 0 || r.Num["weekday"][0] != 4 || r.Num["hour"][6] != 7 {
		t.Errorf(`job %v, hours %v, %v, weekday %v; want r.Num["job"][6] == 59 && r.Num["hour"][0] == 0 && r.Num["weekday"][0] == 4 && r.Num["hour"][6] == 7`, r.Num["job"][6], r.Num["hour"][0], r.Num["hour"][6], r.Num["weekday"][0])
	}
	// By hand: job 65 is user 6's third with application 6 on one processor; the first two took 9 s each.
	for name, want := range map[string]float64{
		"run_last_by_user_id_app_id_procs": 9, "run_count_by_user_id": 2, "run_max_by_user_id_app_id": 9, "run_median_by_user_id": 9,
	} {
		if got := r.Num[name][11]; r.Num["job"][11] != 65 || got != want {
			t.Errorf("job %v: %s is %v, want %v", r.Num["job"][11], name, got, want)
		}
	}
	for _, h := range ds.History {
		for _, s := range h.Stats {
			if r.Num[h.Column(s)][0] != -1 {
				t.Errorf("%s of the first job is %v; want r.Num[h.Column(s)][0] == -1", h.Column(s), r.Num[h.Column(s)][0])
			}
		}
	}
}

// Each log counts from its own start; together they are one time line.
func TestSeveralLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const job = " %s 0 60 4 -1 -1 -1 -1 -1 1 7 1 3 -1 -1 -1 -1\n"
	writeFile(t, dir, "data/1.swf", "; UnixStartTime: 1000\n1"+strings.Replace(job, "%s", "0", 1)+"2"+strings.Replace(job, "%s", "500", 1))
	writeFile(t, dir, "data/2.swf", "; UnixStartTime: 1400\n3"+strings.Replace(job, "%s", "10", 1))
	ds := *sampleRepo(t).Datasets["IpscJobs"]
	ds.Files = []string{"data/*.swf"}
	r, err := Load(context.Background(), Source{Repo: dir, Set: &ds, Backend: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Num["job"], []float64{1, 3, 2}) || !reflect.DeepEqual(r.Num["submit"], []float64{0, 410, 500}) || !reflect.DeepEqual(r.Num["end"], []float64{60, 470, 560}) {
		t.Errorf(`jobs %v, submits %v, ends %v; want reflect.DeepEqual(r.Num["job"], []float64{1, 3, 2}) && reflect.DeepEqual(r.Num["submit"], []float64{0, 410, 500}) && …`, r.Num["job"], r.Num["submit"], r.Num["end"])
	}
	if got := r.Num["run_count_by_user_id"]; !reflect.DeepEqual(got, []float64{-1, 1, 2}) || !reflect.DeepEqual(r.File, []int{0, 1, 0}) {
		t.Errorf("counts %v, files %v; want reflect.DeepEqual(got, []float64{-1, 1, 2}) && reflect.DeepEqual(r.File, []int{0, 1, 0})", got, r.File)
	}
}

func TestJobEmbeddings(t *testing.T) {
	t.Parallel()
	ds := sampleRepo(t).Datasets["JobEmbeddings"]
	load := func(dummy bool) *Rows {
		r, err := Load(context.Background(), Source{Repo: samples, Set: ds, Backend: "local", Dummy: dummy})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := load(false)
	if !reflect.DeepEqual(r, load(false)) {
		t.Error("two runs differ")
	}
	if r.N != 4000 || r.Origin != "generated" || load(true).N != DummyRows {
		t.Errorf(`%d rows, origin %s; want r.N == 4000 && r.Origin == "generated" && load(true).N == DummyRows`, r.N, r.Origin)
	}
	// Each vector is close to a unit vector: |v|² is about 1 + 384·0.02² = 1.1536.
	mean := 0.0
	for _, v := range r.Vec["embedding"] {
		if len(v) != 384 {
			t.Fatalf("length %d; want 384", len(v))
		}
		for _, x := range v {
			mean += float64(x) * float64(x) / float64(r.N)
		}
	}
	if math.Abs(mean-1.1536) > 0.01 {
		t.Errorf("mean squared norm %v; want math.Abs(mean - 1.1536) <= 0.01", mean)
	}
	// 24 families: vectors of one have a cosine of about 1/1.15, of two about 0.
	var leaders, sizes []int
	flipped := 0
	classes := map[int]map[float64]int{}
	for i, v := range r.Vec["embedding"] {
		k := -1
		for j, l := range leaders {
			if dotProduct(v, r.Vec["embedding"][l]) > 0.5 {
				k = j
			}
		}
		if k < 0 {
			k = len(leaders)
			leaders, sizes = append(leaders, i), append(sizes, 0)
			classes[k] = map[float64]int{}
		}
		sizes[k]++
		classes[k][r.Num["pclass"][i]]++
		if w := r.Num["power_per_node_watts"]; math.Abs(w[i]-w[leaders[k]]) > 15*10 {
			t.Errorf("powers %v and %v in one family; want math.Abs(w[i] - w[leaders[k]]) <= 15 * 10", w[i], w[leaders[k]])
		}
	}
	for _, c := range classes {
		flipped += min(c[0], c[1])
	}
	if len(leaders) != 24 {
		t.Errorf("%d families; want 24", len(leaders))
	}
	if share := float64(flipped) / 4000; share < 0.08 || share > 0.12 {
		t.Errorf("%v of the classes are noise; want share >= 0.08 && share <= 0.12", share)
	}
}

func dotProduct(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// Every sample can be tried without its data, and looks the same then.
func TestDummySamples(t *testing.T) {
	t.Parallel()
	r := sampleRepo(t)
	for _, m := range r.Models {
		md, _ := m.Dataset("")
		rows, err := Load(context.Background(), Source{Repo: t.TempDir(), Set: r.Datasets[md.Name], Dummy: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rows.Sample(m.Type, md)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rows.N != DummyRows || len(s.Table.Columns) != len(md.Features) || rows.Origin != "generated" || rows.Backend != "local" {
			t.Errorf(`%s: %d rows, %d columns; want s.Rows.N == DummyRows && len(s.Table.Columns) == len(md.Features) && rows.Origin == "generated" && rows.Backend == "local"`, m.Name, s.Rows.N, len(s.Table.Columns))
		}
	}
}

func tableSet() *modelrepo.Dataset {
	return &modelrepo.Dataset{
		Name: "Jobs", Format: "csv", Files: []string{"data/*.csv"}, Backends: modelrepo.Backends{Local: &struct{}{}},
		Columns: map[string]modelrepo.ColumnSpec{
			"t0":   {Type: modelrepo.Number, From: "start", Available: "submit"},
			"t1":   {Type: modelrepo.Number, Available: "end"},
			"user": {Type: modelrepo.Category, Available: "submit"},
			"emb":  {Type: modelrepo.Vector, Length: 2, Available: "submit"},
			"run":  {Type: modelrepo.Number, Available: "end"},
		},
		Time:      modelrepo.Span{Submit: "t0", End: "t1"},
		History:   []modelrepo.History{{By: []string{"user"}, Of: "t1", Stats: modelrepo.HistoryStats}},
		Generator: &modelrepo.Generator{Kind: "table", Seed: 1},
	}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "data/b.csv", "start,t1,user,emb,run,more\n30,40,ann,\"[1, 2]\",10,x\n20,25,bob,\"[3,4]\",,x\n")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("\ufeffuser,start,t1,run,emb\nann,0,5,5,\"[5,6]\"\nann,10,12,-1,\nbob,11,13,2,\"[7,8]\"\n"))
	z.Close()
	writeFile(t, dir, "data/a.csv", packed.String())
	r, err := Load(context.Background(), Source{Repo: dir, Set: tableSet(), Backend: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 10, 11, 20, 30}; !reflect.DeepEqual(r.Num["t0"], want) || !reflect.DeepEqual(r.File, []int{0, 0, 0, 1, 1}) {
		t.Errorf(`order %v, files %v; want reflect.DeepEqual(r.Num["t0"], want) && reflect.DeepEqual(r.File, []int{0, 0, 0, 1, 1})`, r.Num["t0"], r.File)
	}
	if got := r.Num["t1_last_by_user"]; !reflect.DeepEqual(got, []float64{-1, 5, -1, 13, 12}) {
		t.Errorf("history %v; want reflect.DeepEqual(got, []float64{-1, 5, -1, 13, 12})", got)
	}
	s, err := r.Sample(modelrepo.Regression, &modelrepo.ModelDataset{
		Name: "Jobs", Target: modelrepo.Target{Column: "run", Transform: "log1p"},
		Features: []modelrepo.Feature{{Column: "user", Kind: modelrepo.Category}, {Column: "emb", Kind: modelrepo.Vector, Length: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows.N != 3 || s.NoLabel != 2 || s.NoFeature != 0 || !reflect.DeepEqual(s.Target.Values, []float64{5, 2, 10}) {
		t.Errorf("%d rows, %d without label, %d without feature, values %v; want s.Rows.N == 3 && s.NoLabel == 2 && s.NoFeature == 0 && reflect.DeepEqual(s.Target.Values, []float64{5, 2, 10})", s.Rows.N, s.NoLabel, s.NoFeature, s.Target.Values)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const head = "start,t1,user,emb,run\n"
	for want, c := range map[string]struct {
		text    string
		backend string
		change  func(*modelrepo.Dataset)
	}{
		"no rows":                             {text: head},
		"needs a header line":                 {text: ""},
		`no column "run"`:                     {text: "start,t1,user,emb\n"},
		`line 2, column 1 (t0): "soon"`:       {text: head + "soon,1,a,\"[1,2]\",1\n"},
		"line 2, column 9 (emb): 1 numbers":   {text: head + "0,1,ann,[1],1\n"},
		"(emb): want a JSON array":            {text: head + "0,1,ann,one,1\n"},
		"wrong number of fields":              {text: head + "0,1\n"},
		"row 1 has no submit time":            {text: head + ",1,a,\"[1,2]\",1\n"},
		"missing or before the submit":        {text: head + "5,1,a,\"[1,2]\",1\n"},
		"unpack":                              {text: "\x1f\x8bxx"},
		`declares no backend "object_store"`:  {text: head, backend: "object_store"},
		`backend "ftp" is unknown`:            {text: head, backend: "ftp"},
		"object_store is not configured here": {text: head, backend: "object_store", change: func(d *modelrepo.Dataset) { d.Backends.ObjectStore = &modelrepo.ObjectStore{Bucket: "b"} }},
		"declares no backend":                 {text: head, change: func(d *modelrepo.Dataset) { d.Backends = modelrepo.Backends{} }},
		"no file matches":                     {text: head, change: func(d *modelrepo.Dataset) { d.Files = []string{"other/*.csv"} }},
		"not read by this build":              {text: head, change: func(d *modelrepo.Dataset) { d.Format = "arrow" }},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, dir, "data/a.csv", c.text)
			ds := tableSet()
			if c.change != nil {
				c.change(ds)
			}
			if c.backend == "" {
				c.backend = "local"
			}
			if _, err := Load(context.Background(), Source{Repo: dir, Set: ds, Backend: c.backend}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	none := tableSet()
	none.Generator = nil
	if _, err := Load(context.Background(), Source{Set: none, Dummy: true}); err == nil || !strings.Contains(err.Error(), "no generator") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "no generator")`)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	writeFile(t, dir, "data/a.csv", head)
	if _, err := Load(ctx, Source{Repo: dir, Set: tableSet(), Backend: "local"}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "canceled")`)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	rows := &Rows{N: 5, Num: map[string][]float64{"run": {0, 59, 60, 600, 4000}, "k": {0, 1, 2, 1, 0}, "x": {1, 2, 3, 4, 1e39}}, Cat: map[string][]string{"c": {"b", "a", "b", "b", "a"}}}
	x := []modelrepo.Feature{{Column: "run", Kind: modelrepo.Number}}
	for name, c := range map[string]struct {
		typ      modelrepo.Type
		target   modelrepo.Target
		features []modelrepo.Feature
		y        []int
		err      string
	}{
		"bins":           {modelrepo.Classification, modelrepo.Target{Column: "run", Transform: "bins", Edges: []float64{60, 600}, Labels: []string{"s", "m", "l"}}, x, []int{0, 0, 1, 2, 2}, ""},
		"numbers":        {modelrepo.Classification, modelrepo.Target{Column: "k", Labels: []string{"a", "b", "c"}}, x, []int{0, 1, 2, 1, 0}, ""},
		"too few labels": {modelrepo.Classification, modelrepo.Target{Column: "k", Labels: []string{"a", "b"}}, x, nil, "row 3: target k is 2"},
		"words":          {modelrepo.Classification, modelrepo.Target{Column: "c"}, x, []int{1, 0, 1, 1, 0}, ""},
		"unknown word":   {modelrepo.Classification, modelrepo.Target{Column: "c", Labels: []string{"b", "z"}}, x, nil, `row 2: target c is "a"`},
		"too large":      {modelrepo.Regression, modelrepo.Target{Column: "run"}, []modelrepo.Feature{{Column: "x", Kind: modelrepo.Number}}, nil, "too large for a feature"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := rows.Sample(c.typ, &modelrepo.ModelDataset{Name: "Jobs", Target: c.target, Features: c.features})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(s.Target.Y, c.y) {
				t.Errorf("%v, %v; want %v", s, err, c.y)
			}
		})
	}
	log := &Rows{N: 1, Num: map[string][]float64{"run": {-2}, "x": {1}}}
	if _, err := log.Sample(modelrepo.Regression, &modelrepo.ModelDataset{Target: modelrepo.Target{Column: "run", Transform: "log1p"}, Features: []modelrepo.Feature{{Column: "x", Kind: modelrepo.Number}}}); err == nil || !strings.Contains(err.Error(), "log1p") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "log1p")`)
	}
	gone := &Rows{N: 1, Num: map[string][]float64{"run": {-1}}}
	if _, err := gone.Sample(modelrepo.Regression, &modelrepo.ModelDataset{Target: modelrepo.Target{Column: "run"}}); err == nil || !strings.Contains(err.Error(), "no row has both") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "no row has both")`)
	}
}

func TestTableGenerator(t *testing.T) {
	t.Parallel()
	r, err := Load(context.Background(), Source{Set: tableSet(), Dummy: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.N != DummyRows || len(r.Num["run"]) != DummyRows || len(r.Vec["emb"][0]) != 2 || len(r.Cat["user"]) != DummyRows {
		t.Errorf(`%d rows; want r.N == DummyRows && len(r.Num["run"]) == DummyRows && len(r.Vec["emb"][0]) == 2 && len(r.Cat["user"]) == DummyRows`, r.N)
	}
}

// For any bytes, the reader returns, and all columns have equal length.
func FuzzCSV(f *testing.F) {
	f.Add([]byte("start,t1,user,emb,run\n0,1,a,\"[1,2]\",3\n"))
	f.Add([]byte("start,t1,user,emb,run\n0,1,\"a"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("start;t1;user;emb;run\r\n0,5;1;\"a;;NA\r\n"))
	f.Add([]byte("\xff\xfes\x00t\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		checkFuzzedCSV(t, in, modelrepo.Dialect{})
		checkFuzzedCSV(t, in, modelrepo.Dialect{Encoding: "windows-1252", Delimiter: ";", Decimal: ",", NAValues: []string{"NA"}, Quoting: modelrepo.QuotingNone})
	})
}

func checkFuzzedCSV(t *testing.T, in []byte, d modelrepo.Dialect) {
	t.Helper()
	ds := tableSet()
	ds.Dialect = d
	r := newRows(ds)
	if readCSV(bytes.NewReader(in), ds, r) != nil {
		return
	}
	for name, c := range ds.Columns {
		n := map[modelrepo.Kind]int{modelrepo.Number: len(r.Num[name]), modelrepo.Category: len(r.Cat[name]), modelrepo.Vector: len(r.Vec[name])}[c.Type]
		if n != r.N {
			t.Fatalf("column %s has %d values of %d rows; want n == %v", name, n, r.N, r.N)
		}
	}
}
