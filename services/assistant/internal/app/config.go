package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// Config is everything the assistant can be told.
type Config struct {
	service.Base
	// Addr is where the API listens; without keys it must be loopback.
	Addr string `env:"ASSISTANT_ADDR" envDefault:"127.0.0.1:18004"`
	// Listener overrides Addr: for tests, and for one process with many services.
	Listener net.Listener

	// AdminKeys, OperatorKeys and ReadonlyKeys are comma lists of keys, ki-admin-…, ki-op-… and ki-ro-…. With none
	// of them, and no demo keys, auth is off.
	AdminKeys    service.Secret `env:"ASSISTANT_ADMIN_KEYS"`
	OperatorKeys service.Secret `env:"ASSISTANT_OPERATOR_KEYS"`
	ReadonlyKeys service.Secret `env:"ASSISTANT_READONLY_KEYS"`
	// AuthBackend is static, or hmac to take demo keys as well.
	AuthBackend string `env:"AUTH_BACKEND" envDefault:"static"`
	// DemoSecret seals demo keys; empty: there are none.
	DemoSecret service.Secret `env:"DEMO_KEY_HMAC_SECRET"`
	// DemoDefaultHours and DemoMaxHours bound the life of demo keys.
	DemoDefaultHours int `env:"DEMO_KEY_DEFAULT_TTL_HOURS" envDefault:"168"`
	DemoMaxHours     int `env:"DEMO_KEY_MAX_TTL_HOURS" envDefault:"720"`
	// DelegationTrust maps each service that may act for people to its public key; empty trusts nobody.
	DelegationTrust service.Secret `env:"DELEGATION_TRUST_JSON"`
	// AllowedOrigins are the origins, beside the service's own, whose pages may call.
	AllowedOrigins []string `env:"ASSISTANT_ALLOWED_ORIGINS"`

	// ApprovalPolicy is self, or four-eyes: nobody approves what they asked for.
	ApprovalPolicy string `env:"ASSISTANT_APPROVAL_POLICY" envDefault:"self"`
	// ActionTTL is how long a write waits for its decision, and an approval for its execution.
	ActionTTL time.Duration `env:"ASSISTANT_ACTION_TTL" envDefault:"1h"`
	// ProtectedNamespaces are never written, the assistant's own is added. HiddenNamespaces exist for nobody.
	ProtectedNamespaces []string `env:"ASSISTANT_PROTECTED_NAMESPACES" envDefault:"kube-system,kube-public,kube-node-lease,monitoring,ingress-nginx,cert-manager"`
	HiddenNamespaces    []string `env:"ASSISTANT_HIDDEN_NAMESPACES"`

	// Kubeconfig is a file, or a list of them; empty: the cluster the service runs in, else a seeded one in the process.
	Kubeconfig string `env:"KUBECONFIG"`
	// ClusterName is what answers call the cluster; empty: the kubeconfig's context.
	ClusterName string `env:"ASSISTANT_CLUSTER_NAME"`
	// PrometheusURL and LokiURL may carry a user and password; empty: metrics and logs of there cannot be queried.
	PrometheusURL service.Secret `env:"PROMETHEUS_URL"`
	LokiURL       service.Secret `env:"LOKI_URL"`

	// ModelName is what the service's one model is called on the wire.
	ModelName string `env:"ASSISTANT_MODEL_NAME" envDefault:"cluster-assistant"`
	// Engine is auto, playbooks or llm; auto is llm if OpenAIURL or OpenAIKey is set.
	Engine string `env:"ASSISTANT_ENGINE" envDefault:"auto"`
	// OpenAIURL is an OpenAI-compatible endpoint, up to and with /v1; empty with a key: OpenAI's own.
	OpenAIURL string         `env:"OPENAI_BASE_URL"`
	OpenAIKey service.Secret `env:"OPENAI_API_KEY"`
	// LLMModel is the language model asked for there.
	LLMModel string `env:"ASSISTANT_LLM_MODEL"`
	// BudgetTokens, BudgetToolCalls and BudgetSeconds bound one answer of the language model.
	BudgetTokens    int `env:"ASSISTANT_BUDGET_TOKENS" envDefault:"60000"`
	BudgetToolCalls int `env:"ASSISTANT_BUDGET_TOOL_CALLS" envDefault:"40"`
	BudgetSeconds   int `env:"ASSISTANT_BUDGET_SECONDS" envDefault:"120"`

	// TurnTimeout bounds one answer, OrphanTimeout one that nobody reads any more, VerifyTimeout the reading back of a write.
	TurnTimeout   time.Duration `env:"ASSISTANT_TURN_TIMEOUT" envDefault:"300s"`
	OrphanTimeout time.Duration `env:"ASSISTANT_ORPHAN_TIMEOUT" envDefault:"60s"`
	VerifyTimeout time.Duration `env:"ASSISTANT_VERIFY_TIMEOUT" envDefault:"60s"`
	// SessionTTL is how long a session is kept after its last use.
	SessionTTL time.Duration `env:"ASSISTANT_SESSION_TTL" envDefault:"720h"`
	// MaxBody bounds a chat request, in bytes.
	MaxBody int64 `env:"ASSISTANT_MAX_BODY_BYTES" envDefault:"1048576"`
	// RatePerMinute and RateBurst bound the requests of a caller to one replica; 0 a minute is no limit.
	RatePerMinute int `env:"ASSISTANT_RATE_PER_MIN" envDefault:"120"`
	RateBurst     int `env:"ASSISTANT_RATE_BURST" envDefault:"30"`
	// MaxStreams bounds the streams that a caller has open at one replica.
	MaxStreams int `env:"ASSISTANT_MAX_STREAMS" envDefault:"8"`

	// TracesURL is where spans go by OTLP over HTTP; empty: nowhere.
	TracesURL string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
}

// The engines.
const (
	engineAuto      = "auto"
	enginePlaybooks = "playbooks"
	engineLLM       = "llm"
)

const (
	policySelf     = "self"
	policyFourEyes = "four-eyes"
)

// openAIURL is where a key without a URL is meant for.
const openAIURL = "https://api.openai.com/v1"

// ownNamespaceFile is where a pod finds the namespace that it runs in.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

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
	if _, err := caller.New(c.callers(unasked{})); err != nil {
		fault("%w", err)
	}
	if c.ApprovalPolicy != policySelf && c.ApprovalPolicy != policyFourEyes {
		fault("ASSISTANT_APPROVAL_POLICY is %q; it must be %s or %s", c.ApprovalPolicy, policySelf, policyFourEyes)
	}
	for _, f := range []struct {
		name  string
		v     string
		quote bool
	}{
		{"PROMETHEUS_URL", c.PrometheusURL.Reveal(), false}, {"LOKI_URL", c.LokiURL.Reveal(), false},
		{"OPENAI_BASE_URL", c.OpenAIURL, true}, {"OTEL_EXPORTER_OTLP_ENDPOINT", c.TracesURL, true},
	} {
		if f.v != "" && !httpURL(f.v) {
			fault("%s must be an http or https URL, or empty", f.name)
		}
	}
	for _, o := range c.AllowedOrigins {
		if u, err := url.Parse(strings.TrimSpace(o)); err != nil || !httpURL(strings.TrimSpace(o)) || u.Path != "" || u.RawQuery != "" || u.User != nil {
			fault("ASSISTANT_ALLOWED_ORIGINS: %q is no origin; write scheme, host and port, such as https://chat.example.org", o)
		}
	}
	c.checkEngine(fault)
	c.checkNames(fault)
	c.checkNumbers(fault)
	return errors.Join(faults...)
}

func (c *Config) checkEngine(fault func(string, ...any)) {
	switch c.Engine {
	case engineAuto, enginePlaybooks:
	case engineLLM:
		if c.OpenAIURL == "" && c.OpenAIKey == "" {
			fault("ASSISTANT_ENGINE is llm, but neither OPENAI_BASE_URL nor OPENAI_API_KEY is set")
		}
	default:
		fault("ASSISTANT_ENGINE is %q; it must be %s, %s or %s", c.Engine, engineAuto, enginePlaybooks, engineLLM)
	}
	if c.usesModel() && c.LLMModel == "" {
		fault("ASSISTANT_LLM_MODEL is not set; it must name the language model to ask for")
	}
	if auth.Placeholder(c.OpenAIKey.Reveal()) {
		fault("OPENAI_API_KEY is a placeholder; set the key, or leave it out where the endpoint needs none")
	}
}

// usesModel says whether a language model answers.
func (c *Config) usesModel() bool {
	return c.Engine == engineLLM || c.Engine == engineAuto && (c.OpenAIURL != "" || c.OpenAIKey != "")
}

// engine is the name of what answers.
func (c *Config) engine() string {
	if c.usesModel() {
		return engineLLM
	}
	return enginePlaybooks
}

func (c *Config) checkNames(fault func(string, ...any)) {
	for name, list := range map[string][]string{"ASSISTANT_PROTECTED_NAMESPACES": c.ProtectedNamespaces, "ASSISTANT_HIDDEN_NAMESPACES": c.HiddenNamespaces} {
		for _, ns := range list {
			if ns = strings.TrimSpace(ns); ns != "" && len(validation.IsDNS1123Label(ns)) > 0 {
				fault("%s: %q cannot be the name of a namespace", name, ns)
			}
		}
	}
	if c.ModelName == "" || len(c.ModelName) > 128 || strings.ContainsFunc(c.ModelName, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		fault("ASSISTANT_MODEL_NAME is %q; it must be 1 to 128 visible characters of ASCII, without a slash", c.ModelName)
	}
	if len(c.ClusterName) > 253 || strings.ContainsFunc(c.ClusterName, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		fault("ASSISTANT_CLUSTER_NAME must be at most 253 characters, without control characters")
	}
}

func (c *Config) checkNumbers(fault func(string, ...any)) {
	for _, f := range []struct {
		name         string
		v, low, high int64
	}{
		// Zero is no default here: who writes 0 hours means no keys, not a week's.
		{"DEMO_KEY_DEFAULT_TTL_HOURS", int64(c.DemoDefaultHours), 1, 10 * 365 * 24},
		{"DEMO_KEY_MAX_TTL_HOURS", int64(c.DemoMaxHours), 1, 10 * 365 * 24},
		{"ASSISTANT_BUDGET_TOKENS", int64(c.BudgetTokens), 1000, 10_000_000},
		{"ASSISTANT_BUDGET_TOOL_CALLS", int64(c.BudgetToolCalls), 1, 1000},
		{"ASSISTANT_BUDGET_SECONDS", int64(c.BudgetSeconds), 1, 3600},
		{"ASSISTANT_MAX_BODY_BYTES", c.MaxBody, 1 << 10, 64 << 20},
		{"ASSISTANT_RATE_PER_MIN", int64(c.RatePerMinute), 0, 1_000_000},
		{"ASSISTANT_RATE_BURST", int64(c.RateBurst), 1, 1_000_000},
		{"ASSISTANT_MAX_STREAMS", int64(c.MaxStreams), 1, 10_000},
	} {
		if f.v < f.low || f.v > f.high {
			fault("%s is %d; it must be %d to %d", f.name, f.v, f.low, f.high)
		}
	}
	for _, f := range []struct {
		name         string
		v, low, high time.Duration
	}{
		{"ASSISTANT_ACTION_TTL", c.ActionTTL, time.Second, 7 * 24 * time.Hour},
		{"ASSISTANT_TURN_TIMEOUT", c.TurnTimeout, time.Second, time.Hour},
		{"ASSISTANT_ORPHAN_TIMEOUT", c.OrphanTimeout, time.Second, time.Hour},
		{"ASSISTANT_VERIFY_TIMEOUT", c.VerifyTimeout, time.Second, 10 * time.Minute},
		{"ASSISTANT_SESSION_TTL", c.SessionTTL, time.Hour, 10 * 365 * 24 * time.Hour},
	} {
		if f.v < f.low || f.v > f.high {
			fault("%s is %s; it must be %s to %s", f.name, f.v, f.low, f.high)
		}
	}
}

// httpURL says whether s is one.
func httpURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// callers is the part of the configuration that says who may call.
func (c *Config) callers(once auth.Once) caller.Config {
	addr := c.Addr
	if c.Listener != nil {
		addr = c.Listener.Addr().String()
	}
	return caller.Config{
		AdminKeys: c.AdminKeys, OperatorKeys: c.OperatorKeys, ReadonlyKeys: c.ReadonlyKeys, Backend: c.AuthBackend,
		DemoSecret: c.DemoSecret, DefaultHours: c.DemoDefaultHours, MaxHours: c.DemoMaxHours,
		FourEyes: c.ApprovalPolicy == policyFourEyes, Addr: addr, AllowedOrigins: trimEntries(c.AllowedOrigins),
		DelegationTrust: c.DelegationTrust, Once: once,
	}
}

// unasked stands for the store of used delegations while the configuration is only checked.
type unasked struct{}

// Once is part of auth.Once.
func (unasked) Once(context.Context, string, time.Duration) (bool, error) {
	return false, errors.New("no request is answered yet")
}

// policy is which namespaces are out of reach.
func (c *Config) policy() guard.Policy {
	p := guard.Policy{Protected: trimEntries(c.ProtectedNamespaces), Hidden: trimEntries(c.HiddenNamespaces)}
	if own, err := os.ReadFile(ownNamespaceFile); err == nil { // else it runs in no pod
		p.Protected = append(p.Protected, strings.TrimSpace(string(own)))
	}
	return p
}

// baseURL is where the language model is asked.
func (c *Config) baseURL() string { return cmp.Or(c.OpenAIURL, openAIURL) }

// trimEntries are the entries of a list without blanks and empty ones.
func trimEntries(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
