package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/direct"
	"github.com/mlp-platform/platform/services/inference/internal/pyfunc"
)

// Config of the service; docs/inference.md lists the variables with their meaning.
type Config struct {
	service.Base

	// Addr is host:port. Without credentials it must be a loopback address.
	Addr string `env:"INFERENCE_ADDR" envDefault:"127.0.0.1:18001"`
	// GRPCAddr is host:port of the Open Inference Protocol over gRPC; empty serves none. Without credentials it must be a
	// loopback address.
	GRPCAddr string `env:"INFERENCE_GRPC_ADDR"`
	// AllowedHosts are the Host values served, without port. Empty: with credentials all, without them localhost and the
	// addresses of loopback, to which these are added.
	AllowedHosts []string `env:"INFERENCE_ALLOWED_HOSTS"`
	// Credentials maps bearer secrets to principals with the scopes predict and admin; empty means open.
	Credentials service.Secret `env:"INFERENCE_CREDENTIALS_JSON"`
	// DelegationTrust maps each service that may act for people to its public key, tenants and scopes.
	DelegationTrust service.Secret `env:"DELEGATION_TRUST_JSON"`
	// TrackingURI is the model registry: an MLflow 3 server.
	TrackingURI string `env:"TRACKING_URI" envDefault:"http://localhost:15000"`
	// TrackingToken is the bearer for the registry; empty: none.
	TrackingToken service.Secret `env:"MLFLOW_TRACKING_TOKEN"`
	// TrackerWebhookSecret signs the registry's webhooks; empty refuses them all, and aliases are followed by poll alone.
	TrackerWebhookSecret service.Secret `env:"TRACKER_WEBHOOK_SECRET"`
	// ModelsResidentMax limits the aliases loaded at a time: the most recently requested, and as many of PreloadAliases
	// as fit. 0 keeps all of PreloadAliases loaded.
	ModelsResidentMax int `env:"MODELS_RESIDENT_MAX" envDefault:"0"`
	// PreloadAliases are kept loaded: a list of Production, Canary, Staging, or all, or none.
	PreloadAliases string `env:"PRELOAD_ALIASES" envDefault:"all"`
	// ReloadPollSeconds is the time between comparisons of aliases with the registry.
	ReloadPollSeconds int `env:"RELOAD_POLL_SECONDS" envDefault:"10"`
	// RequireDigest refuses versions whose files have no registered digest.
	RequireDigest bool `env:"REQUIRE_DIGEST" envDefault:"true"`
	// RequireGate, true or false, takes no Production version that the control plane has not admitted; default true
	// where SeparationOfDuties is enforce.
	RequireGate string `env:"REQUIRE_GATE"`
	// SeparationOfDuties is the control plane's setting; it is read for the default of RequireGate alone.
	SeparationOfDuties string `env:"CONTROL_PLANE_SEPARATION_OF_DUTIES"`
	// ControlPlaneURL is the source of admissions; required with the gate. ControlPlaneToken needs the scope read.
	ControlPlaneURL   string         `env:"CONTROL_PLANE_URL"`
	ControlPlaneToken service.Secret `env:"CONTROL_PLANE_TOKEN"`
	// ModelCacheDir is the folder of downloaded artifacts; default in the user's cache.
	ModelCacheDir string `env:"MODEL_CACHE_DIR"`
	// PyfuncEndpoints maps models, by the tracker's name or by name/version, to the URLs of MLflow scoring servers: JSON.
	PyfuncEndpoints string `env:"PYFUNC_ENDPOINTS_JSON"`
	// PyfuncCommand starts a scoring server for each version that has no ONNX graph: words, or a JSON list of them, in which
	// {model} and {port} are replaced. Empty: off.
	PyfuncCommand string `env:"PYFUNC_COMMAND"`
	// ORTThreads may work on one run of a model.
	ORTThreads int `env:"ORT_THREADS" envDefault:"1"`
	// ORTArena keeps the memory of a run for the next one.
	ORTArena bool `env:"ORT_ARENA" envDefault:"true"`
	// ORTOptimization is the optimization of graphs: off, basic, extended or all; empty is the library's default.
	ORTOptimization string `env:"ORT_GRAPH_OPTIMIZATION"`
	// ORTProviders are the execution providers, in their order; what they cannot compute is left to the CPU.
	ORTProviders []string `env:"ORT_PROVIDERS" envDefault:"cpu"`
	// TimeoutMS is the deadline of a prediction request and of a reload, in milliseconds.
	TimeoutMS int `env:"INFERENCE_TIMEOUT_MS" envDefault:"30000"`
	// RunTimeoutMS limits one run of a model, in milliseconds; a copy that takes longer is taken out of service.
	RunTimeoutMS int `env:"RUN_TIMEOUT_MS" envDefault:"10000"`
	// ModelTrialSeconds limits the trial of a model, in a separate process, before it is loaded.
	ModelTrialSeconds int `env:"MODEL_TRIAL_SECONDS" envDefault:"20"`
	// ModelMemoryMB limits the memory of all concurrent trials, in MiB; the largest model needs about eight times its
	// file.
	ModelMemoryMB int `env:"MODEL_MEMORY_MB" envDefault:"768"`
	// BatchMax is the most rows of one run.
	BatchMax int `env:"BATCH_MAX" envDefault:"32"`
	// BatchWaitUS is how long a run waits for more rows, in microseconds; 0 takes the rows present.
	BatchWaitUS int `env:"BATCH_WAIT_US" envDefault:"0"`
	// MaxInflight limits the rows of one model that are in runs, QueueMax those waiting for one.
	MaxInflight int `env:"MAX_INFLIGHT" envDefault:"256"`
	QueueMax    int `env:"QUEUE_MAX" envDefault:"512"`
	// SnapshotQueue is how many predictions may wait to be written down; beyond it they are not.
	SnapshotQueue int `env:"SNAPSHOT_QUEUE" envDefault:"10000"`

	// Listener overrides Addr; it is for tests and for standalone.
	Listener net.Listener `env:"-"`
	// Link lets a client in this process reach the routes without a connection; nil: there is none.
	Link *direct.Link `env:"-"`
	// GRPCListener overrides GRPCAddr, for the same.
	GRPCListener net.Listener `env:"-"`

	// DriftEvery is how often drift is evaluated; 0 means monitor.Every. Tests shorten it.
	DriftEvery time.Duration `env:"-"`
}

// LoadConfig reads the environment. The error names every fault.
func LoadConfig(environ []string) (Config, error) {
	var c Config
	if err := service.LoadConfig(&c, environ); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate sets defaults and checks combinations of variables.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if c.DatabaseURL == "" {
		fault("PLATFORM_DATABASE_URL is not set; it names the database for snapshots, baselines and events")
	}
	if u, err := url.Parse(c.TrackingURI); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fault("TRACKING_URI is no http or https URL")
	}
	if err := service.CheckSecret("MLFLOW_TRACKING_TOKEN", c.TrackingToken); err != nil {
		faults = append(faults, err)
	}
	if err := service.CheckSecret("TRACKER_WEBHOOK_SECRET", c.TrackerWebhookSecret); err != nil {
		faults = append(faults, err)
	}
	if _, err := catalog.ParseAliases(c.PreloadAliases); err != nil {
		faults = append(faults, err)
	}
	if err := c.checkGate(); err != nil {
		faults = append(faults, err)
	}
	if _, err := pyfunc.ParseEndpoints(c.PyfuncEndpoints); err != nil {
		fault("PYFUNC_ENDPOINTS_JSON: %w", err)
	}
	if _, err := pyfunc.ParseCommand(c.PyfuncCommand); err != nil {
		fault("PYFUNC_COMMAND: %w", err)
	}
	if err := c.engine().Check(); err != nil {
		fault("ORT_GRAPH_OPTIMIZATION, ORT_PROVIDERS: %w", err)
	}
	for _, v := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"RELOAD_POLL_SECONDS", c.ReloadPollSeconds, 1, 86400},
		{"ORT_THREADS", c.ORTThreads, 1, 256},
		{"INFERENCE_TIMEOUT_MS", c.TimeoutMS, 1, 600_000},
		{"RUN_TIMEOUT_MS", c.RunTimeoutMS, 1, 600_000},
		{"MODEL_TRIAL_SECONDS", c.ModelTrialSeconds, 1, 600},
		{"MODEL_MEMORY_MB", c.ModelMemoryMB, 64, 1 << 20},
		{"MODELS_RESIDENT_MAX", c.ModelsResidentMax, 0, 100_000},
		{"BATCH_MAX", c.BatchMax, 1, 1024},
		{"BATCH_WAIT_US", c.BatchWaitUS, 0, 1_000_000},
		{"MAX_INFLIGHT", c.MaxInflight, 1, 65536},
		{"QUEUE_MAX", c.QueueMax, 0, 65536},
		{"SNAPSHOT_QUEUE", c.SnapshotQueue, 0, 1_000_000},
	} {
		if v.value < v.low || v.value > v.high {
			fault("%s is %d; it must be %d to %d", v.name, v.value, v.low, v.high)
		}
	}
	if c.ModelCacheDir == "" {
		// Never below the shared temporary folder: there, others could make the folder first.
		if base, err := os.UserCacheDir(); err != nil {
			fault("MODEL_CACHE_DIR is not set, and there is no cache folder of this user: %w", err)
		} else {
			c.ModelCacheDir = filepath.Join(base, "mlp-platform", "models")
		}
	}
	addr := c.Addr
	if c.Listener != nil {
		addr = c.Listener.Addr().String()
	}
	a := c.authenticator(nil) // asked for faults alone
	if err := a.CheckPlaceholders(); err != nil {
		fault("INFERENCE_CREDENTIALS_JSON: %w", err)
	}
	if err := a.State(); err != nil {
		fault("INFERENCE_CREDENTIALS_JSON: %w", err)
	}
	if err := a.DelegationState(); err != nil {
		fault("DELEGATION_TRUST_JSON: %w", err)
	}
	if err := service.RequireLoopbackIfOpen(addr, a.Configured()); err != nil {
		fault("INFERENCE_ADDR: %w (INFERENCE_CREDENTIALS_JSON)", err)
	}
	if c.GRPCListener != nil {
		c.GRPCAddr = c.GRPCListener.Addr().String()
	}
	if c.GRPCAddr != "" {
		if err := service.RequireLoopbackIfOpen(c.GRPCAddr, a.Configured()); err != nil {
			fault("INFERENCE_GRPC_ADDR: %w (INFERENCE_CREDENTIALS_JSON)", err)
		}
	}
	if !a.Configured() && slices.ContainsFunc(c.AllowedHosts, func(host string) bool { return strings.TrimSpace(host) == "*" }) {
		fault("INFERENCE_ALLOWED_HOSTS: every host is served only with credentials (INFERENCE_CREDENTIALS_JSON)")
	}
	return errors.Join(faults...)
}

// engine selects how ONNX Runtime computes.
func (c *Config) engine() runtime.Engine {
	return runtime.Engine{NoArena: !c.ORTArena, Optimization: c.ORTOptimization, Providers: c.ORTProviders}
}

// gateRequired reports whether Production serves admitted versions only.
func (c *Config) gateRequired() bool {
	if c.RequireGate == "" {
		return c.SeparationOfDuties == "enforce"
	}
	required, _ := strconv.ParseBool(c.RequireGate) // checked by Validate
	return required
}

// checkGate reports missing settings of the gate.
func (c *Config) checkGate() error {
	var faults []error
	if _, err := strconv.ParseBool(c.RequireGate); c.RequireGate != "" && err != nil {
		return fmt.Errorf("REQUIRE_GATE is %q; it must be true or false", c.RequireGate)
	}
	u, err := url.Parse(c.ControlPlaneURL)
	valid := err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
	switch {
	case c.ControlPlaneURL != "" && !valid:
		faults = append(faults, errors.New("CONTROL_PLANE_URL is no http or https URL"))
	case c.ControlPlaneURL == "" && c.gateRequired():
		faults = append(faults, errors.New("REQUIRE_GATE needs CONTROL_PLANE_URL, the source of admissions"))
	}
	return errors.Join(append(faults, service.CheckSecret("CONTROL_PLANE_TOKEN", c.ControlPlaneToken))...)
}

// The service's scopes.
const (
	scopePredict = "predict"
	scopeAdmin   = "admin"
)

// authenticator checks credentials; once keeps a delegation from writing twice.
func (c *Config) authenticator(once auth.Once) *auth.Authenticator {
	return auth.Load("", c.Credentials.Reveal(), auth.Rules{
		Scopes: map[string][]string{scopePredict: nil, scopeAdmin: {scopePredict}}, Reads: []string{scopePredict},
	}).WithDelegation(auth.Delegation{Audience: name, Trust: c.DelegationTrust.Reveal(), Once: once})
}

// allowedHosts are the Host values served; none: all. Without credentials the service is open to this machine, and so to
// each page in its browsers whose name was made to resolve to loopback: only names that no page can have are served.
func (c *Config) allowedHosts() []string {
	if c.authenticator(nil).Configured() {
		return c.AllowedHosts
	}
	addr := c.Addr
	if c.Listener != nil {
		addr = c.Listener.Addr().String()
	}
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, c.AllowedHosts...)
	if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
		hosts = append(hosts, host) // such as 127.0.0.2
	}
	return hosts
}

// sessions is how many runs of one model happen at a time: as many as there are processors, unless that
// many full runs would exceed MAX_INFLIGHT.
func (c *Config) sessions(processors int) int {
	return max(1, min(processors, c.MaxInflight/c.BatchMax))
}

func (c *Config) timeout() time.Duration { return time.Duration(c.TimeoutMS) * time.Millisecond }
