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
)

// Config is everything the control plane can be told. Durations are in the unit
// their name says.
type Config struct {
	service.Base
	// Addr is where the API listens.
	Addr string `env:"CONTROL_PLANE_ADDR" envDefault:"127.0.0.1:18002"`
	// Listener overrides Addr: for tests, and for one process with many services.
	Listener net.Listener
	// AllowedHosts are the Host values served; "*" is all.
	AllowedHosts []string `env:"CONTROL_PLANE_ALLOWED_HOSTS" envDefault:"*"`

	// Token is the legacy credential: principal legacy, tenant default, all scopes.
	Token service.Secret `env:"CONTROL_PLANE_TOKEN"`
	// Credentials map each bearer secret to {principal, tenant, scopes}.
	Credentials service.Secret `env:"CONTROL_PLANE_CREDENTIALS_JSON"`
	// DelegationTrust maps each service that may act for people to its public key,
	// the tenants it may speak for and the most scopes it may pass on.
	DelegationTrust service.Secret `env:"DELEGATION_TRUST_JSON"`
	// SeparationOfDuties is off, or enforce: nobody approves their own request.
	SeparationOfDuties string `env:"CONTROL_PLANE_SEPARATION_OF_DUTIES" envDefault:"off"`

	// OrchestratorURL is the orchestrator's API, up to and with /api.
	OrchestratorURL string `env:"PREFECT_API_URL" envDefault:"http://localhost:14200/api"`
	// Deployment is what training runs are dispatched to, as flow/deployment.
	Deployment string `env:"PREFECT_DEPLOYMENT_NAME" envDefault:"training_flow/platform-dispatch"`
	// BreakerFailMax failures in a row open the breaker.
	BreakerFailMax int `env:"PREFECT_CB_FAIL_MAX" envDefault:"5"`
	// BreakerResetSeconds later one call in the fleet tries again.
	BreakerResetSeconds int `env:"PREFECT_CB_RESET_TIMEOUT" envDefault:"30"`
	// TrackingURI is the tracker.
	TrackingURI string `env:"TRACKING_URI" envDefault:"http://localhost:15000"`
	// ServingURL is the inference service; empty: there is none.
	ServingURL string `env:"SERVING_URL" envDefault:"http://localhost:18001"`
	// ServingToken is the bearer credential for the inference service; empty: none.
	ServingToken service.Secret `env:"SERVING_TOKEN"`
	// AutoRetrainGate is approval, to make every gate of auto-retrain approval, or empty.
	AutoRetrainGate string `env:"AUTO_RETRAIN_GATE"`
	// AutoRetrainSeconds is how often the leader looks for models that drift.
	AutoRetrainSeconds int `env:"AUTO_RETRAIN_SECONDS" envDefault:"60"`
	// AlertSeconds is how often the leader asks the sources of alerts.
	AlertSeconds int `env:"ALERT_SECONDS" envDefault:"30"`
	// BusBridgeURL is the bus bridge; empty: its state is not known.
	BusBridgeURL string `env:"BUS_BRIDGE_URL"`

	// ModelRepoDir holds the model repository; empty: no model is known.
	ModelRepoDir string `env:"MODELREPO_DIR"`
	// ModelRepoEnv is the registry in force over base: dev, staging, prod or empty.
	ModelRepoEnv string `env:"MODELREPO_ENV"`

	// WebhookSecret proves the forges' webhooks; empty: they are not served.
	WebhookSecret service.Secret `env:"MODELREPO_WEBHOOK_SECRET"`
	// WebhookSigningToken, whsec_<base64>, makes forge A prove itself by signatures.
	WebhookSigningToken service.Secret `env:"MODELREPO_WEBHOOK_SIGNING_TOKEN"`
	// AutoRetrain, PollSeconds and WatchBranch are the settings of the first start;
	// after it PUT /modelrepo/config changes them.
	AutoRetrain bool   `env:"MODELREPO_AUTO_RETRAIN" envDefault:"false"`
	PollSeconds int    `env:"MODELREPO_POLL_SECONDS" envDefault:"300"`
	WatchBranch string `env:"MODELREPO_WATCH_BRANCH" envDefault:"main"`
	// GitLabURL is the server of GitLabProject and of CIProject.
	GitLabURL string `env:"GITLAB_URL"`
	// GitLabProject, an id or path, is polled for new heads; empty: GitURL is.
	GitLabProject string `env:"GITLAB_PROJECT_ID"`
	// GitLabToken may read GitLabProject; empty where anybody may.
	GitLabToken service.Secret `env:"GITLAB_TOKEN"`
	// GitURL, an http or https URL that may hold credentials, is polled for new
	// heads and checked out; empty: MODELREPO_DIR is polled if it is the root of a
	// git repository.
	GitURL service.Secret `env:"MODELREPO_GIT_URL"`
	// ModelRepoCacheDir holds what was fetched from GitURL, in a folder for each
	// process; empty: mlp-platform/modelrepo in the user's cache folder.
	ModelRepoCacheDir string `env:"MODELREPO_CACHE_DIR"`
	// CIProject, an id or path on the server GITLAB_URL, has its pipeline triggered by
	// each new head; empty: none.
	CIProject string `env:"AI_PROD_GITLAB_PROJECT_ID"`
	// CITriggerToken lets CIProject's pipeline be triggered.
	CITriggerToken service.Secret `env:"AI_PROD_PIPELINE_TRIGGER_TOKEN"`

	// ApprovalExpiryHours is how long an approval waits; 0 is for ever.
	ApprovalExpiryHours int `env:"APPROVAL_EXPIRY_HOURS" envDefault:"72"`
	// CommandLeaseSeconds is how long a dispatch belongs to the process that sends
	// it; then another takes it over. It must exceed the 12 s a dispatch may take.
	CommandLeaseSeconds int `env:"COMMAND_LEASE_SECONDS" envDefault:"300"`
	// ApprovalMode is each or run: what policies say that do not say it themselves.
	ApprovalMode string `env:"PROMOTION_APPROVAL_MODE_DEFAULT" envDefault:"each"`
	// AllowGenerated lets versions trained on generated data reach Production.
	AllowGenerated bool `env:"ALLOW_GENERATED_PRODUCTION" envDefault:"false"`

	// GPUCostPerHour and CPUCostPerHour are USD for one GPU and one core.
	GPUCostPerHour float64 `env:"GPU_COST_PER_HOUR" envDefault:"2.50"`
	CPUCostPerHour float64 `env:"CPU_COST_PER_HOUR" envDefault:"0.05"`
	// CarbonGPUWatts and CarbonCoreWatts are the mean power of an allocated GPU and core.
	CarbonGPUWatts  float64 `env:"CARBON_GPU_WATTS" envDefault:"400"`
	CarbonCoreWatts float64 `env:"CARBON_CORE_WATTS" envDefault:"5"`
	// CarbonPUE is the facility's power per power of its computers.
	CarbonPUE float64 `env:"CARBON_PUE" envDefault:"1.5"`
	// CarbonGridGramsPerKWh is CO2e of the grid's average kWh.
	CarbonGridGramsPerKWh float64 `env:"CARBON_GRID_G_PER_KWH" envDefault:"300"`

	// AuditKeyFile holds the key that signs checkpoints of the audit ledger; made when
	// it is not there. Empty: checkpoints are not signed. Replicas share one.
	AuditKeyFile string `env:"AUDIT_SIGNING_KEY_FILE"`
	// AuditTrustedKeys are public keys beside that one whose checkpoints count, in hex
	// or base64, with commas; needed for a retired key until its successor has vouched
	// for it. Empty: only the key of AUDIT_SIGNING_KEY_FILE, and whom it vouches for.
	AuditTrustedKeys string `env:"AUDIT_TRUSTED_KEYS"`

	// Limits per tenant and minute; 0 is none.
	ChangesPerMinute  int `env:"CHANGES_RATE_LIMIT_PER_MIN" envDefault:"120"`
	RetrainsPerMinute int `env:"RETRAIN_RATE_LIMIT_PER_MIN" envDefault:"20"`
	DecisionsPerMin   int `env:"DECISION_RATE_LIMIT_PER_MIN" envDefault:"120"`
	// WritesPerMinute bounds the writes that have no limit of their own.
	WritesPerMinute int `env:"WRITE_RATE_LIMIT_PER_MIN" envDefault:"120"`
	// Dispatches of this process that may wait on the orchestrator at once.
	AdmissionMax       int `env:"ADMISSION_MAX_RUNNING" envDefault:"4"`
	AdmissionPerTenant int `env:"ADMISSION_PER_TENANT" envDefault:"2"`

	// SoleProcess says that no other replica uses this database: what a dead
	// predecessor left is then taken over at once instead of after its lease.
	SoleProcess bool
	// StateEmbedded and BrokerEmbedded say that database and broker live and die
	// with this process.
	StateEmbedded, BrokerEmbedded bool
}

// Rules are the control plane's scopes.
var Rules = auth.Rules{Scopes: map[string][]string{
	Read: nil, Write: {Changes, Retrain, Approve, Manage}, Changes: nil, Retrain: nil, Approve: nil, Manage: nil,
}, Reads: []string{Read}}

// The scopes.
const (
	Read    = "read"
	Write   = "write"   // all of those below
	Changes = "changes" // change notices
	Retrain = "retrain" // training without approval, cancelling
	Approve = "approve" // decisions and promotions
	Manage  = "manage"  // settings and records
)

// LoadConfig reads environ (os.Environ); the error lists every fault.
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
	if err := service.CheckSecret("SERVING_TOKEN", c.ServingToken); err != nil {
		fault("%w", err)
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
	// A malformed credential map does not stop the start: every bearer is answered 503, and health says why.
	who := auth.Load(c.Token.Reveal(), c.Credentials.Reveal(), Rules).WithDelegation(auth.Delegation{Audience: name, Trust: c.DelegationTrust.Reveal()})
	if err := who.CheckPlaceholders(); err != nil {
		fault("CONTROL_PLANE_TOKEN, CONTROL_PLANE_CREDENTIALS_JSON: %w", err)
	}
	if err := who.DelegationState(); err != nil {
		fault("DELEGATION_TRUST_JSON: %w", err)
	}
	return errors.Join(faults...)
}

// checkRanges reports each number that is out of its range.
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
		if !(f.v >= 0 && f.v <= f.high) { // also what is no number
			fault("%s is %v; it must be 0 to %.0f", f.name, f.v, f.high)
		}
	}
}
