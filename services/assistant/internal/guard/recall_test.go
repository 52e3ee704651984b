package guard_test

import (
	"slices"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// The origin of a value is determined once, at the proposal; it applies at the decision.
func TestRecall(t *testing.T) {
	t.Parallel()
	earlier := []string{string(guard.UntrustedValue)}
	medium := guard.Verdict{Answer: guard.Approval, Row: guard.MediumWrite, Risk: operation.Medium}
	image := guard.Verdict{Answer: guard.AlwaysAsk, Row: guard.ImageOrResources, Risk: operation.High, Confirms: []guard.Confirm{guard.ChangesImageOrResources}}
	for name, c := range map[string]struct {
		verdict guard.Verdict
		role    guard.Role
		earlier []string
		want    guard.Answer
		row     guard.Row
	}{
		"admin":                   {medium, guard.Admin, earlier, guard.AlwaysAsk, guard.HighWrite},
		"operator":                {medium, guard.Operator, earlier, guard.Refuse, guard.HighWrite},
		"operator, of an image":   {image, guard.Operator, earlier, guard.AlwaysAsk, guard.ImageOrResources},
		"nothing to recall":       {medium, guard.Operator, nil, guard.Approval, guard.MediumWrite},
		"another confirm earlier": {medium, guard.Operator, []string{string(guard.NoDryRun)}, guard.Approval, guard.MediumWrite},
		"refused already":         {guard.Verdict{Answer: guard.Refuse, Row: guard.Forbidden}, guard.Admin, earlier, guard.Refuse, guard.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.verdict.Recall(c.role, c.earlier)
			if got.Answer != c.want || got.Row != c.row {
				t.Errorf("%v %s, want %v %s", got.Answer, got.Row, c.want, c.row)
			}
			if got.Answer == guard.AlwaysAsk && !slices.Contains(got.Confirms, guard.UntrustedValue) {
				t.Errorf("confirms %v; want (got.Answer != guard.AlwaysAsk || slices.Contains(got.Confirms, guard.UntrustedValue))", got.Confirms)
			}
		})
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	p := guard.Policy{Protected: []string{"kube-system"}, Hidden: []string{"vault"}}
	target := func(v operation.Verb, kind, namespace, name string, dry bool) []operation.Expanded {
		return []operation.Expanded{{
			Operation: operation.Operation{Verb: v, DryRun: dry},
			Targets:   []operation.Target{{Ref: operation.Ref{Version: "v1", Kind: kind, Namespace: namespace, Name: name}}},
		}}
	}
	for name, c := range map[string]struct {
		ops  []operation.Expanded
		code string
	}{
		"within reach":              {target(operation.Label, "Pod", "shop", "api", false), ""},
		"protected":                 {target(operation.Label, "Pod", "kube-system", "dns", false), "protected_namespace"},
		"rehearsal in protected":    {target(operation.Label, "Pod", "kube-system", "dns", true), ""},
		"hidden":                    {target(operation.Label, "Pod", "vault", "api", false), "not_found"},
		"rehearsal in hidden":       {target(operation.Label, "Pod", "vault", "api", true), "not_found"},
		"the hidden namespace":      {target(operation.Delete, "Namespace", "", "vault", false), "not_found"},
		"a kind that nobody writes": {target(operation.Label, "Secret", "shop", "key", false), "protected_kind"},
		"rehearsal of a Secret":     {target(operation.Apply, "Secret", "shop", "key", true), "protected_kind"},
		"and in protected":          {target(operation.Apply, "Secret", "kube-system", "key", true), "protected_kind"},
		"a read of it":              {target(operation.Get, "Secret", "shop", "key", false), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := p.Reach(guard.Admin, c.ops); got.Code != c.code || (got.Answer == guard.Refuse) != (c.code != "") {
				t.Errorf("%v %q, want %q", got.Answer, got.Code, c.code)
			}
		})
	}
}
