package model

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/model/ground"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// newRecord starts the record of what the session has seen, from the content of the turn.
func newRecord(t turn.Turn) *ground.Record {
	r := &ground.Record{}
	for _, m := range slices.Concat(t.Earlier, t.History) {
		if m.Role == chat.RoleUser {
			r.AddSaid(m.Text)
		} else {
			r.AddAnswer(m.Text)
		}
	}
	r.AddSaid(t.Scope)
	r.AddSaid(t.Page)
	r.AddSaid(t.Query)
	if len(t.Settled) > 0 {
		r.AddResult(describeDecisions(t.Settled))
	}
	for _, s := range t.Settled {
		if s.Action.State != action.Succeeded {
			continue
		}
		for _, op := range s.Action.Ops() {
			r.AddWrite(op.Verb)
		}
	}
	return r
}

// groundedFindings converts findings, and those that follow from them, for comparison with an all-clear.
func groundedFindings(found []engine.Finding) (all []ground.Finding) {
	for _, f := range found {
		g := ground.Finding{Namespaces: f.Namespaces, Kinds: []string{strings.ToLower(f.Object.Kind)}, Names: append([]string{f.Object.Name}, f.Pods...)}
		if f.Object.Namespace != "" {
			g.Namespaces = append([]string{f.Object.Namespace}, f.Namespaces...)
		}
		if len(f.Pods) > 0 {
			g.Kinds = append(g.Kinds, "pod")
		}
		all = append(append(all, g), groundedFindings(f.Consequences)...)
	}
	return all
}
