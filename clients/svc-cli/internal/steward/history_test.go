package steward_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/steward"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

func sampleEntry(t testing.TB, source, name string, changes map[string]string) steward.Entry {
	t.Helper()
	r, err := steward.Parse(changedSample(t, name, changes))
	if err != nil {
		t.Fatal(err)
	}
	return steward.NewEntry(source, r)
}

func TestHistoryOfTheSamples(t *testing.T) {
	t.Parallel()
	var all []steward.Entry
	for day := 1; day <= 3; day++ {
		name := fmt.Sprintf("history/day-%d/steward-report", day)
		all = append(all, sampleEntry(t, name+".json", name, nil))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	h, err := steward.NewHistory(all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := canon.P(h)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "history.json.golden")
	if *steward.Update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v; look at it, then run: go test ./internal/steward -update\n%s; want bytes.Equal(got, want)", err, got)
	}
	if err := schematest.Validate(t, "steward-history", h); err != nil {
		t.Error(err)
	}
	// The digest of the input set, made by hand from the document itself.
	doc := canon.MustFrom(h).(*canon.Object)
	runs, _ := doc.Get("runs")
	for _, r := range runs.(canon.Array) {
		r.(*canon.Object).Delete("source")
	}
	text, err := canon.C1(map[string]any{"schema": "auto-draft-pr-steward-history-v0.1", "report_schema": "auto-draft-pr-steward-report-v0.1", "repository": "example/demo", "reports": runs})
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != h.Integrity.InputSetSHA256 {
		t.Error("input set", h.Integrity.InputSetSHA256, "want hex.EncodeToString(sum[:]) ==", h.Integrity.InputSetSHA256)
	}
}

// Time goes first, then run and attempt; two spellings of one instant are one instant.
func TestOrderOfRuns(t *testing.T) {
	t.Parallel()
	run := func(at string, id, attempt int) steward.Entry {
		return sampleEntry(t, fmt.Sprintf("%s/%d/%d", at, id, attempt), completed, map[string]string{
			"/generated_at": `"` + at + `"`, "/provenance/run_id": fmt.Sprint(id), "/provenance/run_attempt": fmt.Sprint(attempt)})
	}
	want := []steward.Entry{
		run("2026-01-02T03:04:05Z", 9, 1), run("2026-01-02T03:04:05.0Z", 10, 1), run("2026-01-02T03:04:05.00Z", 10, 2),
		run("2026-01-02T03:04:05.5Z", 1, 1), run("2026-01-02T03:04:05.50Z", 2, 1), run("2026-01-02T03:04:06Z", 3, 1),
	}
	shuffled := append([]steward.Entry{}, want...)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	h, err := steward.NewHistory(shuffled)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range h.Runs {
		if r.Source != want[i].Run.Source {
			t.Errorf("run %d is %s, want %s", i, r.Source, want[i].Run.Source)
		}
	}
	if h.FirstGeneratedAt != "2026-01-02T03:04:05Z" || h.LastGeneratedAt != "2026-01-02T03:04:06Z" || h.Policy.Changes != 0 || h.Policy.DistinctDigests != 1 {
		t.Errorf(`%+v; want h.FirstGeneratedAt == "2026-01-02T03:04:05Z" && h.LastGeneratedAt == "2026-01-02T03:04:06Z" && h.Policy.Changes == 0 && h.Policy.DistinctDigests == 1`, h)
	}
}

func TestHistoryFaults(t *testing.T) {
	t.Parallel()
	one, other := sampleEntry(t, "a", completed, nil), sampleEntry(t, "b", "other-repository", nil)
	for code, all := range map[string][]steward.Entry{
		steward.NoReports: nil, steward.RepositoryMismatch: {one, other}, steward.DuplicateReport: {one, sampleEntry(t, "c", completed, map[string]string{"/dry_run": "true"})},
	} {
		if _, err := steward.NewHistory(all); err == nil || command.FaultOf(err).Code != code {
			t.Errorf("%v; want %s", err, code)
		}
	}
	if _, err := steward.NewHistory([]steward.Entry{one, sampleEntry(t, "c", completed, map[string]string{"/provenance/run_attempt": "2"})}); err != nil {
		t.Error("another attempt of the same run:", err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(path string) string {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, samples.File("steward/"+completed+".json"), 0o600); err != nil {
			t.Fatal(err)
		}
		return full
	}
	deepest := put("in/1/2/3/4/5/6/7/8/steward-report.json")
	put("in/1/2/3/4/5/6/7/8/9/steward-report.json") // one too deep
	put("in/other.json")
	put("away/steward-report.json")
	link := filepath.Join(dir, "in", "linked")
	if err := os.Symlink(filepath.Join(dir, "away"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "away"), filepath.Join(dir, "in", "1", steward.FileName)); err != nil {
		t.Fatal(err)
	}
	all, err := steward.LoadAll([]string{filepath.Join(dir, "in")})
	if err != nil || len(all) != 1 || all[0].Run.Source != deepest {
		t.Errorf("%+v %v; want len(all) == 1 && all[0].Run.Source == deepest", all, err)
	}
	linked := filepath.Join(dir, "report-link.json")
	if err := os.Symlink(filepath.Join(dir, "in", "other.json"), linked); err != nil {
		t.Fatal(err)
	}
	if all, err := steward.LoadAll([]string{linked}); err != nil || len(all) != 1 {
		t.Error("a link to a file:", all, err, "want len(all) == 1")
	}
	for path, code := range map[string]string{link: steward.LinkedFolder, filepath.Join(dir, "none"): command.InputReadError} {
		if _, err := steward.LoadAll([]string{path}); err == nil || command.FaultOf(err).Code != code {
			t.Errorf("%s: %v; want %s", path, err, code)
		}
	}
	bad := put("in/0/steward-report.json")
	if err := os.WriteFile(bad, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := steward.LoadAll([]string{filepath.Join(dir, "in")}); err == nil || !strings.Contains(err.Error(), bad) || command.FaultOf(err).Code != steward.MissingField {
		t.Error(err, "want an error && strings.Contains(err.Error(), bad) && command.FaultOf(err).Code == steward.MissingField")
	}
}

// The limits of a search, each at the limit and one past it.
func TestSearchBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	if err := os.WriteFile(file, samples.File("steward/"+completed+".json"), 0o600); err != nil {
		t.Fatal(err)
	}
	repeat := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = file
		}
		return out
	}
	if all, err := steward.LoadAll(repeat(steward.MaxInputs)); err != nil || len(all) != steward.MaxInputs {
		t.Error(len(all), err, "want len(all) == steward.MaxInputs")
	}
	if _, err := steward.LoadAll(repeat(steward.MaxInputs + 1)); err == nil || command.FaultOf(err).Code != steward.TooManyInputs {
		t.Error(err, "want an error && command.FaultOf(err).Code == steward.TooManyInputs")
	}
	folders := filepath.Join(dir, "folders")
	for i := range steward.MaxReports + 1 {
		sub := filepath.Join(folders, fmt.Sprint(i))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(file, filepath.Join(sub, steward.FileName)); err != nil {
			t.Fatal(err)
		}
		if i < steward.MaxReports-1 {
			continue
		}
		all, err := steward.LoadAll([]string{folders})
		if i == steward.MaxReports-1 && (err != nil || len(all) != steward.MaxReports) {
			t.Error(len(all), err, "want (i != steward.MaxReports - 1 || !err != nil || len(all) != steward.MaxReports)")
		}
		if i == steward.MaxReports && (err == nil || command.FaultOf(err).Code != steward.TooManyReports) {
			t.Error(err, "want (i != steward.MaxReports || !err == nil || command.FaultOf(err).Code != steward.TooManyReports)")
		}
	}
	empty := filepath.Join(dir, "empty")
	for i := range steward.MaxFolders {
		if err := os.MkdirAll(filepath.Join(empty, fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
		if i < steward.MaxFolders-2 {
			continue
		}
		_, err := steward.LoadAll([]string{empty}) // which is a folder too
		if i == steward.MaxFolders-2 && err != nil || i == steward.MaxFolders-1 && (err == nil || command.FaultOf(err).Code != steward.TooManyFolders) {
			t.Error(i, err, "want (i != steward.MaxFolders - 2 || err == nil) && (i != steward.MaxFolders - 1 || !err == nil || command.FaultOf(err).Code != steward.TooManyFolders)")
		}
	}
}
