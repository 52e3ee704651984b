package report

import (
	"errors"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Parse parses a report. A fault is a *Fault; bytes that are not UTF-8 have the
// code invalid_utf8, which is not a reason of a report but a fault of its
// transport.
func Parse(data []byte) (*Report, error) {
	v, err := canon.Parse(data)
	if err != nil {
		var syntax *canon.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &Fault{Code: string(syntax.Reason), Path: syntax.Path, Detail: syntax.Detail}
		}
		return nil, err
	}
	return Read(v)
}

// Read checks a parsed report against every rule, from its first key to its last
// and then across its parts, and stops at the first fault, a *Fault.
func Read(v canon.Value) (*Report, error) {
	rd := closed.NewReader(closed.Codes{
		Missing: MissingField, Unknown: UnknownField, Root: NotAnObject,
		Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
	})
	o := rd.Root(v, "schema_version", "kind", "run_id", "source_run_kind", "source_run_digest", "source_config_digest",
		"orchestrator_version", "work_unit", "verifier_policy_digest", "attempts", "summary", "warnings", "human_decision", "authority")
	r := &Report{
		SchemaVersion:       o.OneOf("schema_version", InvalidValue, SchemaVersion),
		Kind:                o.OneOf("kind", InvalidValue, Kind),
		RunID:               readIdentifier(o, "run_id"),
		SourceRunKind:       o.OneOf("source_run_kind", InvalidValue, SourceRunKind),
		SourceRunDigest:     readDigest(o, "source_run_digest"),
		SourceConfigDigest:  readDigest(o, "source_config_digest"),
		OrchestratorVersion: o.Text("orchestrator_version"),
	}
	unit := o.Object("work_unit", "id", "version", "digest")
	r.WorkUnit = WorkUnit{ID: readIdentifier(unit, "id"), Version: unit.Int("version", 1), Digest: readDigest(unit, "digest")}
	r.VerifierPolicyDigest = readDigest(o, "verifier_policy_digest")
	o.Array("attempts", 1, func(v canon.Value, path string) {
		r.Attempts = append(r.Attempts, readAttempt(rd, rd.Object(v, path, "attempt_id", "order", "worker_adapter", "state",
			"evidence_state", "worker", "verifier", "error")))
	})
	r.Summary = readSummary(o.Object("summary", "attempt_count", "supported", "rejected", "inconclusive", "control_errors",
		"verification_disagreement", "control_failure_present"))
	o.Array("warnings", 1, func(v canon.Value, path string) { r.Warnings = append(r.Warnings, rd.Text(v, path)) })
	r.HumanDecision = readDecision(o.Object("human_decision", "status", "selected_attempt_id", "integration_authority"))
	flags := []string{"canonical_state_write", "git_push", "merge", "automatic_candidate_selection"}
	authority := o.Object("authority", flags...)
	for _, flag := range flags {
		authority.False(flag, InvalidValue)
	}
	if rd.OK() {
		checkAttempts(rd, r.Attempts)
		checkSummary(rd, r)
	}
	if f := rd.Fault(); f != nil {
		return nil, f
	}
	return r, nil
}

func readIdentifier(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, "an identifier", spine.IsIdentifier)
}

func readDigest(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, `"sha256:" and 64 lower-case hex digits`, spine.IsDigest)
}

func readAttempt(rd *closed.Reader, o closed.Object) Attempt {
	a := Attempt{
		AttemptID:     readIdentifier(o, "attempt_id"),
		Order:         o.Int("order", 1),
		WorkerAdapter: readIdentifier(o, "worker_adapter"),
		State:         o.OneOf("state", InvalidValue, Verified, WorkerError, ResultManifestError, VerificationError),
		EvidenceState: o.OneOf("evidence_state", InvalidValue, Supported, Rejected, Inconclusive, WorkerError, ResultManifestError, VerificationError),
	}
	if rd.OK() && !o.Null("worker") {
		w := o.Object("worker", "id", "status", "result_manifest_id", "result_manifest_digest")
		a.Worker = &Worker{
			ID: readIdentifier(w, "id"), Status: w.Text("status"),
			ResultManifestID: readIdentifier(w, "result_manifest_id"), ResultManifestDigest: readDigest(w, "result_manifest_digest"),
		}
	}
	if rd.OK() && !o.Null("verifier") {
		a.Verifier = readVerifier(rd, o.Object("verifier", "id", "status", "recommendation", "verification_semantic_digest", "checks"))
	}
	a.Error = o.MatchOrNull("error", InvalidValue, "null or a text", func(string) bool { return true })
	return a
}

func readVerifier(rd *closed.Reader, o closed.Object) *Verifier {
	v := &Verifier{
		ID: readIdentifier(o, "id"), Status: o.Text("status"),
		Recommendation:             o.OneOf("recommendation", InvalidValue, AcceptCandidate, RejectCandidate, Escalate, InsufficientEvidence),
		VerificationSemanticDigest: readDigest(o, "verification_semantic_digest"),
		Checks:                     []Check{},
	}
	o.Array("checks", 0, func(e canon.Value, path string) {
		c := rd.Object(e, path, "id", "status", "required")
		v.Checks = append(v.Checks, Check{ID: readIdentifier(c, "id"), Status: c.Text("status"), Required: c.Bool("required")})
	})
	return v
}

func readSummary(o closed.Object) Summary {
	return Summary{
		AttemptCount: o.Int("attempt_count", 1), Supported: o.Int("supported", 0), Rejected: o.Int("rejected", 0),
		Inconclusive: o.Int("inconclusive", 0), ControlErrors: o.Int("control_errors", 0),
		VerificationDisagreement: o.Bool("verification_disagreement"), ControlFailurePresent: o.Bool("control_failure_present"),
	}
}

func readDecision(o closed.Object) Decision {
	d := Decision{Status: o.OneOf("status", InvalidValue, Pending)}
	if v := o.Value("selected_attempt_id"); v != nil {
		if _, ok := v.(string); ok {
			o.Fail(InvalidValue, "selected_attempt_id", "a report selects no attempt")
		}
		o.Fail(InvalidType, "selected_attempt_id", "expected null")
	}
	d.IntegrationAuthority = o.OneOf("integration_authority", InvalidValue, IntegrationAuthority)
	return d
}

func checkAttempts(rd *closed.Reader, attempts []Attempt) {
	ids, orders := map[string]bool{}, map[int64]bool{}
	for i, a := range attempts {
		path := canon.Element("/attempts", i)
		if ids[a.AttemptID] {
			rd.Fail(DuplicateAttempt, path+"/attempt_id", "an earlier attempt has this id")
		}
		if a.Order > int64(len(attempts)) || orders[a.Order] {
			rd.Fail(InvalidValue, path+"/order", "the orders must be 1 to %d, each once", len(attempts))
		}
		ids[a.AttemptID], orders[a.Order] = true, true
	}
	for i, a := range attempts {
		checkState(rd, canon.Element("/attempts", i), a)
	}
}

// checkState compares the parts of an attempt with the state it names: its progress
// decides whether it has a worker's claim and a verifier's finding.
func checkState(rd *closed.Reader, path string, a Attempt) {
	worker := a.State == Verified || a.State == VerificationError
	verifier := a.State == Verified
	if worker != (a.Worker != nil) {
		rd.Fail(StateMismatch, path+"/worker", "an attempt in state %s %s a worker's claim", a.State, hasOrNot(worker))
	}
	if verifier != (a.Verifier != nil) {
		rd.Fail(StateMismatch, path+"/verifier", "an attempt in state %s %s a verifier's finding", a.State, hasOrNot(verifier))
	}
	if !rd.OK() {
		return
	}
	want := a.State
	if verifier {
		switch a.Verifier.Recommendation {
		case AcceptCandidate:
			want = Supported
		case RejectCandidate:
			want = Rejected
		default:
			want = Inconclusive
		}
	}
	if a.EvidenceState != want {
		rd.Fail(StateMismatch, path+"/evidence_state", "the attempt's state and recommendation make it %s", want)
	}
}

func hasOrNot(has bool) string {
	if has {
		return "must have"
	}
	return "cannot have"
}

func checkSummary(rd *closed.Reader, r *Report) {
	if r.Summary == Summarize(r.Attempts) {
		return
	}
	have, want := canon.MustFrom(r.Summary).(*canon.Object), canon.MustFrom(Summarize(r.Attempts)).(*canon.Object)
	for _, key := range want.Keys() {
		h, _ := have.Get(key)
		w, _ := want.Get(key)
		if h != w {
			rd.Fail(SummaryMismatch, canon.Pointer("/summary", key), "the attempts say otherwise")
		}
	}
}

// ByOrder returns the attempts in the order they were made.
func (r *Report) ByOrder() []Attempt {
	out := slices.Clone(r.Attempts)
	slices.SortFunc(out, func(a, b Attempt) int { return int(a.Order - b.Order) })
	return out
}
