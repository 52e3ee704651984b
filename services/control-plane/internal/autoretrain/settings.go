package autoretrain

import (
	"context"
	"math"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// The gates.
const (
	Approval = "approval"
	Direct   = "direct"
)

// Any covers predictions and inputs; it extends the kinds of package drift.
const Any = "any"

// The default settings of a model.
const (
	defaultMinZ     = 3.0
	defaultCooldown = 3600
	maxCooldown     = 365 * 24 * 3600 // seconds
)

// triggered returns when the caller's tenant last triggered each of the models.
func (s *Service) triggered(ctx context.Context, q *store.Queries, rows ...store.AutoRetrain) (map[string]time.Time, error) {
	p, _ := auth.FromContext(ctx)
	models := make([]string, len(rows))
	for i, r := range rows {
		models[i] = r.ModelID
	}
	stamps, err := q.ListTriggered(ctx, store.ListTriggeredParams{Tenant: p.Tenant, Models: models})
	out := make(map[string]time.Time, len(stamps))
	for _, st := range stamps {
		out[st.ModelID] = st.TriggeredAt.UTC()
	}
	return out, err
}

func (s *Service) view(r store.AutoRetrain, triggered map[string]time.Time) api.AutoRetrain {
	var last *time.Time
	if at, ok := triggered[r.ModelID]; ok {
		last = &at
	}
	return api.AutoRetrain{
		Model: r.ModelID, Enabled: r.Enabled, DatasetName: r.DatasetName, MinZ: r.MinZ, CooldownSeconds: r.CooldownSeconds,
		Gate: api.AutoRetrainGate(r.Gate), GateForced: s.ForceApproval(), Kind: api.DriftKind(r.Kind),
		LastTriggeredAt: last, LastOutcome: r.LastOutcome, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}

// settingsOf is api.AutoRetrainInput with pointers, which distinguish 0 from absent.
type settingsOf struct {
	Enabled         *bool    `json:"enabled"`
	DatasetName     *string  `json:"dataset_name"`
	MinZ            *float64 `json:"min_z"`
	CooldownSeconds *int64   `json:"cooldown_seconds"`
	Gate            *string  `json:"gate"`
	Kind            *string  `json:"kind"`
}

func (b settingsOf) validate() error {
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if b.Enabled == nil {
		bad("is required", "enabled")
	}
	if b.DatasetName != nil && *b.DatasetName != "" && !registry.ValidName(*b.DatasetName) {
		bad(registry.NameRule, "dataset_name")
	}
	if b.MinZ != nil && (!(*b.MinZ > 0) || *b.MinZ > math.MaxFloat32) {
		bad("must be a number above 0", "min_z")
	}
	if b.CooldownSeconds != nil && (*b.CooldownSeconds < 0 || *b.CooldownSeconds > maxCooldown) {
		bad("must be 0 to 31536000 seconds", "cooldown_seconds")
	}
	if b.Gate != nil && *b.Gate != Approval && *b.Gate != Direct {
		bad("must be approval or direct", "gate")
	}
	if b.Kind != nil && !api.DriftKind(*b.Kind).Valid() {
		bad("must be prediction, input or any", "kind")
	}
	return fault.InvalidAll(faults)
}

// over returns the row updated with the members that are set.
func (b settingsOf) over(row store.AutoRetrain) store.PutAutoRetrainParams {
	out := store.PutAutoRetrainParams{
		ModelID: row.ModelID, Enabled: *b.Enabled, DatasetName: row.DatasetName, MinZ: row.MinZ,
		CooldownSeconds: row.CooldownSeconds, Gate: row.Gate, Kind: row.Kind,
	}
	if b.DatasetName != nil {
		out.DatasetName = wire.OptionalText(*b.DatasetName)
	}
	if b.MinZ != nil {
		out.MinZ = *b.MinZ
	}
	if b.CooldownSeconds != nil {
		out.CooldownSeconds = int32(*b.CooldownSeconds)
	}
	if b.Gate != nil {
		out.Gate = *b.Gate
	}
	if b.Kind != nil {
		out.Kind = *b.Kind
	}
	return out
}

// terms are the settings of a model as shown in the ledger and to the people who decide about a change.
type terms struct {
	Enabled         bool    `json:"enabled"`
	DatasetName     *string `json:"dataset_name"`
	MinZ            float64 `json:"min_z"`
	CooldownSeconds int32   `json:"cooldown_seconds"`
	Gate            string  `json:"gate"`
	Kind            string  `json:"kind"`
}

func termsOf(r store.AutoRetrain) terms {
	return terms{Enabled: r.Enabled, DatasetName: r.DatasetName, MinZ: r.MinZ, CooldownSeconds: r.CooldownSeconds, Gate: r.Gate, Kind: r.Kind}
}

func proposed(r store.PutAutoRetrainParams) terms {
	return terms{Enabled: r.Enabled, DatasetName: r.DatasetName, MinZ: r.MinZ, CooldownSeconds: r.CooldownSeconds, Gate: r.Gate, Kind: r.Kind}
}

// row returns the parameters that set a model's settings to t.
func (t terms) row(model string) store.PutAutoRetrainParams {
	return store.PutAutoRetrainParams{
		ModelID: model, Enabled: t.Enabled, DatasetName: t.DatasetName, MinZ: t.MinZ, CooldownSeconds: t.CooldownSeconds, Gate: t.Gate, Kind: t.Kind,
	}
}
