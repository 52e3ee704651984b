package settings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// scope names this configuration in event.config_changed.
const scope = "dashboard"

// change is one key of a PUT.
type change struct {
	definition
	value *string // nil clears
}

// parseChanges checks a PUT's body; the error names every fault. The changes are sorted by key.
func (s *Settings) parseChanges(body map[string]json.RawMessage) ([]change, error) {
	var faults []problem.Field
	var out []change
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(body)) {
		refuse := func(msg string) {
			faults = append(faults, problem.Field{Loc: []string{"body", key}, Msg: msg})
		}
		d, known := define(key)
		var value *string
		switch {
		case !known:
			refuse("is no configuration key; GET /api/config/keys lists them")
			continue
		case seen[d.key]:
			refuse("is there twice: case does not count in " + d.key)
			continue
		case json.Unmarshal(body[key], &value) != nil:
			refuse("must be a string, or null to clear it")
			continue
		}
		seen[d.key] = true
		if value != nil {
			if msg := d.checkValue(*value, s.hosts); msg != "" {
				refuse(msg)
				continue
			}
		}
		out = append(out, change{d, value})
	}
	return out, input.InvalidFields(faults...)
}

// apply stores all changes or none, with their audit facts and the event, and returns what then holds. ifMatch is
// the header of the same name; empty accepts any state.
func (s *Settings) apply(ctx context.Context, who caller.Caller, changes []change, ifMatch string) ([]store.ConfigValue, error) {
	var rows []store.ConfigValue
	err := postgres.InTx(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if err := q.LockConfig(ctx); err != nil {
			return err
		}
		before, err := q.ListConfigValues(ctx)
		if err != nil {
			return err
		}
		if ifMatch != "" && !matches(ifMatch, etag(s.list(before))) {
			return fault.ConfigChanged.New("The configuration has changed since it was read; read it again, then repeat the change.")
		}
		var changed []string
		var events []outbox.Event
		for _, c := range changes {
			e, err := s.write(ctx, q, who, before, c)
			if err != nil {
				return err
			}
			if e != nil {
				changed, events = append(changed, c.key), append(events, *e)
			}
		}
		if len(changed) > 0 {
			events = append(events, changedEvent(who.Subject, changed))
		}
		if err := announce.Insert(ctx, tx, events...); err != nil {
			return err
		}
		rows, err = q.ListConfigValues(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	// This replica answers by the new values at once, the others with their next reading.
	if err := s.Load(context.WithoutCancel(ctx)); err != nil {
		s.cfg.Log.WarnContext(ctx, "configuration stored but not yet read back", "err", err)
	}
	return rows, nil
}

func changedEvent(actor string, keys []string) outbox.Event {
	return outbox.Event{
		Namespace: "event", Name: "config_changed", SubjectID: scope, Actor: actor,
		Payload: announce.ConfigChanged{Scope: scope, Keys: keys},
	}
}

// write stores one change and returns its audit fact; nil if nothing changes. A secret is written even if it is the
// same: the fact records that it was set, and does not confirm a guess.
func (s *Settings) write(ctx context.Context, q *store.Queries, who caller.Caller, before []store.ConfigValue, c change) (*outbox.Event, error) {
	var old any // the stored plain value, or null
	stored := false
	for _, r := range before {
		if r.Key == c.key {
			old, stored = r.Value, true
		}
	}
	action := "config.set"
	details := map[string]any{"key": c.key, "role": string(who.Role)}
	switch {
	case c.value == nil && !stored:
		return nil, nil
	case c.value == nil:
		action = "config.clear"
		if err := q.DeleteConfigValue(ctx, c.key); err != nil {
			return nil, err
		}
	case !c.isSecret() && stored && old == *c.value:
		return nil, nil
	default:
		value := *c.value
		if c.isSecret() {
			var err error
			if value, err = s.cfg.Keys.Seal(c.key, value); err != nil {
				return nil, fmt.Errorf("seal %s: %w", c.key, err)
			}
		}
		if err := q.PutConfigValue(ctx, store.PutConfigValueParams{Key: c.key, Value: value, Secret: c.isSecret(), UpdatedBy: who.Subject}); err != nil {
			return nil, err
		}
	}
	if c.isSecret() {
		details["secret"] = true
	} else {
		details["old"], details["new"] = old, c.value
	}
	fact := announce.Audit(ctx, who, action, "config:"+c.key, announce.OK, details)
	return &fact, nil
}

// RotateSecrets seals every stored secret by the first configured key and returns how many it rewrote; more rewrites
// those of other packages in the same transaction and names them. If one cannot be opened, nothing is rewritten and the
// error names it.
func (s *Settings) RotateSecrets(ctx context.Context, more ...func(context.Context, pgx.Tx) ([]string, error)) (int, error) {
	rotated := 0
	err := postgres.InTx(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		rotated = 0
		q := store.New(tx)
		if err := q.LockConfig(ctx); err != nil {
			return err
		}
		rows, err := q.ListConfigValues(ctx)
		if err != nil {
			return err
		}
		var keys []string
		for _, r := range rows {
			if !r.Secret || s.cfg.Keys.Current(r.Value) {
				continue
			}
			value, err := s.cfg.Keys.Open(r.Key, r.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Key, err)
			}
			sealed, err := s.cfg.Keys.Seal(r.Key, value)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Key, err)
			}
			if err := q.ReplaceSealedValue(ctx, store.ReplaceSealedValueParams{Key: r.Key, Value: sealed}); err != nil {
				return err
			}
			keys = append(keys, r.Key)
		}
		for _, rotate := range more {
			names, err := rotate(ctx, tx)
			if err != nil {
				return err
			}
			keys = append(keys, names...)
		}
		rotated = len(keys)
		if rotated == 0 {
			return nil
		}
		return announce.Insert(ctx, tx, outbox.Audit(outbox.AuditFact{
			Actor: "system:rotate-secrets", Action: "config.rotate", Target: "config", Outcome: announce.OK, Source: announce.Source,
			Details: map[string]any{"keys": keys},
		}))
	})
	if err != nil {
		return 0, fmt.Errorf("rotate stored secrets, none was rewritten: %w", err)
	}
	return rotated, nil
}

// etag identifies a state of the configuration. Only the time of a secret's change is included, so that rotation,
// which changes nothing visible, is no change.
func etag(entries []entry) string {
	h := sha256.New()
	for _, e := range entries {
		at := ""
		if e.at != nil {
			at = e.at.String()
		}
		_, _ = io.WriteString(h, strings.Join([]string{e.key, e.value, string(e.source), at}, "\x00")+"\x01")
	}
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// matches compares the header If-Match with an ETag, strongly.
func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		if c := strings.TrimSpace(candidate); c == "*" || c == tag {
			return true
		}
	}
	return false
}
