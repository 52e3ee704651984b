package autoretrain

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/drift"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// The outcomes for a checked model.
const (
	WouldTrigger   = "would_trigger"   // a dry run that would have led to training
	Requested      = "requested"       // a record waits for approval
	Dispatched     = "dispatched"      // a run was started
	BelowThreshold = "below_threshold" // no or too little drift, or too few predictions to decide
	CoolingDown    = "cooling_down"    // the last trigger is too recent
	AlreadyPending = "already_pending" // a trigger's effect is already there, or in progress
	BlockedCorrupt = "blocked_corrupt" // data unfit for training
	Failed         = "failed"          // drift could not be read, or training not be started
)

// Result is the outcome for one model.
type Result struct {
	Model      string
	Z          *float64 // the largest one read; nil if there is none
	Outcome    string
	FlowRunID  string
	ApprovalID *uuid.UUID
	Reason     string
}

func (r Result) with(outcome, format string, a ...any) Result {
	r.Outcome, r.Reason = outcome, fmt.Sprintf(format, a...)
	return r
}

// levels holds the readings of each kind, or the reason they could not be read.
type levels map[string]struct {
	readings []drift.Reading
	err      error
}

// read fetches the drift kinds that the rows use, of all models or the one.
func (s *Service) read(ctx context.Context, rows []store.AutoRetrain, model string) levels {
	out := levels{}
	for _, row := range rows {
		for _, kind := range kindsToJudge(row.Kind) {
			if l, done := out[kind]; !done {
				l.readings, l.err = s.Drift.Read(ctx, kind, model)
				out[kind] = l
			}
		}
	}
	return out
}

func kindsToJudge(kind string) []string {
	if kind == Any {
		return []string{drift.Prediction, drift.Input}
	}
	return []string{kind}
}

// judgeDrift reports whether the model's Production version drifts enough; the outcome is WouldTrigger if it does.
func judgeDrift(row store.AutoRetrain, l levels) Result {
	out := Result{Model: row.ModelID}
	above, why, quiet := false, "", ""
	for _, kind := range kindsToJudge(row.Kind) {
		got := l[kind]
		if errors.Is(got.err, drift.ErrNotServed) && row.Kind == Any {
			continue // only predictions are available
		}
		if got.err != nil {
			return out.with(Failed, "%s drift: %v", kind, got.err)
		}
		r, ok := productionReading(got.readings, row.ModelID)
		switch {
		case !ok:
			quiet = fmt.Sprintf("there is no %s drift of %s under %s", kind, row.ModelID, alias.Production)
			continue
		case r.Overall == drift.Corrupt:
			return out.with(BlockedCorrupt, "%ss are corrupt: %s", kind, orElse(r.Reason, "they are unfit for training"))
		case r.Overall == drift.NoBaseline, r.Overall == drift.Insufficient:
			quiet = fmt.Sprintf("%s drift is %s", kind, r.Overall)
			continue
		}
		z := r.Z
		if z != nil && (math.IsNaN(*z) || math.IsInf(*z, 0)) {
			z = nil
		}
		if z != nil && (out.Z == nil || *z > *out.Z) {
			out.Z = z
		}
		switch {
		case z != nil && *z >= row.MinZ:
			above, why = true, fmt.Sprintf("%s drift: z %.2f, threshold %g", kind, *z, row.MinZ)
		case r.CriticalBeside != "": // the mean may stay put while other measures move
			above, why = true, fmt.Sprintf("%s drift: %s is critical", kind, r.CriticalBeside)
		case z == nil && r.Overall == drift.Critical: // any change from a baseline without spread
			above, why = true, fmt.Sprintf("%s drift: %s", kind, orElse(r.Reason, "critical without a z score"))
		case z == nil:
			quiet = fmt.Sprintf("%s drift is %s without a z score", kind, r.Overall)
		default:
			quiet = fmt.Sprintf("%s drift: z %.2f, threshold %g", kind, *z, row.MinZ)
		}
	}
	if above {
		return out.with(WouldTrigger, "%s", why)
	}
	return out.with(BelowThreshold, "%s", quiet)
}

func productionReading(readings []drift.Reading, model string) (drift.Reading, bool) {
	for _, r := range readings {
		if r.Model == model && r.Alias == alias.Production {
			return r, true
		}
	}
	return drift.Reading{}, false
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
