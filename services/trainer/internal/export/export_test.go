package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
)

// sampleJobs is a table with a column for every kind, and the things to predict from it.
func sampleJobs(rows int) (t frame.Table, number, class frame.Target) {
	rng := rand.New(rand.NewPCG(7, 7))
	procs := frame.Column{Name: "procs", Kind: modelrepo.Number}
	wait := frame.Column{Name: "wait", Kind: modelrepo.Number}
	user := frame.Column{Name: "user", Kind: modelrepo.Category}
	queue := frame.Column{Name: "queue", Kind: modelrepo.Category}
	embedding := frame.Column{Name: "embedding", Kind: modelrepo.Vector, Length: 6}
	users := []string{"ada", "bob", "", "größe", "x y"}
	for range rows {
		p, w, u := math.Exp2(float64(rng.IntN(8))), rng.ExpFloat64()*5000, rng.IntN(len(users))
		vec := make([]float32, 6)
		for i := range vec {
			vec[i] = float32(rng.NormFloat64() * 0.3)
		}
		procs.Num = append(procs.Num, float32(p))
		wait.Num = append(wait.Num, float32(w))
		user.Cat = append(user.Cat, users[u])
		queue.Cat = append(queue.Cat, fmt.Sprint("q", rng.IntN(40)))
		embedding.Vec = append(embedding.Vec, vec)
		v := 20 + p*float64(u+1) + w/50 + 100*math.Abs(float64(vec[0]))
		number.Values = append(number.Values, v*(1+0.05*rng.NormFloat64()))
		c := 0
		if v > 120 {
			c = 1
		}
		if v > 300 {
			c = 2
		}
		class.Y = append(class.Y, c)
	}
	t = frame.Table{Columns: []frame.Column{procs, wait, user, queue, embedding}, Rows: rows}
	number.Name, number.Unit = "run", "s"
	class.Name, class.Class, class.Labels = "size", true, []string{"small", "middle", "large"}
	return t, number, class
}

func sampleFeatures(number, category string) []modelrepo.Feature {
	return []modelrepo.Feature{
		{Column: "procs", Kind: modelrepo.Number, Transform: number},
		{Column: "user", Kind: modelrepo.Category, Transform: category},
		{Column: "wait", Kind: modelrepo.Number, Transform: number},
		{Column: "queue", Kind: modelrepo.Category, Transform: category},
		{Column: "embedding", Kind: modelrepo.Vector, Length: 6, Transform: strings.Replace(number, "log1p", "none", 1)},
	}
}

// learnedTarget returns the target as the estimator sees it.
func learnedTarget(target frame.Target) []float64 {
	var y []float64
	for _, v := range target.Values {
		if target.Transform == modelrepo.TransformLog1p {
			v = math.Log1p(v)
		}
		y = append(y, v)
	}
	for _, c := range target.Y {
		y = append(y, float64(c))
	}
	return y
}

// Every estimator with every transform and target: ONNX Runtime gives the Go evaluator's answers, also on rows that the
// fit has not seen.
func TestParity(t *testing.T) {
	t.Parallel()
	table, number, class := sampleJobs(1500)
	two := class
	two.Labels = []string{"0", "1"}
	two.Y = nil
	for _, c := range class.Y {
		two.Y = append(two.Y, min(c, 1))
	}
	logged := number
	logged.Transform = modelrepo.TransformLog1p
	fitRows := make([]int, 1000)
	for i := range fitRows {
		fitRows[i] = i
	}
	train := table.Select(fitRows)
	small := map[string]any{"n_estimators": 20}
	for _, c := range []struct {
		kind   string
		hyper  map[string]any
		target frame.Target
	}{
		{"ridge", nil, number},
		{"ridge", nil, logged},
		{"logistic", map[string]any{"max_iter": 50}, two},
		{"logistic", map[string]any{"max_iter": 50}, class},
		{"random_forest", small, number},
		{"random_forest", small, logged},
		{"random_forest", small, two},
		{"random_forest", small, class},
		{"gbt", small, number},
		{"gbt", map[string]any{"n_estimators": 20, "loss": "absolute_error"}, logged},
		{"gbt", small, two},
		{"gbt", small, class},
		{"isolation_forest", nil, two},
	} {
		for _, num := range []string{"none", "log1p", "standardize"} {
			for _, cat := range []string{"onehot", "ordinal"} {
				t.Run(fmt.Sprintf("%s-%s-%d-%s-%s", c.kind, c.target.Transform, len(c.target.Labels), num, cat), func(t *testing.T) {
					t.Parallel()
					p, err := FitTransforms(sampleFeatures(num, cat), train)
					if err != nil {
						t.Fatal(err)
					}
					x, err := p.Apply(train)
					if err != nil {
						t.Fatal(err)
					}
					m, err := learn.Fit(context.Background(), learn.Spec{Kind: c.kind, Hyper: c.hyper, Seed: 3, Classes: len(c.target.Labels)},
						x, learnedTarget(c.target.Select(fitRows)), nil)
					if err != nil {
						t.Fatal(err)
					}
					dir := filepath.Join(t.TempDir(), "model")
					if _, err := Write(dir, Meta{Model: "M", Dataset: "D", Estimator: c.kind}, p, m, c.target); err != nil {
						t.Fatal(err)
					}
					unseen := table.Select([]int{0, 1400})
					unseen.Columns[2].Cat[1] = "nobody has seen this user"
					for _, rows := range []frame.Table{table, unseen} {
						if err := Verify(dir, rows, p, m, c.target); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
}

// A model that is not the exported one must be noticed.
func TestVerifyNoticesDifferences(t *testing.T) {
	t.Parallel()
	table, number, class := sampleJobs(500)
	p, err := FitTransforms(sampleFeatures("none", "ordinal"), table)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.Apply(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []frame.Target{number, class} {
		fit := func(seed int64) learn.Model {
			m, err := learn.Fit(context.Background(), learn.Spec{Kind: "random_forest", Seed: seed, Classes: len(target.Labels), Hyper: map[string]any{"n_estimators": 5}}, x, learnedTarget(target), nil)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		dir := t.TempDir()
		if _, err := Write(dir, Meta{Model: "M"}, p, fit(1), target); err != nil {
			t.Fatal(err)
		}
		if err := Verify(dir, table, p, fit(2), target); err == nil || !strings.Contains(err.Error(), "the exported model answers") {
			t.Errorf(`another model passed: %v; want an error && strings.Contains(err.Error(), "the exported model answers")`, err)
		}
	}
}

// The same data and seed produce the same files, and platform.json has the fields that serving needs.
func TestFiles(t *testing.T) {
	t.Parallel()
	table, _, class := sampleJobs(400)
	var last map[string]string
	var dir string
	for range 2 {
		p, err := FitTransforms(sampleFeatures("standardize", "onehot"), table)
		if err != nil {
			t.Fatal(err)
		}
		x, err := p.Apply(table)
		if err != nil {
			t.Fatal(err)
		}
		m, err := learn.Fit(context.Background(), learn.Spec{Kind: "gbt", Seed: 1, Classes: 3, Hyper: map[string]any{"n_estimators": 3}}, x, learnedTarget(class), nil)
		if err != nil {
			t.Fatal(err)
		}
		dir = t.TempDir()
		files, err := Write(dir, Meta{Model: "SizeClass", Dataset: "Jobs", TaskType: "job_performance", Estimator: "gbt", Seed: 1, Rows: table.Rows}, p, m, class)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && fmt.Sprint(files) != fmt.Sprint(last) {
			t.Errorf("files differ between two fits: %v, %v", files, last)
		}
		last = files
	}
	data, err := os.ReadFile(filepath.Join(dir, PlatformFile))
	if err != nil {
		t.Fatal(err)
	}
	var d Description
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Format != 1 || d.Type != modelrepo.Classification || fmt.Sprint(d.Output) != "{size label  [small middle large] string}" || d.TrainingRows != 400 {
		t.Errorf(`%+v; want d.Format == 1 && d.Type == modelrepo.Classification && fmt.Sprint(d.Output) == "{size label [small middle large] string}" && d.TrainingRows == 400`, d)
	}
	if fmt.Sprint(d.Inputs) != "[{procs number 0 float32 standardize} {user category 0 string onehot} {wait number 0 float32 standardize} {queue category 0 string onehot} {embedding vector 6 float32 standardize}]" {
		t.Errorf("inputs %v", d.Inputs)
	}
	if s := d.TrainingStats["procs"]; len(d.TrainingStats) != 2 || s.Mean <= 1 || s.Std <= 0 {
		t.Errorf("statistics %v; want len(d.TrainingStats) == 2 && s.Mean > 1 && s.Std > 0", d.TrainingStats)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	table, number, _ := sampleJobs(10)
	bad := func(change func(*frame.Table)) frame.Table {
		c := table.Select([]int{0, 1, 2})
		change(&c)
		return c
	}
	nan := float32(math.NaN())
	for want, c := range map[string]struct {
		feature modelrepo.Feature
		table   frame.Table
	}{
		"no such column":                {modelrepo.Feature{Column: "gpus", Kind: modelrepo.Number}, table},
		"has it as number":              {modelrepo.Feature{Column: "procs", Kind: modelrepo.Category, Transform: "onehot"}, table},
		"transform \"sqrt\" is unknown": {modelrepo.Feature{Column: "procs", Kind: modelrepo.Number, Transform: "sqrt"}, table},
		"needs the transform onehot":    {modelrepo.Feature{Column: "user", Kind: modelrepo.Category}, table},
		"log1p is for numbers and":      {modelrepo.Feature{Column: "user", Kind: modelrepo.Category, Transform: "log1p"}, table},
		"onehot is for categories":      {modelrepo.Feature{Column: "procs", Kind: modelrepo.Number, Transform: "onehot"}, table},
		"6 elements, want 5":            {modelrepo.Feature{Column: "embedding", Kind: modelrepo.Vector, Length: 5}, table},
		"there are no rows":             {modelrepo.Feature{Column: "procs", Kind: modelrepo.Number}, frame.Table{}},
		"row 1 is NaN":                  {modelrepo.Feature{Column: "procs", Kind: modelrepo.Number}, bad(func(t *frame.Table) { t.Columns[0].Num[1] = nan })},
		"numbers above -1":              {modelrepo.Feature{Column: "procs", Kind: modelrepo.Number, Transform: "log1p"}, bad(func(t *frame.Table) { t.Columns[0].Num[2] = -1 })},
		"the table 4":                   {modelrepo.Feature{Column: "procs", Kind: modelrepo.Number}, bad(func(t *frame.Table) { t.Rows = 4 })},
		"an element NaN": {modelrepo.Feature{Column: "embedding", Kind: modelrepo.Vector, Length: 6},
			bad(func(t *frame.Table) { t.Columns[4].Vec[0] = []float32{nan, 0, 0, 0, 0, 0} })},
	} {
		if _, err := FitTransforms([]modelrepo.Feature{c.feature}, c.table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := FitTransforms(nil, table); err == nil {
		t.Error("no features were accepted")
	}
	procs := modelrepo.Feature{Column: "procs", Kind: modelrepo.Number}
	if _, err := FitTransforms([]modelrepo.Feature{procs, procs}, table); err == nil {
		t.Error("a feature twice was accepted")
	}
	p, err := FitTransforms([]modelrepo.Feature{procs}, table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(frame.Table{Rows: 1}); err == nil {
		t.Error("a table without the column was accepted")
	}
	if _, err := Write(t.TempDir(), Meta{}, p, &learn.Linear{Features: 2, Coef: make([]float32, 2), Intercept: make([]float32, 1)}, number); err == nil || !strings.Contains(err.Error(), "fitted on 2 features, the transforms make 1") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "fitted on 2 features, the transforms make 1")`)
	}
	for i := range table.Columns {
		if table.Columns[i].Name == "procs" {
			table.Columns[i].Name = Prediction
		}
	}
	p, err = FitTransforms([]modelrepo.Feature{{Column: Prediction, Kind: modelrepo.Number}}, table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.TempDir(), Meta{}, p, &learn.Linear{Features: 1, Coef: make([]float32, 1), Intercept: make([]float32, 1)}, number); err == nil || !strings.Contains(err.Error(), `"prediction" is used twice`) {
		t.Error(err, "want an error && strings.Contains(err.Error(), `\"prediction\" is used twice`)")
	}
}
