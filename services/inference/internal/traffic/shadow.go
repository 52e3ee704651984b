package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

// Shadow names the alias that also scores a share of a model's requests.
type Shadow struct {
	Alias   string
	Percent int
}

// weights is the rule in the form of an event: percent by alias, empty without a rule.
func (s *Shadow) weights() Weights {
	if s == nil {
		return Weights{}
	}
	return Weights{s.Alias: s.Percent}
}

// Shadow is the shadow rule of a model, by its upper-case name; nil without one.
func (t *Traffic) Shadow(model string) *Shadow { return (*t.shadows.Load())[model] }

// loadShadows reads all shadow rules.
func (t *Traffic) loadShadows(ctx context.Context) error {
	rows, err := t.queries.AllShadowRules(ctx)
	if err != nil {
		return fmt.Errorf("load the shadow rules: %w", err)
	}
	rules := map[string]*Shadow{}
	revision := int64(0)
	for _, row := range rows {
		revision = row.Revision
		if row.Model != nil {
			rules[*row.Model] = &Shadow{Alias: *row.Alias, Percent: int(*row.Percent)}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.shadowRevision { // a slower read must not restore older rules
		t.shadowRevision = revision
		t.shadows.Store(&rules)
	}
	return nil
}

// parseShadow checks a request's shadow rule. The error is a 422 that lists the faults.
func parseShadow(body map[string]*json.RawMessage) (*Shadow, error) {
	s := &Shadow{}
	var faults []problem.Field
	fault := func(name, msg string) {
		faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg})
	}
	for name, raw := range body {
		switch name {
		case "alias":
			var text string
			ok := raw != nil && json.Unmarshal(*raw, &text) == nil
			if s.Alias, ok = canonicalAlias(text, ok); !ok {
				fault(name, "is no alias; the aliases are "+strings.Join(catalog.Aliases, ", "))
			}
		case "percent":
			if raw == nil || json.Unmarshal(*raw, &s.Percent) != nil || s.Percent < 0 || s.Percent > hundred {
				fault(name, "must be a whole number from 0 to 100")
			}
		default:
			fault(problem.Shorten(name), "this member is unknown")
		}
	}
	for _, name := range []string{"alias", "percent"} {
		if _, given := body[name]; !given {
			fault(name, "this member is missing")
		}
	}
	if len(faults) > 0 {
		return nil, invalidRules(faults)
	}
	return s, nil
}

func canonicalAlias(text string, isText bool) (string, bool) {
	if !isText {
		return "", false
	}
	return catalog.CanonicalAlias(text)
}

// errNoShadow means that a model has no shadow rule.
var errNoShadow = errors.New("the model has no shadow rule")

// changeShadow replaces a model's shadow rule, or deletes it for nil, with event and audit fact in the same
// transaction, and puts it to work in this replica.
func (t *Traffic) changeShadow(ctx context.Context, model string, s *Shadow) (store.ShadowRule, error) {
	var row store.ShadowRule
	err := postgres.InTx(ctx, t.cfg.Pool, func(tx pgx.Tx) error {
		q := t.queries.WithTx(tx)
		if _, err := q.RaiseTrafficRevision(ctx); err != nil {
			return err
		}
		previous := Weights{}
		switch was, err := q.ShadowRule(ctx, model); {
		case err == nil:
			previous[was.Alias] = int(was.Percent)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		case s == nil:
			return errNoShadow
		}
		actor, _ := announce.Actor(ctx)
		action := "shadow.set"
		if s == nil {
			action = "shadow.clear"
			if _, err := q.DeleteShadowRule(ctx, model); err != nil {
				return err
			}
		} else {
			row = store.ShadowRule{Model: model, Alias: s.Alias, Percent: int32(s.Percent), UpdatedAt: time.Now().UTC().Truncate(time.Microsecond), UpdatedBy: actor}
			if err := q.SetShadowRule(ctx, store.SetShadowRuleParams(row)); err != nil {
				return err
			}
		}
		now := s.weights()
		fact := announce.Audit(ctx, action, "model:"+model, "ok", map[string]any{"old": previous, "new": now})
		if maps.Equal(now, previous) {
			return announce.Insert(ctx, tx, fact) // nothing changes for those who follow the rules
		}
		return announce.Insert(ctx, tx, announce.Shadow(model, actor, now, previous), fact)
	})
	if err != nil {
		return store.ShadowRule{}, err
	}
	if err := t.look(ctx); err != nil { // committed: Run brings it within half a second
		t.cfg.Log.WarnContext(ctx, "shadow rules not loaded after their change", slog.String("model", model), slog.Any("err", err))
	}
	return row, nil
}
