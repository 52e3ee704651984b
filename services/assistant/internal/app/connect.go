package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/investigate"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/model"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/recorded"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
	"github.com/mlp-platform/platform/services/assistant/internal/tool"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// seededNotice is the last line of every answer about the seeded cluster.
const seededNotice = "Note: this is the sample cluster that the assistant starts when it is given none; it is not real."

// reach is the cluster with the parts that read, change and judge it.
type reach struct {
	cluster *cluster.Cluster
	notice  string // last line of every answer; empty: none
	changes mcpclient.Changer
	planner turn.Planner
	tools   turn.Tools
	// runbooks are those of a folder; nil: none.
	runbooks *runbook.Folder
	engine   turn.Investigator
}

// watchLimit is how long an answer waits for something to happen. A turn holds its session, and a reader
// who wants more asks again.
const watchLimit = 8 * time.Second

// connectCluster selects the cluster and the engine that answers questions about it. It makes no call.
func connectCluster(ctx context.Context, cfg Config, policy guard.Policy, servers *mcpclient.Client, counted *metrics.Metrics, log *slog.Logger) (_ *reach, err error) {
	r := &reach{}
	options := cluster.Options{Kubeconfig: cfg.Kubeconfig, Name: cfg.ClusterName, Log: log, Redacted: counted.Redacted}
	if cfg.Cluster == clusterSample {
		options.Seeded = func() (*rest.Config, func()) {
			c := samplecluster.New(time.Now)
			return c.Config(), c.Close
		}
	}
	now := time.Now
	if location, ok := cfg.recording(); ok {
		recording, err := recorded.Open(location)
		if err != nil {
			return nil, err
		}
		for _, skipped := range recording.Skipped {
			log.WarnContext(ctx, "a file of the recording was not read", slog.String("file", skipped))
		}
		options.Config, r.notice, now = recording.Config(), recording.Notice(), recording.Now
	}
	if r.cluster, err = cluster.Open(ctx, options); err != nil {
		return nil, fmt.Errorf("cluster: %w; without a real one, ASSISTANT_CLUSTER=sample answers about a sample cluster in this process", err)
	}
	defer func() {
		if err != nil {
			r.cluster.Close()
		}
	}()
	if r.cluster.Seeded() {
		r.notice = seededNotice
		log.WarnContext(ctx, "no kubeconfig: answers are about a sample cluster in this process")
	}
	changes, err := change.New(change.Config{Policy: policy, Verify: cfg.VerifyTimeout}, change.Deps{Cluster: r.cluster, Log: log, Now: now})
	if err != nil {
		return nil, err
	}
	if cfg.Runbooks != "" {
		if r.runbooks, err = runbook.Open(ctx, cfg.Runbooks, engine.ClassNames(), log); err != nil {
			return nil, fmt.Errorf("ASSISTANT_RUNBOOKS: %w", err)
		}
	}
	planner := change.Planner{Service: changes}
	tools, err := tool.New(tool.Config{PrometheusURL: cfg.PrometheusURL.Reveal(), LokiURL: cfg.LokiURL.Reveal(), Runbooks: r.runbooks}, tool.Deps{
		Cluster: r.cluster, Policy: policy, Planner: planner, Now: now,
	})
	if err != nil {
		return nil, err
	}
	r.changes, r.planner, r.tools = servers.Changes(changes), servers.Planner(planner), servers.Tools(tools)
	found := func(all []engine.Finding) {
		for _, f := range all {
			counted.Matched(f.Class.String())
		}
	}
	playbooks := investigate.New(investigate.Config{ClusterName: r.cluster.Name(), Found: found, WatchLimit: watchLimit})
	r.engine = playbooks
	if !cfg.usesModel() {
		return r, nil
	}
	r.engine, err = model.New(model.Config{
		BaseURL: cfg.baseURL(), Key: cfg.OpenAIKey, Model: cfg.LLMModel, Tokens: cfg.BudgetTokens, ToolCalls: cfg.BudgetToolCalls,
		Time: time.Duration(cfg.BudgetSeconds) * time.Second, Absent: cfg.absentTools(), Servers: servers,
		Window: cfg.LLMContextTokens, PromptPrice: cfg.LLMPromptPrice, AnswerPrice: cfg.LLMAnswerPrice, Cost: cfg.BudgetCost,
	}, playbooks, log, model.Hooks{Found: found})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// connectServers prepares other servers. Only a language model uses their tools, so without one none is reached.
func connectServers(ctx context.Context, cfg Config, db *store.Store, log *slog.Logger) (*mcpclient.Client, error) {
	servers, err := cfg.servers()
	if err != nil {
		return nil, fmt.Errorf("ASSISTANT_MCP_SERVERS: %w", err)
	}
	if len(servers) > 0 && !cfg.usesModel() {
		log.WarnContext(ctx, "ASSISTANT_MCP_SERVERS is not used: no language model answers, and only one uses tools of other servers")
		servers = nil
	}
	return mcpclient.New(servers, mcpclient.Deps{Store: db, Now: time.Now, Log: log})
}
