package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Which identifies the record to decide: a model's pending retrain, or a record by id.
type Which struct {
	Model string
	ID    uuid.UUID
}

// Decision holds the details of an approval.
type Decision struct {
	Dataset string     // default: the model's first
	Backend string     // default: the data set's
	Reason  string     // kept in the ledger
	Shown   *uuid.UUID // the record shown to the decider
}

// Decided is a decided record; FlowRunID is empty for a promotion.
type Decided struct {
	Record    store.Approval
	FlowRunID string
}

// pick locks the record to decide. If it cannot be decided, the problem states why and the record, if any, is the
// conflicting one.
func (s *Service) pick(ctx context.Context, tx store.Tx, tenant string, w Which) (store.Approval, *problem.Error, error) {
	if w.Model == "" {
		a, err := tx.LockApproval(ctx, store.LockApprovalParams{ID: w.ID, Tenant: tenant})
		switch {
		case store.None(err):
			return a, fault.ApprovalNotFound.New("There is no such approval in your tenant; GET /approvals lists them."), nil
		case err != nil || a.Status == Pending:
			return a, nil, err
		case a.Status == Approving:
			return a, inProgress(a), nil
		}
		return a, alreadyDecided(a), nil
	}
	rows, err := tx.UndecidedRetrain(ctx, store.UndecidedRetrainParams{Tenant: tenant, ModelID: w.Model})
	if err != nil {
		return store.Approval{}, nil, err
	}
	for _, a := range rows {
		if a.Status == Pending {
			return a, nil, nil
		}
	}
	if len(rows) > 0 {
		return rows[0], inProgress(rows[0]), nil
	}
	return store.Approval{}, fault.NoPendingApproval.New("No change of " + w.Model + " waits for approval in your tenant."), nil
}

func inProgress(a store.Approval) *problem.Error {
	return fault.ApprovalInProgress.New("This record is being approved now; check it again in a moment.").
		With(map[string]any{"approval_id": a.ID}).After(time.Second)
}

func alreadyDecided(a store.Approval) *problem.Error {
	detail := "This record is " + a.Status
	if a.ResolvedBy != nil {
		detail += " by " + *a.ResolvedBy
	}
	if a.RejectReason != nil {
		detail += ": " + *a.RejectReason
	}
	return fault.AlreadyDecided.New(detail + ".").With(map[string]any{"approval_id": a.ID, "status": a.Status})
}

func approvalChanged(a store.Approval) *problem.Error {
	return fault.ApprovalChanged.New(fmt.Sprintf("Another change is now pending: record %s of commit %s. Review it before you decide.", a.ID, a.CommitSha)).
		With(map[string]any{"approval_id": a.ID, "commit_sha": a.CommitSha})
}

// Approve starts the training run that a pending record requests.
func (s *Service) Approve(ctx context.Context, p auth.Principal, w Which, d Decision) (Decided, error) {
	if promotion, err := s.promotionOf(ctx, p.Tenant, w); err != nil {
		return Decided{}, err
	} else if promotion != nil {
		if err := s.Promotions.ApproveRecord(ctx, p, *promotion, d.Reason); err != nil {
			return Decided{}, err
		}
		return s.decided(ctx, p.Tenant, w.ID)
	}
	if err := s.ExpireDue(ctx); err != nil {
		return Decided{}, err
	}
	leave := func() {}
	defer func() { leave() }()
	var record store.Approval
	var cmd store.Command
	var refused *problem.Error
	first := false
	outer := ctx
	var span trace.Span = noop.Span{}
	defer func() { span.End() }()
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		first = false
		record, refused, err = s.pick(ctx, tx, p.Tenant, w)
		if err != nil {
			return err
		}
		span.End() // of the attempt that is repeated
		ctx, span = service.ContinueTrace(outer, wire.Deref(record.Traceparent), "approve retrain")
		if refused == nil && d.Shown != nil && *d.Shown != record.ID {
			refused = approvalChanged(record)
		}
		if refused == nil {
			if record, err = s.addPushers(ctx, tx, record, p.Name); err != nil {
				return err
			}
			refused = s.Rules.Refuse(p, askOf(record))
		}
		if refused != nil {
			if record.ID == uuid.Nil { // nothing to decide, so nothing was refused
				return nil
			}
			return recordDenial(ctx, tx, record, p, "approval.approve", refused)
		}
		if first = s.Rules.NeedsAnother(p, askOf(record)); first {
			return s.approveFirst(ctx, tx, &record, p, d)
		}
		// Last, so that an undecidable record is reported as such even under load.
		leave() // release the slot of the attempt that is repeated
		if leave, err = s.Admission.Enter(p.Tenant); err != nil {
			leave = func() {}
			return err
		}
		request, err := s.request(ctx, record, p, d)
		if err != nil {
			return err
		}
		if record, err = tx.SetApprovalStatus(ctx, store.SetApprovalStatusParams{
			ID: record.ID, FromStatus: Pending, ToStatus: Approving, DatasetName: &request.Dataset, Now: s.Now(), UpdatedBy: p.Name,
		}); err != nil {
			return err
		}
		if cmd, err = s.Commands.Write(ctx, tx, uuid.Must(uuid.NewV7()), command.Spec{
			Kind: command.Approval, Principal: p.Name, OrchestratorKey: "approval:" + record.ID.String(), Request: request,
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "approval.approving", event.Model(record.ModelID), event.OK,
			auditDetails(record, wire.OptionalText(d.Reason))))
	})
	switch {
	case err != nil:
		return Decided{}, err
	case refused != nil:
		return Decided{}, refused
	case first:
		return Decided{Record: record}, nil
	}
	if _, err := s.Commands.Send(ctx, cmd); err != nil {
		return Decided{}, err
	}
	return s.decided(context.WithoutCancel(ctx), p.Tenant, record.ID)
}

// approveFirst records the first of two approvals; the record stays pending.
func (s *Service) approveFirst(ctx context.Context, tx store.Tx, record *store.Approval, p auth.Principal, d Decision) (err error) {
	// A run that could never start is refused at the first approval, not at the second.
	if _, err := s.request(ctx, *record, p, d); err != nil {
		return err
	}
	now := s.Now()
	if *record, err = tx.FirstApproval(ctx, store.FirstApprovalParams{
		ID: record.ID, FirstApprover: &p.Name, Now: &now, DatasetName: wire.OptionalText(d.Dataset),
	}); err != nil {
		return err
	}
	return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "approval.first_approved", event.Model(record.ModelID), event.OK,
		auditDetails(*record, wire.OptionalText(d.Reason))))
}

// request builds the training run that approving the record starts.
func (s *Service) request(ctx context.Context, a store.Approval, p auth.Principal, d Decision) (dispatch.Request, error) {
	m, ok := s.Registry.Find(a.ModelID)
	if !ok {
		return dispatch.Request{}, fault.NoDataset.New(fmt.Sprintf("Model %s is not in the model repository, so there is nothing to train it on.", a.ModelID))
	}
	name := d.Dataset
	if name == "" && a.DatasetName != nil { // chosen by a failed attempt or by the notice's origin
		name = *a.DatasetName
	}
	dataset, err := s.Registry.RequireDataset(m, name)
	if err != nil {
		return dispatch.Request{}, err
	}
	backend := d.Backend
	if backend == "" {
		backend = registry.Backend(m, dataset)
	}
	return dispatch.Request{
		Model: a.ModelID, Dataset: dataset.Name, Backend: backend, CommitSHA: a.CommitSha, Tenant: a.Tenant,
		RequestID: service.RequestID(ctx), Traceparent: service.Traceparent(ctx), RequestedBy: p.Name, ApprovalID: &a.ID, Origin: a.Origin, Reason: d.Reason,
		Requesters: a.Requesters, PersonUnknown: a.PersonUnknown,
	}, nil
}

// reasonOf returns the reason given with the approval.
func reasonOf(c store.Command) *string {
	var r dispatch.Request
	if json.Unmarshal(c.Request, &r) != nil {
		return nil
	}
	return wire.OptionalText(r.Reason)
}

// Reject closes a pending record without training.
func (s *Service) Reject(ctx context.Context, p auth.Principal, w Which, reason string) (Decided, error) {
	if promotion, err := s.promotionOf(ctx, p.Tenant, w); err != nil {
		return Decided{}, err
	} else if promotion != nil {
		if err := s.Promotions.RejectRecord(ctx, p, *promotion, reason); err != nil {
			return Decided{}, err
		}
		return s.decided(ctx, p.Tenant, w.ID)
	}
	if err := s.ExpireDue(ctx); err != nil {
		return Decided{}, err
	}
	var record store.Approval
	var refused *problem.Error
	err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		record, refused, err = s.pick(ctx, tx, p.Tenant, w)
		switch {
		case err != nil:
			return err
		case refused != nil && record.ID != uuid.Nil:
			return recordDenial(ctx, tx, record, p, "approval.reject", refused)
		case refused != nil:
			return nil
		}
		now := s.Now()
		if record, err = tx.SetApprovalStatus(ctx, store.SetApprovalStatusParams{
			ID: record.ID, FromStatus: Pending, ToStatus: Rejected, RejectReason: wire.OptionalText(reason),
			ResolvedBy: &p.Name, ResolvedAt: &now, Now: now, UpdatedBy: p.Name,
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, Facts(record, p.Name, Rejected, event.OK, wire.OptionalText(reason))...)
	})
	switch {
	case err != nil:
		return Decided{}, err
	case refused != nil:
		return Decided{}, refused
	}
	s.Count(Rejected, record.ModelID, 1)
	return Decided{Record: record}, nil
}

// promotionOf returns the promotion behind a record given by id, if it is still
// undecided.
func (s *Service) promotionOf(ctx context.Context, tenant string, w Which) (*uuid.UUID, error) {
	if w.Model != "" {
		return nil, nil
	}
	row, err := s.Store.GetApproval(ctx, store.GetApprovalParams{ID: w.ID, Tenant: tenant})
	if store.None(err) {
		return nil, nil // reported by pick
	}
	return row.Approval.PromotionID, err
}

func (s *Service) decided(ctx context.Context, tenant string, id uuid.UUID) (Decided, error) {
	row, err := s.Store.GetApproval(ctx, store.GetApprovalParams{ID: id, Tenant: tenant})
	if err != nil {
		return Decided{}, err
	}
	out := Decided{Record: row.Approval}
	if row.Approval.PrefectRunID != nil {
		out.FlowRunID = *row.Approval.PrefectRunID
	}
	return out, nil
}
