// Package push records new heads of the model repository and applies their
// effects: models become stale and, if configured, training is requested or
// started and a CI pipeline is triggered. Webhooks and the poller both use it.
//
// The push, the models it makes stale and the approvals it requests are one
// transaction. External calls, the dispatches and the pipeline, are recorded in
// that transaction and made after it; if the process dies in between, the leader
// makes them.
package push

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/retrain"
	"github.com/mlp-platform/platform/services/control-plane/internal/separation"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Sources of a push.
const (
	Webhook = "webhook"
	Poll    = "poll"
)

// Reasons why a push is not recorded.
const (
	NotWatched        = "branch not watched"
	NoCommit          = "no commit sha"
	DuplicateDelivery = "duplicate delivery"
)

// Limits of the stored texts of a push, in bytes; the message has that of approvals.
const (
	maxMessage = 64 << 10
	maxPath    = 4096
	maxName    = 255
)

// system is the actor for pushes, which have no caller.
var system = auth.Principal{Name: "system:modelrepo", Tenant: "default"}

// Push is a branch whose head is now CommitSHA.
type Push struct {
	// CommitSHA is the new head; empty, or all zeros, if the branch was deleted.
	CommitSHA string
	// Branch is its name without refs/heads/.
	Branch   string
	PushedBy string
	// Pusher is the account that the forge vouches for; PushedBy is only its display name.
	Pusher identity.Identity
	// AskedBy is the principal who requested the poll that found it; empty: no one.
	AskedBy string
	// Source is Webhook or Poll.
	Source string
	// DeliveryID identifies repeated deliveries of a webhook; empty: unknown.
	DeliveryID string
	// Message is the head's message.
	Message string
	// Files are the files that changed since the previous head, if FilesKnown; relative to the repository.
	Files      []string
	FilesKnown bool
}

// Outcome holds the effects of a push.
type Outcome struct {
	// EventID is the id of the record, or of the first one for a repeated delivery; 0 if nothing was recorded.
	EventID int64
	// Duplicate means that the commit was already the head.
	Duplicate bool
	// Skipped is the reason why nothing was done; empty otherwise.
	Skipped string
	// MarkedStale are the models that are stale because of the push, and
	// RetrainTriggered those whose training was dispatched.
	MarkedStale, RetrainTriggered []string
	ApprovalsCreated              []uuid.UUID
	CITriggered                   bool
}

// Parts are the dependencies of a Service.
type Parts struct {
	Store     *store.Store
	Config    *repoconfig.Service
	Registry  *registry.Registry
	Approvals *approval.Service
	Retrain   *retrain.API
	// Pipeline is triggered by new heads; nil: there is none.
	Pipeline *Pipeline `part:"optional"`
	// People returns the map from forge accounts to principals.
	People func() identity.Map
	// OnHead is called after a new head was recorded.
	OnHead func()
	// Keep is how long pushes are kept after their last use; 0: for ever.
	Keep time.Duration `part:"optional"`
	Now  func() time.Time
	Log  *slog.Logger
}

// Service records pushes. It is safe for concurrent use.
type Service struct{ Parts }

// New returns a Service, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("push", p); err != nil {
		return nil, err
	}
	return &Service{p}, nil
}

// Record stores the push and applies its effects. It finishes even if ctx is
// cancelled, since forges disconnect early. An error means that nothing was recorded.
func (s *Service) Record(ctx context.Context, p Push) (Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := s.Approvals.ExpireDue(ctx); err != nil {
		return Outcome{}, err
	}
	p = sanitizePush(p)
	var out Outcome
	var row store.Push
	var noted []approval.Noted // of each owner
	recorded := false
	if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		out, noted = Outcome{}, nil
		row, recorded, err = s.record(ctx, tx, p, &out, &noted)
		return err
	}); err != nil {
		return Outcome{}, err
	}
	if !recorded {
		return out, nil
	}
	for _, n := range noted {
		s.Approvals.Counted(n)
	}
	if !out.Duplicate {
		s.OnHead()
	}
	if row.WorkUntil != nil && !out.Duplicate {
		out.RetrainTriggered, out.CITriggered = s.work(ctx, row)
	}
	return out, nil
}

// recordTimeout limits a push including its effects.
const recordTimeout = 45 * time.Second

// record writes the push; recorded is false if there is nothing to write.
func (s *Service) record(ctx context.Context, tx store.Tx, p Push, out *Outcome, noted *[]approval.Noted) (row store.Push, recorded bool, err error) {
	if err := freshness.LockPushes(ctx, tx); err != nil {
		return row, false, err
	}
	cfg, err := s.Config.Read(ctx, tx.Queries)
	if err != nil {
		return row, false, err
	}
	last, wanted, err := screenPush(ctx, tx, p, cfg.WatchBranch, out)
	if err != nil || !wanted {
		return row, false, err
	}
	repo := s.Registry.Repo()
	all := repo.Names()
	touched, touchedAll := all, !p.FilesKnown
	if p.FilesKnown {
		touched = repo.Touched(p.Files)
	}
	if out.Duplicate { // the changes of the head were reported the first time
		touched, touchedAll = last.Touched, last.TouchedAll
	}
	stale := touched
	if cfg.StaleScope == repoconfig.All || touchedAll {
		stale = all
	}
	now := s.Now()
	if out.MarkedStale, err = freshness.Pushed(ctx, tx, stale, p.CommitSHA, now); err != nil {
		return row, false, err
	}
	add := store.InsertPushParams{
		CommitSha: p.CommitSHA, Branch: p.Branch, PushedBy: p.PushedBy, Source: p.Source, DeliveryID: wire.OptionalText(p.DeliveryID),
		Touched: orEmpty(touched), TouchedAll: touchedAll, Now: now,
	}
	// The author named in the commit is ignored: anyone can write any name there.
	person, known := s.People().Principal(p.Pusher)
	add.Requesters, add.PersonUnknown = separation.MergeNames([]string{person, p.AskedBy}), !known
	// A known head has had its effect: records that a person has rejected since must not come back.
	retrain := cfg.AutoRetrain && !out.Duplicate
	add.Dispatch = retrain && cfg.Gate == repoconfig.Direct && len(touched) > 0
	add.TriggerCi = s.Pipeline != nil && !out.Duplicate
	if add.Dispatch || add.TriggerCi {
		until := now.Add(workLease)
		add.WorkUntil = &until
	}
	if row, err = putPush(ctx, tx, add, out.Duplicate, last); err != nil {
		return row, false, err
	}
	out.EventID = row.ID
	if p.DeliveryID != "" {
		if err := tx.InsertDelivery(ctx, store.InsertDeliveryParams{DeliveryID: p.DeliveryID, PushID: row.ID, Now: now}); err != nil {
			return row, false, err
		}
	}
	if retrain && cfg.Gate == repoconfig.Approval {
		models := slices.DeleteFunc(slices.Clone(touched), func(m string) bool { return !slices.Contains(out.MarkedStale, m) })
		for owner, models := range s.byOwner(models) {
			n, err := s.Approvals.NoteIn(ctx, tx, auth.Principal{Name: system.Name, Tenant: owner}, approval.Notice{
				Models: models, CommitSHA: p.CommitSHA, CommitMsg: p.Message, ChangedFiles: p.Files[:min(len(p.Files), approval.MaxFiles)], Origin: "modelrepo",
				RequestedBy: person,
			})
			if err != nil {
				return row, false, err
			}
			*noted, out.ApprovalsCreated = append(*noted, n), append(out.ApprovalsCreated, n.Created...)
		}
	}
	return row, true, tx.Emit(ctx,
		event.Of(event.PlatformTenant, system.Name, "event", "push", p.CommitSHA,
			event.Push{EventID: row.ID, CommitSHA: p.CommitSHA, Branch: p.Branch, Source: p.Source}),
		event.Audit(event.PlatformTenant, system.Name, "modelrepo.pushed", "modelrepo:"+p.Branch, event.OK, map[string]any{
			"event_id": row.ID, "commit_sha": p.CommitSHA, "source": p.Source, "pushed_by": p.PushedBy, "delivery_id": p.DeliveryID,
			"duplicate": out.Duplicate, "marked_stale": orEmpty(out.MarkedStale), "touched": row.Touched,
			"files_known": !touchedAll, "approvals": len(out.ApprovalsCreated), "requesters": add.Requesters, "person_unknown": add.PersonUnknown, "account": p.Pusher.String(),
		}),
	)
}

// byOwner groups models by the tenant that they belong to: the records that a push requests are that tenant's.
func (s *Service) byOwner(models []string) map[string][]string {
	out := map[string][]string{}
	for _, id := range models {
		if m, ok := s.Registry.Find(id); ok {
			out[m.Owner()] = append(out[m.Owner()], id)
		}
	}
	return out
}

// putPush keeps one record per commit and branch, the newest, however many deliveries report it. A known head stays
// where it is; a former one that the branch was reset to becomes the newest.
func putPush(ctx context.Context, tx store.Tx, add store.InsertPushParams, known bool, last store.Push) (store.Push, error) {
	if known {
		return tx.JoinPush(ctx, store.JoinPushParams{ID: last.ID, Requesters: separation.MergeNames(last.Requesters, add.Requesters), PersonUnknown: add.PersonUnknown})
	}
	old, err := tx.LockPush(ctx, store.LockPushParams{CommitSha: add.CommitSha, Branch: add.Branch})
	if store.None(err) {
		return tx.InsertPush(ctx, add)
	}
	if err != nil {
		return store.Push{}, err
	}
	add.Requesters, add.PersonUnknown = separation.MergeNames(old.Requesters, add.Requesters), add.PersonUnknown || old.PersonUnknown
	add.TouchedAll = add.TouchedAll || old.TouchedAll
	for _, m := range old.Touched {
		if !slices.Contains(add.Touched, m) {
			add.Touched = append(slices.Clone(add.Touched), m)
		}
	}
	if err := tx.RetirePush(ctx, old.ID); err != nil {
		return store.Push{}, err
	}
	row, err := tx.InsertPush(ctx, add)
	if err != nil {
		return row, err
	}
	return row, tx.MovePush(ctx, store.MovePushParams{FromID: old.ID, ToID: row.ID})
}

// screenPush sets in out the reason why a push is skipped, or that it repeats the last head; wanted is false if nothing
// is to be recorded.
func screenPush(ctx context.Context, tx store.Tx, p Push, watched string, out *Outcome) (last store.Push, wanted bool, err error) {
	switch {
	case p.Branch != watched:
		out.Skipped = NotWatched
		return last, false, nil
	case strings.Trim(p.CommitSHA, "0") == "":
		out.Skipped = NoCommit
		return last, false, nil
	}
	if p.DeliveryID != "" {
		id, err := tx.FindDelivery(ctx, p.DeliveryID)
		switch {
		case err == nil:
			out.Skipped, out.EventID = DuplicateDelivery, id
			return last, false, nil
		case !store.None(err):
			return last, false, err
		}
	}
	last, err = tx.LastPush(ctx)
	if err != nil && !store.None(err) {
		return last, false, err
	}
	out.Duplicate = err == nil && last.CommitSha == p.CommitSHA && last.Branch == p.Branch
	if out.Duplicate && p.Source == Poll {
		out.EventID = last.ID
		return last, false, nil
	}
	return last, true, nil
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// sanitizePush makes the texts of a forge or git storable: git allows any bytes in names
// and messages. Files beyond those shown in an approval are still evaluated.
func sanitizePush(p Push) Push {
	p.CommitSHA, p.DeliveryID = wire.TruncateText(p.CommitSHA, maxName), wire.TruncateText(p.DeliveryID, maxName)
	p.PushedBy, p.Message = wire.TruncateText(p.PushedBy, maxName), wire.TruncateText(p.Message, maxMessage)
	files := make([]string, 0, len(p.Files))
	seen := make(map[string]bool, len(p.Files))
	for _, f := range p.Files {
		if f = wire.TruncateText(f, maxPath); f != "" && !seen[f] {
			seen[f] = true
			files = append(files, f)
		}
	}
	p.Files = files
	return p
}
