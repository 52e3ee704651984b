package governance

import (
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Limits of an endpoint's members.
const (
	maxModelLen       = 1_000_000_000 // tokens
	maxTensorParallel = 4096
	defaultDtype      = "auto"
)

// Endpoints stores the endpoints. An endpoint belongs to the tenant that wrote it; endpoints of tenant platform apply
// to every tenant without its own.
type Endpoints struct {
	store *store.Store
	now   func() time.Time
}

// endpointInput is api.LLMEndpointInput with pointers, which distinguish 0 from absent.
type endpointInput struct {
	Model          *string `json:"model"`
	Engine         string  `json:"engine"`
	HostedModelID  string  `json:"hostedModelId"`
	MaxModelLen    *int    `json:"maxModelLen"`
	TensorParallel *int    `json:"tensorParallel"`
	Dtype          *string `json:"dtype"`
	Enabled        *bool   `json:"enabled"`
}

// endpointKey returns the lock key of a tenant's record of a model.
func endpointKey(tenant, model string) string { return "llm:" + tenant + ":" + model }

func (b endpointInput) row(model string) (store.PutLLMEndpointParams, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) { faults = append(faults, problem.Field{Loc: loc, Msg: msg}) }
	out := store.PutLLMEndpointParams{
		ModelID: registry.ID(model), Engine: b.Engine, HostedModelID: b.HostedModelID, TensorParallel: 1, Dtype: defaultDtype, Enabled: true,
	}
	if !registry.ValidName(model) {
		bad(registry.NameRule, "path", "model")
	}
	if b.Model != nil && registry.ID(*b.Model) != out.ModelID {
		bad("is not the model of the path", "body", "model")
	}
	if b.Dtype != nil {
		out.Dtype = *b.Dtype
	}
	if b.Enabled != nil {
		out.Enabled = *b.Enabled
	}
	for _, f := range []struct{ name, v string }{{"engine", b.Engine}, {"hostedModelId", b.HostedModelID}, {"dtype", out.Dtype}} {
		if !wire.Label(f.v) {
			bad(wire.LabelRule, "body", f.name)
		}
	}
	if b.MaxModelLen == nil || *b.MaxModelLen < 1 || *b.MaxModelLen > maxModelLen {
		bad("must be a whole number from 1 to 1000000000", "body", "maxModelLen")
	} else {
		out.MaxModelLen = int32(*b.MaxModelLen)
	}
	if n := b.TensorParallel; n != nil {
		if *n < 1 || *n > maxTensorParallel {
			bad("must be a whole number from 1 to 4096", "body", "tensorParallel")
		} else {
			out.TensorParallel = int32(*n)
		}
	}
	return out, fault.InvalidAll(faults)
}

func viewEndpoint(r store.LlmEndpoint) api.LLMEndpoint {
	return api.LLMEndpoint{
		Tenant: r.Tenant, Model: r.ModelID, Engine: r.Engine, HostedModelId: r.HostedModelID, MaxModelLen: int(r.MaxModelLen),
		TensorParallel: int(r.TensorParallel), Dtype: r.Dtype, Enabled: r.Enabled, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
