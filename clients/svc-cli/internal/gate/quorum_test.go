package gate_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
)

// Six verifiers of accuracy .8 whose errors never meet on bad candidates, at two thirds: a good candidate needs five
// votes, so a panel of independent verifiers errs more on good ones than a majority does.
func TestEffectiveVotesAtTwoThirds(t *testing.T) {
	t.Parallel()
	truth := "AAAAARRRRR"
	rows := []string{"RAAAAARRRR", "RAAAARARRR", "ARAAARRARR", "ARAAARRRAR", "AARAARRRRA", "AARAARRRRR"}
	r := auditText(t, matrixText("0.6666666666666666", truth, rows...), nil)
	// Every good candidate keeps at least four of six votes, which is not more than two thirds: three are lost.
	checkNear(t, "panel error", &r.Panel.Error, 0.3)
	checkNear(t, "false rejects", r.Panel.FalseReject, 0.6)
	checkNear(t, "effective votes", r.Panel.Votes, 1)
	if half := auditText(t, matrixText("0.5", truth, rows...), nil); half.Panel.Error != 0 || *half.Panel.Votes != 199 {
		t.Errorf("by majority: error %v and %v votes, want 0 and 199", half.Panel.Error, *half.Panel.Votes)
	}
}

// Two pairs of verifiers err together, never three of five: no error of the panel, for which the correlation has a bound.
func TestEffectiveVotesAboveTheCeilingAreWarnedOf(t *testing.T) {
	t.Parallel()
	r := auditText(t, matrixText("0.5", "AAAAAAAAAARRRRRRRRRR",
		"RAAAAAAAAARRRRRRRRRR", "RAAAAAAAAARRRRRRRRRR", "ARAAAAAAAARRRRRRRRRR", "ARAAAAAAAARRRRRRRRRR", "AARAAAAAAARRRRRRRRRR"), nil)
	ceiling, bounded := r.Panel.Ceiling.(float64)
	above := bounded && r.Panel.Votes != nil && *r.Panel.Votes > ceiling
	if warned := strings.Contains(strings.Join(r.Warnings, "\n"), "effective_votes_above_ceiling: "); warned != above || !above {
		t.Errorf("%v votes, ceiling %v: warnings %q; want warned == above && above", showNumber(r.Panel.Votes), r.Panel.Ceiling, r.Warnings)
	}
}

// A quorum is a fraction: 0.29 of 100 votes is 29 of them, which floats make 28.
func TestPanelsDecideByTheExactQuorum(t *testing.T) {
	t.Parallel()
	rows := make([]string, 100)
	for i := range rows {
		rows[i] = "RR"
		if i < 29 {
			rows[i] = "AR"
		}
	}
	m, err := gate.Read(parseText(t, matrixText("0.29", "AR", rows...)))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Panel(m.All()).Accepts[0]; got {
		t.Errorf("29 of 100 votes accepted at a quorum of 0.29: got %v, want false", got)
	}
}
