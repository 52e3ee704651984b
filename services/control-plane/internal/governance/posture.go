package governance

import (
	"context"
	"fmt"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

const (
	// runsFor limits the age of the runs that count.
	runsFor = 90 * 24 * time.Hour
	// verdictFor is how long a verification counts: the ledger verifies everything hourly, so an older verdict means
	// that one was missed.
	verdictFor = 3 * time.Hour
	// maxEvidenceLines limits the evidence of one control, in lines.
	maxEvidenceLines = 50
)

// Readmes reports whether a model without a written card has a README that counts.
type Readmes interface {
	Readme(ctx context.Context, model string) (string, bool)
}

// Posture evaluates the controls from the store.
type Posture struct {
	store *store.Store
	cards Readmes
	now   func() time.Time
}

// finding counts the subjects of a control.
type finding struct {
	total, good int64
	evidence    []string
	left        int64 // lines that were left out
}

func (f *finding) say(format string, a ...any) {
	if len(f.evidence) == maxEvidenceLines {
		f.left++
		return
	}
	f.evidence = append(f.evidence, fmt.Sprintf(format, a...))
}

// see counts one subject.
func (f *finding) see(good bool, format string, a ...any) {
	f.total++
	if good {
		f.good++
	}
	f.say(format, a...)
}

func (f *finding) control(id string, function api.ControlFunction, title string) api.Control {
	out := api.Control{Control: id, Function: function, Title: title, Status: api.Partial, Evidence: f.evidence}
	switch {
	case f.good == 0: // also without subjects
		out.Status = api.Gap
	case f.good == f.total:
		out.Status = api.Satisfied
	}
	if f.left > 0 {
		out.Evidence = append(out.Evidence, fmt.Sprintf("and %d more", f.left))
	}
	return out
}

func (s *Posture) chains(ctx context.Context, tenant string) (finding, error) {
	var f finding
	rows, err := s.store.ChainsOf(ctx, tenant)
	if err != nil {
		return f, err
	}
	for _, r := range rows {
		switch {
		case r.Verified == nil || r.VerifiedAt == nil || r.Checked == nil:
			f.see(false, "chain %s: %d entries, not verified yet", r.Tenant, r.Seq)
		case !*r.Verified:
			f.see(false, "chain %s: broken at entry %d (%s), found at %s", r.Tenant, wire.Deref(r.FirstBadSeq), wire.Deref(r.Reason), formatTime(*r.VerifiedAt))
		case s.now().Sub(*r.VerifiedAt) > verdictFor:
			f.see(false, "chain %s: last verified at %s, which is too long ago", r.Tenant, formatTime(*r.VerifiedAt))
		default:
			f.see(true, "chain %s: %d entries verified at %s", r.Tenant, *r.Checked, formatTime(*r.VerifiedAt))
		}
	}
	if f.total == 0 {
		f.say("the ledger holds no entry yet: there is nothing to verify")
	}
	return f, nil
}

func (s *Posture) served(ctx context.Context, tenant string) (classified, carded finding, err error) {
	rows, err := s.store.ServedModels(ctx, tenant)
	if err != nil {
		return classified, carded, err
	}
	for _, r := range rows {
		if r.RiskClass != "" {
			classified.see(true, "%s version %s: %s", r.ModelID, r.Version, r.RiskClass)
		} else {
			classified.see(false, "%s version %s: not classified", r.ModelID, r.Version)
		}
		kind, ok := "a card", r.Carded
		if !ok {
			kind = "a README in the model repository"
			_, ok = s.cards.Readme(ctx, r.ModelID)
		}
		if ok {
			carded.see(true, "%s: %s", r.ModelID, kind)
		} else {
			carded.see(false, "%s: no card", r.ModelID)
		}
	}
	if len(rows) == 0 {
		const none = "no model holds Production: there is nothing to judge"
		classified.say(none)
		carded.say(none)
	}
	return classified, carded, nil
}

func (s *Posture) runs(ctx context.Context, tenant string) (finding, error) {
	var f finding
	since := s.now().Add(-runsFor)
	n, err := s.store.CountRunsByAuthority(ctx, store.CountRunsByAuthorityParams{Tenant: tenant, Since: since})
	if err != nil {
		return f, err
	}
	f.total, f.good = n.Total, n.Approved+n.Standing
	if n.Total == 0 {
		f.say("no run since %s: there is nothing to judge", formatTime(since))
		return f, nil
	}
	f.say("%d runs since %s: %d approved, %d under a standing authorisation, %d neither", n.Total, formatTime(since), n.Approved, n.Standing, n.Total-f.good)
	rows, err := s.store.RunsWithoutAuthority(ctx, store.RunsWithoutAuthorityParams{Tenant: tenant, Since: since, MaxRows: maxEvidenceLines - 1})
	if err != nil {
		return f, err
	}
	for _, r := range rows {
		f.say("run %s of %s, started by %s: neither", r.FlowRunID, r.ModelID, r.RequestedBy)
	}
	f.left = max(0, n.Total-f.good-int64(len(rows)))
	return f, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
