package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/fleet"
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

// reach is one cluster with the parts that read, change and judge it.
type reach struct {
	cluster *cluster.Cluster
	notice  string // last line of every answer; empty: none
	changes mcpclient.Changer
	planner turn.Planner
	tools   turn.Tools
	engine  turn.Investigator
}

// clusters are all that are served.
type clusters struct {
	names clustername.Names
	all   []*reach // in the order of the names
	fleet *fleet.Fleet
	// runbooks are those of a folder; nil: none.
	runbooks *runbook.Folder
}

// clusterDeps holds the dependencies that all clusters share.
type clusterDeps struct {
	policy   guard.Policy
	servers  *mcpclient.Client
	counted  *metrics.Metrics
	runbooks *runbook.Folder
	log      *slog.Logger
}

// watchLimit is how long an answer waits for something to happen. A turn holds its session, and a reader
// who wants more asks again.
const watchLimit = 8 * time.Second

// connectClusters connects each configured context, or the one cluster there is without any. It makes no call.
func connectClusters(ctx context.Context, cfg Config, d clusterDeps) (_ *clusters, err error) {
	c := &clusters{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	contexts := cfg.clusters()
	if len(contexts) == 0 {
		contexts = []string{""}
	}
	if cfg.Runbooks != "" {
		if d.runbooks, err = runbook.Open(ctx, cfg.Runbooks, engine.ClassNames(), d.log); err != nil {
			return nil, fmt.Errorf("ASSISTANT_RUNBOOKS: %w", err)
		}
		c.runbooks = d.runbooks
	}
	var members []fleet.Member
	for _, name := range contexts {
		r, err := connectCluster(ctx, cfg, name, d)
		if err != nil {
			return nil, err
		}
		c.all = append(c.all, r)
		members = append(members, fleet.Member{Tools: r.tools, Planner: r.planner, Changes: r.changes, Engine: r.engine})
	}
	c.names = clustername.Only(c.all[0].cluster.Name())
	if named := cfg.clusters(); len(named) > 0 {
		c.names = clustername.Configured(named)
	}
	c.fleet = fleet.New(c.names, members)
	return c, nil
}

// close ends the connections.
func (c *clusters) close() {
	for _, r := range c.all {
		r.cluster.Close()
	}
}

// connectCluster selects the cluster of a context, or with an empty one that of the configuration, and the engine that answers
// questions about it.
func connectCluster(ctx context.Context, cfg Config, kubeContext string, d clusterDeps) (_ *reach, err error) {
	r := &reach{}
	options := cluster.Options{Kubeconfig: cfg.Kubeconfig, Context: kubeContext, Name: cfg.ClusterName, Log: d.log, Redacted: d.counted.Redacted}
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
			d.log.WarnContext(ctx, "a file of the recording was not read", slog.String("file", skipped))
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
		d.log.WarnContext(ctx, "no kubeconfig: answers are about a sample cluster in this process")
	}
	changes, err := change.New(change.Config{Policy: d.policy, Verify: cfg.VerifyTimeout}, change.Deps{Cluster: r.cluster, Log: d.log, Now: now})
	if err != nil {
		return nil, err
	}
	planner := change.Planner{Service: changes}
	tools, err := tool.New(tool.Config{PrometheusURL: cfg.PrometheusURL.Reveal(), LokiURL: cfg.LokiURL.Reveal(), Runbooks: d.runbooks}, tool.Deps{
		Cluster: r.cluster, Policy: d.policy, Planner: planner, Now: now,
	})
	if err != nil {
		return nil, err
	}
	r.changes, r.planner, r.tools = d.servers.Changes(changes), d.servers.Planner(planner), d.servers.Tools(tools)
	r.engine, err = newEngine(cfg, r.cluster.Name(), d)
	return r, err
}

// newEngine returns what answers questions about the cluster of a name.
func newEngine(cfg Config, clusterName string, d clusterDeps) (turn.Investigator, error) {
	found := func(all []engine.Finding) {
		for _, f := range all {
			d.counted.Matched(f.Class.String())
		}
	}
	playbooks := investigate.New(investigate.Config{ClusterName: clusterName, Found: found, WatchLimit: watchLimit})
	if !cfg.usesModel() {
		return playbooks, nil
	}
	return model.New(model.Config{
		BaseURL: cfg.baseURL(), Key: cfg.OpenAIKey, Model: cfg.LLMModel, Tokens: cfg.BudgetTokens, ToolCalls: cfg.BudgetToolCalls,
		Time: time.Duration(cfg.BudgetSeconds) * time.Second, Absent: cfg.absentTools(), Servers: d.servers,
		Window: cfg.LLMContextTokens, PromptPrice: cfg.LLMPromptPrice, AnswerPrice: cfg.LLMAnswerPrice, Cost: cfg.BudgetCost,
	}, playbooks, d.log, model.Hooks{Found: found})
}

// notice is the last line of every answer; clusters that are configured by name have one each.
func (c *clusters) notice() string {
	if c.names.List() != nil {
		return ""
	}
	return c.all[0].notice
}

// sample reports whether the cluster is this process's own.
func (c *clusters) sample() bool { return c.all[0].cluster.Seeded() }

// run watches every cluster until ctx ends.
func (c *clusters) run(ctx context.Context) error {
	var all errgroup.Group
	for _, r := range c.all {
		all.Go(func() error { return r.cluster.Run(ctx) })
	}
	return all.Wait()
}

// listers tell the namespaces of each cluster.
func (c *clusters) listers() []cluster.NamespaceLister {
	var list []cluster.NamespaceLister
	for _, r := range c.all {
		list = append(list, r.cluster)
	}
	return list
}

// nameStored gives the default's name to what was stored before clusters were configured by name, so that a later change of
// the default moves nothing.
func (c *clusters) nameStored(ctx context.Context, db *store.Store) error {
	if c.names.List() == nil {
		return nil
	}
	_, sessions := db.NameSessions(ctx, c.names.Default())
	_, actions := db.NameActions(ctx, c.names.Default())
	if err := errors.Join(sessions, actions); err != nil {
		return fmt.Errorf("name the cluster of earlier sessions: %w", err)
	}
	return nil
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
