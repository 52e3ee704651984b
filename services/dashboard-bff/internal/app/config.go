package app

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/login"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notify"
)

// Config of the service; docs/dashboard.md lists the variables with their meaning.
type Config struct {
	service.Base

	// ViewerPassword and AdminPassword grant the two roles to their holders.
	ViewerPassword service.Secret `env:"DASHBOARD_VIEWER_PASSWORD"`
	AdminPassword  service.Secret `env:"DASHBOARD_ADMIN_PASSWORD"`
	// JWTSecret signs session tokens: at least 32 bytes. JWTTTLHours is their life.
	JWTSecret   service.Secret `env:"DASHBOARD_JWT_SECRET"`
	JWTTTLHours int            `env:"DASHBOARD_JWT_TTL_HOURS" envDefault:"12"`
	// SecretKey encrypts stored secrets and sessions: base64 of 32 bytes, or a comma list of such; the first encrypts.
	SecretKey service.Secret `env:"DASHBOARD_SECRET_KEY"`
	// LocalLogin allows password login.
	LocalLogin bool `env:"DASHBOARD_LOCAL_LOGIN" envDefault:"true"`

	// Addr is host:port of API and UI; ToolsAddr that of the second origin, where the tools' own pages run.
	Addr      string `env:"DASHBOARD_ADDR" envDefault:"127.0.0.1:8099"`
	ToolsAddr string `env:"DASHBOARD_TOOLS_ADDR" envDefault:"127.0.0.1:8098"`
	// PublicURL and ToolsURL are the base URLs that browsers use; by default derived from the addresses. Required off
	// loopback.
	PublicURL string `env:"DASHBOARD_PUBLIC_URL"`
	ToolsURL  string `env:"DASHBOARD_TOOLS_URL"`
	// AllowedHosts are the Host values served; default the public host. Comma list.
	AllowedHosts []string `env:"DASHBOARD_ALLOWED_HOSTS"`
	// TrustedProxies are addresses or prefixes whose X-Forwarded-For is believed. Comma list.
	TrustedProxies []string `env:"DASHBOARD_TRUSTED_PROXIES"`

	// SessionStore is redis or postgres; default redis if REDIS_URL is set.
	SessionStore string `env:"DASHBOARD_SESSION_STORE"`
	// SSOSessionHours is how long a single sign-on session lasts, in hours: 1 to 168.
	SSOSessionHours int `env:"DASHBOARD_SSO_SESSION_HOURS" envDefault:"8"`
	// SSOIdleMinutes is after how many minutes without a request a single sign-on session ends: 1 to 10080.
	SSOIdleMinutes int `env:"DASHBOARD_SSO_IDLE_MINUTES" envDefault:"120"`
	// SessionCookieSecure marks the cookies Secure and prefixes their names with __Host-. False is allowed only for a
	// public URL of http on loopback.
	SessionCookieSecure bool `env:"DASHBOARD_SESSION_COOKIE_SECURE" envDefault:"true"`

	// LocalTenant is the tenant of password sessions; OperatorTenants may write configuration and use shared tools.
	LocalTenant     string   `env:"DASHBOARD_LOCAL_TENANT" envDefault:"default"`
	OperatorTenants []string `env:"DASHBOARD_OPERATOR_TENANTS" envDefault:"default"`

	// IAMConfig is the trust file; empty means no identity provider.
	IAMConfig string `env:"PLATFORM_IAM_CONFIG"`
	// IAMStepUp is off, or enforce: password sessions then need a step-up too.
	IAMStepUp string `env:"PLATFORM_IAM_STEP_UP" envDefault:"off"`
	// IAMStepUpMaxAge is how old a sign-in may be for a guarded action, in seconds.
	IAMStepUpMaxAge int `env:"PLATFORM_IAM_STEP_UP_MAX_AGE" envDefault:"900"`
	// StepUpActions are the guarded actions. Comma list.
	StepUpActions []string `env:"DASHBOARD_STEP_UP_ACTIONS" envDefault:"config.secret,proxy.control_plane,proxy.tracker,flag.write,model.promote,assistant.decide"`

	// SourceTimeout limits each source of a view, CopilotTimeout an answer of the copilot.
	SourceTimeout  time.Duration `env:"DASHBOARD_SOURCE_TIMEOUT" envDefault:"2s"`
	CopilotTimeout time.Duration `env:"DASHBOARD_COPILOT_TIMEOUT" envDefault:"60s"`
	// StreamMaxClients limits the event streams of this replica.
	StreamMaxClients int `env:"DASHBOARD_STREAM_MAX_CLIENTS" envDefault:"5000"`
	// ProxyMaxBody limits a proxied request's body, in bytes.
	ProxyMaxBody int64 `env:"DASHBOARD_PROXY_MAX_BODY" envDefault:"33554432"`
	// UpstreamAllow lists what a stored address may name: host:port, or a host for the ports 80 and 443; default:
	// hosts and ports of the environment. Comma-separated.
	UpstreamAllow []string `env:"DASHBOARD_UPSTREAM_ALLOW"`
	// ActKeyFile holds the key that signs delegations; made once, mode 0600. Empty: none, services then see
	// the configured tokens instead of the person.
	ActKeyFile string `env:"DASHBOARD_ACT_KEY_FILE"`

	// NotifyAllow lists where webhook and slack channels may send: host:port, or a host for the ports 80 and 443. Default:
	// nowhere. Comma-separated.
	NotifyAllow []string `env:"DASHBOARD_NOTIFY_ALLOW"`
	// SMTPAddr is host:port of the mail server for notifications, SMTPFrom their sender. Empty: no mail.
	SMTPAddr string `env:"DASHBOARD_SMTP_ADDR"`
	SMTPFrom string `env:"DASHBOARD_SMTP_FROM"`
	// SMTPTLS is starttls, tls, or none for a mail server on loopback.
	SMTPTLS string `env:"DASHBOARD_SMTP_TLS" envDefault:"starttls"`
	// SMTPUser and SMTPPassword sign in at the mail server; both empty: without signing in.
	SMTPUser     string         `env:"DASHBOARD_SMTP_USER"`
	SMTPPassword service.Secret `env:"DASHBOARD_SMTP_PASSWORD"`

	// DocsRoot is the directory of README.md and docs/; default the pages inside the binary.
	DocsRoot string `env:"PLATFORM_DOCS_ROOT"`
	// SchedulerMode is reported by the aggregate health.
	SchedulerMode string `env:"PLATFORM_SCHEDULER_MODE" envDefault:"mock"`

	Upstreams

	// Listener and ToolsListener override the addresses; they are for tests and for standalone.
	Listener      net.Listener `env:"-"`
	ToolsListener net.Listener `env:"-"`
}

// Upstreams are the services behind the dashboard. Each URL may be replaced by a stored one (PUT /api/config); one
// that is set to nothing means that there is no such service here. The public ones are shown to people.
type Upstreams struct {
	ControlPlaneURL     string `env:"CONTROL_PLANE_URL" envDefault:"http://localhost:18002"`
	ServingURL          string `env:"SERVING_URL" envDefault:"http://localhost:18001"`
	TrackingURI         string `env:"TRACKING_URI" envDefault:"http://localhost:15000"`
	OrchestratorURL     string `env:"ORCHESTRATOR_API_URL" envDefault:"http://localhost:14200/api"`
	BusBridgeURL        string `env:"BUS_BRIDGE_URL" envDefault:"http://localhost:18003"`
	AssistantURL        string `env:"ASSISTANT_URL" envDefault:"http://localhost:18004"`
	MetricsStoreURL     string `env:"METRICS_STORE_URL"`
	DashboardsURL       string `env:"DASHBOARDS_URL"`
	ServingDashboardURL string `env:"SERVING_DASHBOARD_URL"`

	ControlPlanePublicURL     string `env:"CONTROL_PLANE_PUBLIC_URL"`
	ServingPublicURL          string `env:"SERVING_PUBLIC_URL"`
	TrackingPublicURL         string `env:"TRACKING_PUBLIC_URL"`
	OrchestratorPublicURL     string `env:"ORCHESTRATOR_API_PUBLIC_URL"`
	BusBridgePublicURL        string `env:"BUS_BRIDGE_PUBLIC_URL"`
	AssistantPublicURL        string `env:"ASSISTANT_PUBLIC_URL"`
	MetricsStorePublicURL     string `env:"METRICS_STORE_PUBLIC_URL"`
	DashboardsPublicURL       string `env:"DASHBOARDS_PUBLIC_URL"`
	ServingDashboardPublicURL string `env:"SERVING_DASHBOARD_PUBLIC_URL"`

	ControlPlaneToken service.Secret `env:"CONTROL_PLANE_TOKEN"`
	ServingToken      service.Secret `env:"SERVING_TOKEN"`
	// TrackingToken and OrchestratorKey are sent to TrackingURI and OrchestratorURL, and to no other address.
	TrackingToken   service.Secret `env:"MLFLOW_TRACKING_TOKEN"`
	OrchestratorKey service.Secret `env:"PREFECT_API_KEY"`
	// ReadonlyKey is the key for the assistant with which viewers chat in the drawer and everybody asks the copilot;
	// empty: neither works for them.
	ReadonlyKey service.Secret `env:"ASSISTANT_READONLY_KEY"`
	// OperatorKey is the key for the assistant with which admins chat in the drawer and decide; empty: they cannot.
	OperatorKey service.Secret `env:"ASSISTANT_OPERATOR_KEY"`
}

// LoadConfig reads the environment. The error names every fault.
func LoadConfig(environ []string) (Config, error) {
	var c Config
	if err := service.LoadConfig(&c, environ); err != nil {
		return Config{}, err
	}
	c.clearEmpty(environ)
	return c, nil
}

// clearEmpty removes the default addresses of services whose variable is set to the empty string, which declares that
// the service does not exist here. Other variables count as unset when they are empty.
func (u *Upstreams) clearEmpty(environ []string) {
	for name, address := range map[string]*string{
		"CONTROL_PLANE_URL": &u.ControlPlaneURL, "SERVING_URL": &u.ServingURL, "TRACKING_URI": &u.TrackingURI,
		"ORCHESTRATOR_API_URL": &u.OrchestratorURL, "BUS_BRIDGE_URL": &u.BusBridgeURL, "ASSISTANT_URL": &u.AssistantURL,
	} {
		last := ""
		for _, kv := range environ {
			if strings.HasPrefix(kv, name+"=") {
				last = kv
			}
		}
		if last == name+"=" {
			*address = ""
		}
	}
}

// Validate sets defaults and checks combinations of variables.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if c.DatabaseURL == "" {
		fault("PLATFORM_DATABASE_URL is not set; it names the database for configuration, comments and sessions")
	}
	if err := c.checkAddresses(); err != nil {
		faults = append(faults, err)
	}
	for _, v := range []struct {
		name      string
		value     int64
		low, high int64
	}{
		{"DASHBOARD_JWT_TTL_HOURS", int64(c.JWTTTLHours), 1, 720},
		{"DASHBOARD_SSO_SESSION_HOURS", int64(c.SSOSessionHours), 1, 168},
		{"DASHBOARD_SSO_IDLE_MINUTES", int64(c.SSOIdleMinutes), 1, 10080},
		{"PLATFORM_IAM_STEP_UP_MAX_AGE", int64(c.IAMStepUpMaxAge), 1, 86400},
		{"DASHBOARD_STREAM_MAX_CLIENTS", int64(c.StreamMaxClients), 1, 100_000},
		{"DASHBOARD_PROXY_MAX_BODY", c.ProxyMaxBody, 1, 1 << 30},
	} {
		if v.value < v.low || v.value > v.high {
			fault("%s is %d; it must be %d to %d", v.name, v.value, v.low, v.high)
		}
	}
	if c.SourceTimeout < 50*time.Millisecond || c.SourceTimeout > time.Minute {
		fault("DASHBOARD_SOURCE_TIMEOUT is %s; it must be 50ms to 1m", c.SourceTimeout)
	}
	if c.CopilotTimeout < time.Second || c.CopilotTimeout > 10*time.Minute {
		fault("DASHBOARD_COPILOT_TIMEOUT is %s; it must be 1s to 10m", c.CopilotTimeout)
	}
	if c.IAMStepUp != "off" && c.IAMStepUp != "enforce" {
		fault("PLATFORM_IAM_STEP_UP is %q; it must be off or enforce", c.IAMStepUp)
	}
	if c.SessionStore == "" {
		c.SessionStore = "postgres"
		if c.RedisURL != "" {
			c.SessionStore = "redis"
		}
	}
	if c.SessionStore != "postgres" && (c.SessionStore != "redis" || c.RedisURL == "") {
		fault("DASHBOARD_SESSION_STORE is %q; it must be postgres, or redis with REDIS_URL", c.SessionStore)
	}
	faults = append(faults, login.Settings{
		Viewer: c.ViewerPassword, Admin: c.AdminPassword, JWTSecret: c.JWTSecret, SecretKey: c.SecretKey,
		LocalLogin: c.LocalLogin, Providers: c.IAMConfig != "",
	}.Faults()...)
	if err := access.CheckProxies(c.TrustedProxies); err != nil {
		faults = append(faults, err)
	}
	if err := c.mail().Check(); err != nil {
		faults = append(faults, err)
	}
	if err := access.CheckStepUpActions(c.StepUpActions); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// mail returns the mail server for notifications.
func (c *Config) mail() notify.Mail {
	return notify.Mail{Addr: c.SMTPAddr, TLS: c.SMTPTLS, User: c.SMTPUser, Password: c.SMTPPassword, From: c.SMTPFrom}
}

// environment returns the values of configuration keys that this process was given.
func (c *Config) environment() map[string]service.Secret {
	values := map[string]service.Secret{
		"tracker_url": service.Secret(c.TrackingURI), "orchestrator_url": service.Secret(c.OrchestratorURL),
		"serving_url": service.Secret(c.ServingURL), "serving_dashboard_url": service.Secret(c.ServingDashboardURL),
		"metrics_store_url": service.Secret(c.MetricsStoreURL), "dashboards_url": service.Secret(c.DashboardsURL),
		"control_plane_url": service.Secret(c.ControlPlaneURL), "bus_url": service.Secret(c.BusBridgeURL),
		"scheduler_mode": service.Secret(c.SchedulerMode),
	}
	if c.ControlPlaneToken != "" {
		values["control_plane_token"] = c.ControlPlaneToken
	}
	return values
}

// published returns the addresses that people use, by service.
func (c *Config) published() map[string]string {
	values := map[string]string{
		"tracker": c.TrackingPublicURL, "orchestrator": c.OrchestratorPublicURL, "serving": c.ServingPublicURL,
		"serving_dashboard": c.ServingDashboardPublicURL, "metrics_store": c.MetricsStorePublicURL,
		"dashboards": c.DashboardsPublicURL, "bus": c.BusBridgePublicURL, "control_plane": c.ControlPlanePublicURL,
	}
	maps.DeleteFunc(values, func(_, v string) bool { return v == "" })
	return values
}

// checkAddresses sets the public URLs that are not given, and checks every URL.
func (c *Config) checkAddresses() error {
	var faults []error
	for _, a := range []struct {
		public   *string
		addr     string
		listener net.Listener
		name     string
	}{{&c.PublicURL, c.Addr, c.Listener, "DASHBOARD_PUBLIC_URL"}, {&c.ToolsURL, c.ToolsAddr, c.ToolsListener, "DASHBOARD_TOOLS_URL"}} {
		if a.listener != nil {
			a.addr = a.listener.Addr().String()
		}
		if *a.public == "" {
			if !isLoopback(a.addr) {
				faults = append(faults, fmt.Errorf("%s is not set; it is required when others can reach %s", a.name, a.addr))
				continue
			}
			*a.public = "http://" + a.addr
		}
		u, err := url.Parse(*a.public)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
			faults = append(faults, fmt.Errorf("%s is no http or https URL of an origin", a.name))
			continue
		}
		*a.public = u.Scheme + "://" + u.Host
	}
	if u, err := url.Parse(c.PublicURL); err == nil && !c.SessionCookieSecure && (u.Scheme != "http" || !isLoopback(u.Host)) {
		faults = append(faults, errors.New("DASHBOARD_SESSION_COOKIE_SECURE=false is allowed only for a public URL of http on loopback"))
	}
	if u, err := url.Parse(c.PublicURL); err == nil && len(c.AllowedHosts) == 0 {
		c.AllowedHosts = []string{u.Hostname()}
		if isLoopback(u.Host) {
			c.AllowedHosts = []string{u.Hostname(), "localhost", "127.0.0.1"}
		}
	}
	return errors.Join(faults...)
}

// isLoopback reports whether a host, with or without a port, is unreachable from other machines.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}
