package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

type decision struct {
	subject                 string // a model, or the id of a record
	reason, dataset         string
	approve, dryRun, follow bool
}

func (d decision) verb() string {
	if d.approve {
		return "approve"
	}
	return "reject"
}

// findApproval finds a record by its id, or the only pending one of a model. A model with several is refused:
// which of them was meant must not be guessed.
func (e *Env) findApproval(ctx context.Context, subject string) (*approval, error) {
	if id, err := uuid.Parse(subject); err == nil {
		cp, err := e.controlPlaneClient()
		if err != nil {
			return nil, err
		}
		a, err := decode[approval](cp.GetApproval(ctx, id))
		if err != nil {
			return nil, err
		}
		if a.ChangedFiles == nil {
			a.ChangedFiles = []string{}
		}
		return &a, nil
	}
	list, err := e.approvals(ctx, "pending")
	if err != nil {
		return nil, err
	}
	var found []*approval
	for i := range list {
		if strings.EqualFold(list[i].ModelId, subject) {
			found = append(found, &list[i])
		}
	}
	switch len(found) {
	case 0:
		if err := e.refuseUnknownModel(ctx, subject); err != nil {
			return nil, err
		}
		return nil, fault.New("no_pending_approval", "nothing of %s is pending", strings.ToUpper(subject)).
			WithHint("see what is pending: mlp approvals list; and what was decided: mlp approvals list --all")
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for i, a := range found {
		ids[i] = fmt.Sprintf("%s (%s)", a.Id, a.Kind)
	}
	return nil, fault.New("several_pending", "%d records of %s are pending: %s", len(found), strings.ToUpper(subject), strings.Join(ids, ", ")).
		WithHint("name one by its id, as in: mlp approvals show %s", found[0].Id)
}

// approvalSubject is a record with the promotion that it represents, if any.
type approvalSubject struct {
	*approval
	promotion *controlplane.Promotion
}

func (e *Env) approvalSubject(ctx context.Context, subject string) (*approvalSubject, error) {
	a, err := e.findApproval(ctx, subject)
	if err != nil {
		return nil, err
	}
	s := &approvalSubject{approval: a}
	if a.PromotionId == nil {
		return s, nil
	}
	cp, err := e.controlPlaneClient()
	if err != nil {
		return nil, err
	}
	p, err := decode[controlplane.Promotion](cp.GetPromotion(ctx, *a.PromotionId))
	if err != nil {
		return nil, err
	}
	s.promotion = &p
	return s, nil
}

// describe summarizes the subject of the decision in one line.
func (s *approvalSubject) describe() string {
	if p := s.promotion; p != nil {
		return s.ModelId + "  " + describeMove(p.Version, p.From, p.To, p.PreviousVersion)
	}
	return fmt.Sprintf("%s  %s  %s; %d changed file(s)", s.ModelId, shortSHA(s.CommitSha), s.CommitMsg, len(s.ChangedFiles))
}

func (s *approvalSubject) question(approve bool) string {
	switch p := s.promotion; {
	case p != nil && approve:
		return fmt.Sprintf("Make version %s of %s %s?", p.Version, s.ModelId, p.To)
	case p != nil:
		return fmt.Sprintf("Reject version %s of %s for %s?", p.Version, s.ModelId, p.To)
	case approve:
		return fmt.Sprintf("Approve and train %s now?", s.ModelId)
	}
	return fmt.Sprintf("Reject the change of %s?", s.ModelId)
}

func approvalsDecide(ctx context.Context, env *Env, d decision) error {
	s, err := env.approvalSubject(ctx, d.subject)
	if d.dryRun {
		return dryDecision(env, d, s, err)
	}
	if err != nil {
		return err
	}
	if s.promotion != nil && d.dataset != "" {
		return fault.Usage("--dataset is for changes that are trained; %s is a promotion", s.Id)
	}
	if s.Status != controlplane.ApprovalStatusPending {
		return fault.New("already_decided", "%s of %s is %s already", s.Kind, s.ModelId, s.Status).WithHint("see: mlp approvals show %s", s.Id)
	}
	env.Talk("%s\nrequested by %s, %s ago", output.Clean(s.describe()), output.Clean(s.RequestedBy), output.Since(env.Now().Sub(s.RequestedAt)))
	yes, err := env.Confirm(ctx, s.question(d.approve), d.approve)
	if err != nil || !yes {
		return err
	}
	return env.sendDecision(ctx, d, s)
}

func dryDecision(env *Env, d decision, s *approvalSubject, err error) error {
	check := Check{Name: "pending approval", Pass: err == nil}
	would := map[string]any{"action": d.verb(), "reason": nullIfEmpty(d.reason)}
	target := strings.ToUpper(d.subject)
	if err != nil {
		check.Detail = err.Error()
		return env.DryRun(target, would, []Check{check})
	}
	target, check.Detail = s.ModelId, s.Id.String()
	if s.Status != controlplane.ApprovalStatusPending {
		check.Pass, check.Detail = false, s.Id.String()+" is "+string(s.Status)+" already"
	}
	would["approval_id"], would["kind"] = s.Id, s.Kind
	if p := s.promotion; p != nil {
		would["version"], would["from"], would["to"] = p.Version, p.From, p.To
		would["moves_alias"] = d.approve
	} else {
		would["commit_sha"], would["fires_training"] = s.CommitSha, d.approve
	}
	return env.DryRun(target, would, []Check{check})
}

// sendDecision decides by the id that was shown, so that a record that has replaced it since stays undecided.
func (e *Env) sendDecision(ctx context.Context, d decision, s *approvalSubject) error {
	cp, err := e.controlPlaneClient()
	if err != nil {
		return err
	}
	reason := optional(d.reason)
	if !d.approve {
		res, err := decode[controlplane.RejectResult](cp.RejectById(ctx, s.Id, controlplane.RejectByIdJSONRequestBody{Reason: reason}))
		if err != nil {
			return e.changedMeanwhile(ctx, d, s, err)
		}
		return e.done(map[string]any{"model_id": res.ModelId, "approval_id": res.ApprovalId, "status": res.Status, "flow_run_id": nil, "status_url": nil,
			"promotion_id": s.PromotionId, "version": s.version()}, "%s rejected", s.name())
	}
	res, err := decode[controlplane.ApproveResult](cp.ApproveById(ctx, s.Id, controlplane.ApproveRequest{ApprovalId: &s.Id, DatasetName: optional(d.dataset), Reason: reason}))
	if err != nil {
		return e.changedMeanwhile(ctx, d, s, err)
	}
	second := res.SecondApprovalNeeded != nil && *res.SecondApprovalNeeded
	doc := map[string]any{"model_id": res.ModelId, "approval_id": res.ApprovalId, "status": res.Status, "flow_run_id": res.FlowRunId,
		"status_url": res.StatusUrl, "promotion_id": s.PromotionId, "version": s.version(), "second_approval_needed": second}
	switch {
	case second:
		return e.done(doc, "%s has your approval; another person must approve it too", s.name())
	case d.follow && s.promotion != nil:
		return e.followPromotion(ctx, cp, doc, followedMove{id: s.promotion.Id, what: s.name(), see: "mlp approvals show " + s.Id.String()})
	case d.follow && res.FlowRunId != nil:
		r, err := e.Config()
		if err != nil {
			return err
		}
		return e.follow(ctx, e.controlPlane(r), doc, *res.FlowRunId)
	case res.FlowRunId != nil:
		return e.done(doc, "%s approved; training run %s started; watch it with: mlp runs show %s --follow", res.ModelId, *res.FlowRunId, *res.FlowRunId)
	case s.promotion != nil:
		return e.done(doc, "%s approved for %s", s.name(), s.promotion.To)
	}
	return e.done(doc, "%s %s", res.ModelId, res.Status)
}

func (s *approvalSubject) version() any {
	if s.promotion == nil {
		return nil
	}
	return s.promotion.Version
}

// name returns the subject of the decision, for one sentence.
func (s *approvalSubject) name() string {
	if s.promotion == nil {
		return s.ModelId
	}
	return s.ModelId + " version " + s.promotion.Version
}

// changedMeanwhile shows what is pending now, when the record that was shown is no longer the one to decide.
func (e *Env) changedMeanwhile(ctx context.Context, d decision, s *approvalSubject, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "approval_changed" && f.Code != "already_decided" && f.Code != "superseded" {
		return err
	}
	now, findErr := e.approvalSubject(ctx, s.ModelId)
	if findErr != nil || now.Id == s.Id {
		return err
	}
	return fault.New("approval_changed", "what is pending of %s is now %s", s.ModelId, now.describe()).
		WithHint("look at it, then decide again: mlp approvals show %s; mlp approvals %s %s", now.Id, d.verb(), now.Id)
}

// optional returns nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
