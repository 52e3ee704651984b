package promotion

import (
	"context"

	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// askOf returns the request that a promotion represents.
func askOf(p store.Promotion) separation.Ask {
	return separation.Ask{Requesters: p.Requesters, PersonUnknown: p.PersonUnknown, FirstApprover: p.FirstApprover}
}

// requesters returns all who count as requesters of a version's promotion: asker, those who requested the run that
// trained it, and those who pushed the commit it was trained from. unknown means that one of them is not known.
func (s *Service) requesters(ctx context.Context, q *store.Queries, asker string, v Verdict) (names []string, unknown bool, err error) {
	names = separation.MergeNames([]string{asker})
	commits := []*string{}
	flowRuns := []string{v.FlowRunID} // as the tracker names it now
	version, err := q.GetVersion(ctx, store.GetVersionParams{ModelID: v.Model, Version: v.Version})
	switch {
	case err == nil:
		commits = append(commits, version.CommitSha)
		if was := wire.Deref(version.FlowRunID); was != v.FlowRunID {
			flowRuns = append(flowRuns, was) // a tag changed after the report removes no requester
		}
	case !store.None(err):
		return nil, false, err
	}
	for _, id := range flowRuns {
		if id == "" {
			continue
		}
		run, err := q.GetRun(ctx, id)
		switch {
		case err == nil && run.ModelID == v.Model:
			names, unknown = separation.MergeNames(names, run.Requesters), unknown || run.PersonUnknown
			commits = append(commits, run.CommitSha)
		case err != nil && !store.None(err):
			return nil, false, err
		}
	}
	for _, commit := range commits {
		if commit == nil {
			continue
		}
		pushers, err := q.PushersOf(ctx, *commit)
		if err != nil {
			return nil, false, err
		}
		names, unknown = separation.MergeNames(names, pushers.Requesters), unknown || pushers.PersonUnknown
	}
	return names, unknown, nil
}

// addPushers adds people who now count as requesters to a pending promotion and its record: a push may be reported
// after the promotion was opened.
func (s *Service) addPushers(ctx context.Context, tx store.Tx, p store.Promotion, record store.Approval, v Verdict, by string) (store.Promotion, error) {
	names, unknown, err := s.requesters(ctx, tx.Queries, "", v)
	if err != nil {
		return p, err
	}
	names, unknown = separation.MergeNames(p.Requesters, names), unknown || p.PersonUnknown
	if len(names) == len(p.Requesters) && unknown == p.PersonUnknown {
		return p, nil
	}
	now := s.Now()
	if p, err = tx.AddPromotionRequesters(ctx, store.AddPromotionRequestersParams{ID: p.ID, Requesters: names, PersonUnknown: unknown, Now: now, UpdatedBy: by}); err != nil {
		return p, err
	}
	if _, err := tx.AddRequesters(ctx, store.AddRequestersParams{ID: record.ID, Requesters: names, PersonUnknown: unknown, Now: now, UpdatedBy: by}); err != nil {
		return p, err
	}
	details := auditDetails(p)
	details["requesters"], details["person_unknown"] = p.Requesters, p.PersonUnknown
	return p, tx.Emit(ctx, event.Audit(p.Tenant, by, "promotion.pushers_joined", event.Model(p.ModelID), event.OK, details))
}

// approveFirst records the first of two approvals, in the promotion and in its record; both stay pending.
func (s *Service) approveFirst(ctx context.Context, tx store.Tx, p store.Promotion, record store.Approval, by string) (store.Promotion, error) {
	now := s.Now()
	p, err := tx.FirstPromotionApproval(ctx, store.FirstPromotionApprovalParams{ID: p.ID, FirstApprover: &by, Now: &now})
	if err != nil {
		return p, err
	}
	if _, err := tx.FirstApproval(ctx, store.FirstApprovalParams{ID: record.ID, FirstApprover: &by, Now: &now}); err != nil {
		return p, err
	}
	return p, tx.Emit(ctx, event.Audit(p.Tenant, by, "promotion.first_approved", event.Model(p.ModelID), event.OK, auditDetails(p)))
}
