package change

import (
	"context"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Timeouts of calls.
const (
	readTime  = 30 * time.Second
	writeTime = 60 * time.Second
	drainTime = 300 * time.Second
)

// FieldManager is the name under which the cluster records the assistant's writes.
const FieldManager = "cluster-assistant"

// Config holds the settings.
type Config struct {
	Policy guard.Policy
	Verify time.Duration // timeout for a write to show
}

// Deps holds what the service depends on.
type Deps struct {
	Cluster *cluster.Cluster
	Now     func() time.Time `part:"optional"` // nil means time.Now
	Log     *slog.Logger
}

// Service implements action.Cluster and action.Probe on a cluster.
type Service struct {
	Config
	Deps
}

// New returns a service, or an error that names the missing parts.
func New(c Config, d Deps) (*Service, error) {
	if err := service.RequireParts("change", d); err != nil {
		return nil, err
	}
	if c.Verify <= 0 {
		c.Verify = time.Minute
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Service{c, d}, nil
}

// Plan implements action.Cluster: it plans an earlier proposal again. The origin of its values was judged at the
// proposal.
func (s *Service) Plan(ctx context.Context, role guard.Role, ops []operation.Operation) (action.Plan, error) {
	return s.plan(ctx, ops, guard.Case{Role: role, OriginJudged: true}, nil)
}

// Planner plans the operations that a turn proposes. Unlike [Service.Plan], it knows the user's words and the cluster
// text that the turn has read.
type Planner struct{ *Service }

// Plan implements turn.Planner. A write without effect is a *operation.Fault.
func (p Planner) Plan(ctx context.Context, t turn.Turn, ops []operation.Operation) (action.Plan, error) {
	var words []string
	if !t.Unspoken {
		words = append(words, t.Query)
	}
	for _, m := range t.History {
		if m.Role == chat.RoleUser && !m.Unspoken {
			words = append(words, m.Text)
		}
	}
	return p.plan(ctx, ops, guard.Case{Role: t.Who.Role, Words: words, Untrusted: t.Untrusted, Choice: t.Choice}, &t.Scope)
}

// Judge returns, without calling the cluster, the most that a role may do.
func (s *Service) Judge(role guard.Role, ops []operation.Expanded) guard.Verdict {
	v := s.Policy.Reach(role, ops)
	if v.Answer == guard.Refuse {
		return v
	}
	for _, e := range ops {
		if p := s.Policy.Precheck(role, e.Operation); p.Answer == guard.Refuse {
			return p
		}
	}
	v.Answer = guard.Approval
	return v
}
