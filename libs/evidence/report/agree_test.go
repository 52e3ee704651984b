package report_test

import (
	"errors"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

func reportState(s string) spine.State { return spine.State(s) }

func TestProjectionsThatDoNotFitTheReport(t *testing.T) {
	t.Parallel()
	other := fixture.Digest("9")
	for path, change := range map[string]func(*spine.Run){
		"/run_id":                 func(r *spine.Run) { r.RunID = "run/other" },
		"/work_unit":              func(r *spine.Run) { r.WorkUnit.Version = 2 },
		"/evidence_report_digest": func(r *spine.Run) { r.EvidenceReportDigest = &other },
		"/state":                  func(r *spine.Run) { r.State = spine.Decided },
		"/attempts":               func(r *spine.Run) { r.Attempts = r.Attempts[:1] },
		"/attempts/1":             func(r *spine.Run) { r.Attempts[1].VerificationSemanticDigest = &other },
		"/attempts/0":             func(r *spine.Run) { r.Attempts[0].ResultManifestDigest = nil },
	} {
		r := fixture.Report()
		run, err := r.Run(fixture.ProjectID, fixture.SourceRevision, spine.AwaitingHumanDecision)
		if err != nil {
			t.Fatal(err)
		}
		change(&run)
		var f *report.Fault
		if err := r.Agrees(run); !errors.As(err, &f) || f.Path != path {
			t.Errorf("%s: %v; want errors.As(err, &f) && f.Path == path", path, err)
		}
	}
	// What the report does not know is the projection's own.
	r := fixture.Report()
	run, err := r.Run(fixture.ProjectID, fixture.SourceRevision, spine.EvidenceReady)
	if err != nil {
		t.Fatal(err)
	}
	run.Attempts[0].ConnectorID, run.Attempts[0].CandidateReferenceDigest = "agent/one", &other
	run.ProjectID, run.Routing.PolicyVersion = "project/other", "routing-v0.1"
	if err := r.Agrees(run); err != nil {
		t.Error(err)
	}
}

func canonicalBytes(t testing.TB, v canon.Value) []byte {
	t.Helper()
	data, err := canon.C1(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"attempts":[{"order":1}]}`))
	for _, r := range []*report.Report{fixture.Report(), mixedReport()} {
		f.Add(canonicalBytes(f, r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Parse(data)
		if err != nil {
			var fault *report.Fault
			if !errors.As(err, &fault) || fault.Code == "" || fault.Detail == "" {
				t.Fatalf(`%#v is no fault; want errors.As(err, &fault) && fault.Code != "" && fault.Detail != ""`, err)
			}
			return
		}
		// What passes can be shown, keeps its digest and can be made a run.
		s := report.Inspect(r)
		back, err := report.Parse(canonicalBytes(t, r))
		if err != nil || back.Digest() != r.Digest() || report.Inspect(back).Digest() != s.Digest() {
			t.Fatalf("the report does not read back: %v; want back.Digest() == r.Digest() && report.Inspect(back).Digest() == s.Digest()", err)
		}
		if run, err := r.Run("p", fixture.SourceRevision, spine.EvidenceReady); err == nil {
			if err := r.Agrees(run); err != nil {
				t.Fatal(err)
			}
		}
	})
}
