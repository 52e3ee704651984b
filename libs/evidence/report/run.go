package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// ImportPolicy is the policy version of a run that was made from its report.
const ImportPolicy = "evidence-import-v0.1"

// Run makes the projection of a run from its report, for a run that is known by
// nothing else. The state is evidence_ready or awaiting_human_decision. It fails with
// a *Fault if the outcome would be no valid projection.
func (r *Report) Run(projectID, sourceRevision string, state spine.State) (spine.Run, error) {
	if err := checkImportState(state); err != nil {
		return spine.Run{}, err
	}
	digest := r.Digest()
	run := spine.Run{
		SchemaVersion: spine.SchemaVersion,
		Kind:          spine.RunKind,
		RunID:         r.RunID,
		RequestDigest: r.SourceConfigDigest,
		ProjectID:     projectID,
		WorkUnit: spine.Revision{
			ID: r.WorkUnit.ID, Version: r.WorkUnit.Version, Digest: r.WorkUnit.Digest, SourceRevision: strings.ToLower(sourceRevision),
		},
		Routing: spine.Routing{
			PolicyVersion: ImportPolicy, AuthorityMode: spine.HumanGateThenAgent, AdmittedConnectors: []string{},
		},
		State:                state,
		EvidenceReportDigest: &digest,
	}
	for _, a := range r.ByOrder() {
		run.Routing.AdmittedConnectors = append(run.Routing.AdmittedConnectors, connectorOf(a))
		run.Attempts = append(run.Attempts, r.attempt(a))
	}
	slices.Sort(run.Routing.AdmittedConnectors)
	run.Routing.AdmittedConnectors = slices.Compact(run.Routing.AdmittedConnectors)
	if err := run.Check(); err != nil {
		return spine.Run{}, err
	}
	return run, nil
}

// Importable reports whether a run may be stored with its report in this state.
func Importable(state spine.State) bool {
	return state == spine.EvidenceReady || state == spine.AwaitingHumanDecision
}

func checkImportState(state spine.State) error {
	if Importable(state) {
		return nil
	}
	return &Fault{Code: spine.InvalidState, Path: "/state",
		Detail: fmt.Sprintf("a run with a report and no decision is %s or %s", spine.EvidenceReady, spine.AwaitingHumanDecision)}
}

func connectorOf(a Attempt) string { return "import/" + a.WorkerAdapter }

// attempt makes the projection's attempt from a report's. Its progress decides which
// digests it has; of its candidate a report knows only the reference.
func (r *Report) attempt(a Attempt) spine.Attempt {
	out := spine.Attempt{AttemptID: a.AttemptID, Order: a.Order, ConnectorID: connectorOf(a), State: spineState(a.State)}
	if a.State != WorkerError {
		candidate := canon.Digest(canon.NewObject(
			canon.Member{Key: "attempt_id", Value: a.AttemptID},
			canon.Member{Key: "kind", Value: "svc-candidate-reference"},
			canon.Member{Key: "schema_version", Value: SchemaVersion},
			canon.Member{Key: "source_run_digest", Value: r.SourceRunDigest},
			canon.Member{Key: "worker_adapter", Value: a.WorkerAdapter},
		))
		out.CandidateReferenceDigest = &candidate
	}
	if a.Worker != nil {
		out.ResultManifestDigest = &a.Worker.ResultManifestDigest
	}
	if a.Verifier != nil {
		out.VerificationSemanticDigest = &a.Verifier.VerificationSemanticDigest
	}
	if a.State != Verified {
		code := a.State
		out.ErrorCode = &code
	}
	return out
}

// spineState is the state in a projection of an attempt in this state of a report.
func spineState(state string) spine.AttemptState {
	if state == ResultManifestError {
		return spine.AttemptNormalizationError
	}
	return spine.AttemptState(state) // the other three have one name in both
}

// Agrees reports where a projection that was given with the report contradicts it: its
// run, work unit, digest and attempts must be the report's, its state one in which
// evidence is waiting. The fault's path points into the projection.
func (r *Report) Agrees(run spine.Run) error {
	differs := func(path string) error {
		return &Fault{Code: spine.InvalidRunEvidence, Path: path, Detail: "the evidence report says otherwise"}
	}
	unit := run.WorkUnit
	switch {
	case run.RunID != r.RunID:
		return differs("/run_id")
	case unit.ID != r.WorkUnit.ID || unit.Version != r.WorkUnit.Version || unit.Digest != r.WorkUnit.Digest:
		return differs("/work_unit")
	case run.EvidenceReportDigest == nil || *run.EvidenceReportDigest != r.Digest():
		return differs("/evidence_report_digest")
	case !Importable(run.State):
		return checkImportState(run.State)
	case len(run.Attempts) != len(r.Attempts):
		return differs("/attempts")
	}
	for i, want := range r.ByOrder() {
		if have := run.Attempts[i]; !sameAttempt(have, want) {
			return differs(canon.Element("/attempts", i))
		}
	}
	return nil
}

func sameAttempt(have spine.Attempt, want Attempt) bool {
	var manifest, verification *string
	if want.Worker != nil {
		manifest = &want.Worker.ResultManifestDigest
	}
	if want.Verifier != nil {
		verification = &want.Verifier.VerificationSemanticDigest
	}
	return have.AttemptID == want.AttemptID && have.Order == want.Order && have.State == spineState(want.State) &&
		equalOrNil(have.ResultManifestDigest, manifest) && equalOrNil(have.VerificationSemanticDigest, verification)
}

func equalOrNil(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
