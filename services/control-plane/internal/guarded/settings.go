package guarded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Names of settings of the environment.
const (
	Separation   = "separation_of_duties"
	ApprovalMode = "approval_mode_default"
	Generated    = "allow_generated_production"
	DriftGate    = "auto_retrain_gate"
	Identities   = "modelrepo_identities"
	// Credential and Issuer are name prefixes of settings: the scopes of a principal, and those an issuer may delegate.
	Credential = "credential:"
	Issuer     = "issuer:"
)

// Enforce is the value of Separation under which changes need a second person.
const Enforce = "enforce"

// Environment is a setting as given by the environment.
type Environment struct {
	Name  string
	Value any // a string, a bool or a list of strings
}

// environment is the principal of settings changed by the environment: the person is unknown.
var environment = auth.Principal{Name: "system:environment", Tenant: event.PlatformTenant}

// followEvery is how soon a replica sees a setting that another one put into force.
const followEvery = 500 * time.Millisecond

// loosens reports whether a setting allows more than before. A nil old means that there was none.
func loosens(name string, old, next json.RawMessage) bool {
	is := func(raw json.RawMessage, text string) bool { return sameJSON(raw, json.RawMessage(text)) }
	switch {
	case name == Separation:
		return !is(next, `"enforce"`)
	case name == ApprovalMode:
		return is(next, `"run"`)
	case name == Generated:
		return is(next, `true`)
	case name == DriftGate:
		return !is(next, `"approval"`)
	case name == Identities:
		return true // the mapping of an account to a person decides who may not approve
	}
	had := scopes(old)
	return slices.ContainsFunc(scopes(next), func(s string) bool { return s != "read" && !slices.Contains(had, s) })
}

func scopes(raw json.RawMessage) []string {
	var out []string
	_ = json.Unmarshal(raw, &out) // a value that is not a list grants nothing
	return out
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// Load compares the environment with the settings in force. The first start accepts the environment; later, while
// separation of duties is enforced, a loosened setting is withheld until it is approved, and any other change is
// accepted.
func (s *Service) Load(ctx context.Context) error {
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockKeys(ctx, []string{"guarded settings"}); err != nil {
			return err
		}
		rows, err := tx.GuardedSettings(ctx)
		if err != nil {
			return err
		}
		had := make(map[string]json.RawMessage, len(rows))
		for _, r := range rows {
			had[r.Name] = r.Value
		}
		guarding := sameJSON(had[Separation], json.RawMessage(`"enforce"`))
		given := map[string]bool{}
		for _, e := range s.Settings {
			given[e.Name] = true
			if err := s.compare(ctx, tx, e, had[e.Name], guarding); err != nil {
				return fmt.Errorf("setting %s: %w", e.Name, err)
			}
		}
		for name, value := range had { // a removed credential has no scopes, and does not get them back when it returns
			if !given[name] && (strings.HasPrefix(name, Credential) || strings.HasPrefix(name, Issuer)) && len(scopes(value)) > 0 {
				if err := s.put(ctx, tx, name, value, json.RawMessage(`[]`), environment); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return s.refresh(ctx)
}

func (s *Service) compare(ctx context.Context, tx store.Tx, e Environment, old json.RawMessage, guarding bool) error {
	next, err := encode(e.Value)
	if err != nil {
		return err
	}
	if sameJSON(old, next) {
		return s.withdraw(ctx, tx, e.Name)
	}
	if guarding && loosens(e.Name, old, next) {
		change, err := s.propose(ctx, tx, environment, Change{Kind: Setting, Target: e.Name, Old: old, New: next}, true)
		if err == nil {
			s.Log.WarnContext(ctx, "a setting that loosens what guards the platform is withheld until it is approved",
				slog.String("setting", e.Name), slog.String("change", change.ID.String()))
		}
		return err
	}
	if err := s.withdraw(ctx, tx, e.Name); err != nil {
		return err
	}
	return s.put(ctx, tx, e.Name, old, next, environment)
}

// withdraw ends a pending change of a setting that the environment no longer requests.
func (s *Service) withdraw(ctx context.Context, tx store.Tx, name string) error {
	return s.endPending(ctx, tx, environment, Setting, name, "the environment no longer requests it")
}

func (s *Service) put(ctx context.Context, tx store.Tx, name string, old, next json.RawMessage, by auth.Principal) error {
	if err := tx.PutGuardedSetting(ctx, store.PutGuardedSettingParams{Name: name, Value: next, Now: s.Now(), UpdatedBy: by.Name}); err != nil {
		return err
	}
	return tx.Emit(ctx, event.Shared(by.Tenant, by.Name, "setting.changed", Setting+":"+name, event.OK, map[string]any{"old": old, "new": next}))
}

// applySetting puts an approved setting into force.
func (s *Service) applySetting(ctx context.Context, tx store.Tx, c store.GuardedChange, by auth.Principal) error {
	return s.put(ctx, tx, c.Target, c.Old, c.New, by)
}

// Run follows settings that other replicas put into force, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s.current.Load() == nil {
			continue // Load has not compared them yet
		}
		err := s.refresh(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "guarded settings not readable", slog.Any("err", err))
		}
		failing = err != nil
	}
}

func (s *Service) refresh(ctx context.Context) error {
	rows, err := s.Store.GuardedSettings(ctx)
	if err != nil {
		return err
	}
	now := make(map[string]json.RawMessage, len(rows))
	for _, r := range rows {
		now[r.Name] = r.Value
	}
	s.current.Store(&now)
	return nil
}

// value returns a setting in force; nil until Load has read them.
func (s *Service) value(name string) json.RawMessage {
	if m := s.current.Load(); m != nil {
		return (*m)[name]
	}
	return nil
}

// Duties reports whether separation of duties is enforced; true until that is known.
func (s *Service) Duties() bool { return !sameJSON(s.value(Separation), json.RawMessage(`"off"`)) }

// Read decodes a setting into v, which stays unchanged until the setting is known.
func (s *Service) Read(name string, v any) {
	if raw := s.value(name); raw != nil {
		_ = json.Unmarshal(raw, v) // written by compare
	}
}

// Text returns a string setting; strict until it is known.
func (s *Service) Text(name, strict string) string {
	var out string
	if raw := s.value(name); raw == nil || json.Unmarshal(raw, &out) != nil {
		return strict
	}
	return out
}

// On returns a boolean setting; off until it is known.
func (s *Service) On(name string) bool { return sameJSON(s.value(name), json.RawMessage(`true`)) }

// Limit removes withheld scopes from a caller. Until Load has read which ones, all but reading are withheld, and the
// error states that this will pass.
func (s *Service) Limit(p auth.Principal) (auth.Principal, error) {
	name := Credential + auth.FoldName(p.Name)
	switch {
	case p.Legacy || auth.System(p.Name):
		return p, nil
	case p.Via != "":
		name = Issuer + p.Via
	}
	var err error
	if s.current.Load() == nil {
		err = fault.StoreUnavailable.New("The scopes of callers are being read from the database; try again in a moment.").After(time.Second)
	}
	allowed := scopes(s.value(name))
	p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(scope string) bool { return scope != "read" && !slices.Contains(allowed, scope) })
	return p, err
}
