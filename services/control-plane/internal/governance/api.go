package governance

import (
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// API serves the records of governance, one member for each kind.
type API struct {
	Evals           *Evals
	Endpoints       *Endpoints
	Classifications *Classifications
	Cards           *Cards
	Posture         *Posture
}

// NewAPI returns the API on db; now is the clock.
func NewAPI(db *store.Store, reg *registry.Registry, log *slog.Logger, now func() time.Time) API {
	cards := &Cards{store: db, registry: reg, log: log, now: now}
	return API{
		Evals:           NewEvals(db, now),
		Endpoints:       &Endpoints{store: db, now: now},
		Classifications: &Classifications{store: db, registry: reg, now: now},
		Cards:           cards,
		Posture:         &Posture{store: db, cards: cards, now: now},
	}
}
