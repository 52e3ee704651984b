package app

import (
	"log/slog"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/route"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestMissingParts: a constructor names the part that it lacks, so that no request is the first to notice.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	log, db := slog.New(slog.DiscardHandler), store.Open(nil)
	for want, build := range map[string]func() error{
		"action: no Store": func() error { _, err := action.New(action.Config{}, action.Deps{Log: log}); return err },
		"action: no Cluster": func() error {
			_, err := action.New(action.Config{}, action.Deps{Store: db, Log: log})
			return err
		},
		"turn: no Store":    func() error { _, err := turn.New(turn.Config{}, turn.Deps{Log: log}); return err },
		"turn: no Actions":  func() error { _, err := turn.New(turn.Config{}, turn.Deps{Store: db, Log: log}); return err },
		"session: no Store": func() error { _, err := session.New(session.Deps{Log: log, Now: time.Now}); return err },
		"session: no Actions": func() error {
			_, err := session.New(session.Deps{Store: db, Log: log, Now: time.Now})
			return err
		},
		"route: no Callers": func() error { _, err := route.New(route.Config{}, route.Deps{Log: log, Now: time.Now}); return err },
	} {
		if err := build(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
