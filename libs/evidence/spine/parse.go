package spine

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

var projectionCodes = closed.Codes{
	Missing: MissingField, Unknown: UnknownField, Root: InvalidShape,
	Shape: InvalidShape, Type: InvalidType, Value: InvalidValue,
}

// ParseRun reads a projection as a caller brings it: a source revision in upper
// case is lowered. A fault is a *Fault.
func ParseRun(v canon.Value) (Run, error) { return parseRun(v, strings.ToLower) }

// ReadRun reads a projection as a store keeps it, where nothing is corrected:
// C1 of the result is C1 of v.
func ReadRun(v canon.Value) (Run, error) { return parseRun(v, func(s string) string { return s }) }

// Check checks a run that was built or changed in the program against every rule.
func (r Run) Check() error {
	v, err := canon.From(r)
	if err != nil {
		return &Fault{Code: InvalidType, Detail: err.Error()}
	}
	_, err = ReadRun(v)
	return err
}

func parseRun(v canon.Value, revision func(string) string) (Run, error) {
	rd := closed.NewReader(projectionCodes)
	o := rd.Root(v, "schema_version", "kind", "run_id", "request_digest", "project_id", "work_unit", "routing",
		"state", "attempts", "evidence_report_digest", "human_decision_record_digest", "authority")
	run := Run{
		SchemaVersion: o.OneOf("schema_version", UnsupportedVersion, SchemaVersion),
		Kind:          o.OneOf("kind", InvalidKind, RunKind),
		RunID:         readIdentifier(o, "run_id"),
		RequestDigest: readDigest(o, "request_digest"),
		ProjectID:     readIdentifier(o, "project_id"),
	}
	run.WorkUnit = readRevision(o.Object("work_unit", "id", "version", "digest", "source_revision"), revision)
	run.Routing = readRouting(rd, o.Object("routing", "policy_version", "authority_mode", "admitted_connectors"))
	run.State = State(o.Match("state", InvalidState, "a state of a run", func(s string) bool { return State(s).Valid() }))
	run.Attempts = []Attempt{}
	o.Array("attempts", 0, func(v canon.Value, path string) {
		run.Attempts = append(run.Attempts, readAttempt(rd.Object(v, path, "attempt_id", "order", "connector_id", "state",
			"provider_reference", "candidate_reference_digest", "result_manifest_digest", "verification_semantic_digest", "error_code")))
	})
	run.EvidenceReportDigest = digestOrNull(o, "evidence_report_digest")
	run.HumanDecisionRecordDigest = digestOrNull(o, "human_decision_record_digest")
	a := o.Object("authority", "canonical_state_write", "git_push", "merge")
	for _, flag := range []string{"canonical_state_write", "git_push", "merge"} {
		a.False(flag, AuthorityViolation)
	}
	if rd.OK() {
		checkAdmission(rd, &run)
		checkAttempts(rd, &run)
		checkRunEvidence(rd, &run)
	}
	if f := rd.Fault(); f != nil {
		return Run{}, f
	}
	return run, nil
}

func readIdentifier(o closed.Object, key string) string {
	return o.Match(key, InvalidIdentifier, "an identifier", IsIdentifier)
}

func readDigest(o closed.Object, key string) string {
	return o.Match(key, InvalidDigest, `"sha256:" and 64 lower-case hex digits`, IsDigest)
}

func digestOrNull(o closed.Object, key string) *string {
	return o.MatchOrNull(key, InvalidDigest, `null, or "sha256:" and 64 lower-case hex digits,`, IsDigest)
}

func readRevision(o closed.Object, lower func(string) string) Revision {
	return Revision{
		ID:      readIdentifier(o, "id"),
		Version: o.Int("version", 1),
		Digest:  readDigest(o, "digest"),
		SourceRevision: lower(o.Match("source_revision", InvalidSourceRevision, "a revision of 40 or 64 hex digits",
			func(s string) bool { return IsRevision(lower(s)) })),
	}
}

func readRouting(rd *closed.Reader, o closed.Object) Routing {
	r := Routing{
		PolicyVersion: o.Text("policy_version"),
		AuthorityMode: AuthorityMode(o.OneOf("authority_mode", InvalidAuthorityMode,
			string(Deterministic), string(AgentCandidate), string(HumanGateThenAgent), string(HumanRequired))),
		AdmittedConnectors: []string{},
	}
	o.Array("admitted_connectors", 0, func(v canon.Value, path string) {
		id := rd.Match(v, path, InvalidIdentifier, "an identifier", IsIdentifier)
		if slices.Contains(r.AdmittedConnectors, id) {
			rd.Fail(DuplicateConnector, path, "the connector occurs twice in the list")
		}
		r.AdmittedConnectors = append(r.AdmittedConnectors, id)
	})
	return r
}

func readAttempt(o closed.Object) Attempt {
	text := func(s string) bool { return s != "" }
	return Attempt{
		AttemptID:   readIdentifier(o, "attempt_id"),
		Order:       o.Int("order", 1),
		ConnectorID: readIdentifier(o, "connector_id"),
		State: AttemptState(o.Match("state", InvalidAttemptState, "a state of an attempt",
			func(s string) bool { return AttemptState(s).Valid() })),
		ProviderReference:          o.MatchOrNull("provider_reference", InvalidValue, "null or a text", text),
		CandidateReferenceDigest:   digestOrNull(o, "candidate_reference_digest"),
		ResultManifestDigest:       digestOrNull(o, "result_manifest_digest"),
		VerificationSemanticDigest: digestOrNull(o, "verification_semantic_digest"),
		ErrorCode:                  o.MatchOrNull("error_code", InvalidValue, "null or a text", text),
	}
}

func checkAdmission(rd *closed.Reader, r *Run) {
	if !r.State.admittedOn() {
		return
	}
	if len(r.Routing.AdmittedConnectors) == 0 {
		rd.Fail(InvalidAdmission, "/routing/admitted_connectors", "a run in state %s needs an admitted connector", r.State)
	}
	if r.Routing.AuthorityMode == HumanRequired {
		rd.Fail(InvalidAdmission, "/routing/authority_mode", "a run that only people may do is never %s", r.State)
	}
}

func checkAttempts(rd *closed.Reader, r *Run) {
	if r.State.beforeAttempts() && len(r.Attempts) > 0 {
		rd.Fail(InvalidAttemptState, "/attempts", "a run in state %s has no attempts", r.State)
	}
	seen := map[string]bool{}
	for i, a := range r.Attempts {
		path := canon.Element("/attempts", i)
		if seen[a.AttemptID] {
			rd.Fail(DuplicateAttempt, path+"/attempt_id", "an earlier attempt has this id")
		}
		seen[a.AttemptID] = true
		if a.Order != int64(i)+1 {
			rd.Fail(InvalidAttemptOrder, path+"/order", "the attempt in place %d must have order %d", i+1, i+1)
		}
		checkAttemptEvidence(rd, path, a)
	}
}

// presence states whether an attempt's state requires a field, forbids it, or
// allows both.
type presence int

const (
	absent presence = iota
	present
	either
)

// attemptEvidence lists, for each attempt state, the presence of the digests of
// candidate, manifest and verification, and of the error code. What is found stays;
// a cancelled attempt keeps whatever it held before.
var attemptEvidence = map[AttemptState][4]presence{
	AttemptCreated:               {absent, absent, absent, absent},
	AttemptDispatched:            {absent, absent, absent, absent},
	AttemptWorkerError:           {absent, absent, absent, present},
	AttemptCandidateObserved:     {present, absent, absent, absent},
	AttemptNormalizationError:    {present, absent, absent, present},
	AttemptNormalized:            {present, present, absent, absent},
	AttemptVerificationRequested: {present, present, absent, absent},
	AttemptVerificationError:     {present, present, absent, present},
	AttemptVerified:              {present, present, present, absent},
	AttemptCancelled:             {either, either, absent, absent},
}

func checkAttemptEvidence(rd *closed.Reader, path string, a Attempt) {
	fields := [4]struct {
		key   string
		value *string
	}{
		{"candidate_reference_digest", a.CandidateReferenceDigest},
		{"result_manifest_digest", a.ResultManifestDigest},
		{"verification_semantic_digest", a.VerificationSemanticDigest},
		{"error_code", a.ErrorCode},
	}
	for i, want := range attemptEvidence[a.State] {
		f := fields[i]
		switch {
		case want == present && f.value == nil:
			rd.Fail(InvalidAttemptEvidence, path+"/"+f.key, "an attempt in state %s needs it", a.State)
		case want == absent && f.value != nil:
			rd.Fail(InvalidAttemptEvidence, path+"/"+f.key, "an attempt in state %s has none", a.State)
		}
	}
	if a.CandidateReferenceDigest == nil && a.ResultManifestDigest != nil {
		rd.Fail(InvalidAttemptEvidence, path+"/candidate_reference_digest", "a manifest describes a candidate, so one must be named")
	}
}

func checkRunEvidence(rd *closed.Reader, r *Run) {
	if r.State.needsEvidence() && r.EvidenceReportDigest == nil {
		rd.Fail(InvalidRunEvidence, "/evidence_report_digest", "a run in state %s names its evidence report", r.State)
	}
	switch decided := r.State == Decided; {
	case decided && r.HumanDecisionRecordDigest == nil:
		rd.Fail(InvalidRunEvidence, "/human_decision_record_digest", "a decided run names the record of its decision")
	case !decided && r.HumanDecisionRecordDigest != nil:
		rd.Fail(InvalidRunEvidence, "/human_decision_record_digest", "only a decided run names the record of its decision")
	}
}
