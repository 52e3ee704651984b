package alias

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/freshness"
	"github.com/mlp-platform/platform/services/control-plane/internal/lock"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// The aliases, in promotion order.
const (
	Staging    = "Staging"
	Canary     = "Canary"
	Production = "Production"
)

// The ways an alias can move.
const (
	ViaPromotion = "promotion"
	ViaRollback  = "rollback"
	ViaLadder    = "ladder"
	ViaExternal  = "external"
)

// The states of a planned move.
const (
	Moving = "moving"
	Done   = "moved"
	Failed = "failed"
)

const (
	holdTTL     = 15 * time.Second // of the lease, which is renewed while it is held
	holdFor     = 60 * time.Second // limit for one whole move
	holdWait    = 5 * time.Second  // for another replica's move of the same model
	readTimeout = 10 * time.Second
	moveTimeout = 10 * time.Second
	// ownFor keeps the leader away from a move that another process is about to make.
	ownFor = 20 * time.Second
	// attemptsMax attempts, with waits doubling from 5 s to 5 min, take over an hour.
	attemptsMax = 20
)

// Settler completes the purpose of a move in the transaction that ends the move.
type Settler interface {
	Moved(ctx context.Context, tx store.Tx, m store.AliasMove) error
	MoveFailed(ctx context.Context, tx store.Tx, m store.AliasMove, reason string) error
}

// Parts are the dependencies of a Mover.
type Parts struct {
	Store    *store.Store
	Tracker  *tracker.Client
	Registry *registry.Registry
	Locks    *lock.Locker
	Log      *slog.Logger
	Now      func() time.Time
	Settler  Settler
	// Outside requests approval of moves past the gate.
	Outside Requester
	// Enforced reports whether they need it now; otherwise they are followed.
	Enforced func() bool
	// External is called after a move by others was recorded.
	External func()
}

// Mover moves aliases.
type Mover struct {
	Parts

	digested map[string]bool // versions of external models with a known digest; used by the single watcher only
}

// NewMover returns a Mover, or an error for a missing part.
func NewMover(p Parts) (*Mover, error) {
	if err := service.RequireParts("alias", p); err != nil {
		return nil, err
	}
	return &Mover{Parts: p}, nil
}

// Canonical returns the platform's spelling of an alias given in any case.
func Canonical(name string) (string, bool) {
	for _, a := range modelrepo.Aliases {
		if strings.EqualFold(a, name) {
			return a, true
		}
	}
	return "", false
}

// Holders maps the aliases of one model to the versions that hold them now.
type Holders map[string]string

// Read reads the holders of the model's aliases from the tracker. A model that it does
// not know has none.
func (m *Mover) Read(ctx context.Context, model string) (Holders, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rm, err := m.Tracker.GetRegisteredModel(ctx, m.Registry.TrackerName(model))
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return Holders{}, nil
	case err != nil:
		return nil, Problem(err)
	}
	return knownAliases(rm.Aliases), nil
}

// knownAliases selects the aliases that the platform knows.
func knownAliases(all map[string]string) Holders {
	h := Holders{}
	for _, a := range modelrepo.Aliases {
		if v, ok := all[a]; ok {
			h[a] = v
		}
	}
	return h
}

// Problem converts a tracker error into a problem for callers.
func Problem(err error) error {
	var refused *tracker.Error
	switch {
	case errors.Is(err, tracker.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return fault.TrackerUnreachable.New("The tracker does not answer; nothing was changed. Try again later.").WithCause(err)
	case errors.As(err, &refused) && refused.Status < 500:
		return fault.TrackerRejected.New("The tracker refused: " + refused.Message).WithCause(err)
	}
	return fault.TrackerUnreachable.New("The tracker's answer is unusable; nothing was changed.").WithCause(err)
}

// Hold runs fn with the current holders under an exclusive lock on the model's aliases. Moves by others since the last
// check are recorded first. It continues when ctx is cancelled, since a disconnected caller must not leave a move half
// done; the context of fn ends when the lease is lost.
func (m *Mover) Hold(ctx context.Context, model string, fn func(context.Context, Holders) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdFor)
	defer cancel()
	held, unlock, err := m.lock(ctx, model)
	if err != nil {
		return err
	}
	defer unlock()
	holders, err := m.Read(held, model)
	if err != nil {
		return err
	}
	if err := m.reconcile(held, model, holders); err != nil {
		return err
	}
	return fn(held, holders)
}

func (m *Mover) lock(ctx context.Context, model string) (held context.Context, unlock func(), err error) {
	deadline := time.Now().Add(holdWait)
	for {
		held, unlock, ok, err := m.Locks.Keep(ctx, "alias:"+model, holdTTL)
		switch {
		case err != nil:
			return nil, nil, fault.CoordinatorUnavailable.New("The coordinator that keeps two replicas from moving one alias does not answer; try again later.").
				WithCause(err).After(5 * time.Second)
		case ok:
			return held, unlock, nil
		case time.Now().After(deadline):
			return nil, nil, fault.AliasBusy.New("Another request is moving an alias of " + model + " right now; try again in a moment.").After(time.Second)
		}
		t := time.NewTimer(100*time.Millisecond + rand.N(100*time.Millisecond))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, nil, ctx.Err()
		case <-t.C:
		}
	}
}

// Intent is a move to make.
type Intent struct {
	Model, Alias, Version string
	Previous              string // current holder of the alias; empty if none
	Via                   string
	PromotionID           *uuid.UUID
	Tenant, Actor         string
	// Dummy versions reach Staging at most, regardless of the caller.
	Dummy  bool
	Reason string // of a rollback
	Digest string // of the evaluated files; empty if none was given
}

// ErrDummy refuses a dummy version above Staging.
var ErrDummy = errors.New("a dummy version goes no further than Staging")

// Plan writes the intent in the transaction that decides the move. Call it, and then
// Carry, within Hold.
func (m *Mover) Plan(ctx context.Context, tx store.Tx, i Intent) (store.AliasMove, error) {
	if i.Dummy && i.Alias != Staging {
		return store.AliasMove{}, ErrDummy
	}
	move, err := tx.InsertAliasMove(ctx, store.InsertAliasMoveParams{
		ID: uuid.Must(uuid.NewV7()), ModelID: i.Model, Alias: i.Alias, Version: i.Version, PreviousVersion: wire.OptionalText(i.Previous),
		Via: i.Via, PromotionID: i.PromotionID, Tenant: i.Tenant, Actor: i.Actor, RequestID: wire.OptionalText(service.RequestID(ctx)),
		Traceparent:  wire.OptionalText(service.Traceparent(ctx)),
		LeaseSeconds: ownFor.Seconds(), Reason: wire.OptionalText(i.Reason), Digest: wire.OptionalText(i.Digest),
	})
	if postgres.IsUnique(err, "alias_moves_one") {
		return move, fault.AliasBusy.New(fmt.Sprintf("An earlier move of %s of %s has not reached the tracker yet; it is repeated until it does.", i.Alias, i.Model)).After(5 * time.Second)
	}
	return move, err
}

// Carry executes a planned move. If the tracker does not answer, the move stays planned,
// done is false, and the leader retries it. The error is the store's.
func (m *Mover) Carry(ctx context.Context, move store.AliasMove) (done bool, err error) {
	setCtx, cancelSet := context.WithTimeout(ctx, moveTimeout)
	defer cancelSet()
	replaced, err := m.replacedFiles(setCtx, move)
	if replaced != "" {
		return true, m.fail(ctx, move, replaced)
	}
	if err == nil {
		err = m.Tracker.SetAlias(setCtx, m.Registry.TrackerName(move.ModelID), move.Alias, move.Version)
	}
	var refused *tracker.Error
	switch {
	case err == nil:
		return true, m.finish(ctx, move)
	case errors.As(err, &refused) && refused.Status < 500 && !errors.Is(err, tracker.ErrUnavailable):
		return true, m.fail(ctx, move, "the tracker refused: "+refused.Message)
	case move.Attempts+1 >= attemptsMax:
		return true, m.fail(ctx, move, fmt.Sprintf("the tracker did not take the move in %d attempts: %v", attemptsMax, err))
	}
	text := err.Error()
	m.Log.WarnContext(ctx, "alias not moved yet", slog.String("model", move.ModelID), slog.String("alias", move.Alias), slog.Any("err", err))
	wait := min(5*time.Second<<min(move.Attempts, 6), 5*time.Minute)
	return false, m.Store.DelayAliasMove(ctx, store.DelayAliasMoveParams{ID: move.ID, Error: &text, Seconds: wait.Seconds()})
}

// replacedFiles returns a reason if the version's files are no longer those that were approved, or empty if they are: a
// move may wait an hour for the tracker.
func (m *Mover) replacedFiles(ctx context.Context, move store.AliasMove) (string, error) {
	if move.Via != ViaPromotion || move.Digest == nil {
		return "", nil
	}
	mv, err := m.Tracker.GetModelVersion(ctx, m.Registry.TrackerName(move.ModelID), move.Version)
	if err != nil {
		return "", err
	}
	if now := mv.Tags[TagDigest]; now != *move.Digest {
		return fmt.Sprintf("the files of version %s changed since they were approved: their digest was %s and is %q now", move.Version, *move.Digest, now), nil
	}
	return "", nil
}

// finish records a move that the tracker has carried out.
func (m *Mover) finish(ctx context.Context, move store.AliasMove) error {
	commit, err := m.trainedFrom(ctx, move.ModelID, move.Alias, move.Version)
	if err != nil {
		return err
	}
	return m.Store.InTx(ctx, func(tx store.Tx) error {
		n, err := tx.FinishAliasMove(ctx, store.FinishAliasMoveParams{ID: move.ID, State: Done})
		if err != nil || n == 0 { // already recorded by another process
			return err
		}
		if err := m.record(ctx, tx, change{
			model: move.ModelID, alias: move.Alias, version: &move.Version, previous: move.PreviousVersion,
			actor: move.Actor, tenant: move.Tenant, via: move.Via, promotion: move.PromotionID, digest: move.Digest,
			commit: commit,
		}); err != nil {
			return err
		}
		return m.Settler.Moved(ctx, tx, move)
	})
}

// fail abandons a planned move.
func (m *Mover) fail(ctx context.Context, move store.AliasMove, reason string) error {
	return m.Store.InTx(ctx, func(tx store.Tx) error {
		n, err := tx.FinishAliasMove(ctx, store.FinishAliasMoveParams{ID: move.ID, State: Failed, Error: &reason})
		if err != nil || n == 0 {
			return err
		}
		if err := tx.Emit(ctx, event.Audit(move.Tenant, move.Actor, "alias.moved", event.Model(move.ModelID), event.Failed, map[string]any{
			"alias": move.Alias, "version": move.Version, "previous_version": move.PreviousVersion, "via": move.Via, "reason": reason,
		})); err != nil {
			return err
		}
		return m.Settler.MoveFailed(ctx, tx, move, reason)
	})
}

type change struct {
	model, alias      string
	version, previous *string
	actor, tenant     string
	via               string
	promotion         *uuid.UUID
	digest            *string
	commit            string // that the version was trained from, if that counts for the model's freshness
}

// record writes the history, event and audit fact of one change.
func (m *Mover) record(ctx context.Context, tx store.Tx, c change) error {
	now := m.Now()
	if err := tx.CloseHolder(ctx, store.CloseHolderParams{ModelID: c.model, Alias: c.alias, Now: &now}); err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	if err := tx.InsertHolder(ctx, store.InsertHolderParams{
		ID: id, ModelID: c.model, Alias: c.alias, Version: c.version, PreviousVersion: c.previous, Now: now,
		Actor: c.actor, Via: c.via, PromotionID: c.promotion, Digest: c.digest,
	}); err != nil {
		return err
	}
	details := map[string]any{"alias": c.alias, "version": c.version, "previous_version": c.previous, "via": c.via}
	if c.promotion != nil {
		details["promotion_id"] = *c.promotion
	}
	if c.commit != "" {
		if err := freshness.Trained(ctx, tx, freshness.Training{
			Model: c.model, Version: *c.version, Commit: c.commit, Head: m.Registry.Head(), Actor: c.actor,
		}, now); err != nil {
			return err
		}
	}
	return tx.Emit(ctx,
		event.Of(event.PlatformTenant, c.actor, "deploy", "alias_changed", id.String(), event.AliasChanged{
			Model: c.model, Alias: c.alias, Version: c.version, PreviousVersion: c.previous, Via: c.via, Digest: c.digest,
		}),
		event.Audit(c.tenant, c.actor, "alias.moved", event.Model(c.model), event.OK, details),
	)
}
