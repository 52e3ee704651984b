package report

import "fmt"

// TimelineEntry is one step of a report's story, in causal order. It carries no time:
// a report has none.
type TimelineEntry struct {
	Sequence    int64   `json:"sequence"` // 1..n
	Type        string  `json:"type"`
	Title       string  `json:"title"`
	Detail      string  `json:"detail"`
	Actor       string  `json:"actor"` // the id of its author
	AttemptID   *string `json:"attempt_id"`
	EvidenceRef *string `json:"evidence_ref"` // digest of what shows it
}

// The types of entry.
const (
	typeObservation    = "observation"
	typeClaim          = "claim"
	typeEvidence       = "evidence"
	typeRecommendation = "recommendation"
	typeControlError   = "control_error"
	typeAttention      = "attention"
	typeAuthority      = "authority"
)

type line []TimelineEntry

func (l *line) add(kind, title, detail, actor string, attempt, ref *string) {
	*l = append(*l, TimelineEntry{
		Sequence: int64(len(*l)) + 1, Type: kind, Title: title, Detail: detail, Actor: actor, AttemptID: attempt, EvidenceRef: ref,
	})
}

func buildTimeline(r *Report) []TimelineEntry {
	var l line
	seen := fmt.Sprintf(detailObservationOne, r.OrchestratorVersion)
	if n := len(r.Attempts); n > 1 {
		seen = fmt.Sprintf(detailObservation, n, r.OrchestratorVersion)
	}
	l.add(typeObservation, titleObservation, seen, actorOrchestrator, nil, &r.SourceRunDigest)
	for _, a := range r.ByOrder() {
		l.attempt(a)
	}
	if r.Summary.VerificationDisagreement {
		l.add(typeAttention, titleDisagreement, whyDisagreement, actorTower, nil, nil)
	}
	if r.Summary.ControlFailurePresent {
		l.add(typeAttention, titleControlFailure, whyControlFailure, actorTower, nil, nil)
	}
	d := r.HumanDecision
	l.add(typeAuthority, titleAuthority, fmt.Sprintf(detailAuthority, d.Status, d.IntegrationAuthority), d.IntegrationAuthority, nil, nil)
	return l
}

func (l *line) attempt(a Attempt) {
	id := &a.AttemptID
	fault := detailNoText
	if a.Error != nil && *a.Error != "" {
		fault = *a.Error
	}
	switch a.State {
	case WorkerError:
		l.add(typeControlError, titleWorkerError, fault, actorOrchestrator, id, nil)
		return
	case ResultManifestError:
		l.add(typeControlError, titleManifestError, fault, actorOrchestrator, id, nil)
		return
	}
	w := a.Worker
	l.add(typeClaim, titleClaim, fmt.Sprintf(detailClaim, w.Status, w.ResultManifestID), w.ID, id, &w.ResultManifestDigest)
	if a.State == VerificationError {
		l.add(typeControlError, titleVerifyError, fault, actorOrchestrator, id, nil)
		return
	}
	v := a.Verifier
	passed, required := 0, 0
	for _, c := range v.Checks {
		if c.Required {
			required++
			if c.Status == Passed {
				passed++
			}
		}
	}
	l.add(typeEvidence, titleEvidence, fmt.Sprintf(detailEvidence, passed, required), v.ID, id, &v.VerificationSemanticDigest)
	l.add(typeRecommendation, titleRecommendation, v.Recommendation, v.ID, id, &v.VerificationSemanticDigest)
}
