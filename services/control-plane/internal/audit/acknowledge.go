package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// signedAsk is a pending acknowledgement as a guarded change stores it, signed by the ledger that took it: the row
// alone proves neither the requester nor the content.
type signedAsk struct {
	asked
	Signature chain.RequestSignature `json:"signature"`
}

// requestOf returns the part of a change that its signature covers.
func requestOf(c store.GuardedChange, what asked) chain.Request {
	return chain.Request{ID: c.ID.String(), Kind: c.Kind, Target: c.Target, Tenant: c.Tenant, RequestedBy: c.RequestedBy, New: what}
}

// asked describes a requested acknowledgement.
type asked struct {
	Reason   string          `json:"reason"`
	Failures []chain.Failure `json:"failures"`
	Chain    extent          `json:"chain"`
}

// extent is a chain up to its last entry at the time of the request.
type extent struct {
	Seq    int64  `json:"seq"`
	Digest string `json:"digest"`
}

// standing is the state of a chain according to the tables.
type standing struct {
	end store.AuditEndRow
	chainState
}

// stand reads the current state of the chain.
func stand(ctx context.Context, q *store.Queries, tenant string) (standing, error) {
	end, err := q.AuditEnd(ctx, tenant)
	if err != nil {
		return standing{}, err
	}
	state, err := digestChain(ctx, q, tenant, end.LastSeq)
	return standing{end, state}, err
}

// maxUnknown is the maximum number of entries that may have been lost without a signed trace: far more than a leader
// leaves unverified, and far fewer than there are numbers.
const maxUnknown = 1_000_000

// lastNumber returns the largest number ever used. It refuses one far above both every signed number and the count of
// entries: otherwise the tables alone could claim that no number is left.
func (l *Ledger) lastNumber(tenant string, s standing, known chain.Memory) (int64, error) {
	anchor, err := l.anchors.of(tenant)
	if err != nil {
		return 0, err
	}
	signed := max(anchor.Seq, known.High.Seq, known.Base().Seq)
	told := max(s.end.LastSeq, s.end.HeadSeq, s.end.CheckpointSeq, s.end.VerifiedSeq)
	if told-maxUnknown > signed+s.count {
		return 0, fault.AuditUnverified.New(fmt.Sprintf("According to the tables the chain ends at %d, far beyond its %d entries and the last signed number, %d. "+
			"Correct the number in audit_heads, audit_verdicts, audit_checkpoints or audit_events, then acknowledge the chain.", told, s.count, signed))
	}
	return max(signed, told), nil
}

// Acknowledge serves POST /audit/acknowledgements. The chain is verified first, to find the open failures.
func (a API) Acknowledge(c echo.Context) error {
	ctx := c.Request().Context()
	tenant, err := tenantOf(c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	if tenant != p.Tenant && !guarded.RunsPlatform(p) {
		return fault.TenantNotFound.New("tenant must be your own, which is the default: the chain of " + tenant + " is acknowledged by the tenant " + auth.LegacyTenant + ".")
	}
	var body api.AuditAcknowledgementInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	if strings.TrimSpace(body.Reason) == "" || len(body.Reason) > wire.MaxReason {
		return fault.Invalid(fmt.Sprintf("must be 1 to %d bytes", wire.MaxReason), "body", "reason")
	}
	if a.Ledger.key == nil {
		return fault.AuditKeyMissing.New("This control plane has no signing key, so it cannot sign an acknowledgement: set AUDIT_SIGNING_KEY_FILE.")
	}
	shown, err := stand(ctx, a.Ledger.Store.Queries, tenant) // before verification, so that it excludes later changes
	if err != nil {
		return err
	}
	v, err := a.Ledger.Verify(ctx, tenant, 0, 0)
	if err != nil {
		return err
	}
	open := v.Memory.Open()
	if len(open) == 0 {
		return fault.AuditNothingOpen.New("Every failed verification of this chain is already acknowledged; see GET /audit/verify.")
	}
	if _, err := a.Ledger.lastNumber(tenant, shown, v.Memory); err != nil {
		return err
	}
	what := asked{Reason: body.Reason, Failures: open, Chain: extent{shown.end.LastSeq, shown.digest}}
	change := guarded.Change{ID: uuid.Must(uuid.NewV7()), Kind: guarded.AuditFailure, Target: tenant, Tenant: tenant}
	signature, err := chain.SignRequest(a.Ledger.key, requestOf(store.GuardedChange{ID: change.ID, Kind: change.Kind, Target: tenant, Tenant: tenant, RequestedBy: p.Name}, what))
	if err != nil {
		return err
	}
	change.New = signedAsk{what, signature}
	var waiting *store.GuardedChange
	var made chain.Acknowledgement
	if err := a.Ledger.Store.InTx(ctx, func(tx store.Tx) (err error) {
		if waiting, err = a.Guard.ProposeToOther(ctx, tx, p, change); err != nil || waiting != nil {
			return err
		}
		made, err = a.Ledger.acknowledge(ctx, tx, tenant, acceptance{what, p.Name, p.Name})
		return err
	}); err != nil {
		return err
	}
	if waiting != nil {
		return guarded.Accepted(c, *waiting)
	}
	return c.JSON(http.StatusOK, acknowledgementView(made))
}

// ApplyAcknowledgement carries out an acknowledgement that a second person has approved.
func (l *Ledger) ApplyAcknowledgement(ctx context.Context, tx store.Tx, change store.GuardedChange, by auth.Principal) error {
	var what signedAsk
	if err := json.Unmarshal(change.New, &what); err != nil {
		return fmt.Errorf("acknowledgement: %w", err)
	}
	keys, err := l.trustedKeys(ctx, tx.Queries)
	if err != nil {
		return err
	}
	if !keys.Asked(requestOf(change, what.asked), what.Signature) {
		return fault.AuditUnverified.New("The ledger has not signed this request: it was altered in the database, or comes from a former version or an untrusted key. Reject this change, and acknowledge the chain anew.")
	}
	_, err = l.acknowledge(ctx, tx, change.Target, acceptance{what.asked, change.RequestedBy, by.Name})
	return err
}

// acceptance is the chain state that two people accept.
type acceptance struct {
	asked
	requestedBy, by string
}

// acknowledge ends the failures: the chain is accepted as it is, and continues after every entry that ever existed.
// Nothing is appended meanwhile. The acknowledgement is an entry, and part of the remembered state.
func (l *Ledger) acknowledge(ctx context.Context, tx store.Tx, tenant string, what acceptance) (chain.Acknowledgement, error) {
	none := chain.Acknowledgement{}
	if l.key == nil {
		return none, fault.AuditKeyMissing.New("This control plane has no signing key, so it cannot sign an acknowledgement: approve it at a replica that has AUDIT_SIGNING_KEY_FILE.")
	}
	if _, err := tx.LockAuditWriters(ctx); err != nil {
		return none, err
	}
	if err := lockMemory(ctx, tx, tenant); err != nil {
		return none, err
	}
	keys, err := l.trustedKeys(ctx, tx.Queries)
	if err != nil {
		return none, err
	}
	known, err := l.recall(ctx, tx.Queries, keys, tenant)
	if err != nil {
		return none, err
	}
	ids := make([]string, len(what.Failures))
	for i, f := range what.Failures {
		ids[i] = f.ID
	}
	for _, f := range known.Open() {
		if !slices.Contains(ids, f.ID) {
			return none, fault.AuditUnverified.New("Another verification has failed since this change was requested: " + f.Fault().Error() + ". Reject this change, and acknowledge all of them.")
		}
	}
	if err := l.checkShown(ctx, tx, keys, chainExtent{tenant, what.Chain}); err != nil {
		return none, err
	}
	a, err := l.accept(ctx, tx, tenant, known)
	if err != nil {
		return none, err
	}
	a.Failures, a.Reason, a.RequestedBy, a.By = ids, what.Reason, what.requestedBy, what.by
	m := known.Memory
	for _, f := range what.Failures { // including one known only to its replica
		if !slices.ContainsFunc(m.Failures, func(have chain.Failure) bool { return have.ID == f.ID }) {
			m.Failures = append(slices.Clone(m.Failures), f)
		}
	}
	m.Acknowledgements = append(slices.Clone(m.Acknowledgements), a)
	if err := l.noteMemory(ctx, tx, keys, m); err != nil {
		return none, err
	}
	return a, tx.Emit(ctx, event.Audit(tenant, what.by, "audit.failures_acknowledged", "audit:"+tenant, event.OK, map[string]any{
		"failures": what.Failures, "reason": what.Reason, "requested_by": what.requestedBy, "seq": a.Seq, "hash": a.Hash, "digest": a.Digest,
	}))
}

// chainExtent is the extent of a tenant's chain.
type chainExtent struct {
	tenant string
	extent
}

// checkShown refuses a chain other than the one in the request: the entries of that time must be unchanged, and the
// ledger must have appended every later one, in sequence.
func (l *Ledger) checkShown(ctx context.Context, tx store.Tx, keys chain.Keys, was chainExtent) error {
	refuse := func(why string) error {
		return fault.AuditUnverified.New("The chain is not the one in the request: " + why + ". Reject this change, and acknowledge the chain as it is now.")
	}
	state, err := digestChain(ctx, tx.Queries, was.tenant, was.Seq)
	if err != nil {
		return err
	}
	if state.digest != was.Digest {
		return refuse(fmt.Sprintf("its entries up to %d have changed since", was.Seq))
	}
	keyed, err := l.keyedChains(ctx, tx.Queries, keys, was.tenant)
	if err != nil {
		return err
	}
	f, err := l.checkSince(ctx, tx, keyed[was.tenant], was)
	if err == nil && f != nil {
		return refuse(f.Error())
	}
	return err
}

// checkSince checks the entries after an extent. The first may follow any hash: the chain was already invalid before
// it.
func (l *Ledger) checkSince(ctx context.Context, tx store.Tx, keyed *keyedChain, was chainExtent) (*chain.Fault, error) {
	var walk *chain.Walk
	for after := was.Seq; ; {
		rows, err := tx.AuditPage(ctx, store.AuditPageParams{Tenant: was.tenant, After: after, UntilSeq: math.MaxInt64, MaxRows: pageRows})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if walk == nil {
				walk = &chain.Walk{Tenant: was.tenant, Next: r.Seq, Prev: r.PrevHash}
			}
			link := linkOf(r)
			if f := chain.First(walk.Step(link), keyed.check(link)); f != nil {
				return f, nil
			}
			after = r.Seq
		}
		if len(rows) < pageRows {
			return nil, nil
		}
	}
}

// accept describes the chain as it is, and continues it after everything known to have been there.
func (l *Ledger) accept(ctx context.Context, tx store.Tx, tenant string, known recollection) (chain.Acknowledgement, error) {
	a := chain.Acknowledgement{ID: uuid.NewString(), At: chain.Time(l.Now())}
	state, err := stand(ctx, tx.Queries, tenant)
	if err != nil {
		return a, err
	}
	if a.Seq, err = l.lastNumber(tenant, state, known.Memory); err != nil {
		return a, err
	}
	a.Hash, a.Digest = state.hash, state.digest
	return a, tx.PutAuditHead(ctx, store.PutAuditHeadParams{Tenant: tenant, Seq: a.Seq, Hash: a.Hash, Now: l.Now()})
}

func acknowledgementView(a chain.Acknowledgement) api.AuditAcknowledgement {
	return api.AuditAcknowledgement{
		Id: a.ID, Failures: a.Failures, Reason: a.Reason, RequestedBy: a.RequestedBy, AcknowledgedBy: a.By, At: a.At, Seq: a.Seq, Hash: a.Hash, Digest: a.Digest,
	}
}

// verdictView is the wire format of a verdict.
func verdictView(v Verdict) api.AuditVerdict {
	out := api.AuditVerdict{
		Verified: v.Verified(), Checked: v.Checked, Head: api.AuditHead{Seq: v.HeadSeq, Hash: v.Head}, VerifiedAt: v.At.UTC(), SignedSeq: v.SignedSeq,
		HighWater: api.AuditHead{Seq: v.Memory.High.Seq, Hash: v.Memory.High.Hash}, Memory: api.AuditVerdictMemory(v.State),
		Failures: []api.AuditFailure{}, Acknowledgements: []api.AuditAcknowledgement{},
	}
	if v.Memory.High.Seq == 0 {
		out.HighWater.Hash = chain.Genesis
	}
	if f := v.Fault; f != nil {
		reason := api.AuditVerdictReason(f.Reason)
		out.FirstBadSeq, out.Reason, out.Detail = &f.Seq, &reason, &f.Detail
	}
	for _, f := range v.Memory.Open() {
		out.Failures = append(out.Failures, api.AuditFailure{Id: f.ID, Seq: f.Seq, Reason: f.Reason, Detail: f.Detail, FoundAt: f.FoundAt})
	}
	for _, a := range v.Memory.Acknowledgements {
		out.Acknowledgements = append(out.Acknowledgements, acknowledgementView(a))
	}
	return out
}
