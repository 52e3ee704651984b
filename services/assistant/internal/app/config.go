package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/mcpclient"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
)

// Config holds all settings of the assistant.
type Config struct {
	service.Base
	// Addr is the listen address of the API; without keys it must be loopback.
	Addr string `env:"ASSISTANT_ADDR" envDefault:"127.0.0.1:18004"`
	// Listener overrides Addr: for tests, and for one process with many services.
	Listener net.Listener

	// AdminKeys, OperatorKeys and ReadonlyKeys are comma-separated keys, ki-admin-…, ki-op-… and ki-ro-…. Without any
	// keys, demo keys included, authentication is off.
	AdminKeys    service.Secret `env:"ASSISTANT_ADMIN_KEYS"`
	OperatorKeys service.Secret `env:"ASSISTANT_OPERATOR_KEYS"`
	ReadonlyKeys service.Secret `env:"ASSISTANT_READONLY_KEYS"`
	// AlertKeys are comma-separated keys, ki-alert-…, that may send alerts and nothing else.
	AlertKeys service.Secret `env:"ASSISTANT_ALERT_KEYS"`
	// AuthBackend is static, or hmac to accept demo keys as well.
	AuthBackend string `env:"AUTH_BACKEND" envDefault:"static"`
	// DemoSecret signs demo keys; if empty, there are none.
	DemoSecret service.Secret `env:"DEMO_KEY_HMAC_SECRET"`
	// DemoDefaultHours and DemoMaxHours are the default and maximum lifetime of demo keys.
	DemoDefaultHours int `env:"DEMO_KEY_DEFAULT_TTL_HOURS" envDefault:"168"`
	DemoMaxHours     int `env:"DEMO_KEY_MAX_TTL_HOURS" envDefault:"720"`
	// DelegationTrust maps each service that may act on behalf of a person to its public key; if empty, none may.
	DelegationTrust service.Secret `env:"DELEGATION_TRUST_JSON"`
	// AllowedOrigins are the origins, besides the service's own, whose pages may call the API.
	AllowedOrigins []string `env:"ASSISTANT_ALLOWED_ORIGINS"`

	// ApprovalPolicy is self, or four-eyes: no one may approve their own request.
	ApprovalPolicy string `env:"ASSISTANT_APPROVAL_POLICY" envDefault:"self"`
	// ActionTTL is the time to decide a proposed write, and to execute it once approved.
	ActionTTL time.Duration `env:"ASSISTANT_ACTION_TTL" envDefault:"1h"`
	// ProtectedNamespaces are never written to, nor is the assistant's own; HiddenNamespaces are invisible to everybody.
	ProtectedNamespaces []string `env:"ASSISTANT_PROTECTED_NAMESPACES" envDefault:"kube-system,kube-public,kube-node-lease,monitoring,ingress-nginx,cert-manager"`
	HiddenNamespaces    []string `env:"ASSISTANT_HIDDEN_NAMESPACES"`

	// Kubeconfig is a file or a list of files; if empty, the cluster the service runs in.
	Kubeconfig string `env:"KUBECONFIG"`
	// Contexts are the names of contexts of Kubeconfig: a cluster each, and the first is the default of sessions that name none.
	// If empty, there is one cluster, that of the current context.
	Contexts []string `env:"ASSISTANT_CONTEXTS"`
	// Cluster is sample to answer about an in-process sample cluster where there is no other, of which each replica has its
	// own; recorded:PATH to answer about the recording in a directory or archive, whatever else there is; if empty and
	// there is no cluster, the service refuses to start.
	Cluster string `env:"ASSISTANT_CLUSTER"`
	// ClusterName is the name of the cluster in answers; if empty, the kubeconfig's context.
	ClusterName string `env:"ASSISTANT_CLUSTER_NAME"`
	// PrometheusURL and LokiURL may contain a user and password; if empty, that store is not queried.
	PrometheusURL service.Secret `env:"PROMETHEUS_URL"`
	LokiURL       service.Secret `env:"LOKI_URL"`

	// MCPServers is a file of other servers that speak the Model Context Protocol, whose tools the language model may use; if empty, there are none.
	MCPServers string `env:"ASSISTANT_MCP_SERVERS"`

	// Runbooks is a directory with runbooks, Markdown files whose front matter states what they apply to; if empty, there
	// are none but those in the cluster.
	Runbooks string `env:"ASSISTANT_RUNBOOKS"`

	// ModelName is the model name that clients see.
	ModelName string `env:"ASSISTANT_MODEL_NAME" envDefault:"cluster-assistant"`
	// Engine is auto, playbooks or llm; auto is llm if OpenAIURL or OpenAIKey is set.
	Engine string `env:"ASSISTANT_ENGINE" envDefault:"auto"`
	// OpenAIURL is an OpenAI-compatible endpoint including /v1; if empty and a key is set, OpenAI's own.
	OpenAIURL string         `env:"OPENAI_BASE_URL"`
	OpenAIKey service.Secret `env:"OPENAI_API_KEY"`
	// LLMModel is the language model to request from that endpoint.
	LLMModel string `env:"ASSISTANT_LLM_MODEL"`
	// LLMContextTokens is how many tokens the language model's window holds: older results of tools are summarized before it is full. If it is too small for all tools, those that write are not offered.
	LLMContextTokens int `env:"ASSISTANT_LLM_CONTEXT_TOKENS" envDefault:"32768"`
	// LLMPromptPrice and LLMAnswerPrice are the prices of a million tokens, in any one currency; 0: nothing.
	LLMPromptPrice float64 `env:"ASSISTANT_LLM_PROMPT_PRICE"`
	LLMAnswerPrice float64 `env:"ASSISTANT_LLM_ANSWER_PRICE"`
	// BudgetTokens, BudgetToolCalls and BudgetSeconds limit one answer of the language model; a token is counted once, however often it is sent again.
	BudgetTokens    int `env:"ASSISTANT_BUDGET_TOKENS" envDefault:"60000"`
	BudgetToolCalls int `env:"ASSISTANT_BUDGET_TOOL_CALLS" envDefault:"40"`
	BudgetSeconds   int `env:"ASSISTANT_BUDGET_SECONDS" envDefault:"120"`
	// BudgetCost is what one answer may cost, in the currency of the prices; 0: whatever it costs.
	BudgetCost float64 `env:"ASSISTANT_BUDGET_COST"`

	// TurnTimeout limits one answer, OrphanTimeout an answer without a reader, VerifyTimeout the verification of a write.
	TurnTimeout   time.Duration `env:"ASSISTANT_TURN_TIMEOUT" envDefault:"300s"`
	OrphanTimeout time.Duration `env:"ASSISTANT_ORPHAN_TIMEOUT" envDefault:"60s"`
	VerifyTimeout time.Duration `env:"ASSISTANT_VERIFY_TIMEOUT" envDefault:"60s"`
	// SessionTTL is how long a session is kept after its last use.
	SessionTTL time.Duration `env:"ASSISTANT_SESSION_TTL" envDefault:"720h"`
	// MaxBody limits the size of a chat request, in bytes.
	MaxBody int64 `env:"ASSISTANT_MAX_BODY_BYTES" envDefault:"1048576"`
	// RatePerMinute and RateBurst limit each caller's requests to one replica; 0 per minute means no limit.
	RatePerMinute int `env:"ASSISTANT_RATE_PER_MIN" envDefault:"120"`
	RateBurst     int `env:"ASSISTANT_RATE_BURST" envDefault:"30"`
	// MaxStreams limits each caller's open streams at one replica.
	MaxStreams int `env:"ASSISTANT_MAX_STREAMS" envDefault:"8"`
}

// The engines.
const (
	engineAuto      = "auto"
	enginePlaybooks = "playbooks"
	engineLLM       = "llm"
)

// clusterSample allows the sample cluster; clusterRecorded stands before the path of a recording.
const (
	clusterSample   = "sample"
	clusterRecorded = "recorded:"
)

const (
	policySelf     = "self"
	policyFourEyes = "four-eyes"
)

// openAIURL is the endpoint for a key without a URL.
const openAIURL = "https://api.openai.com/v1"

// ownNamespaceFile holds the namespace of the pod it is read in.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LoadConfig reads environ (os.Environ). The error lists all configuration errors.
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
	if location, isRecorded := c.recording(); c.Cluster != "" && c.Cluster != clusterSample && (!isRecorded || location == "") {
		fault("ASSISTANT_CLUSTER is %q; it must be %s, %sPATH with the path of a directory or an archive, or empty", c.Cluster, clusterSample, clusterRecorded)
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
		{"OPENAI_BASE_URL", c.OpenAIURL, true},
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
	if _, err := c.servers(); err != nil {
		fault("ASSISTANT_MCP_SERVERS: %w", err)
	}
	c.checkContexts(fault)
	c.checkEngine(fault)
	c.checkNames(fault)
	c.checkNumbers(fault)
	return errors.Join(faults...)
}

// checkContexts checks the names of clusters, and what there may not be beside them.
func (c *Config) checkContexts(fault func(string, ...any)) {
	names := c.clusters()
	if len(names) == 0 {
		return
	}
	for name, set := range map[string]bool{
		"ASSISTANT_CLUSTER": c.Cluster != "", "ASSISTANT_CLUSTER_NAME": c.ClusterName != "",
		// A store does not tell which cluster its series and lines are of.
		"PROMETHEUS_URL": c.PrometheusURL != "", "LOKI_URL": c.LokiURL != "",
	} {
		if set {
			fault("ASSISTANT_CONTEXTS is set, so %s must be empty: it is for one cluster", name)
		}
	}
	if c.Kubeconfig == "" {
		fault("ASSISTANT_CONTEXTS is set, so KUBECONFIG must be too")
		return
	}
	known, err := cluster.Contexts(c.Kubeconfig)
	if err != nil {
		fault("ASSISTANT_CONTEXTS: %w", err)
		return
	}
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			fault("ASSISTANT_CONTEXTS names %q twice", name)
		case !slices.Contains(known, name):
			fault("ASSISTANT_CONTEXTS: the kubeconfig %s has no context %q; it has %s", c.Kubeconfig, name, strings.Join(known, ", "))
		case len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '`' }):
			fault("ASSISTANT_CONTEXTS: %q must be 1 to 253 visible characters of ASCII, without a backtick; rename the context", name)
		}
	}
}

// clusters returns the configured names of clusters.
func (c *Config) clusters() []string { return trimEntries(c.Contexts) }

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

// usesModel reports whether a language model answers.
func (c *Config) usesModel() bool {
	return c.Engine == engineLLM || c.Engine == engineAuto && (c.OpenAIURL != "" || c.OpenAIKey != "")
}

// engine returns the name of the engine that answers.
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
		// Zero does not mean the default here: 0 hours would mean no keys, not keys for a week.
		{"DEMO_KEY_DEFAULT_TTL_HOURS", int64(c.DemoDefaultHours), 1, 10 * 365 * 24},
		{"DEMO_KEY_MAX_TTL_HOURS", int64(c.DemoMaxHours), 1, 10 * 365 * 24},
		{"ASSISTANT_BUDGET_TOKENS", int64(c.BudgetTokens), 1000, 10_000_000},
		{"ASSISTANT_LLM_CONTEXT_TOKENS", int64(c.LLMContextTokens), 1000, 100_000_000},
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
	for name, v := range map[string]float64{"ASSISTANT_LLM_PROMPT_PRICE": c.LLMPromptPrice, "ASSISTANT_LLM_ANSWER_PRICE": c.LLMAnswerPrice, "ASSISTANT_BUDGET_COST": c.BudgetCost} {
		if !(v >= 0 && v <= 1e9) { // NaN is neither
			fault("%s is %v; it must be 0 to 1e9", name, v)
		}
	}
	if c.BudgetCost > 0 && c.LLMPromptPrice == 0 && c.LLMAnswerPrice == 0 {
		fault("ASSISTANT_BUDGET_COST is set, but neither ASSISTANT_LLM_PROMPT_PRICE nor ASSISTANT_LLM_ANSWER_PRICE is")
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

// servers reads the file of other servers.
func (c *Config) servers() ([]mcpclient.Server, error) {
	if c.MCPServers == "" {
		return nil, nil
	}
	return mcpclient.Load(c.MCPServers, os.LookupEnv)
}

// recording returns the path of the recording to answer about, if any.
func (c *Config) recording() (location string, ok bool) {
	return strings.CutPrefix(c.Cluster, clusterRecorded)
}

// httpURL reports whether s is an http or https URL.
func httpURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// callers returns the part of the configuration on who may call.
func (c *Config) callers(once auth.Once) caller.Config {
	addr := c.Addr
	if c.Listener != nil {
		addr = c.Listener.Addr().String()
	}
	return caller.Config{
		AdminKeys: c.AdminKeys, OperatorKeys: c.OperatorKeys, ReadonlyKeys: c.ReadonlyKeys, AlertKeys: c.AlertKeys, Backend: c.AuthBackend,
		DemoSecret: c.DemoSecret, DefaultHours: c.DemoDefaultHours, MaxHours: c.DemoMaxHours,
		FourEyes: c.ApprovalPolicy == policyFourEyes, Addr: addr, AllowedOrigins: trimEntries(c.AllowedOrigins),
		DelegationTrust: c.DelegationTrust, Once: once,
	}
}

// unasked replaces the store of used delegations while the configuration is only checked.
type unasked struct{}

// Once is part of auth.Once.
func (unasked) Once(context.Context, string, time.Duration) (bool, error) {
	return false, errors.New("no request is answered yet")
}

// policy returns the namespaces that are protected or hidden.
func (c *Config) policy() guard.Policy {
	p := guard.Policy{Protected: trimEntries(c.ProtectedNamespaces), Hidden: trimEntries(c.HiddenNamespaces)}
	if own, err := os.ReadFile(ownNamespaceFile); err == nil { // otherwise it does not run in a pod
		p.Protected = append(p.Protected, strings.TrimSpace(string(own)))
	}
	return p
}

// sources returns the stores besides the cluster that tools can read.
func (c *Config) sources() []registry.Source {
	var list []registry.Source
	if c.PrometheusURL != "" {
		list = append(list, registry.Prometheus)
	}
	if c.LokiURL != "" {
		list = append(list, registry.Loki)
	}
	if c.Runbooks != "" {
		list = append(list, registry.Runbooks)
	}
	return list
}

// absentTools are the tools that have no store to ask.
func (c *Config) absentTools() (absent []operation.Verb) {
	if c.PrometheusURL == "" {
		absent = append(absent, operation.QueryPrometheus)
	}
	if c.LokiURL == "" {
		absent = append(absent, operation.QueryLoki)
	}
	return absent
}

// baseURL returns the endpoint of the language model.
func (c *Config) baseURL() string { return cmp.Or(c.OpenAIURL, openAIURL) }

// trimEntries trims the entries of a list and drops empty ones.
func trimEntries(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
