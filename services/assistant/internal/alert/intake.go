package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// What comes of a notification.
const (
	outcomeNew      = "new"
	outcomeChanged  = "changed"
	outcomeResolved = "resolved"
	outcomeRepeated = "repeated"
)

// maxWaiting limits the notifications of one sender that wait. Alertmanager repeats what was answered with 503.
const maxWaiting = 500

// take stores a notification with its group and returns the session of the group.
func (s *Service) take(ctx context.Context, who event.Who, n notification) (session string, err error) {
	digest, err := n.digest()
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(n.keep())
	if err != nil {
		return "", fmt.Errorf("encode a notification: %w", err)
	}
	outcome := ""
	err = s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		now := s.Now()
		if session, outcome, err = join(ctx, tx, who, n, digest, now); err != nil {
			return err
		}
		if outcome != outcomeRepeated {
			err := tx.SupersedeAlertNotifications(ctx, store.SupersedeAlertNotificationsParams{KeyHash: n.key(who.Principal), Status: n.Status})
			if err != nil {
				return err
			}
			waiting, err := tx.CountAlertNotificationsOf(ctx, who.Principal)
			if err != nil {
				return err
			}
			if waiting >= maxWaiting {
				return problem.Unavailable.New("Too many notifications wait to be investigated; send this one again later.").After(time.Minute)
			}
			err = tx.InsertAlertNotification(ctx, store.InsertAlertNotificationParams{
				ID: uuid.Must(uuid.NewV7()), KeyHash: n.key(who.Principal), SessionID: session, Principal: who.Principal, RequestID: who.RequestID,
				Address: who.Address, Body: body, Now: now,
			})
			if err != nil {
				return err
			}
		}
		fire, over := n.count()
		return tx.Emit(ctx, event.Facts(who, now, "alert_received", "alert.received", session, "session:"+session, event.OK,
			event.Alert{Session: session, Status: n.Status, Outcome: outcome, Firing: fire, Resolved: over},
			map[string]any{"alert_status": n.Status, "alert_outcome": outcome, "firing": fire, "resolved": over, "status": 202})...)
	})
	if err != nil {
		return "", err
	}
	s.Received(outcome)
	if outcome != outcomeRepeated {
		s.rouse()
	}
	return session, nil
}

// join finds the group of a notification or makes it, with its session. A session that was deleted or forgotten is followed
// by a new one.
func join(ctx context.Context, tx store.Tx, who event.Who, n notification, digest []byte, now time.Time) (session, outcome string, err error) {
	key := n.key(who.Principal)
	open := func(id string) error {
		return openSession(ctx, tx, store.InsertSessionParams{ID: id, Owner: who.Principal, Cluster: n.cluster, Seed: []byte("[]"), Now: now})
	}
	outcome = outcomeChanged
	if n.Status == resolved {
		outcome = outcomeResolved
	}
	group, err := tx.LockAlertGroup(ctx, key)
	if store.None(err) {
		session = newSession()
		var made int64
		made, err = tx.InsertAlertGroup(ctx, store.InsertAlertGroupParams{
			KeyHash: key, SessionID: session, Principal: who.Principal, Status: n.Status, Digest: digest, Now: now,
		})
		if err != nil {
			return "", "", err
		}
		if made == 1 {
			if n.Status == firing {
				outcome = outcomeNew
			}
			return session, outcome, open(session)
		}
		group, err = tx.LockAlertGroup(ctx, key) // another request has made it meanwhile
	}
	if err != nil {
		return "", "", err
	}
	session = group.SessionID
	kept, err := tx.TouchSession(ctx, store.TouchSessionParams{ID: session, Now: now})
	switch {
	case err != nil:
		return "", "", err
	case kept == 0:
		session = newSession()
		if n.Status == firing {
			outcome = outcomeNew
		}
		if err := open(session); err != nil {
			return "", "", err
		}
	case bytes.Equal(group.Digest, digest):
		outcome = outcomeRepeated
	}
	return session, outcome, tx.UpdateAlertGroup(ctx, store.UpdateAlertGroupParams{
		KeyHash: key, SessionID: session, Status: n.Status, Digest: digest, Now: now,
	})
}

func newSession() string { return uuid.Must(uuid.NewV7()).String() }

// openSession makes the session, so that it can be read as soon as its id is told.
func openSession(ctx context.Context, tx store.Tx, p store.InsertSessionParams) error {
	if _, err := tx.InsertSession(ctx, p); err != nil {
		return err
	}
	return tx.ShareSession(ctx, p.ID)
}
