package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
)

// putAt returns the fixture report with the value at a JSON pointer replaced, or with the
// key there removed when v is remove.
func putAt(t *testing.T, doc canon.Value, pointer string, v canon.Value) canon.Value {
	t.Helper()
	if pointer == "" {
		return v
	}
	at, last := doc, ""
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		if i == len(parts)-1 {
			last = p
			break
		}
		if a, ok := at.(canon.Array); ok {
			n, err := strconv.Atoi(p)
			if err != nil {
				t.Fatal(err)
			}
			at = a[n]
			continue
		}
		next, ok := at.(*canon.Object).Get(p)
		if !ok {
			t.Fatalf("no %s; want ok", pointer)
		}
		at = next
	}
	switch parent := at.(type) {
	case canon.Array:
		n, err := strconv.Atoi(last)
		if err != nil {
			t.Fatal(err)
		}
		parent[n] = v
	case *canon.Object:
		if v == remove {
			parent.Delete(last)
		} else {
			parent.Set(last, v)
		}
	}
	return doc
}

type removal struct{}

var remove canon.Value = removal{}

func fixtureValue() canon.Value { return canon.Clone(fixture.Report().Value()) }

func TestFixtureReport(t *testing.T) {
	t.Parallel()
	var v struct {
		Report struct {
			Document any    `json:"document"`
			Bytes    int    `json:"c1_bytes"`
			Digest   string `json:"digest"`
		} `json:"report"`
		Imported struct {
			Digest string `json:"digest"`
		} `json:"imported_run"`
	}
	vectortest.Load(t, "fixtures.json", &v)
	const want = "sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec"
	r := fixture.Report()
	c1, err := canon.C1(r)
	if err != nil || len(c1) != 2196 || r.Digest() != want {
		t.Fatalf("C1 of %d bytes, %s, %v; want len(c1) == 2196 && r.Digest() == want", len(c1), r.Digest(), err)
	}
	if v.Report.Digest != want || v.Report.Bytes != len(c1) {
		t.Error("the vector file says otherwise")
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	back, err := report.Parse(append([]byte("\uFEFF"), c1...))
	if err != nil || back.Digest() != want {
		t.Error("the report does not read back:", err, "want back.Digest() == want")
	}
	run, err := r.Run(fixture.ProjectID, strings.ToUpper(fixture.SourceRevision), "awaiting_human_decision")
	if err != nil || canon.Digest(run) != "sha256:7c9ed5b443c91eab63ea558df849c1bc4b201f94e35e4fbc6057683cd33ba88d" || canon.Digest(run) != v.Imported.Digest {
		t.Errorf(`the run made of it: %s, %v; want canon.Digest(run) == "sha256:7c9ed5b443c91eab63ea558df849c1bc4b201f94e35e4fbc6057683cd33ba88d" && canon.Digest(run) == v.Imported.Digest`, canon.Digest(run), err)
	}
	if err := r.Agrees(run); err != nil {
		t.Error(err)
	}
}

func TestEveryReason(t *testing.T) {
	t.Parallel()
	big := canon.NewInt(7)
	for _, c := range []struct {
		name, at string
		v        canon.Value
		code     string
		path     string // of the fault; at if empty
	}{
		{"array for a report", "", canon.Array{}, report.NotAnObject, "-"},
		{"null for a report", "", nil, report.NotAnObject, "-"},
		{"no run id", "/run_id", remove, report.MissingField, ""},
		{"no check status", "/attempts/1/verifier/checks/0/status", remove, report.MissingField, ""},
		{"no worker key", "/attempts/0/worker", remove, report.MissingField, ""},
		{"extra key", "/extra", true, report.UnknownField, ""},
		{"extra key in an attempt", "/attempts/1/note", "x", report.UnknownField, ""},
		{"extra key in the summary", "/summary/total", big, report.UnknownField, ""},
		{"number for a version", "/schema_version", canon.Float(0.1), report.InvalidType, ""},
		{"other version", "/schema_version", "0.2", report.InvalidValue, ""},
		{"other kind", "/kind", "svc-report", report.InvalidValue, ""},
		{"other source kind", "/source_run_kind", "svc-run", report.InvalidValue, ""},
		{"run id with a blank", "/run_id", "run demo", report.InvalidValue, ""},
		{"run id with a newline at its end", "/run_id", "run/demo\n", report.InvalidValue, ""},
		{"run id of 193", "/run_id", strings.Repeat("r", 193), report.InvalidValue, ""},
		{"digest in capitals", "/source_run_digest", "sha256:" + strings.Repeat("A", 64), report.InvalidValue, ""},
		{"bare digest", "/source_config_digest", strings.Repeat("4", 64), report.InvalidValue, ""},
		{"digest with a newline at its end", "/verifier_policy_digest", fixture.Digest("6") + "\n", report.InvalidValue, ""},
		{"empty orchestrator", "/orchestrator_version", "", report.InvalidValue, ""},
		{"work unit as text", "/work_unit", "work/demo", report.InvalidType, ""},
		{"version 0", "/work_unit/version", canon.NewInt(0), report.InvalidValue, ""},
		{"version 1.0", "/work_unit/version", canon.Float(1), report.InvalidType, ""},
		{"attempts as an object", "/attempts", canon.NewObject(), report.InvalidType, ""},
		{"no attempts", "/attempts", canon.Array{}, report.InvalidValue, ""},
		{"attempt as text", "/attempts/0", "x", report.InvalidType, ""},
		{"unknown state", "/attempts/0/state", "done", report.InvalidValue, ""},
		{"unknown evidence state", "/attempts/0/evidence_state", "verified", report.InvalidValue, ""},
		{"unknown recommendation", "/attempts/0/verifier/recommendation", "merge", report.InvalidValue, ""},
		{"order 0", "/attempts/0/order", canon.NewInt(0), report.InvalidValue, ""},
		{"order 3 of 2", "/attempts/1/order", canon.NewInt(3), report.InvalidValue, ""},
		{"order twice", "/attempts/1/order", canon.NewInt(1), report.InvalidValue, ""},
		{"order as text", "/attempts/1/order", "2", report.InvalidType, ""},
		{"worker as text", "/attempts/0/worker", "w", report.InvalidType, ""},
		{"checks as null", "/attempts/0/verifier/checks", nil, report.InvalidType, ""},
		{"required as text", "/attempts/0/verifier/checks/0/required", "yes", report.InvalidType, ""},
		{"error as a number", "/attempts/0/error", big, report.InvalidType, ""},
		{"same attempt twice", "/attempts/1/attempt_id", "attempt-1", report.DuplicateAttempt, ""},
		{"verified without a worker", "/attempts/0/worker", nil, report.StateMismatch, ""},
		{"verified without a verifier", "/attempts/0/verifier", nil, report.StateMismatch, ""},
		{"worker error with a worker", "/attempts/0/state", report.WorkerError, report.StateMismatch, "/attempts/0/worker"},
		{"manifest error with a worker", "/attempts/0/state", report.ResultManifestError, report.StateMismatch, "/attempts/0/worker"},
		{"verification error with a verifier", "/attempts/0/state", report.VerificationError, report.StateMismatch, "/attempts/0/verifier"},
		{"rejected, said to be supported", "/attempts/1/evidence_state", report.Supported, report.StateMismatch, ""},
		{"escalated, said to be supported", "/attempts/0/verifier/recommendation", report.Escalate, report.StateMismatch, "/attempts/0/evidence_state"},
		{"wrong count of attempts", "/summary/attempt_count", canon.NewInt(3), report.SummaryMismatch, ""},
		{"wrong count of supported", "/summary/supported", canon.NewInt(2), report.SummaryMismatch, ""},
		{"wrong count of control errors", "/summary/control_errors", canon.NewInt(1), report.SummaryMismatch, ""},
		{"no disagreement", "/summary/verification_disagreement", false, report.SummaryMismatch, ""},
		{"control failure", "/summary/control_failure_present", true, report.SummaryMismatch, ""},
		{"count below 0", "/summary/rejected", canon.NewInt(-1), report.InvalidValue, ""},
		{"flag as a number", "/summary/control_failure_present", canon.NewInt(0), report.InvalidType, ""},
		{"no warnings", "/warnings", canon.Array{}, report.InvalidValue, ""},
		{"empty warning", "/warnings/0", "", report.InvalidValue, ""},
		{"warning as a number", "/warnings/0", big, report.InvalidType, ""},
		{"decided", "/human_decision/status", "approved", report.InvalidValue, ""},
		{"selected", "/human_decision/selected_attempt_id", "attempt-1", report.InvalidValue, ""},
		{"selected by a number", "/human_decision/selected_attempt_id", big, report.InvalidType, ""},
		{"own integration", "/human_decision/integration_authority", "svc", report.InvalidValue, ""},
		{"may merge", "/authority/merge", true, report.InvalidValue, ""},
		{"may select", "/authority/automatic_candidate_selection", true, report.InvalidValue, ""},
		{"authority as null", "/authority/git_push", nil, report.InvalidType, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := report.Read(putAt(t, fixtureValue(), c.at, c.v))
			path := c.path
			switch path {
			case "":
				path = c.at
			case "-":
				path = ""
			}
			var f *report.Fault
			if !errors.As(err, &f) || f.Code != c.code || f.Path != path {
				t.Errorf("got %v; want %s at %s", err, c.code, path)
			}
		})
	}
}

func TestReasonsOfTheParser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"kind":1,"kind":2}`: report.DuplicateKey, `{"a":NaN}`: report.InvalidJSON, `[]`: report.NotAnObject,
		strings.Repeat("[", 20000): report.TooDeep, "\xff": "invalid_utf8", `{}`: report.MissingField,
	} {
		_, err := report.Parse([]byte(text))
		var f *report.Fault
		if !errors.As(err, &f) || f.Code != want {
			t.Errorf("Parse(%.20q) = %v; want %s", text, err, want)
		}
	}
	r := fixture.Report()
	r.Warnings[0] = "\xff"
	if err := r.Check(); err == nil {
		t.Error("a warning that is no text passed")
	}
}

// All four states, an overlap of ids, an optional check, the array out of order.
func mixedReport() *report.Report {
	r := fixture.Report()
	one, two := r.Attempts[0], r.Attempts[1]
	text, empty := "the worker did not start", ""
	worker, overlap := *one.Worker, *two.Verifier
	overlap.ID = two.Worker.ID
	overlap.Recommendation, overlap.Status = report.Escalate, "error"
	overlap.Checks = []report.Check{{ID: "scope", Status: "passed", Required: true}, {ID: "style", Status: "failed"}, {ID: "digest", Status: "error", Required: true}}
	two.Verifier, two.EvidenceState, two.Order = &overlap, report.Inconclusive, 5
	third := report.Attempt{AttemptID: "attempt-3", Order: 3, WorkerAdapter: "fixture-failure", State: report.WorkerError, EvidenceState: report.WorkerError, Error: &text}
	fourth := report.Attempt{AttemptID: "attempt-4", Order: 4, WorkerAdapter: "result-bundle", State: report.ResultManifestError, EvidenceState: report.ResultManifestError}
	fifth := report.Attempt{AttemptID: "attempt-5", Order: 2, WorkerAdapter: "fixture-result", State: report.VerificationError, EvidenceState: report.VerificationError, Worker: &worker, Error: &empty}
	sixth, seventh := fixture.Report().Attempts[1], fixture.Report().Attempts[1]
	sixth.AttemptID, sixth.Order = "attempt-6", 6
	seventh.AttemptID, seventh.Order = "attempt-7", 7
	r.Attempts = []report.Attempt{two, third, one, fifth, fourth, seventh, sixth}
	r.Summary = report.Summarize(r.Attempts)
	r.Warnings = append(r.Warnings, "Zwei Prüfer sind uneins.")
	return r
}

// The texts of a snapshot are frozen: a change of this file is a change of every
// snapshot's digest. UPDATE_GOLDEN=1 rewrites it.
func TestSnapshotsAreFrozen(t *testing.T) {
	t.Parallel()
	single := fixture.Report()
	single.Attempts = single.Attempts[:1]
	single.Summary = report.Summarize(single.Attempts)
	for name, r := range map[string]*report.Report{"fixture": fixture.Report(), "mixed": mixedReport(), "single": single} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			got, err := canon.P(report.Inspect(r))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "snapshot-"+name+".json")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(got) != string(want) {
				t.Errorf("%v: the snapshot is not the frozen one:\n%s; want string(got) == string(want)", err, got)
			}
		})
	}
}

func TestSnapshotDependsOnTheReportAlone(t *testing.T) {
	t.Parallel()
	first := report.Inspect(fixture.Report())
	c1, err := canon.C1(first)
	if err != nil || first.Digest() != canon.DigestBytes(c1) {
		t.Fatal(first.Digest(), err, "want first.Digest() == canon.DigestBytes(c1)")
	}
	// The same report with its keys in another order and white space.
	text, err := canon.P(fixture.Report())
	if err != nil {
		t.Fatal(err)
	}
	again, err := report.Parse(text)
	if err != nil || report.Inspect(again).Digest() != first.Digest() {
		t.Error("another spelling of the report has another snapshot", err, "want report.Inspect(again).Digest() == first.Digest()")
	}
	var codes []string
	for _, a := range first.Attention {
		codes = append(codes, a.Severity+" "+a.Code)
	}
	if got := strings.Join(codes, ", "); got != "high verification_disagreement, medium rejected_attempts, action human_decision_pending" {
		t.Error("attention:", got, `want "high verification_disagreement, medium rejected_attempts, action human_decision_pending"`)
	}
	// Attempts in another place of the array are another report of the same story.
	turned := fixture.Report()
	turned.Attempts[0], turned.Attempts[1] = turned.Attempts[1], turned.Attempts[0]
	if err := turned.Check(); err != nil {
		t.Error(err)
	}
	s := report.Inspect(turned)
	if s.Attempts[0].AttemptID != "attempt-1" || s.Provenance.Attempts[1].Order != 2 || s.Source.EvidenceReportDigest == first.Source.EvidenceReportDigest {
		t.Error("the snapshot does not go by order")
	}
	for i, e := range report.Inspect(mixedReport()).Timeline {
		if e.Sequence != int64(i)+1 {
			t.Errorf("timeline entry %d has sequence %d; want e.Sequence == int64(i) + 1", i+1, e.Sequence)
		}
	}
}

func TestRunsMadeOfTheirReports(t *testing.T) {
	t.Parallel()
	r := mixedReport()
	run, err := r.Run("project/x", fixture.SourceRevision, "evidence_ready")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, a := range run.Attempts {
		got += string(a.State) + ":"
		for _, d := range []*string{a.CandidateReferenceDigest, a.ResultManifestDigest, a.VerificationSemanticDigest} {
			if d != nil {
				got += "x"
			}
		}
		if a.ErrorCode != nil {
			got += *a.ErrorCode
		}
		got += " "
	}
	want := "verified:xxx verification_error:xxverification_error worker_error:worker_error normalization_error:xresult_manifest_error verified:xxx verified:xxx verified:xxx "
	if got != want {
		t.Errorf("attempts %s\nwant %s", got, want)
	}
	if c := strings.Join(run.Routing.AdmittedConnectors, " "); c != "import/fixture-failure import/fixture-result import/result-bundle" {
		t.Error("connectors", c, `want "import/fixture-failure import/fixture-result import/result-bundle"`)
	}
	if err := r.Agrees(run); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct{ project, revision, state string }{
		"a decided run":     {"project/x", fixture.SourceRevision, "decided"},
		"no revision":       {"project/x", "main", "evidence_ready"},
		"no identifier":     {"project x", fixture.SourceRevision, "evidence_ready"},
		"a state of no run": {"project/x", fixture.SourceRevision, "ready"},
	} {
		if _, err := r.Run(c.project, c.revision, reportState(c.state)); err == nil {
			t.Errorf("%s was made; want an error", name)
		}
	}
	long := mixedReport()
	long.Attempts[0].WorkerAdapter = strings.Repeat("w", 192)
	if _, err := long.Run("project/x", fixture.SourceRevision, "evidence_ready"); err == nil {
		t.Error("a connector id of 199 characters was made")
	}
}
