package spine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
)

// importedRun is the run made of the fixture report: awaiting a decision, two verified
// attempts.
func importedRun(t testing.TB) spine.Run {
	t.Helper()
	run, err := fixture.Report().Run(fixture.ProjectID, fixture.SourceRevision, spine.AwaitingHumanDecision)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestFixtureRun(t *testing.T) {
	t.Parallel()
	const want = "sha256:de61a65aba8edd1971f333a21f2ba1a694c7a0a26dd147277934704bae013f1f"
	run := fixture.Run()
	c1, err := canon.C1(run)
	if err != nil || len(c1) != 669 {
		t.Fatalf("C1 has %d bytes, %v; want len(c1) == 669", len(c1), err)
	}
	if got := spine.CreateRequestDigest(run); got != want {
		t.Errorf("create_request_digest %s; want %v", got, want)
	}
	var v struct {
		Run struct {
			Bytes  int    `json:"c1_bytes"`
			Digest string `json:"create_request_digest"`
		} `json:"run"`
		Imported struct {
			Digest  string `json:"digest"`
			Request string `json:"create_request_digest"`
		} `json:"imported_run"`
	}
	vectortest.Load(t, "fixtures.json", &v)
	if v.Run.Bytes != 669 || v.Run.Digest != want {
		t.Error("the vector file says otherwise", v.Run, "want v.Run.Bytes == 669 && v.Run.Digest == want")
	}
	second := importedRun(t)
	if got := canon.Digest(second); got != "sha256:7c9ed5b443c91eab63ea558df849c1bc4b201f94e35e4fbc6057683cd33ba88d" || got != v.Imported.Digest {
		t.Errorf(`imported projection %s; want got == "sha256:7c9ed5b443c91eab63ea558df849c1bc4b201f94e35e4fbc6057683cd33ba88d" && got == v.Imported.Digest`, got)
	}
	if got := spine.ImportRequestDigest(second, *second.EvidenceReportDigest); got != "sha256:37c27f9f501f33b1dc6295a04e9262e183daa9d4bae0806a88f53c545ba83145" || got != v.Imported.Request {
		t.Errorf(`imported create_request_digest %s; want got == "sha256:37c27f9f501f33b1dc6295a04e9262e183daa9d4bae0806a88f53c545ba83145" && got == v.Imported.Request`, got)
	}
	parsed, err := canon.Parse(c1)
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(canon.Value) (spine.Run, error){"ParseRun": spine.ParseRun, "ReadRun": spine.ReadRun} {
		if back, err := read(parsed); err != nil || canon.Digest(back) != canon.Digest(run) {
			t.Errorf("%s: %v; want canon.Digest(back) == canon.Digest(run)", name, err)
		}
	}
}

func TestSourceRevisionsAreLoweredOnInputOnly(t *testing.T) {
	t.Parallel()
	run := fixture.Run()
	run.WorkUnit.SourceRevision = strings.Repeat("AbCd", 16)
	back, err := spine.ParseRun(run.Value())
	if err != nil || back.WorkUnit.SourceRevision != strings.Repeat("abcd", 16) {
		t.Error(back.WorkUnit.SourceRevision, err, `want back.WorkUnit.SourceRevision == strings.Repeat("abcd", 16)`)
	}
	var f *spine.Fault
	if _, err := spine.ReadRun(run.Value()); !errors.As(err, &f) || f.Code != spine.InvalidSourceRevision || f.Path != "/work_unit/source_revision" {
		t.Error(err, `want errors.As(err, &f) && f.Code == spine.InvalidSourceRevision && f.Path == "/work_unit/source_revision"`)
	}
}

// editRun returns the document of a run with one change.
func editRun(run spine.Run, change func(o *canon.Object)) canon.Value {
	o := run.Value()
	change(o)
	return o
}

func subObject(o *canon.Object, keys ...string) *canon.Object {
	for _, k := range keys {
		v, _ := o.Get(k)
		o = v.(*canon.Object)
	}
	return o
}

func attemptOf(o *canon.Object, i int) *canon.Object {
	v, _ := o.Get("attempts")
	return v.(canon.Array)[i].(*canon.Object)
}

func TestEveryFaultOfAProjection(t *testing.T) {
	t.Parallel()
	set := func(key string, v canon.Value) func(*canon.Object) {
		return func(o *canon.Object) { o.Set(key, v) }
	}
	in := func(parent, key string, v canon.Value) func(*canon.Object) {
		return func(o *canon.Object) { subObject(o, parent).Set(key, v) }
	}
	first := func(key string, v canon.Value) func(*canon.Object) {
		return func(o *canon.Object) { attemptOf(o, 0).Set(key, v) }
	}
	proposed, waiting := fixture.Run(), importedRun(t)
	for _, c := range []struct {
		name   string
		run    spine.Run
		change func(*canon.Object)
		code   string
		path   string
	}{
		{"no state", proposed, func(o *canon.Object) { o.Delete("state") }, spine.MissingField, "/state"},
		{"no merge flag", proposed, func(o *canon.Object) { subObject(o, "authority").Delete("merge") }, spine.MissingField, "/authority/merge"},
		{"no attempt state", waiting, func(o *canon.Object) { attemptOf(o, 1).Delete("state") }, spine.MissingField, "/attempts/1/state"},
		{"extra key", proposed, set("a/b", nil), spine.UnknownField, "/a~1b"},
		{"extra key in the work unit", proposed, in("work_unit", "name", "x"), spine.UnknownField, "/work_unit/name"},
		{"extra key in an attempt", waiting, first("note", "x"), spine.UnknownField, "/attempts/0/note"},
		{"other version", proposed, set("schema_version", "0.2"), spine.UnsupportedVersion, "/schema_version"},
		{"other kind", proposed, set("kind", "svc-run"), spine.InvalidKind, "/kind"},
		{"may merge", proposed, in("authority", "merge", true), spine.AuthorityViolation, "/authority/merge"},
		{"may push", proposed, in("authority", "git_push", true), spine.AuthorityViolation, "/authority/git_push"},
		{"authority as a number", proposed, in("authority", "merge", canon.NewInt(0)), spine.InvalidType, "/authority/merge"},
		{"run id as a number", proposed, set("run_id", canon.NewInt(1)), spine.InvalidType, "/run_id"},
		{"version as a float", proposed, in("work_unit", "version", canon.Float(1)), spine.InvalidType, "/work_unit/version"},
		{"attempts as null", proposed, set("attempts", nil), spine.InvalidShape, "/attempts"},
		{"routing as text", proposed, set("routing", "x"), spine.InvalidShape, "/routing"},
		{"attempt as text", waiting, set("attempts", canon.Array{"x"}), spine.InvalidShape, "/attempts/0"},
		{"blank in the run id", proposed, set("run_id", "run demo"), spine.InvalidIdentifier, "/run_id"},
		{"newline after the project", proposed, set("project_id", "project/demo\n"), spine.InvalidIdentifier, "/project_id"},
		{"connector of no name", proposed, in("routing", "admitted_connectors", canon.Array{""}), spine.InvalidIdentifier, "/routing/admitted_connectors/0"},
		{"bare digest", proposed, set("request_digest", strings.Repeat("1", 64)), spine.InvalidDigest, "/request_digest"},
		{"digest of 63", waiting, set("evidence_report_digest", fixture.Digest("1")[:70]), spine.InvalidDigest, "/evidence_report_digest"},
		{"unknown state", proposed, set("state", "done"), spine.InvalidState, "/state"},
		{"branch for a revision", proposed, in("work_unit", "source_revision", "main"), spine.InvalidSourceRevision, "/work_unit/source_revision"},
		{"unknown mode", proposed, in("routing", "authority_mode", "agent"), spine.InvalidAuthorityMode, "/routing/authority_mode"},
		{"connector twice", waiting, in("routing", "admitted_connectors", canon.Array{"a", "b", "a"}), spine.DuplicateConnector, "/routing/admitted_connectors/2"},
		{"admitted without a connector", waiting, in("routing", "admitted_connectors", canon.Array{}), spine.InvalidAdmission, "/routing/admitted_connectors"},
		{"admitted without people", waiting, in("routing", "authority_mode", "human_required"), spine.InvalidAdmission, "/routing/authority_mode"},
		{"unknown attempt state", waiting, first("state", "done"), spine.InvalidAttemptState, "/attempts/0/state"},
		{"attempts of a proposed run", waiting, func(o *canon.Object) { o.Set("state", "proposed") }, spine.InvalidAttemptState, "/attempts"},
		{"attempts of a blocked run", waiting, func(o *canon.Object) { o.Set("state", "admission_blocked") }, spine.InvalidAttemptState, "/attempts"},
		{"attempt twice", waiting, func(o *canon.Object) { attemptOf(o, 1).Set("attempt_id", "attempt-1") }, spine.DuplicateAttempt, "/attempts/1/attempt_id"},
		{"order out of place", waiting, first("order", canon.NewInt(2)), spine.InvalidAttemptOrder, "/attempts/0/order"},
		{"waiting without evidence", waiting, set("evidence_report_digest", nil), spine.InvalidRunEvidence, "/evidence_report_digest"},
		{"waiting with a decision", waiting, set("human_decision_record_digest", fixture.Digest("c")), spine.InvalidRunEvidence, "/human_decision_record_digest"},
		{"decided without a decision", waiting, set("state", "decided"), spine.InvalidRunEvidence, "/human_decision_record_digest"},
		{"verified without a verification", waiting, first("verification_semantic_digest", nil), spine.InvalidAttemptEvidence, "/attempts/0/verification_semantic_digest"},
		{"verified with an error", waiting, first("error_code", "x"), spine.InvalidAttemptEvidence, "/attempts/0/error_code"},
		{"cancelled with a manifest of nothing", waiting, func(o *canon.Object) {
			a := attemptOf(o, 0)
			a.Set("state", "cancelled")
			a.Set("candidate_reference_digest", nil)
			a.Set("verification_semantic_digest", nil)
		}, spine.InvalidAttemptEvidence, "/attempts/0/candidate_reference_digest"},
		{"version 0", proposed, in("work_unit", "version", canon.NewInt(0)), spine.InvalidValue, "/work_unit/version"},
		{"empty policy", proposed, in("routing", "policy_version", ""), spine.InvalidValue, "/routing/policy_version"},
		{"empty provider reference", waiting, first("provider_reference", ""), spine.InvalidValue, "/attempts/0/provider_reference"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := spine.ParseRun(editRun(c.run, c.change))
			var f *spine.Fault
			if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path {
				t.Errorf("got %v; want %s at %s", err, c.code, c.path)
			}
		})
	}
	for _, v := range []canon.Value{nil, canon.Array{}, "x", (*canon.Object)(nil)} {
		var f *spine.Fault
		if _, err := spine.ParseRun(v); !errors.As(err, &f) || f.Code != spine.InvalidShape || f.Path != "" {
			t.Errorf(`ParseRun(%v) = %v; want errors.As(err, &f) && f.Code == spine.InvalidShape && f.Path == ""`, v, err)
		}
	}
}

// The evidence that each state of an attempt requires: c candidate, m manifest, v
// verification, e error code.
func TestEvidenceOfAttemptsByState(t *testing.T) {
	t.Parallel()
	fits := map[spine.AttemptState][]string{
		spine.AttemptCreated: {""}, spine.AttemptDispatched: {""}, spine.AttemptWorkerError: {"e"},
		spine.AttemptCandidateObserved: {"c"}, spine.AttemptNormalizationError: {"ce"}, spine.AttemptNormalized: {"cm"},
		spine.AttemptVerificationRequested: {"cm"}, spine.AttemptVerificationError: {"cme"}, spine.AttemptVerified: {"cmv"},
		spine.AttemptCancelled: {"", "c", "cm"},
	}
	text := "x"
	digest := fixture.Digest("9")
	for _, state := range attemptStates {
		allowed := " " + strings.Join(fits[state], " ") + " "
		for bits := range 16 {
			run := importedRun(t)
			run.State = spine.Cancelled
			a := spine.Attempt{AttemptID: "a", Order: 1, ConnectorID: "c", State: state}
			held := ""
			for i, f := range []struct {
				letter string
				field  **string
				value  *string
			}{
				{"c", &a.CandidateReferenceDigest, &digest}, {"m", &a.ResultManifestDigest, &digest},
				{"v", &a.VerificationSemanticDigest, &digest}, {"e", &a.ErrorCode, &text},
			} {
				if bits>>i&1 == 1 {
					*f.field = f.value
					held += f.letter
				}
			}
			run.Attempts = []spine.Attempt{a}
			err := run.Check()
			var f *spine.Fault
			if ok := strings.Contains(allowed, " "+held+" "); ok != (err == nil) || !ok && (!errors.As(err, &f) || f.Code != spine.InvalidAttemptEvidence) {
				t.Errorf("%s with %q: %v; want ok == (err == nil) && (ok || !!errors.As(err, &f) || f.Code != spine.InvalidAttemptEvidence)", state, held, err)
			}
		}
	}
}

func TestCheckOfABrokenRun(t *testing.T) {
	t.Parallel()
	run := fixture.Run()
	run.RunID = "\xff"
	if err := run.Check(); err == nil {
		t.Error("a run id that is no text passed")
	}
	c := importedRun(t).Clone()
	d := c.Clone()
	d.Attempts[0].AttemptID, d.Routing.AdmittedConnectors[0] = "other", "other"
	if c.Attempts[0].AttemptID == "other" || c.Routing.AdmittedConnectors[0] == "other" {
		t.Error("a clone shares its lists")
	}
}

func FuzzRun(f *testing.F) {
	for _, run := range []spine.Run{fixture.Run(), importedRun(f)} {
		data, err := canon.C1(run)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		if err != nil {
			return
		}
		stored, storedErr := spine.ReadRun(v)
		run, err := spine.ParseRun(v)
		if err != nil {
			var fault *spine.Fault
			if !errors.As(err, &fault) || fault.Code == "" || storedErr == nil {
				t.Fatalf(`%v, as stored %v; want errors.As(err, &fault) && fault.Code != "" && an error`, err, storedErr)
			}
			return
		}
		if err := run.Check(); err != nil {
			t.Fatalf("what was parsed fails the check: %v", err)
		}
		if storedErr == nil && canon.Digest(stored) != canon.Digest(v) {
			t.Fatal("reading a stored run changed it")
		}
	})
}
