package action

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

func TestDecisionRule(t *testing.T) {
	t.Parallel()
	const lowRole, ownRequest = "Your role may not do this.", "This is your own request; another person has to approve it."
	may, mayNot := guard.Verdict{Answer: guard.AlwaysAsk}, guard.Verdict{Answer: guard.Refuse, Reason: lowRole}
	for _, tc := range []struct {
		name string
		rule decisionRule
		want string
	}{
		{"own approval", decisionRule{Approve: true, Own: true, Verdict: may}, ""},
		{"own approval, four eyes", decisionRule{Approve: true, Own: true, Verdict: may, FourEyes: true}, ownRequest},
		{"another's approval, four eyes", decisionRule{Approve: true, Verdict: may, FourEyes: true}, ""},
		{"own denial, four eyes", decisionRule{Own: true, Verdict: may, FourEyes: true}, ""},
		{"approval above the role", decisionRule{Approve: true, Verdict: mayNot}, lowRole},
		{"own approval above the role, four eyes", decisionRule{Approve: true, Own: true, Verdict: mayNot, FourEyes: true}, lowRole},
		{"denial above the role", decisionRule{Verdict: mayNot}, lowRole},
		{"own denial above the role", decisionRule{Own: true, Verdict: mayNot}, lowRole},
	} {
		if got := tc.rule.refusal(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
