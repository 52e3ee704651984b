package model

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// requestsChange reports whether the person's own words order a change. After a decision these are the words of the
// message that led to it. It never decides whether a write may be proposed, only whether an approval given in advance
// may cover one.
func requestsChange(t turn.Turn) bool {
	if t.Unspoken {
		return false // a program wrote it
	}
	message := t.Query
	for i := len(t.History); i > 0 && chat.ParseWord(message).Verdict != chat.NoVerdict; i-- {
		if m := t.History[i-1]; m.Role == chat.RoleUser {
			if m.Unspoken {
				return false
			}
			message = m.Text
		}
	}
	return question.RequestsChange(message)
}

// deniedNow reports whether this turn denied a change.
func deniedNow(t turn.Turn) bool {
	return slices.ContainsFunc(t.Settled, func(s action.Settled) bool { return s.Action.State == action.Denied })
}
