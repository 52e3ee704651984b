package busapp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/bus"
	"github.com/mlp-platform/platform/services/inference/internal/direct"
)

// Config of the bridge; docs/bus.md lists the variables with their meaning.
type Config struct {
	// Addr is host:port of health, statistics and metrics. Without credentials it must be a loopback address.
	Addr string `env:"BUS_ADDR" envDefault:"127.0.0.1:18003"`
	// AllowedHosts are the Host values served, without port; empty: all with credentials, names of loopback without.
	AllowedHosts []string `env:"BUS_ALLOWED_HOSTS"`
	// Credentials maps bearer secrets to principals with the scope read, for /stats; empty means open.
	Credentials service.Secret `env:"BUS_CREDENTIALS_JSON"`
	// BusURL is the message bus; default NATS_URL. It may carry a user and password.
	BusURL  service.Secret `env:"BUS_NATS_URL"`
	NATSURL service.Secret `env:"NATS_URL" envDefault:"nats://localhost:4222"`
	// Mode is which subjects are served: reqres, pubsub or both.
	Mode string `env:"BUS_MODE" envDefault:"both"`
	// ServingURL is the inference service; ServingToken needs the scope predict there.
	ServingURL   string         `env:"SERVING_URL" envDefault:"http://localhost:18001"`
	ServingToken service.Secret `env:"SERVING_TOKEN"`
	// ControlPlaneURL is the control plane; ControlPlaneToken needs the scope retrain there for bus.retrain.
	ControlPlaneURL   string         `env:"CONTROL_PLANE_URL" envDefault:"http://localhost:18002"`
	ControlPlaneToken service.Secret `env:"CONTROL_PLANE_TOKEN"`
	// TimeoutMS is the deadline of one message, in milliseconds.
	TimeoutMS int `env:"BUS_TIMEOUT_MS" envDefault:"30000"`
	// MaxInflight is how many messages are worked on at once; more are answered with overloaded.
	MaxInflight int `env:"BUS_MAX_INFLIGHT" envDefault:"256"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `env:"LOG_LEVEL" envDefault:"info"`
	// DrainSeconds is how long messages in work may take to finish at shutdown.
	DrainSeconds int `env:"DRAIN_SECONDS" envDefault:"20"`

	// Tracing is where spans go.
	Tracing service.Tracing

	// Listener overrides Addr; it is for tests and for standalone.
	Listener net.Listener `env:"-"`
	// Link leads to an inference service of this process, which ServingURL names too; nil: there is none.
	Link *direct.Link `env:"-"`
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
	if _, err := bus.ParseMode(c.Mode); err != nil {
		faults = append(faults, err)
	}
	for name, raw := range map[string]string{"SERVING_URL": c.ServingURL, "CONTROL_PLANE_URL": c.ControlPlaneURL} {
		if u, err := url.Parse(raw); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			fault("%s is no http or https URL", name)
		}
	}
	for name, secret := range map[string]service.Secret{"SERVING_TOKEN": c.ServingToken, "CONTROL_PLANE_TOKEN": c.ControlPlaneToken} {
		if err := service.CheckSecret(name, secret); err != nil {
			faults = append(faults, err)
		}
	}
	for name, address := range map[string]service.Secret{"BUS_NATS_URL": c.BusURL, "NATS_URL": c.NATSURL} {
		if err := service.CheckURL(name, address); err != nil {
			faults = append(faults, err)
		}
	}
	if c.TimeoutMS < 1 || c.TimeoutMS > 600_000 {
		fault("BUS_TIMEOUT_MS is %d; it must be 1 to 600000", c.TimeoutMS)
	}
	if c.MaxInflight < 1 || c.MaxInflight > 65536 {
		fault("BUS_MAX_INFLIGHT is %d; it must be 1 to 65536", c.MaxInflight)
	}
	if c.DrainSeconds < 0 || c.DrainSeconds > 600 {
		fault("DRAIN_SECONDS is %d; it must be 0 to 600", c.DrainSeconds)
	}
	a := c.authenticator() // asked for faults alone
	if err := errors.Join(a.CheckPlaceholders(), a.State()); err != nil {
		fault("BUS_CREDENTIALS_JSON: %w", err)
	}
	if err := service.RequireLoopbackIfOpen(c.address(), a.Configured()); err != nil {
		fault("BUS_ADDR: %w (BUS_CREDENTIALS_JSON)", err)
	}
	if c.BusURL == "" {
		c.BusURL = c.NATSURL
	}
	return errors.Join(faults...)
}

// scopeRead is the bridge's only scope.
const scopeRead = "read"

func (c *Config) authenticator() *auth.Authenticator {
	return auth.Load("", c.Credentials.Reveal(), auth.Rules{Scopes: map[string][]string{scopeRead: nil}, Reads: []string{scopeRead}})
}

// address is where the bridge listens.
func (c *Config) address() string {
	if c.Listener != nil {
		return c.Listener.Addr().String()
	}
	return c.Addr
}

// allowedHosts are the Host values served; none: all. An open bridge is served under names of this machine alone, which
// no web page's name can be made to resolve to.
func (c *Config) allowedHosts() []string {
	if c.authenticator().Configured() {
		return c.AllowedHosts
	}
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, c.AllowedHosts...)
	if host, _, err := net.SplitHostPort(c.address()); err == nil && strings.TrimSpace(host) != "" {
		hosts = append(hosts, host) // such as 127.0.0.2
	}
	return hosts
}

func (c *Config) timeout() time.Duration { return time.Duration(c.TimeoutMS) * time.Millisecond }
