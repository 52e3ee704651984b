package promotion

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// RolledBack is the outcome under which a rollback is counted.
const RolledBack = "rolled_back"

// Rollback returns an alias to a version that held it before; an empty version is the
// previous holder. It fails if the alias has moved since the request arrived: otherwise
// the second of two concurrent rollbacks would undo the first. If the tracker does not
// answer, the move stays in state alias.Moving and the leader retries it.
func (s *Service) Rollback(ctx context.Context, who auth.Principal, model, name, version, reason string) (store.AliasMove, error) {
	var move store.AliasMove
	seen, err := s.Mover.Read(ctx, model)
	if err != nil {
		return move, err
	}
	err = s.Mover.Hold(ctx, model, func(ctx context.Context, holders alias.Holders) error {
		now := holders[name]
		if now != seen[name] {
			return fault.AliasMoved.New(fmt.Sprintf("%s of %s went from version %s to %s while this rollback waited; review it and decide again.",
				name, model, heldBy(seen[name]), heldBy(now))).With(map[string]any{"alias": name, "version": wire.OptionalText(now)})
		}
		if version != "" && version == now {
			return fault.AliasMoved.New(fmt.Sprintf("%s of %s holds version %s already.", name, model, now)).
				With(map[string]any{"alias": name, "version": now})
		}
		held, err := s.Store.FormerHolder(ctx, store.FormerHolderParams{ModelID: model, Alias: name, Present: now, Version: wire.OptionalText(version)})
		switch {
		case store.None(err) && version == "":
			return fault.NoPreviousVersion.New(fmt.Sprintf("No other version has held %s of %s; GET /alias-history?model=%s lists who did.", name, model, model))
		case store.None(err):
			return fault.NoPreviousVersion.New(fmt.Sprintf("Version %s has never held %s of %s; GET /alias-history?model=%s lists who did.", version, name, model, model))
		case err != nil:
			return err
		}
		dummy, reasons, err := s.servable(ctx, model, name, *held.Version)
		if err != nil {
			return err
		}
		if name == alias.Production && held.Digest == nil && s.Rules.Duties() {
			reasons = append(reasons, fmt.Sprintf("no digest was admitted with version %s, so its files cannot be compared with those that served; move Staging to it and request it with POST /promotions, which evaluates them", *held.Version))
		}
		if len(reasons) > 0 {
			return s.refuseRollback(ctx, who, model, name, *held.Version, reasons)
		}
		if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
			if move, err = s.Mover.Plan(ctx, tx, alias.Intent{
				Model: model, Alias: name, Version: *held.Version, Previous: now, Via: alias.ViaRollback, Tenant: who.Tenant, Actor: who.Name,
				Dummy: dummy, Reason: reason, Digest: wire.Deref(held.Digest), // of the files admitted then, not of those there now
			}); err != nil {
				return err
			}
			return tx.Emit(ctx, event.Audit(who.Tenant, who.Name, "rollback.decided", event.Model(model), event.OK, map[string]any{
				"alias": name, "version": move.Version, "previous_version": move.PreviousVersion, "reason": reason,
			}))
		}); err != nil {
			return err
		}
		if _, err := s.Mover.Carry(ctx, move); err != nil {
			return err
		}
		// The move may have used up the request's time.
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		move, err = s.Store.GetAliasMove(look, move.ID)
		return err
	})
	if err == nil && move.State == alias.Failed {
		return move, fault.TrackerRejected.New("The alias was not moved: " + wire.Deref(move.Error) + ".").With(map[string]any{"id": move.ID})
	}
	return move, err
}

func heldBy(version string) string {
	if version == "" {
		return "none"
	}
	return version
}

// servable returns the reason why a version must not get the alias even though it held it before: the rules that no
// policy overrides.
func (s *Service) servable(ctx context.Context, model, name, version string) (dummy bool, reasons []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	mv, err := Version(ctx, s.Gate.Tracker, s.Gate.Registry.TrackerName(model), version)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return false, []string{fmt.Sprintf("the tracker has no version %s of %s any more", version, model)}, nil
	case err != nil:
		return false, nil, alias.Problem(err)
	}
	run, err := s.Gate.run(ctx, mv)
	if err != nil {
		return false, nil, err
	}
	if mv.Status != "" && mv.Status != "READY" {
		reasons = append(reasons, fmt.Sprintf("version %s is not ready (%s)", version, strings.ToLower(mv.Status)))
	}
	if dummy = alias.Dummy(mv, run); dummy && name != alias.Staging {
		reasons = append(reasons, "version "+version+" is a dummy; it goes no further than Staging")
	}
	if Generated(mv, run) && !s.Gate.GeneratedAllowed(name) {
		reasons = append(reasons, fmt.Sprintf("version %s was trained on generated data, which does not reach %s here", version, name))
	}
	return dummy, reasons, nil
}

func (s *Service) refuseRollback(ctx context.Context, who auth.Principal, model, name, version string, reasons []string) error {
	why := fault.RollbackDenied.New(strings.Join(reasons, "; ") + ".").With(map[string]any{"alias": name, "version": version, "reasons": reasons})
	return errors.Join(why, s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Audit(who.Tenant, who.Name, "rollback.denied", event.Model(model), event.Denied, map[string]any{
			"alias": name, "version": version, "reasons": reasons,
		}))
	}))
}

// rolledBack publishes that an alias was rolled back, in the transaction that records it.
func (s *Settler) rolledBack(ctx context.Context, tx store.Tx, m store.AliasMove) error {
	s.count(RolledBack)
	return tx.Emit(ctx, event.Of(event.PlatformTenant, m.Actor, "deploy", "rolled_back", m.ID.String(), event.Promotion{
		Model: m.ModelID, Version: m.Version, From: m.Alias, To: m.Alias, Reasons: []string{wire.Deref(m.Reason)},
	}))
}
