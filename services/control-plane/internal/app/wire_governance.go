package app

import (
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/card"
	"github.com/mlp-platform/platform/services/control-plane/internal/compliance"
	"github.com/mlp-platform/platform/services/control-plane/internal/eval"
	"github.com/mlp-platform/platform/services/control-plane/internal/llm"
	"github.com/mlp-platform/platform/services/control-plane/internal/posture"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// governance is what is recorded of models beside their runs.
type governance struct {
	evals      *eval.Service
	llm        *llm.Service
	compliance *compliance.Service
	cards      *card.Service
	posture    *posture.Service
}

func wireGovernance(db *store.Store, reg *registry.Registry, log *slog.Logger) governance {
	cards := &card.Service{Store: db, Registry: reg, Log: log, Now: time.Now}
	return governance{
		evals: &eval.Service{Store: db, Now: time.Now}, llm: &llm.Service{Store: db, Now: time.Now},
		compliance: &compliance.Service{Store: db, Registry: reg, Now: time.Now}, cards: cards,
		posture: &posture.Service{Store: db, Cards: cards, Now: time.Now},
	}
}
