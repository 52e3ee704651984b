package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	maxTurns    = 3 // of one notification: those but the last were cut short
	settleTime  = 10 * time.Second
	retryBusy   = 2 * time.Second  // the session is busy with another request
	retryAbsent = 15 * time.Second // the cluster does not answer
)

// turnFailed is the outcome of a turn that found nothing out.
const turnFailed = "failed"

// serve works on one notification after another until ctx ends.
func (s *Service) serve(ctx context.Context) {
	for ctx.Err() == nil {
		worked, err := s.next(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "an alert could not be worked on", slog.Any("err", err))
		}
		if worked && err == nil {
			continue
		}
		t := time.NewTimer(s.Poll)
		select {
		case <-ctx.Done():
		case <-s.roused:
		case <-t.C:
		}
		t.Stop()
	}
}

// errLost means that another worker has the notification now.
var errLost = errors.New("another worker has taken the notification over")

// next works on the oldest notification that waits, if there is one.
func (s *Service) next(ctx context.Context) (worked bool, err error) {
	now := s.Now()
	n, err := s.Store.ClaimAlertNotification(ctx, store.ClaimAlertNotificationParams{LeaseUntil: now.Add(s.Lease), Now: now})
	if store.None(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.rouse() // another worker may find one, too
	held, release := s.hold(ctx, n)
	again, err := s.work(held, n)
	lost := errors.Is(context.Cause(held), errLost)
	release()
	switch {
	case lost:
		return true, nil
	case ctx.Err() != nil: // the next process need not wait for the lease to end
		return true, s.postpone(context.WithoutCancel(ctx), n, 0)
	case err != nil && s.Now().Sub(n.ReceivedAt) > s.Patience: // it would keep those behind it waiting for ever
		return true, errors.Join(fmt.Errorf("given up after %s: %w", s.Patience, err), s.drop(ctx, n, true))
	case err != nil:
		return true, errors.Join(err, s.postpone(ctx, n, retryBusy))
	case again > 0:
		return true, s.postpone(ctx, n, again)
	}
	return true, nil
}

// hold renews the lease until release is called; the context ends with errLost if another worker takes over.
func (s *Service) hold(ctx context.Context, n store.AlertNotification) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	until := s.Now().Add(s.Lease)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(s.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
			}
			kept, err := s.Store.KeepAlertNotification(held, store.KeepAlertNotificationParams{ID: n.ID, Attempt: n.Attempt, LeaseUntil: s.Now().Add(s.Lease)})
			switch {
			case err == nil && kept == 0:
				cancel(errLost)
			case err == nil:
				until = s.Now().Add(s.Lease)
			case held.Err() == nil:
				s.Log.WarnContext(ctx, "the lease of an alert could not be renewed", slog.Any("err", err))
				if s.Now().After(until) {
					cancel(errLost)
				}
			}
		}
	})
	return held, func() {
		cancel(nil)
		done.Wait()
	}
}

// postpone ends the lease after a while, so that the notification is worked on again.
func (s *Service) postpone(ctx context.Context, n store.AlertNotification, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_, err := s.Store.KeepAlertNotification(ctx, store.KeepAlertNotificationParams{ID: n.ID, Attempt: n.Attempt, LeaseUntil: s.Now().Add(wait)})
	return err
}

// work has one notification investigated. Without an error, again is when to try once more; 0 means that it is done with.
func (s *Service) work(ctx context.Context, n store.AlertNotification) (again time.Duration, err error) {
	var k kept
	if err := json.Unmarshal(n.Body, &k); err != nil {
		return 0, fmt.Errorf("decode notification %s: %w", n.ID, err)
	}
	who := event.Who{Principal: n.Principal, Role: guard.Readonly, RequestID: n.RequestID, Address: n.Address}
	subjects, err := s.subjects(ctx, who, k)
	notRead := err != nil
	if notRead {
		if s.Now().Sub(n.ReceivedAt) < s.Patience {
			s.Log.InfoContext(ctx, "an alert waits for the cluster", slog.Any("err", err))
			return retryAbsent, nil
		}
	}
	found := investigation{engine: s.Engine, alerts: k, subjects: subjects, notRead: notRead, where: k.whichCluster(s.Clusters)}
	reader, err := s.Turns.Begin(ctx, turn.Request{
		Session: n.SessionID, Who: who, RequestID: n.ID.String(),
		Chat:    chat.Request{Query: found.query(), NoDecisions: true, Context: chat.Context{Namespace: found.namespace()}},
		Program: &turn.Program{Kind: turn.KindAlert, Engine: found},
	})
	switch {
	case fault.TurnActive.Has(err):
		return retryBusy, nil
	case fault.SessionNotFound.Has(err): // it was deleted, and this with it
		return 0, s.drop(ctx, n, false)
	case problem.Draining.Has(err):
		return retryBusy, nil
	case err != nil:
		return 0, err
	}
	defer reader.Close()
	for err == nil {
		_, err = reader.Next(ctx)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if !errors.Is(err, io.EOF) { // the turn continues, and is found by its request
		return retryBusy, nil
	}
	return s.conclude(ctx, n)
}

// conclude drops a notification whose turn has ended, unless it was cut short.
func (s *Service) conclude(ctx context.Context, n store.AlertNotification) (again time.Duration, err error) {
	turns, err := s.Store.AlertTurns(ctx, store.AlertTurnsParams{SessionID: n.SessionID, RequestID: n.ID.String()})
	if err != nil {
		return 0, err
	}
	if len(turns) == 0 { // deleted with its session
		return 0, s.drop(ctx, n, false)
	}
	last := turns[0]
	cut := last.Reason != nil && turn.CutShort(*last.Reason)
	if last.Outcome == nil || cut && len(turns) < maxTurns {
		return retryBusy, nil
	}
	return 0, s.drop(ctx, n, cut || *last.Outcome == turnFailed)
}

// drop ends the work on a notification. If nothing was found out, the group's next notification is not taken for a repeat.
func (s *Service) drop(ctx context.Context, n store.AlertNotification, nothing bool) error {
	return s.Store.InTx(ctx, func(tx store.Tx) error {
		dropped, err := tx.DropAlertNotification(ctx, store.DropAlertNotificationParams{ID: n.ID, Attempt: n.Attempt})
		if err != nil || dropped == 0 || !nothing {
			return err
		}
		return tx.ForgetAlertDigest(ctx, n.KeyHash)
	})
}
