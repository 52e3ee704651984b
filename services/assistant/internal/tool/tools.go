package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/snapshot"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/telemetry"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Limits on the duration and the output of a call.
const (
	readLimit  = 30 * time.Second
	queryLimit = 15 * time.Second // logs and the stores

	maxCharacters    = 8000
	maxLogCharacters = 6000
)

// Config holds the addresses of the stores. An empty address means that there is no such store.
type Config struct {
	PrometheusURL, LokiURL string
	Runbooks               *runbook.Folder // nil: none
}

// Deps holds what the tools depend on.
type Deps struct {
	Cluster *cluster.Cluster
	Policy  guard.Policy
	// Planner dry-runs writes.
	Planner turn.Planner
	Now     func() time.Time
}

// Tools are the tools of all turns. They are safe for concurrent use.
type Tools struct {
	Deps
	prometheus *telemetry.Prometheus
	loki       *telemetry.Loki
	snapshots  *snapshot.Shared
	runbooks   *runbook.Folder
}

var _ turn.Tools = (*Tools)(nil)

// New checks the parts and the addresses. It makes no call.
func New(cfg Config, d Deps) (*Tools, error) {
	if err := service.RequireParts("tool", d); err != nil {
		return nil, err
	}
	prometheus, badMetrics := telemetry.NewPrometheus(cfg.PrometheusURL, d.Now)
	loki, badLogs := telemetry.NewLoki(cfg.LokiURL, d.Now)
	if err := errors.Join(badMetrics, badLogs); err != nil {
		return nil, err
	}
	return &Tools{d, prometheus, loki, snapshot.Share(d.Cluster, d.Policy, d.Now), cfg.Runbooks}, nil
}

// Line returns the equivalent kubectl command, with values redacted.
func (t *Tools) Line(by turn.Turn, op operation.Operation) string {
	return redact.Typed(kubectl.Render(t.scoped(by, op)))
}

// scoped adds the turn's namespace to the operation, if it accepts one.
func (t *Tools) scoped(by turn.Turn, op operation.Operation) operation.Operation {
	if op.Namespace != "" || op.AllNamespaces || by.Scope == "" {
		return op
	}
	for _, kind := range op.Kinds() {
		if r, ok := t.Cluster.Known(kind); ok && !r.Namespaced {
			return op
		}
	}
	in := op
	if in.Namespace = by.Scope; in.Validate() != nil {
		return op
	}
	return in
}

// Run reads on behalf of the turn's caller. An operation that the rules refuse makes no call to
// the cluster.
func (t *Tools) Run(ctx context.Context, by turn.Turn, op operation.Operation) (turn.Output, error) {
	c := &call{Tools: t, by: by, op: op}
	restore := func(text string) string { return text }
	if !op.Verb.Writes() {
		restore = c.hiding()
	}
	if err := c.permitted(); err != nil {
		return turn.Output{}, err
	}
	run, limit := c.runner()
	if run == nil {
		return turn.Output{}, operation.Refuse(operation.UnknownVerb, "verb", "There is no tool %s.", operation.Quote(string(op.Verb)))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s took over %v", op.Verb, limit))
	defer cancel()
	out, err := run(ctx)
	if err != nil {
		return turn.Output{}, restoreError(cluster.Fail(err), restore)
	}
	out.Text = restore(out.Text)
	most := maxCharacters
	if limit == queryLimit {
		most = maxLogCharacters
	}
	if op.Verb != operation.Logs { // those are redacted where they are read
		out.Whole = redact.Text(restore(out.Whole))
	}
	text, cut := clip.Head(redact.Text(out.Text), most, "narrow the request")
	out.Text, out.Truncated = text, out.Truncated || cut
	return out, nil
}

// Snapshot reads what playbooks examine.
func (t *Tools) Snapshot(ctx context.Context, by turn.Turn, namespace string, show func(operation.Operation) func(turn.Output, error)) (*engine.Snapshot, error) {
	c := &call{Tools: t, by: by, op: operation.Operation{Verb: operation.List, Namespace: namespace, AllNamespaces: namespace == ""}}
	restore := c.hiding()
	if err := c.permitted(); err != nil {
		return nil, err
	}
	s, err := t.snapshots.Read(ctx, c.op.Namespace, showing(show, restore))
	return s, restoreError(err, restore)
}

// Runbooks finds the runbooks for any of some subjects.
func (t *Tools) Runbooks(of ...runbook.Subject) []runbook.Quote { return t.runbooks.Find(of...) }

// MetricLabels asks the metrics store; it makes no call to the cluster.
func (t *Tools) MetricLabels(ctx context.Context, by turn.Turn, metric string, pods, known []types.NamespacedName) (turn.MetricLabels, error) {
	c := &call{Tools: t, by: by, op: operation.Operation{Verb: operation.QueryPrometheus}}
	if err := c.permitted(); err != nil {
		return turn.MetricLabels{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queryLimit, fmt.Errorf("the labels of %s took over %v", metric, queryLimit))
	defer cancel()
	return t.prometheus.Labels(ctx, metric, pods, known, t.Policy.Hidden)
}

// call is one operation of one caller.
type call struct {
	*Tools
	by turn.Turn
	op operation.Operation
}

// permitted checks the rules, before any call to the cluster.
func (c *call) permitted() error {
	op := c.op
	if op.Namespace == "" && !op.AllNamespaces {
		op.Namespace = c.by.Scope // what the operation then means
	}
	if v := c.Policy.Precheck(c.by.Who.Role, op); v.Answer == guard.Refuse {
		return &action.Refused{Code: v.Code, Reason: v.Reason}
	}
	return nil
}

func (c *call) runner() (run func(context.Context) (turn.Output, error), limit time.Duration) {
	if c.op.Verb.Writes() {
		return c.rehearse, readLimit
	}
	switch c.op.Verb {
	case operation.List:
		return c.list, readLimit
	case operation.Get:
		return c.get, readLimit
	case operation.Describe:
		return c.describe, readLimit
	case operation.Logs:
		return c.logs, queryLimit
	case operation.Events:
		return c.events, readLimit
	case operation.Top:
		return c.top, readLimit
	case operation.RolloutHistory:
		return c.history, readLimit
	case operation.CanI:
		return c.rights, readLimit
	case operation.WhoAmI:
		return c.whoAmI, readLimit
	case operation.APIResources:
		return c.apiResources, readLimit
	case operation.ClusterInfo:
		return c.clusterInfo, readLimit
	case operation.Explain:
		return c.explain, readLimit
	case operation.Diff:
		return c.diff, readLimit
	case operation.QueryPrometheus:
		return c.metrics, queryLimit
	case operation.QueryLoki:
		return c.logStore, queryLimit
	}
	return nil, 0
}

func (c *call) metrics(ctx context.Context) (turn.Output, error) {
	return c.prometheus.Query(ctx, c.op.PromQL, c.op.RangeMinutes, c.Policy.Hidden)
}

func (c *call) logStore(ctx context.Context) (turn.Output, error) {
	return c.loki.Query(ctx, c.op.LogQL, c.op.Limit, parseSince(c.op.Since), c.Policy.Hidden)
}

func parseSince(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0 // absent: the operation was validated
	}
	return d
}
