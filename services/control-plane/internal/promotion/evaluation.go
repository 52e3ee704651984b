package promotion

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// named limits the failed metrics listed in a reason.
const named = 5

// evaluationCheck reads the version's evaluations and, if the policy requires one,
// checks that the latest of each suite passed: an easy suite does not compensate for
// one that failed.
func (g *Gate) evaluationCheck(ctx context.Context, v *Verdict) (err error) {
	if v.Evals, err = g.Store.LatestEvalsOfVersion(ctx, store.LatestEvalsOfVersionParams{Tenant: v.Tenant, ModelID: v.Model, Version: v.Version}); err != nil {
		return err
	}
	if v.Policy == nil || !v.Policy.RequireEval {
		return nil
	}
	if len(v.Evals) == 0 {
		v.check("evaluation", false, "the policy requires an evaluation, and none of version %s is recorded", v.Version)
	}
	for _, run := range v.Evals {
		detail, err := describeOutcome(run)
		if err != nil {
			return err
		}
		v.check("evaluation", run.Status == string(api.EvalStatusPassed), "%s", detail)
	}
	return nil
}

// describeOutcome describes how a run ended.
func describeOutcome(run store.Eval) (string, error) {
	metrics, err := governance.DecodeMetrics(run)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("the latest evaluation of version %s by suite %s, of %s, ", run.Version, run.Suite, run.UpdatedAt.UTC().Format(time.RFC3339))
	switch api.EvalStatus(run.Status) {
	case api.EvalStatusPassed:
		return what + "passed", nil
	case api.EvalStatusFailed:
		what += "failed"
	default:
		return what + "broke off and says nothing of the model", nil
	}
	if failed := governance.FailedMetrics(metrics); len(failed) > named {
		what += fmt.Sprintf(": %s and %d more", strings.Join(failed[:named], ", "), len(failed)-named)
	} else if len(failed) > 0 {
		what += ": " + strings.Join(failed, ", ")
	}
	return what, nil
}

// byAge sorts runs, oldest first.
func byAge(runs []store.Eval) []store.Eval {
	return slices.SortedFunc(slices.Values(runs), func(a, b store.Eval) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}
