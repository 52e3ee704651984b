package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/assistant"
	controlplane "github.com/mlp-platform/platform/services/control-plane"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/standalone/internal/orchestratord"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
	"github.com/mlp-platform/platform/services/trainer"
)

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // the address was validated
	return n
}

func base(addr string) string { return "http://" + addr }

func (p *platform) trackerURL() string      { return base(p.cfg.TrackerAddr) }
func (p *platform) orchestratorURL() string { return base(p.cfg.OrchestratorAddr) + "/api" }
func (p *platform) servingURL() string      { return base(p.cfg.InferenceAddr) }
func (p *platform) controlPlaneURL() string { return base(p.cfg.ControlPlaneAddr) }
func (p *platform) evidenceURL() string     { return base(p.cfg.EvidenceAddr) }
func (p *platform) assistantURL() string    { return base(p.cfg.AssistantAddr) }

// environ is the environment of a service: the caller's, with defaults below it and what this process
// alone can know above it.
func (p *platform) environ(defaults, fixed map[string]string) []string {
	env := map[string]string{}
	for k, v := range defaults {
		env[k] = v
	}
	for _, kv := range p.cfg.environ {
		if k, v, ok := strings.Cut(kv, "="); ok && v != "" {
			env[k] = v
		}
	}
	for k, v := range fixed {
		env[k] = v
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

func (p *platform) common() map[string]string {
	return map[string]string{
		"PLATFORM_DATABASE_URL": p.databaseURL,
		"NATS_URL":              p.natsURL,
		"TRACKING_URI":          p.trackerURL(),
		"NATS_STREAM_MAX_BYTES": strconv.Itoa(streamMaxBytes),
		"LOG_LEVEL":             p.cfg.LogLevel,
	}
}

func (p *platform) controlPlaneConfig() (controlplane.Config, error) {
	fixed := p.common()
	fixed["CONTROL_PLANE_ADDR"] = p.cfg.ControlPlaneAddr
	fixed["CONTROL_PLANE_TOKEN"] = p.creds.ControlPlaneToken
	fixed["SERVING_URL"] = p.servingURL()
	fixed["SERVING_TOKEN"] = p.creds.ServingControlPlaneToken
	fixed["MODELREPO_DIR"] = p.repo
	fixed["MODELREPO_WEBHOOK_SECRET"] = p.creds.WebhookSecret
	cfg, err := controlplane.LoadConfig(p.environ(map[string]string{
		"PREFECT_API_URL":                    p.orchestratorURL(),
		"CONTROL_PLANE_CREDENTIALS_JSON":     p.creds.ControlPlaneMap(),
		"CONTROL_PLANE_SEPARATION_OF_DUTIES": "enforce",
		"ALLOW_GENERATED_PRODUCTION":         "true",
		"PROMOTION_APPROVAL_MODE_DEFAULT":    "run",
		"AUDIT_SIGNING_KEY_FILE":             p.path("audit-signing.key"),
	}, fixed))
	// Nobody else can hold a lease on a database of our own.
	cfg.SoleProcess, cfg.StateEmbedded, cfg.BrokerEmbedded = p.embeddedPG != nil, p.embeddedPG != nil, true
	return cfg, err
}

func (p *platform) inferenceConfig() (inference.Config, error) {
	fixed := p.common()
	fixed["INFERENCE_ADDR"] = p.cfg.InferenceAddr
	return inference.LoadConfig(p.environ(map[string]string{
		"INFERENCE_CREDENTIALS_JSON": p.creds.InferenceMap(),
		"MODEL_CACHE_DIR":            p.path("cache", "models"),
	}, fixed))
}

// assistantConfig asks the cluster of KUBECONFIG, and without one a cluster of its own.
func (p *platform) assistantConfig() (assistant.Config, error) {
	fixed := p.common()
	fixed["ASSISTANT_ADDR"] = p.cfg.AssistantAddr
	fixed["ASSISTANT_ADMIN_KEYS"] = p.creds.AssistantAdminKey()
	fixed["ASSISTANT_OPERATOR_KEYS"] = p.creds.AssistantOperatorKey()
	fixed["ASSISTANT_READONLY_KEYS"] = p.creds.AssistantReadonlyKey()
	return assistant.LoadConfig(p.environ(nil, fixed))
}

// assistantProbe is what the start waits for. Of somebody else's cluster it is only that the assistant lives: one
// that does not answer must not keep the rest from starting.
func (p *platform) assistantProbe() string {
	for _, kv := range p.cfg.environ {
		if name, value, _ := strings.Cut(kv, "="); value != "" && (name == "KUBECONFIG" || name == "KUBERNETES_SERVICE_HOST") {
			return "/healthz"
		}
	}
	return "/readyz"
}

// trainerConfig is the trainer's environment. The samples' registry is that of dev.
func (p *platform) trainerConfig() (trainer.Config, error) {
	fixed := p.common()
	fixed["CONTROL_PLANE_URL"] = p.controlPlaneURL()
	fixed["CONTROL_PLANE_TOKEN"] = p.creds.TrainerToken
	fixed["MODELREPO_DIR"] = p.repo
	return trainer.LoadConfig(p.environ(map[string]string{
		"MODELREPO_ENV":           "dev",
		"DATA_CACHE_DIR":          p.path("cache", "data"),
		"PLATFORM_SCHEDULER_MODE": "mock",
	}, fixed))
}

// migrate brings every schema up to date, side by side: none looks at another's.
func (p *platform) migrate(ctx context.Context) error {
	cp, err := p.controlPlaneConfig()
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	inf, err := p.inferenceConfig()
	if err != nil {
		return fmt.Errorf("inference: %w", err)
	}
	as, err := p.assistantConfig()
	if err != nil {
		return fmt.Errorf("assistant: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return assistant.Migrate(ctx, as) })
	g.Go(func() error { return postgres.Migrate(ctx, p.databaseURL, "tracker", trackerd.Migrations()) })
	g.Go(func() error { return postgres.Migrate(ctx, p.databaseURL, "orchestrator", orchestratord.Migrations()) })
	g.Go(func() error { return controlplane.Migrate(ctx, cp) })
	g.Go(func() error { return inference.Migrate(ctx, inf) })
	return g.Wait()
}

// startBack starts the tracker and orchestrator stand-ins. They end together with ctx, but the tracker's
// door stays open until every run has ended: its last word there is how it ended.
func (p *platform) startBack(ctx context.Context, g *errgroup.Group, ls *listeners) (err error) {
	var undo []func()
	defer func() {
		if err != nil {
			for _, fn := range slices.Backward(undo) {
				fn()
			}
		}
	}()
	trackerPool, err := postgres.Open(ctx, p.databaseURL, "tracker")
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	undo = append(undo, trackerPool.Close)
	tracker, err := trackerd.New(ctx, trackerPool, p.path("artifacts"), p.log)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	closeTracker := func() {
		if err := tracker.Close(); err != nil {
			p.log.Warn("tracker did not close", slog.Any("err", err))
		}
	}
	undo = append(undo, closeTracker)
	orchestratorPool, err := postgres.Open(ctx, p.databaseURL, "orchestrator")
	if err != nil {
		return fmt.Errorf("orchestrator: %w", err)
	}
	undo = append(undo, orchestratorPool.Close)
	cfg, err := p.trainerConfig()
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	if p.trainer, err = trainer.New(cfg, p.log); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	orch, err := orchestratord.New(ctx, orchestratorPool, &runner{trainer: p.trainer, progress: &p.progress}, p.log, orchestratord.Concurrency(p.cfg.Concurrency))
	if err != nil {
		return fmt.Errorf("orchestrator: %w", err)
	}
	if err := orch.EnsureDeployment(ctx, dispatchDeployment); err != nil {
		return fmt.Errorf("orchestrator: %w", err)
	}
	trackerCtx, endTracker := context.WithCancel(context.WithoutCancel(ctx))
	p.serveHTTP(trackerCtx, g, ls.tracker, tracker.Handler(), func() {
		closeTracker()
		trackerPool.Close()
	})
	served := p.serveHTTP(ctx, g, ls.orchestrator, orch.Handler(), func() {})
	g.Go(func() error {
		defer func() { <-served; orchestratorPool.Close() }()
		defer endTracker()
		return orch.Run(ctx)
	})
	return nil
}

// serveHTTP serves until ctx ends, then calls after. The channel closes when all that is done.
func (p *platform) serveHTTP(ctx context.Context, g *errgroup.Group, l net.Listener, h http.Handler, after func()) <-chan struct{} {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)}
	done := make(chan struct{})
	g.Go(func() error {
		defer close(done)
		defer after()
		failed := make(chan error, 1)
		go func() { failed <- srv.Serve(l) }()
		select {
		case err := <-failed:
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		case <-ctx.Done():
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil {
			_ = srv.Close()
		}
		<-failed
		return nil
	})
	return done
}

// startFront starts the services themselves.
func (p *platform) startFront(ctx context.Context, g *errgroup.Group, ls *listeners) error {
	cp, err := p.controlPlaneConfig()
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	inf, err := p.inferenceConfig()
	if err != nil {
		return fmt.Errorf("inference: %w", err)
	}
	ev, err := p.evidenceConfig()
	if err != nil {
		return fmt.Errorf("evidence API: %w", err)
	}
	as, err := p.assistantConfig()
	if err != nil {
		return fmt.Errorf("assistant: %w", err)
	}
	ev.Listener, as.Listener = ls.evidence, ls.assistant
	g.Go(func() error {
		if err := assistant.Run(ctx, as, p.log.With(slog.String("service", "assistant"))); err != nil {
			return fmt.Errorf("assistant: %w", err)
		}
		return ctx.Err()
	})
	g.Go(func() error {
		if err := evidenceapi.Run(ctx, ev, p.log.With(slog.String("service", "evidence-api"))); err != nil {
			return fmt.Errorf("evidence API: %w", err)
		}
		return ctx.Err()
	})
	cp.Listener, inf.Listener = ls.controlPlane, ls.inference
	g.Go(func() error {
		if err := inference.Run(ctx, inf, p.log.With(slog.String("service", "inference"))); err != nil {
			return fmt.Errorf("inference: %w", err)
		}
		return ctx.Err()
	})
	g.Go(func() error {
		if err := controlplane.Run(ctx, cp, p.log.With(slog.String("service", "control-plane"))); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		return ctx.Err()
	})
	return nil
}

// progressHub hands training progress to whoever shows it; without a listener it is dropped.
type progressHub struct {
	mu sync.Mutex // guards fn
	fn func(model, stage string, fraction float64)
}

func (h *progressHub) listen(fn func(model, stage string, fraction float64)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fn = fn
}

func (h *progressHub) report(model, stage string, fraction float64) {
	h.mu.Lock()
	fn := h.fn
	h.mu.Unlock()
	if fn != nil {
		fn(model, stage, fraction)
	}
}

// runner runs a flow run of the stand-in orchestrator by the trainer, in this process.
type runner struct {
	trainer  *trainer.Trainer
	progress *progressHub
}

// dispatchDeployment is what the control plane sends retrains to. Its schema names what the runner reads.
var dispatchDeployment = orchestratord.Deployment{
	Flow: "training_flow", Name: "platform-dispatch",
	Description: "Trains one model of the model repository and registers the version.",
	ParameterSchema: json.RawMessage(`{
		"type": "object", "title": "Parameters", "required": ["model_name", "dataset_cls_name"],
		"properties": {
			"model_name": {"type": "string", "title": "model_name"},
			"dataset_cls_name": {"type": "string", "title": "dataset_cls_name"},
			"is_dummy": {"type": "boolean", "default": false, "title": "is_dummy"},
			"backend_name": {"type": ["string", "null"], "default": null, "title": "backend_name"},
			"commit_sha": {"type": ["string", "null"], "default": null, "title": "commit_sha"},
			"tenant": {"type": ["string", "null"], "default": null, "title": "tenant"},
			"request_id": {"type": ["string", "null"], "default": null, "title": "request_id"},
			"requested_by": {"type": ["string", "null"], "default": null, "title": "requested_by"},
			"approval_id": {"type": ["string", "null"], "default": null, "title": "approval_id"},
			"parameters": {"type": ["object", "null"], "default": null, "title": "parameters"}
		}
	}`),
}

// parameters are those of the deployment training_flow/platform-dispatch.
type parameters struct {
	ModelName   string         `json:"model_name"`
	Dataset     string         `json:"dataset_cls_name"`
	Dummy       bool           `json:"is_dummy"`
	Backend     string         `json:"backend_name"`
	CommitSHA   string         `json:"commit_sha"`
	Tenant      string         `json:"tenant"`
	RequestID   string         `json:"request_id"`
	RequestedBy string         `json:"requested_by"`
	ApprovalID  string         `json:"approval_id"`
	Parameters  map[string]any `json:"parameters"`
}

// Run trains once; its error ends the flow run as failed.
func (r *runner) Run(ctx context.Context, run orchestratord.FlowRun, logs func(level int, msg string)) error {
	raw, err := json.Marshal(run.Parameters)
	if err != nil {
		return fmt.Errorf("read the parameters: %w", err)
	}
	var in parameters
	if err := json.Unmarshal(raw, &in); err != nil {
		return fmt.Errorf("read the parameters: %w", err)
	}
	const info = 20 // the orchestrator's level for progress
	last := ""
	res, err := r.trainer.Train(ctx, trainer.Request{
		Model: in.ModelName, Dataset: in.Dataset, Dummy: in.Dummy, Backend: in.Backend, Parameters: in.Parameters,
		FlowRunID: run.ID.String(), CommitSHA: in.CommitSHA, Tenant: in.Tenant, RequestedBy: in.RequestedBy, ApprovalID: in.ApprovalID, RequestID: in.RequestID,
	}, func(stage string, fraction float64, msg string) {
		r.progress.report(strings.ToUpper(in.ModelName), stage, trainer.Overall(stage, fraction))
		if stage != last || msg != "" {
			last = stage
			logs(info, strings.TrimSuffix(stage+": "+msg, ": "))
		}
	})
	if err != nil {
		return err
	}
	if res.Version == "" {
		return errors.New("the trainer registered no version")
	}
	logs(info, fmt.Sprintf("registered %s version %s", res.Model, res.Version))
	return nil
}
