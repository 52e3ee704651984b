package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

const rescueBatch = 20

// Recover closes turns whose owner died.
func (s *Service) Recover(ctx context.Context) error {
	rows, err := s.Store.AbandonedTurns(ctx, store.AbandonedTurnsParams{Now: s.Now(), MaxRows: rescueBatch})
	if err != nil {
		return err
	}
	var faults []error
	for _, t := range rows {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.rescue(ctx, t); err != nil {
			faults = append(faults, fmt.Errorf("turn %d of session %s: %w", t.Number, t.SessionID, err))
		}
	}
	return errors.Join(faults...)
}

// Run closes abandoned turns until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.Lease / 3)
	defer tick.Stop()
	for {
		if err := s.Recover(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "closing abandoned turns failed", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rescue settles the actions that an abandoned turn had approved, then closes the turn with
// their results. While a live executor holds one of its actions, the turn stays as it is.
func (s *Service) rescue(ctx context.Context, t store.Turn) error {
	settled, open, err := s.settle(ctx, t)
	if err != nil || open {
		return err
	}
	row, err := s.Store.TakeOverTurn(ctx, store.TakeOverTurnParams{
		SessionID: t.SessionID, Number: t.Number, Fence: t.Fence, Owner: s.me, LeaseUntil: s.Now().Add(s.Lease), Now: s.Now(),
	})
	if store.None(err) { // another replica does it, or has done it
		return nil
	}
	if err != nil {
		return err
	}
	last, err := s.Store.LastFrame(ctx, store.LastFrameParams{SessionID: t.SessionID, Number: t.Number})
	if err != nil {
		return err
	}
	who := event.Who{Principal: row.Principal, Role: guard.Role(row.Role)}
	if row.RequestID != nil {
		who.RequestID = *row.RequestID
	}
	of, err := s.Store.GetSession(ctx, t.SessionID)
	if err != nil {
		return err
	}
	_, pending, err := s.waiting(ctx, t.SessionID, who, of.Owner == row.Principal)
	if err != nil {
		return err
	}
	e := chat.NewEncoder(chat.Head{SessionID: t.SessionID, ID: t.CompletionID, Created: t.StartedAt, Model: s.Model})
	cluster := s.Clusters.Stored(of.Cluster)
	text := interruptedText(settled)
	if n := s.notice(cluster); n != "" && cluster != "" {
		text += "\n\n" + n
	}
	l := newLive(s.Store, row)
	// Later than any frame that the former owner may have shown without storing it.
	seq := last + maxUnstored + 1
	var entries []entry
	if last == 0 {
		entries = append(entries, entry{seq: 1, data: e.Handshake(nil)})
	}
	for _, data := range [][]byte{
		e.Error(nil, fault.Interrupted, true), e.Token(nil, text), completionOf(e, pending, row.IncludeUsage, chat.Usage{}),
	} {
		entries = append(entries, entry{seq: seq, data: data})
		seq++
	}
	err = s.Store.InTx(ctx, func(tx store.Tx) error {
		if err := l.write(ctx, tx.Queries, entries); err != nil {
			return err
		}
		return s.finish(ctx, tx, ended{row, cluster, interrupted, fault.Interrupted.Code, text}, who)
	})
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// settle ends the actions that the turn approved; open reports that one is still being
// executed.
func (s *Service) settle(ctx context.Context, t store.Turn) (settled []action.Action, open bool, err error) {
	actions, err := s.Actions.DecidedIn(ctx, t.SessionID, t.Number)
	if err != nil {
		return nil, false, err
	}
	for _, a := range actions {
		switch a.State {
		case action.Approved:
			done, err := s.Actions.Execute(ctx, a.ID, nil)
			if _, ok := problemDetail(err); err != nil && !ok {
				return nil, false, err
			}
			a = done
		case action.Executing:
			if a, err = s.Actions.Rescue(ctx, a); err != nil {
				return nil, false, err
			}
		}
		if a.State == action.Executing || a.State == action.Approved {
			return nil, true, nil
		}
		settled = append(settled, a)
	}
	return settled, false, nil
}

func interruptedText(settled []action.Action) string {
	var b strings.Builder
	b.WriteString("\n\n" + fault.Interrupted.Message)
	for _, a := range settled {
		if a.State == action.Denied {
			b.WriteString("\n\nDenied: " + commandText(a) + ". It does not run.")
			continue
		}
		b.WriteString("\n\n" + resultText(a))
	}
	if len(settled) == 0 {
		b.WriteString(" Ask again.")
	}
	return b.String()
}
