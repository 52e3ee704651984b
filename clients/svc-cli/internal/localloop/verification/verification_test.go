package verification_test

import (
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
)

// The advice follows from the checks and the worker's own status, in this order.
func TestRecommend(t *testing.T) {
	t.Parallel()
	const p, f, e = verification.Passed, verification.Failed, verification.Error
	for _, c := range []struct {
		statuses       []string
		optional       string // the status of one more check, that is not required
		worker         string
		status, advice string
	}{
		{[]string{p, p}, "", "succeeded", p, "accept_candidate"},
		{[]string{p, f}, "", "succeeded", f, "reject_candidate"},
		{[]string{p, e}, "", "succeeded", e, "insufficient_evidence"},
		{[]string{e, f}, "", "succeeded", f, "reject_candidate"},
		{[]string{p, p}, "", "failed", p, "escalate"},
		{[]string{p, p}, "", "cancelled", p, "escalate"},
		{[]string{p, f}, "", "failed", f, "reject_candidate"},
		{[]string{p, e}, "", "timeout", e, "insufficient_evidence"},
		{[]string{p, p}, f, "succeeded", f, "accept_candidate"},
		{[]string{p, p}, e, "error", e, "escalate"},
	} {
		var checks []verification.Check
		for _, s := range c.statuses {
			checks = append(checks, verification.Check{Status: s, Required: true})
		}
		if c.optional != "" {
			checks = append(checks, verification.Check{Status: c.optional})
		}
		got := verification.Recommend(checks, c.worker)
		if got.Recommendation != c.advice || got.Rationale == "" || verification.Overall(checks) != c.status {
			t.Errorf(`%+v: %+v; want got.Recommendation == c.advice && got.Rationale != "" && verification.Overall(checks) == c.status`, c, got)
		}
	}
}
