package samples_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

var update = flag.Bool("update", false, "rewrite the samples of the spine")

// The samples of the spine are the fixtures of the evidence library, and a second run that a projection brings.
func TestSpineSamplesAreTheFixtures(t *testing.T) {
	t.Parallel()
	imported, err := fixture.Report().Run(fixture.ProjectID, fixture.SourceRevision, spine.EvidenceReady)
	if err != nil {
		t.Fatal(err)
	}
	other := fixture.Run()
	other.RequestDigest = fixture.Digest("9")
	for name, v := range map[string]canon.Value{
		"run.json":            fixture.Run().Value(),
		"run-changed.json":    other.Value(), // the same run with another request
		"report.json":         fixture.Report().Value(),
		"report-run.json":     imported.Value(), // the projection that goes with the report
		"report-altered.json": alteredReport(),
	} {
		want, err := canon.P(v)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join("files", "spine", name), want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got := samples.File("spine/" + name); !bytes.Equal(got, want) {
			t.Errorf("%s is not what the fixtures make; run: go test ./internal/samples -update; want bytes.Equal(got, want)", name)
		}
	}
}

// alteredReport is the fixture report with a summary that its attempts contradict.
func alteredReport() canon.Value {
	r := fixture.Report()
	r.Summary.Supported, r.Summary.Rejected = 2, 0
	return r.Value()
}

func TestSamplesParse(t *testing.T) {
	t.Parallel()
	if _, err := report.Parse(samples.File("spine/report.json")); err != nil {
		t.Error(err)
	}
	if len(samples.List()) < 4 {
		t.Errorf("%v; want len(samples.List()) >= 4", samples.List())
	}
}
