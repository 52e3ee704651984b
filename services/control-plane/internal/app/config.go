package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
)

// Config holds all settings of the control plane. Durations are in the unit that
// their name states.
type Config struct {
	service.Base
	// Addr is where the API listens.
	Addr string `env:"CONTROL_PLANE_ADDR" envDefault:"127.0.0.1:18002"`
	// Listener overrides Addr, for tests and for a process that runs several services.
	Listener net.Listener
	// AllowedHosts lists the accepted Host values; "*" accepts all.
	AllowedHosts []string `env:"CONTROL_PLANE_ALLOWED_HOSTS" envDefault:"*"`

	// Token is the legacy credential: principal legacy, tenant default, all scopes.
	Token service.Secret `env:"CONTROL_PLANE_TOKEN"`
	// Credentials maps each bearer secret to {principal, tenant, scopes}.
	Credentials service.Secret `env:"CONTROL_PLANE_CREDENTIALS_JSON"`
	// DelegationTrust maps each service that may act on behalf of people to its public
	// key, its tenants and the widest scopes it may delegate.
	DelegationTrust service.Secret `env:"DELEGATION_TRUST_JSON"`
	// SeparationOfDuties is off, or enforce: no one can approve what they requested or pushed, and a change whose
	// author is unknown needs two approvals.
	SeparationOfDuties string `env:"CONTROL_PLANE_SEPARATION_OF_DUTIES" envDefault:"off"`

	// OrchestratorURL is the orchestrator's API, including /api.
	OrchestratorURL string `env:"PREFECT_API_URL" envDefault:"http://localhost:14200/api"`
	// OrchestratorKey is the bearer for the orchestrator; empty: none.
	OrchestratorKey service.Secret `env:"PREFECT_API_KEY"`
	// Deployment is where training runs are dispatched to, as flow/deployment.
	Deployment string `env:"PREFECT_DEPLOYMENT_NAME" envDefault:"training_flow/platform-dispatch"`
	// BreakerFailMax is the number of consecutive failures that opens the circuit breaker.
	BreakerFailMax int `env:"PREFECT_CB_FAIL_MAX" envDefault:"5"`
	// BreakerResetSeconds is how long the breaker stays open until one replica tries a call.
	BreakerResetSeconds int `env:"PREFECT_CB_RESET_TIMEOUT" envDefault:"30"`
	// TrackingURI is the URL of the tracker.
	TrackingURI string `env:"TRACKING_URI" envDefault:"http://localhost:15000"`
	// TrackingToken is the bearer for the tracker; empty: none.
	TrackingToken service.Secret `env:"MLFLOW_TRACKING_TOKEN"`
	// ServingURL is the URL of the inference service; empty: there is none.
	ServingURL string `env:"SERVING_URL" envDefault:"http://localhost:18001"`
	// ServingToken is the bearer credential for the inference service; empty: none.
	ServingToken service.Secret `env:"SERVING_TOKEN"`
	// AutoRetrainGate is empty, or approval to force the gate approval for all auto-retraining.
	AutoRetrainGate string `env:"AUTO_RETRAIN_GATE"`
	// AutoRetrainSeconds is the interval at which the leader checks for drifting models.
	AutoRetrainSeconds int `env:"AUTO_RETRAIN_SECONDS" envDefault:"60"`
	// AlertSeconds is the interval at which the leader reads the alert sources.
	AlertSeconds int `env:"ALERT_SECONDS" envDefault:"30"`
	// BusBridgeURL is the URL of the bus bridge; empty: its state is unknown.
	BusBridgeURL string `env:"BUS_BRIDGE_URL"`

	// ModelRepoDir is the directory of the model repository; empty: no model is known.
	ModelRepoDir string `env:"MODELREPO_DIR"`
	// ModelRepoEnv is the registry that overrides base: dev, staging, prod or empty.
	ModelRepoEnv string `env:"MODELREPO_ENV"`

	// WebhookSecret authenticates the forges' webhooks; empty: they are not served.
	WebhookSecret service.Secret `env:"MODELREPO_WEBHOOK_SECRET"`
	// WebhookSigningToken, whsec_<base64>, requires forge A to sign its deliveries.
	WebhookSigningToken service.Secret `env:"MODELREPO_WEBHOOK_SIGNING_TOKEN"`
	// AutoRetrain, PollSeconds and WatchBranch are the initial settings; after the first
	// start PUT /modelrepo/config changes them.
	AutoRetrain bool   `env:"MODELREPO_AUTO_RETRAIN" envDefault:"false"`
	PollSeconds int    `env:"MODELREPO_POLL_SECONDS" envDefault:"300"`
	WatchBranch string `env:"MODELREPO_WATCH_BRANCH" envDefault:"main"`
	// GitLabURL is the server that hosts GitLabProject and CIProject.
	GitLabURL string `env:"GITLAB_URL"`
	// GitLabProject, an id or path, is polled for new heads; empty: GitURL is polled.
	GitLabProject string `env:"GITLAB_PROJECT_ID"`
	// GitLabToken grants read access to GitLabProject; empty if it is public.
	GitLabToken service.Secret `env:"GITLAB_TOKEN"`
	// GitURL, an http or https URL that may contain credentials, is polled for new
	// heads and checked out; empty: MODELREPO_DIR is polled if it is the root of a
	// git repository.
	GitURL service.Secret `env:"MODELREPO_GIT_URL"`
	// ModelRepoCacheDir caches what was fetched from GitURL, one folder per process;
	// empty: mlp-platform/modelrepo in the user's cache folder.
	ModelRepoCacheDir string `env:"MODELREPO_CACHE_DIR"`
	// Identities maps accounts of the forges to principals, as {"forge-a:<user name>": "<principal>",
	// "forge-b:<login>": "<principal>", "local": "<principal>"}; a pusher counts as a requester of what follows. Empty:
	// no pusher is known.
	Identities string `env:"MODELREPO_IDENTITIES_JSON"`
	// CIProject is the id or path of a project on GitLabURL whose pipeline is triggered
	// on each new head; empty: none.
	CIProject string `env:"AI_PROD_GITLAB_PROJECT_ID"`
	// CITriggerToken is the token that triggers CIProject's pipeline.
	CITriggerToken service.Secret `env:"AI_PROD_PIPELINE_TRIGGER_TOKEN"`

	// PushRetentionDays is how long the record of a push is kept after its last use: by a model that is stale because
	// of it, by a version or run of its commit, or as the head. 0: for ever.
	PushRetentionDays int `env:"PUSH_RETENTION_DAYS" envDefault:"365"`
	// ApprovalExpiryHours is the age at which a pending approval expires; 0: never.
	ApprovalExpiryHours int `env:"APPROVAL_EXPIRY_HOURS" envDefault:"72"`
	// CommandLeaseSeconds is how long the sending process owns a dispatch before another takes it over. A run waits at
	// most a minute for its turn at a slow orchestrator, and less with a shorter lease.
	CommandLeaseSeconds int `env:"COMMAND_LEASE_SECONDS" envDefault:"300"`
	// ApprovalMode is the default approval mode of promotion policies: each or run.
	ApprovalMode string `env:"PROMOTION_APPROVAL_MODE_DEFAULT" envDefault:"each"`
	// AllowGenerated allows versions trained on generated data in Production.
	AllowGenerated bool `env:"ALLOW_GENERATED_PRODUCTION" envDefault:"false"`

	// GPUCostPerHour and CPUCostPerHour are the price of one GPU hour and one core hour in USD.
	GPUCostPerHour float64 `env:"GPU_COST_PER_HOUR" envDefault:"2.50"`
	CPUCostPerHour float64 `env:"CPU_COST_PER_HOUR" envDefault:"0.05"`
	// CarbonGPUWatts and CarbonCoreWatts are the mean power draw of an allocated GPU and core.
	CarbonGPUWatts  float64 `env:"CARBON_GPU_WATTS" envDefault:"400"`
	CarbonCoreWatts float64 `env:"CARBON_CORE_WATTS" envDefault:"5"`
	// CarbonPUE is the facility's power usage effectiveness: its total power divided by that of its computers.
	CarbonPUE float64 `env:"CARBON_PUE" envDefault:"1.5"`
	// CarbonGridGramsPerKWh is the grid's average emissions, in grams of CO2e per kWh.
	CarbonGridGramsPerKWh float64 `env:"CARBON_GRID_G_PER_KWH" envDefault:"300"`

	// AuditKeyFile holds the key that signs checkpoints of the audit ledger; it is created
	// if missing. Empty: checkpoints are not signed. All replicas share one key.
	AuditKeyFile string `env:"AUDIT_SIGNING_KEY_FILE"`
	// AuditStateDir is the folder of the files that record the end of the audit ledger outside the database:
	// audit_high_water and those whose name begins with the key's name. All replicas share it. Empty: the key's folder.
	AuditStateDir string `env:"AUDIT_STATE_DIR"`
	// AuditTrustedKeys lists further public keys whose checkpoints are trusted, in hex or
	// base64, separated by commas; needed for a retired key until its successor has
	// vouched for it. Empty: only the key in AuditKeyFile and the keys it vouches for.
	AuditTrustedKeys string `env:"AUDIT_TRUSTED_KEYS"`

	// Requests per tenant and minute; 0: no limit.
	ChangesPerMinute  int `env:"CHANGES_RATE_LIMIT_PER_MIN" envDefault:"120"`
	RetrainsPerMinute int `env:"RETRAIN_RATE_LIMIT_PER_MIN" envDefault:"20"`
	DecisionsPerMin   int `env:"DECISION_RATE_LIMIT_PER_MIN" envDefault:"120"`
	// WritesPerMinute limits all other writes.
	WritesPerMinute int `env:"WRITE_RATE_LIMIT_PER_MIN" envDefault:"120"`
	// Maximum number of dispatches of this process waiting for the orchestrator.
	AdmissionMax       int `env:"ADMISSION_MAX_RUNNING" envDefault:"4"`
	AdmissionPerTenant int `env:"ADMISSION_PER_TENANT" envDefault:"2"`

	// SystemCredentials maps the secrets of the platform's own components, whose principals are named system:…, for a
	// process that runs several services. No environment variable holds it.
	SystemCredentials service.Secret
	// SoleProcess means that no other replica uses this database: the work of a dead
	// predecessor is then taken over immediately instead of after its lease.
	SoleProcess bool
	// StateEmbedded and BrokerEmbedded mean that the database and the broker run inside
	// this process.
	StateEmbedded, BrokerEmbedded bool
}

// Rules define the control plane's scopes.
var Rules = auth.Rules{Scopes: map[string][]string{
	Read: nil, Write: {Changes, Retrain, Approve, Manage, Govern}, Changes: nil, Retrain: nil, Approve: nil, Manage: nil, Govern: nil,
}, Reads: []string{Read}}

// The scopes.
const (
	Read    = "read"
	Write   = "write"       // all write scopes below
	Changes = "changes"     // change notices
	Retrain = "retrain"     // training without approval, cancelling
	Approve = "approve"     // decisions and promotions
	Manage  = "manage"      // settings and records
	Govern  = guarded.Scope // guarded settings: promotion policies, gates, scopes, separation of duties
)

// LoadConfig reads environ (os.Environ). All configuration errors are reported together.
func LoadConfig(environ []string) (Config, error) {
	var c Config
	err := service.LoadConfig(&c, environ)
	return c, err
}

// Validate is called by LoadConfig.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if c.DatabaseURL == "" {
		fault("PLATFORM_DATABASE_URL is not set; it must name the database, such as postgres://user@host/platform")
	}
	if c.SeparationOfDuties != "off" && c.SeparationOfDuties != "enforce" {
		fault("CONTROL_PLANE_SEPARATION_OF_DUTIES is %q; it must be off or enforce", c.SeparationOfDuties)
	}
	if _, err := chain.ParseKeys(c.AuditTrustedKeys); err != nil {
		fault("AUDIT_TRUSTED_KEYS: %w", err)
	}
	if c.ApprovalMode != "each" && c.ApprovalMode != "run" {
		fault("PROMOTION_APPROVAL_MODE_DEFAULT is %q; it must be each or run", c.ApprovalMode)
	}
	for name, v := range map[string]string{"PREFECT_API_URL": c.OrchestratorURL, "TRACKING_URI": c.TrackingURI} {
		if u, err := url.Parse(v); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			fault("%s must be an http or https URL", name)
		}
	}
	for name, v := range map[string]string{"SERVING_URL": c.ServingURL, "BUS_BRIDGE_URL": c.BusBridgeURL} {
		if u, err := url.Parse(v); v != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
			fault("%s must be an http or https URL, or empty", name)
		}
	}
	for name, v := range map[string]service.Secret{
		"SERVING_TOKEN": c.ServingToken, "PREFECT_API_KEY": c.OrchestratorKey, "MLFLOW_TRACKING_TOKEN": c.TrackingToken,
	} {
		if err := service.CheckSecret(name, v); err != nil {
			fault("%w", err)
		}
	}
	if c.AutoRetrainGate != "" && c.AutoRetrainGate != "approval" {
		fault("AUTO_RETRAIN_GATE is %q; it must be approval, or empty", c.AutoRetrainGate)
	}
	if flow, deployment, ok := strings.Cut(c.Deployment, "/"); !ok || flow == "" || deployment == "" || strings.Contains(deployment, "/") {
		fault("PREFECT_DEPLOYMENT_NAME is %q; it must be flow/deployment", c.Deployment)
	}
	c.checkRanges(fault)
	c.checkModelrepo(fault)
	c.checkSource(fault)
	// A malformed credential map does not prevent the start: every bearer gets 503, and health reports the reason.
	who := auth.Load(c.Token.Reveal(), c.Credentials.Reveal(), Rules).WithDelegation(auth.Delegation{Audience: name, Trust: c.DelegationTrust.Reveal()})
	if err := who.CheckPlaceholders(); err != nil {
		fault("CONTROL_PLANE_TOKEN, CONTROL_PLANE_CREDENTIALS_JSON: %w", err)
	}
	if err := who.DelegationState(); err != nil {
		fault("DELEGATION_TRUST_JSON: %w", err)
	}
	return errors.Join(faults...)
}

// checkRanges reports each number outside its range.
func (c *Config) checkRanges(fault func(format string, a ...any)) {
	for _, f := range []struct {
		name         string
		v, low, high int
	}{
		{"PREFECT_CB_FAIL_MAX", c.BreakerFailMax, 1, 1000},
		{"PREFECT_CB_RESET_TIMEOUT", c.BreakerResetSeconds, 1, 3600},
		{"AUTO_RETRAIN_SECONDS", c.AutoRetrainSeconds, 1, 3600},
		{"ALERT_SECONDS", c.AlertSeconds, 1, 3600},
		{"APPROVAL_EXPIRY_HOURS", c.ApprovalExpiryHours, 0, 24 * 365},
		{"PUSH_RETENTION_DAYS", c.PushRetentionDays, 0, 36_500},
		{"COMMAND_LEASE_SECONDS", c.CommandLeaseSeconds, 15, 24 * 3600},
		{"CHANGES_RATE_LIMIT_PER_MIN", c.ChangesPerMinute, 0, 1_000_000},
		{"RETRAIN_RATE_LIMIT_PER_MIN", c.RetrainsPerMinute, 0, 1_000_000},
		{"DECISION_RATE_LIMIT_PER_MIN", c.DecisionsPerMin, 0, 1_000_000},
		{"WRITE_RATE_LIMIT_PER_MIN", c.WritesPerMinute, 0, 1_000_000},
		{"ADMISSION_MAX_RUNNING", c.AdmissionMax, 1, 10_000},
		{"ADMISSION_PER_TENANT", c.AdmissionPerTenant, 1, 10_000},
	} {
		if f.v < f.low || f.v > f.high {
			fault("%s is %d; it must be %d to %d", f.name, f.v, f.low, f.high)
		}
	}
	for _, f := range []struct {
		name string
		v    float64
		high float64
	}{
		{"GPU_COST_PER_HOUR", c.GPUCostPerHour, 10_000},
		{"CPU_COST_PER_HOUR", c.CPUCostPerHour, 10_000},
		{"CARBON_GPU_WATTS", c.CarbonGPUWatts, 100_000},
		{"CARBON_CORE_WATTS", c.CarbonCoreWatts, 100_000},
		{"CARBON_PUE", c.CarbonPUE, 100},
		{"CARBON_GRID_G_PER_KWH", c.CarbonGridGramsPerKWh, 100_000},
	} {
		if !(f.v >= 0 && f.v <= f.high) { // also NaN
			fault("%s is %v; it must be 0 to %.0f", f.name, f.v, f.high)
		}
	}
}
