package modelrepo_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// allocationCeiling limits the total allocations of reading one hostile file, garbage included, in bytes.
const allocationCeiling = 256 << 20

// hostileFiles are YAML files that cost a parser more than they weigh.
func hostileFiles() map[string]string {
	files := map[string]string{
		"brackets":           strings.Repeat("[", 50_000),
		"braces":             strings.Repeat("{", 50_000),
		"keyed braces":       strings.Repeat("{a: ", 20_000),
		"closed brackets":    strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
		"hidden closes":      strings.Repeat("[ \"]\", ", 10_000),
		"commented closes":   strings.Repeat("[ #]\n", 9_000),
		"dashes":             strings.Repeat("- ", 40_000) + "x",
		"question marks":     strings.Repeat("? ", 40_000) + "x",
		"colons":             strings.Repeat(": ", 40_000) + "x",
		"keys on a line":     strings.Repeat("a: ", 40_000) + "x",
		"tags":               strings.Repeat("!a ", 40_000) + "x",
		"anchors":            strings.Repeat("&a ", 40_000) + "x",
		"aliases":            "a: &a x\nb: [" + strings.Repeat("*a,", 30_000) + "]",
		"quotes":             strings.Repeat("\"", 60_000),
		"single quotes":      strings.Repeat("'", 60_000),
		"backslashes":        "a: \"" + strings.Repeat(`\x41`, 20_000) + "\"",
		"literals":           strings.Repeat("a: |\n", 9_000),
		"folded":             strings.Repeat("- >\n", 9_000),
		"comments":           strings.Repeat("#\n", 9_900) + "a: 1",
		"documents":          strings.Repeat("---\n", 9_000),
		"directives":         strings.Repeat("%YAML 1.2\n", 1_900),
		"merges":             strings.Repeat("<<: ", 20_000),
		"numbers":            "a: " + strings.Repeat("9", 60_000),
		"one long key":       strings.Repeat("k", 60_000) + ": 1",
		"spaces":             strings.Repeat(" ", 60_000) + "a: 1",
		"tabs":               strings.Repeat("\t", 60_000) + "a: 1",
		"carriage returns":   strings.Repeat("\r", 60_000),
		"no UTF-8":           strings.Repeat("\xff\xfe", 30_000),
		"byte order":         "\ufeff" + strings.Repeat("\ufeff", 20_000),
		"NUL":                "a: \x00",
		"escape sequences":   "a: \x1b[2J",
		"huge":               strings.Repeat("a: 1\n", 200_000),
		"keys":               strings.Repeat("a: 1\n", 9_900),
		"list":               strings.Repeat("- 1\n", 9_900),
		"empty values":       strings.Repeat("a:\n", 9_900),
		"nested by one":      nested(" ", 400),
		"nested by two":      nested("  ", 400),
		"nested lists":       nestedLists(400),
		"flat flow":          "a: [" + strings.Repeat("1,", 8_000) + "]",
		"empty flow":         "a: [" + strings.Repeat(",", 16_000) + "]",
		"deepest allowed":    strings.Repeat("- "+strings.Repeat("[", 24)+strings.Repeat("]", 24)+"\n", 80),
		"deepest keys":       nested(" ", 96),
		"distinct keys":      distinctKeys(9_000),
		"laughs":             laughs(),
		"long flow in lists": strings.Repeat("- [1,2,3,4,5,6,7,8]\n", 1_900),
	}
	return files
}

func nested(by string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(by, i))
	}
	return b.String()
}

func distinctKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func nestedLists(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s-\n", strings.Repeat(" ", i))
	}
	return b.String()
}

// laughs is a file whose aliases unfold to 10^9 values.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

// newRepository is a repository with one sound model, to which the test adds files.
func newRepository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/modelrepo")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A hostile file is refused for little memory, and keeps no other model from being read. The test is alone in its
// process while it measures, so it is not parallel.
func TestHostileFilesAreRefusedCheaply(t *testing.T) {
	dir := newRepository(t)
	want, err := modelrepo.Open(dir, "dev")
	if err != nil {
		t.Fatal(err)
	}
	files := hostileFiles()
	for i, name := range slices.Sorted(maps.Keys(files)) {
		task := filepath.Join(dir, "models", "anomaly_detection", fmt.Sprintf("Hostile%02d", i))
		if err := os.MkdirAll(task, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(task, "model.yaml")
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		var got *modelrepo.Repo
		hostiletest.CheckAllocation(t, allocationCeiling, func() { got, err = modelrepo.Open(dir, "dev") })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(got.Names(), want.Names()) || len(got.Faults) == 0 {
			t.Errorf("%s: models %v, faults %v; want %v and a fault", name, got.Names(), got.Faults, want.Names())
		}
		if err := os.RemoveAll(task); err != nil {
			t.Fatal(err)
		}
	}
}

// Damaged descriptions of models, data sets and registries end in a fault, or in a model that is valid after all, and
// the five sound models are read beside each.
func TestDamagedFilesAreRefused(t *testing.T) {
	const sound = "../../deploy/modelrepo/"
	var files []hostiletest.File
	for kind, name := range map[string]string{"model.yaml": "models/power_consumption_prediction/JPCP/model.yaml", "dataset.yaml": "datasets/IpscJobs.yaml", "registry.yaml": "registries/base.yaml"} {
		text, err := os.ReadFile(sound + name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, hostiletest.Mutate(kind, 70, 1, text)...)
	}
	dir := newRepository(t)
	want, err := modelrepo.Open(dir, "dev")
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]string{"model.yaml": "models/anomaly_detection/Hostile/model.yaml", "dataset.yaml": "datasets/Hostile.yaml", "registry.yaml": "registries/staging.yaml"}
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(place["model.yaml"])), 0o700); err != nil {
		t.Fatal(err)
	}
	hostiletest.Feed(t, files, 10*time.Second, func(f hostiletest.File) error {
		path := filepath.Join(dir, place[f.Kind])
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		env := "dev"
		if f.Kind == "registry.yaml" {
			env = "staging" // a registry is read only as that of its environment
		}
		got, err := modelrepo.Open(dir, env)
		if err != nil {
			t.Fatalf("%s %s: %v; want a repository", f.Kind, f.Name, err)
		}
		for _, name := range want.Names() {
			if !slices.Contains(got.Names(), name) {
				t.Errorf("%s %s: models %v; want %v among them", f.Kind, f.Name, got.Names(), want.Names())
			}
		}
		if len(got.Faults) == 0 {
			return nil
		}
		return fmt.Errorf("%v", got.Faults[0])
	})
}

// A repository with more folders than any team has is read in part, which is reported.
func TestManyFilesAreRefusedCheaply(t *testing.T) {
	t.Parallel()
	dir := newRepository(t)
	for i := range 3_000 {
		at := filepath.Join(dir, "models", "zzz", fmt.Sprintf("Hostile%04d", i))
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "model.yaml"), []byte("["), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := modelrepo.Open(dir, "dev")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Models) != 5 || len(r.Faults) < 1_000 || len(r.Faults) > 1_100 {
		t.Fatalf("%d models, %d faults; want 5 models and about 1,000 faults", len(r.Models), len(r.Faults))
	}
}

// What leads out of the repository is not read.
func TestLinksOutOfTheRepositoryAreNotRead(t *testing.T) {
	t.Parallel()
	dir := newRepository(t)
	outside := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(outside, []byte("name: Stolen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"Link": outside, "Device": "/dev/zero", "Pipe": "/proc/self/fd/0", "Loop": "model.yaml"} {
		at := filepath.Join(dir, "models", "anomaly_detection", name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(at, "model.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := modelrepo.Open(dir, "dev")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Models) != 5 || len(r.Faults) != 4 {
		t.Fatalf("%d models, faults %v; want 5 models and 4 faults", len(r.Models), r.Faults)
	}
}

// FuzzModelFile: whatever the bytes, reading ends with a model or with faults, and within the ceiling.
func FuzzModelFile(f *testing.F) {
	for _, text := range hostileFiles() {
		if len(text) < 4<<10 {
			f.Add([]byte(text))
		}
	}
	sound, err := os.ReadFile("../../deploy/modelrepo/models/power_consumption_prediction/JPCP/model.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sound)
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		for _, name := range []string{"models/anomaly_detection/X/model.yaml", "datasets/X.yaml", "registries/base.yaml"} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		hostiletest.CheckAllocation(t, allocationCeiling, func() {
			if _, err := modelrepo.Open(dir, ""); err != nil {
				t.Fatal(err)
			}
		})
	})
}
