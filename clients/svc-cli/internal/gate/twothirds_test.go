package gate_test

import (
	"strings"
	"testing"
)

// Five verifiers of accuracy .6 at two thirds: no size of an independent panel errs as little as .325, and 199, which
// reject nearly every good candidate, err far more. So no number describes the panel.
func TestNoVotesWhereLargerPanelsErrMore(t *testing.T) {
	t.Parallel()
	// 20 good and 20 bad candidates. Each verifier is wrong on 16 of 40; the panel rejects 13 good ones and accepts none.
	good, bad := strings.Repeat("A", 20), strings.Repeat("R", 20)
	rows := []string{
		"RRRRRRRRRRRRRAAAAAAA" + "AAA" + strings.Repeat("R", 17),
		"RRRRRRRRRRRRRAAAAAAA" + "RRRAAA" + strings.Repeat("R", 14),
		"AAAAAAAAAAAAARRRRAAA" + strings.Repeat("A", 12) + strings.Repeat("R", 8),
		"AAAAAAAAAAAAAAAAAAAA" + strings.Repeat("R", 4) + strings.Repeat("A", 16),
		"AAAAAAAAAAAAAAAAAAAA" + strings.Repeat("A", 4) + strings.Repeat("R", 4) + strings.Repeat("A", 12),
	}
	r := auditText(t, matrixText("0.6666666666666666", good+bad, rows...), nil)
	checkNear(t, "mean accuracy", &r.Panel.Accuracy, 0.6)
	if r.Panel.Votes != nil {
		t.Errorf("panel error %v: got %v effective votes, want none", r.Panel.Error, *r.Panel.Votes)
	}
	if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, "effective_votes_undefined_at_quorum: ") || strings.Contains(got, "effective_votes_saturated") {
		t.Errorf("got warnings %q, want effective_votes_undefined_at_quorum", got)
	}
}

// Five verifiers whose panel errs as often as some panel of five to seven independent ones. 199 independent ones err
// more often still, which must not affect the result.
func TestVotesOfTheFirstPairOfSizes(t *testing.T) {
	t.Parallel()
	r := auditText(t, matrixText("0.6666666666666666", "AAAAAAAAAAAAARAARARRARRRRRRRRRRRRRRRRRRR",
		"RARARRRRAAAAARAAAARAARRARARAARARRRRRARAA",
		"RAAARARRRARAARRAAARRARRAARRARRRRARRRARRA",
		"ARRARAAARAARRAAAAARRARAARRRRRAARAAAAARAR",
		"ARRARRAAAARARARAARARRAAAARRRAARAAARARARR",
		"RRRAAARARAAAARAARARRARRRARRRRRARRRRRRRAA"), nil)
	checkNear(t, "panel error", &r.Panel.Error, 0.325)
	// E(5) and E(7) at accuracy .6, 17 of 40 candidates good.
	checkNear(t, "effective votes", r.Panel.Votes, 5.456730769230777)
}
