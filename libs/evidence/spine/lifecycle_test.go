package spine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

func TestEveryMoveOfARun(t *testing.T) {
	t.Parallel()
	table := map[spine.State][]spine.State{
		"proposed":                {"previewed", "cancelled"},
		"previewed":               {"admission_blocked", "admitted", "cancelled"},
		"admission_blocked":       {"cancelled"},
		"admitted":                {"dispatched", "cancelled"},
		"dispatched":              {"attempt_failed", "candidate_observed", "cancelled"},
		"attempt_failed":          {"dispatched", "cancelled"},
		"candidate_observed":      {"normalized", "cancelled"},
		"normalized":              {"verification_requested", "cancelled"},
		"verification_requested":  {"verification_error", "evidence_ready", "cancelled"},
		"verification_error":      {"verification_requested", "evidence_ready", "cancelled"},
		"evidence_ready":          {"awaiting_human_decision"},
		"awaiting_human_decision": {"decided", "cancelled"},
		"decided":                 {},
		"cancelled":               {},
	}
	states := spine.States()
	if len(states) != 14 || len(table) != 14 {
		t.Fatalf("%d states; want len(states) == 14 && len(table) == 14", len(states))
	}
	for _, from := range states {
		if next := from.Next(); !slices.Equal(next, table[from]) || from.Final() != (len(next) == 0) || !from.Valid() {
			t.Errorf("%s: next %v; want slices.Equal(next, table[from]) && from.Final() == (len(next) == 0) && from.Valid()", from, next)
		}
		for _, to := range states {
			want := from == to || slices.Contains(table[from], to)
			for _, mode := range []spine.AuthorityMode{spine.Deterministic, spine.AgentCandidate, spine.HumanGateThenAgent} {
				if spine.CanMove(from, to, mode) != want {
					t.Errorf("%s to %s under %s: %v", from, to, mode, !want)
				}
			}
			if to == spine.Admitted && from != to {
				want = false
			}
			if spine.CanMove(from, to, spine.HumanRequired) != want {
				t.Errorf("%s to %s under human_required: %v", from, to, !want)
			}
		}
	}
	if s := spine.State("done"); s.Valid() || s.Final() || spine.CanMove(s, s, spine.AgentCandidate) || spine.CanMove(s, spine.Cancelled, spine.AgentCandidate) {
		t.Error("an unknown state moves")
	}
}

// attemptStates lists the ten states in the order of an attempt's life.
var attemptStates = []spine.AttemptState{
	"created", "dispatched", "worker_error", "candidate_observed", "normalization_error",
	"normalized", "verification_requested", "verification_error", "verified", "cancelled",
}

func TestAttemptStates(t *testing.T) {
	t.Parallel()
	for _, s := range attemptStates {
		if !s.Valid() {
			t.Errorf("%q is not a state of an attempt; want s.Valid()", s)
		}
	}
	for _, s := range []spine.AttemptState{"", "done", "Created", "proposed"} {
		if s.Valid() {
			t.Errorf("%q is a state of an attempt; want !s.Valid()", s)
		}
	}
}

func TestMovesOfRuns(t *testing.T) {
	t.Parallel()
	run := fixture.Run()
	cancelled, err := run.Move(spine.Cancelled)
	if err != nil || cancelled.State != spine.Cancelled || run.State != spine.Proposed {
		t.Error(cancelled.State, err, "want cancelled.State == spine.Cancelled && run.State == spine.Proposed")
	}
	if again, err := cancelled.Move(spine.Cancelled); err != nil || again.State != spine.Cancelled {
		t.Error("the same state again:", err, "want again.State == spine.Cancelled")
	}
	var move *spine.MoveError
	if _, err := cancelled.Move(spine.Proposed); !errors.As(err, &move) || move.From != spine.Cancelled || move.Error() == "" {
		t.Error("back from cancelled:", err, `want errors.As(err, &move) && move.From == spine.Cancelled && move.Error() != ""`)
	}
	ready, err := fixture.Report().Run(fixture.ProjectID, fixture.SourceRevision, spine.EvidenceReady)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Move(spine.Cancelled); !errors.As(err, &move) {
		t.Error("evidence_ready was cancelled:", err, "want errors.As(err, &move)")
	}
	waiting, err := ready.Move(spine.AwaitingHumanDecision)
	if err != nil {
		t.Fatal(err)
	}
	// Cancelling keeps the evidence.
	if c, err := waiting.Move(spine.Cancelled); err != nil || c.EvidenceReportDigest == nil {
		t.Error(err, "want c.EvidenceReportDigest != nil")
	}
	var fault *spine.Fault
	if _, err := waiting.Move(spine.Decided); !errors.As(err, &fault) || fault.Code != spine.InvalidRunEvidence {
		t.Error("decided without a record:", err, "want errors.As(err, &fault) && fault.Code == spine.InvalidRunEvidence")
	}
	previewed, err := run.Move(spine.Previewed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := previewed.Move(spine.Admitted); !errors.As(err, &fault) || fault.Code != spine.InvalidAdmission {
		t.Error("admitted without a connector:", err, "want errors.As(err, &fault) && fault.Code == spine.InvalidAdmission")
	}
}
