package app

import (
	"log/slog"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/session"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestMissingParts: a constructor names the parts that it lacks, so that no request is the first to notice.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	log, db := slog.New(slog.DiscardHandler), store.Open(nil)
	for want, build := range map[string]func() error{
		"action: missing parts: Target, Judge": func() error {
			_, err := action.New(action.Config{}, action.Deps{Store: db, Log: log})
			return err
		},
		"change: missing parts: Cluster, Log": func() error {
			_, err := change.New(change.Config{}, change.Deps{})
			return err
		},
		"mcp client: missing parts: Store, Log": func() error {
			_, err := mcpclient.New(nil, mcpclient.Deps{Now: time.Now})
			return err
		},
		"tool: missing parts: Cluster, Planner": func() error {
			_, err := tool.New(tool.Config{}, tool.Deps{Now: time.Now})
			return err
		},
		"turn: missing parts: Actions, Engine, Tools, Planner": func() error {
			_, err := turn.New(turn.Config{}, turn.Deps{Store: db, Log: log})
			return err
		},
		"turn streams: missing parts: Turns, Actions, Sessions, Slots, Meter": func() error {
			_, err := turn.NewStreams(turn.StreamConfig{}, turn.StreamDeps{Log: log})
			return err
		},
		"session: missing parts: Store, Actions": func() error {
			_, err := session.New(session.Deps{Log: log, Now: time.Now})
			return err
		},
		"access: missing parts: Callers, Store, Rate, Refused": func() error {
			_, err := caller.NewAccess(caller.AccessDeps{Log: log, Now: time.Now})
			return err
		},
	} {
		if err := build(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
