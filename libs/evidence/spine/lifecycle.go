package spine

import "slices"

// State is the state of a run.
type State string

// The states of a run.
const (
	Proposed              State = "proposed"
	Previewed             State = "previewed"
	AdmissionBlocked      State = "admission_blocked"
	Admitted              State = "admitted"
	Dispatched            State = "dispatched"
	AttemptFailed         State = "attempt_failed"
	CandidateObserved     State = "candidate_observed"
	Normalized            State = "normalized"
	VerificationRequested State = "verification_requested"
	VerificationError     State = "verification_error"
	EvidenceReady         State = "evidence_ready"
	AwaitingHumanDecision State = "awaiting_human_decision"
	Decided               State = "decided"
	Cancelled             State = "cancelled"
)

// States lists the fourteen states in the order of a run's life.
func States() []State {
	return []State{
		Proposed, Previewed, AdmissionBlocked, Admitted, Dispatched, AttemptFailed, CandidateObserved,
		Normalized, VerificationRequested, VerificationError, EvidenceReady, AwaitingHumanDecision, Decided, Cancelled,
	}
}

// moves is the whole table: from a state to those it may go to.
var moves = map[State][]State{
	Proposed:              {Previewed, Cancelled},
	Previewed:             {AdmissionBlocked, Admitted, Cancelled},
	AdmissionBlocked:      {Cancelled},
	Admitted:              {Dispatched, Cancelled},
	Dispatched:            {AttemptFailed, CandidateObserved, Cancelled},
	AttemptFailed:         {Dispatched, Cancelled},
	CandidateObserved:     {Normalized, Cancelled},
	Normalized:            {VerificationRequested, Cancelled},
	VerificationRequested: {VerificationError, EvidenceReady, Cancelled},
	VerificationError:     {VerificationRequested, EvidenceReady, Cancelled},
	EvidenceReady:         {AwaitingHumanDecision},
	AwaitingHumanDecision: {Decided, Cancelled},
	Decided:               {},
	Cancelled:             {},
}

// Valid reports whether s is one of the fourteen.
func (s State) Valid() bool { _, ok := moves[s]; return ok }

// Next lists the states a run may go to from s.
func (s State) Next() []State { return slices.Clone(moves[s]) }

// Final reports whether a run never leaves s.
func (s State) Final() bool { return s.Valid() && len(moves[s]) == 0 }

// CanMove reports whether a run under this mode of authority may go from one state to
// another. The same state again is always allowed and changes nothing. A run that
// only people may do (human_required) is never admitted.
func CanMove(from, to State, mode AuthorityMode) bool {
	if from == to {
		return from.Valid()
	}
	return slices.Contains(moves[from], to) && (to != Admitted || mode != HumanRequired)
}

// admittedOn reports whether a run in s was admitted: it needs an admitted connector and
// an authority mode that allows one to work.
func (s State) admittedOn() bool {
	switch s {
	case Admitted, Dispatched, AttemptFailed, CandidateObserved, Normalized, VerificationRequested,
		VerificationError, EvidenceReady, AwaitingHumanDecision, Decided:
		return true
	}
	return false
}

// beforeAttempts reports whether nothing can have been tried yet.
func (s State) beforeAttempts() bool {
	return s == Proposed || s == Previewed || s == AdmissionBlocked
}

// needsEvidence reports whether a run in s names its evidence report.
func (s State) needsEvidence() bool {
	return s == EvidenceReady || s == AwaitingHumanDecision || s == Decided
}

// AttemptState is the state of one attempt of a run.
type AttemptState string

// The states of an attempt.
const (
	AttemptCreated               AttemptState = "created"
	AttemptDispatched            AttemptState = "dispatched"
	AttemptWorkerError           AttemptState = "worker_error"
	AttemptCandidateObserved     AttemptState = "candidate_observed"
	AttemptNormalizationError    AttemptState = "normalization_error"
	AttemptNormalized            AttemptState = "normalized"
	AttemptVerificationRequested AttemptState = "verification_requested"
	AttemptVerificationError     AttemptState = "verification_error"
	AttemptVerified              AttemptState = "verified"
	AttemptCancelled             AttemptState = "cancelled"
)

// Valid reports whether s is one of the ten.
func (s AttemptState) Valid() bool {
	switch s {
	case AttemptCreated, AttemptDispatched, AttemptWorkerError, AttemptCandidateObserved, AttemptNormalizationError,
		AttemptNormalized, AttemptVerificationRequested, AttemptVerificationError, AttemptVerified, AttemptCancelled:
		return true
	}
	return false
}
