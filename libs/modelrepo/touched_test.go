package modelrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Which models a change of a file concerns.
func TestTouched(t *testing.T) {
	t.Parallel()
	other := strings.ReplaceAll(strings.Replace(goodModel, "name: Demo", "name: Other\nsources: [lib/*.py, shared, 'tools/**/*.sql', ./odd.txt]", 1), "name: Jobs", "name: More")
	more := strings.Replace(strings.Replace(goodDataset, "name: Jobs", "name: More", 1), "data/jobs.csv", "data/more/*.csv", 1)
	r, err := Open(writeRepository(t, map[string]string{
		"models/performance_prediction/Other/model.yaml": other, "datasets/More.yaml": more, "data/more/a.csv": "x\n",
	}), "")
	if err != nil || len(r.Models) != 2 {
		t.Fatalf("%v %v %v; want len(r.Models) == 2", err, r.Names(), r.Faults)
	}
	both := []string{"DEMO", "OTHER"}
	for _, c := range []struct {
		files string
		want  []string
	}{
		{"", nil},
		{"README.md", nil},
		{"models/performance_prediction/Demo/model.yaml", both[:1]},
		{"models/performance_prediction/Demo/images/a.png", both[:1]},
		{"./models/performance_prediction/Other/README.md", both[1:]},
		{"models/performance_prediction/Demolition/model.yaml", nil},
		{"models/performance_prediction/demo/model.yaml", nil},
		{"models/performance_prediction/Demo", nil},
		{"models/README.md", nil},
		{"datasets/Jobs.yaml", both[:1]},
		{"datasets/More.yaml", both[1:]},
		{"datasets/Jobs.yaml.orig", nil},
		{"data/jobs.csv", both[:1]},
		{"data/more/b.csv", both[1:]},
		{"data/more/deep/b.csv", nil},
		{"data/README.md", nil},
		{"registries/base.yaml", both},
		{"registries/old/prod.yaml", both},
		{"registries", nil},
		{"lib/a.py", both[1:]},
		{"lib/deep/a.py", nil},
		{"shared/deep/a.go", both[1:]},
		{"shared", both[1:]},
		{"tools/x.sql", both[1:]},
		{"tools/a/b/x.sql", both[1:]},
		{"odd.txt", both[1:]},
		{"README.md lib/a.py datasets/Jobs.yaml", both},
		{"../models/performance_prediction/Demo/model.yaml", nil},
	} {
		if got := r.Touched(strings.Fields(c.files)); !slices.Equal(got, c.want) || got == nil {
			t.Errorf("%q touches %v, want %v", c.files, got, c.want)
		}
	}
}

func BenchmarkTouched(b *testing.B) {
	r, err := Open(writeRepository(b, nil), "")
	if err != nil {
		b.Fatal(err)
	}
	files := make([]string, 10_000)
	for i := range files {
		files[i] = fmt.Sprintf("notes/%d.md", i)
	}
	for b.Loop() {
		r.Touched(files)
	}
}
