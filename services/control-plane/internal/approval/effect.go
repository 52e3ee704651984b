package approval

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// operators maps comparison operators to the text shown in a rule.
var operators = map[string]string{"lt": "below", "lte": "at most", "gt": "above", "gte": "at least"}

// Effect serves GET /approvals/{id}/effect: the result of an approval by the caller now. It reads the same rows as the
// approval, so that the effect shown is the effect applied.
func (a API) Effect(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := wire.PathID(c, fault.ApprovalNotFound)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row, err := a.Service.Store.GetApproval(ctx, store.GetApprovalParams{ID: id, Tenant: p.Tenant})
	switch {
	case store.None(err):
		return fault.ApprovalNotFound.New("There is no such approval in your tenant; GET /approvals lists them.")
	case err != nil:
		return err
	}
	out, err := a.Service.effect(ctx, p, row.Approval)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// effect describes the result of approving the record, and fills in the facts it derives from.
func (s *Service) effect(ctx context.Context, p auth.Principal, a store.Approval) (api.ApprovalEffect, error) {
	out := api.ApprovalEffect{
		ApprovalId: a.ID, Kind: api.ApprovalEffectKind(a.Kind), ModelId: a.ModelID, Target: "Production", Moves: api.MovesNever, Sentences: []string{},
	}
	policy, err := s.Store.GetPolicy(ctx, a.ModelID)
	switch {
	case err == nil:
		mode := api.ApprovalMode(policy.ApprovalMode)
		out.Mode, out.PolicyEnabled, out.Target = &mode, policy.Enabled, policy.ToAlias
	case !store.None(err):
		return out, err
	}
	out.Decidable = a.Status == Pending && (a.ExpiresAt == nil || a.ExpiresAt.After(s.Now()))
	out.FirstOfTwo = out.Decidable && s.Rules.NeedsAnother(p, askOf(a))
	if a.Kind == Promotion {
		return out, s.promotionEffect(ctx, a, &out)
	}
	if out.CurrentVersion, err = s.holder(ctx, a.ModelID, out.Target); err != nil {
		return out, err
	}
	s.retrainEffect(a, policy, &out)
	return out, nil
}

// holder returns the version under an alias; nil for none.
func (s *Service) holder(ctx context.Context, model, alias string) (*string, error) {
	h, err := s.Store.CurrentHolder(ctx, store.CurrentHolderParams{ModelID: model, Alias: alias})
	if store.None(err) {
		return nil, nil
	}
	return h.Version, err
}

func (s *Service) retrainEffect(a store.Approval, policy store.Policy, out *api.ApprovalEffect) {
	if !out.Decidable {
		out.Action = "Approve"
		out.Sentences = append(out.Sentences, undecidable(a))
		return
	}
	out.DatasetName = a.DatasetName
	if m, ok := s.Registry.Find(a.ModelID); ok && out.DatasetName == nil {
		if d, err := s.Registry.RequireDataset(m, ""); err == nil {
			out.DatasetName = &d.Name
		}
	}
	if out.DatasetName == nil {
		out.Action = "Approve"
		out.Sentences = append(out.Sentences, "The model repository names no data set for "+a.ModelID+", so approval is refused and nothing starts.")
		return
	}
	starts := fmt.Sprintf("one training run of %s with data set %s starts", a.ModelID, *out.DatasetName)
	if out.FirstOfTwo {
		out.Action = "Approve as the first of two"
		out.Sentences = append(out.Sentences, "Nothing starts yet: another person has to approve too. Then "+starts+".")
	} else {
		out.Action, out.StartsTraining = "Approve and train", true
		out.Sentences = append(out.Sentences, "At once "+starts+".")
	}
	stays := "Nothing is under " + out.Target + ", and nothing comes there"
	replaced := ""
	if out.CurrentVersion != nil {
		stays = "Version " + *out.CurrentVersion + " stays under " + out.Target
		replaced = " in place of version " + *out.CurrentVersion
	}
	switch {
	case out.Mode == nil:
		out.Sentences = append(out.Sentences, stays+": "+a.ModelID+" has no promotion policy.")
	case !policy.Enabled:
		out.Sentences = append(out.Sentences, stays+": the promotion policy of "+a.ModelID+" is switched off.")
	case policy.ApprovalMode == "run":
		out.Moves = api.MovesByThisApproval
		if !out.FirstOfTwo {
			out.Action = "Approve, train and promote"
		}
		out.Sentences = append(out.Sentences, fmt.Sprintf("If the new version passes the gate (%s), it is served under %s%s, without another question: this approval decides that too.",
			ruleOf(policy), out.Target, replaced))
	default:
		out.Moves = api.MovesAfterAnotherApproval
		out.Sentences = append(out.Sentences, fmt.Sprintf("If the new version passes the gate (%s), its promotion to %s waits for another approval. %s until then.",
			ruleOf(policy), out.Target, stays))
	}
}

func undecidable(a store.Approval) string {
	status := a.Status
	if status == Pending {
		status = Expired
	}
	return "This record is " + status + "; it cannot be approved any more."
}

// ruleOf returns the condition of a policy as text.
func ruleOf(p store.Policy) string {
	rule := p.Metric + " " + operators[p.Operator] + " " + strconv.FormatFloat(p.Threshold, 'g', -1, 64)
	if p.RequireEval {
		rule += ", a passed evaluation"
	}
	return rule
}

func (s *Service) promotionEffect(ctx context.Context, a store.Approval, out *api.ApprovalEffect) error {
	out.Action = "Approve"
	if a.PromotionID == nil || !out.Decidable {
		out.Sentences = append(out.Sentences, undecidable(a))
		return nil
	}
	promotion, err := s.Store.GetPromotion(ctx, store.GetPromotionParams{ID: *a.PromotionID, Tenant: a.Tenant})
	if err != nil {
		return err
	}
	out.Target, out.NewVersion = promotion.ToAlias, &promotion.Version
	if out.CurrentVersion, err = s.holder(ctx, a.ModelID, out.Target); err != nil {
		return err
	}
	moves := fmt.Sprintf("version %s of %s is served under %s", promotion.Version, a.ModelID, out.Target)
	if out.CurrentVersion != nil {
		moves += " in place of version " + *out.CurrentVersion
	}
	if out.FirstOfTwo {
		out.Action, out.Moves = "Approve as the first of two", api.MovesAfterAnotherApproval
		out.Sentences = append(out.Sentences, "Nothing moves yet: another person has to approve too. Then, if the gate still passes, "+moves+".")
		return nil
	}
	out.Action, out.Moves = "Approve and promote", api.MovesByThisApproval
	out.Sentences = append(out.Sentences, "If the gate still passes, "+moves+" at once. Nothing is trained.")
	return nil
}
