package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
)

// Config is the one-process platform's own configuration. Everything else in the environment reaches the
// services as it is, so any of their variables can be set for a run.
type Config struct {
	DataDir          string         `env:"PLATFORM_DATA_DIR" envDefault:".data"`             // all state; made when absent
	DatabaseURL      service.Secret `env:"PLATFORM_DATABASE_URL"`                            // empty: embedded Postgres
	Seed             bool           `env:"PLATFORM_SEED" envDefault:"true"`                  // train and serve the samples on first start
	DashboardAddr    string         `env:"DASHBOARD_ADDR" envDefault:"127.0.0.1:8099"`       // loopback host:port
	ToolsAddr        string         `env:"DASHBOARD_TOOLS_ADDR" envDefault:"127.0.0.1:8098"` // loopback host:port: the origin of proxied tools
	ControlPlaneAddr string         `env:"CONTROL_PLANE_ADDR" envDefault:"127.0.0.1:18002"`  // loopback host:port
	InferenceAddr    string         `env:"INFERENCE_ADDR" envDefault:"127.0.0.1:18001"`      // loopback host:port
	InferenceGRPC    string         `env:"INFERENCE_GRPC_ADDR" envDefault:"127.0.0.1:18005"` // loopback host:port
	TrackerAddr      string         `env:"TRACKER_ADDR" envDefault:"127.0.0.1:15000"`        // loopback host:port
	OrchestratorAddr string         `env:"ORCHESTRATOR_ADDR" envDefault:"127.0.0.1:14200"`   // loopback host:port
	EvidenceAddr     string         `env:"EVIDENCE_API_ADDR" envDefault:"127.0.0.1:8770"`    // 127.0.0.1:port; that service answers nowhere else
	AssistantAddr    string         `env:"ASSISTANT_ADDR" envDefault:"127.0.0.1:18004"`      // loopback host:port
	BusAddr          string         `env:"BUS_ADDR" envDefault:"127.0.0.1:18003"`            // loopback host:port
	NATSAddr         string         `env:"NATS_ADDR" envDefault:"127.0.0.1:4222"`            // loopback host:port
	PostgresPort     int            `env:"PLATFORM_POSTGRES_PORT" envDefault:"0"`            // the embedded Postgres on 127.0.0.1 too; 0: on its socket alone
	Concurrency      int            `env:"PLATFORM_TRAINING_CONCURRENCY" envDefault:"1"`     // training runs at once
	KeepTokens       bool           `env:"PLATFORM_KEEP_TOKENS" envDefault:"false"`          // of tracker and orchestrator: those of the start before
	LogLevel         string         `env:"LOG_LEVEL" envDefault:"info"`                      // debug, info, warn, error
	LogTo            string         `env:"PLATFORM_LOG_TO" envDefault:"file"`                // file: <data>/platform.log; stderr
	StopTimeout      time.Duration  `env:"PLATFORM_STOP_TIMEOUT" envDefault:"30s"`           // Postgres may take this long to stop
	DrainSeconds     int            `env:"DRAIN_SECONDS" envDefault:"20"`                    // of the services: for requests, then for workers

	environ []string
}

// LoadConfig reads the environment; all faults are reported at once.
func LoadConfig(environ []string) (Config, error) {
	cfg, err := readConfig(environ)
	if err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// readConfig is LoadConfig with what could be read in spite of an error.
func readConfig(environ []string) (Config, error) {
	cfg := Config{environ: environ}
	err := service.LoadConfig(&cfg, environ)
	return cfg, err
}

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	var errs []error
	for _, a := range c.addresses() {
		host, port, err := net.SplitHostPort(a.addr)
		ip := net.ParseIP(host)
		switch {
		case err != nil || !isPort(port):
			errs = append(errs, fmt.Errorf("%s must be host:port with a port of 1 to 65535, not %q", a.env, a.addr))
		case host != "localhost" && (ip == nil || !ip.IsLoopback()):
			errs = append(errs, fmt.Errorf("%s must be a loopback address: this process serves plain HTTP; %q is not", a.env, a.addr))
		case a.name == "evidence API" && host != "localhost" && host != "127.0.0.1":
			errs = append(errs, fmt.Errorf("%s must be on 127.0.0.1, where alone the evidence API answers, not on %q", a.env, host))
		case a.name == "NATS" && host != "localhost" && host != "127.0.0.1":
			errs = append(errs, fmt.Errorf("%s must be on 127.0.0.1, where the broker listens, not on %q", a.env, host))
		}
	}
	if c.PostgresPort < 0 || c.PostgresPort > 65535 {
		errs = append(errs, fmt.Errorf("PLATFORM_POSTGRES_PORT must be 1 to 65535, or 0 for none, not %d", c.PostgresPort))
	}
	if c.LogTo != "file" && c.LogTo != "stderr" {
		errs = append(errs, fmt.Errorf("PLATFORM_LOG_TO must be file or stderr, not %q", c.LogTo))
	}
	if c.Concurrency < 1 || c.Concurrency > 16 {
		errs = append(errs, fmt.Errorf("PLATFORM_TRAINING_CONCURRENCY must be 1 to 16, not %d", c.Concurrency))
	}
	if strings.TrimSpace(c.DataDir) == "" {
		errs = append(errs, errors.New("PLATFORM_DATA_DIR must name a folder"))
	}
	return errors.Join(errs...)
}

// isPort reports whether s is a fixed port, so not 0.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

type address struct{ name, env, addr string }

func (c Config) addresses() []address {
	list := []address{
		{"dashboard", "DASHBOARD_ADDR", c.DashboardAddr},
		{"dashboard tools", "DASHBOARD_TOOLS_ADDR", c.ToolsAddr},
		{"inference", "INFERENCE_ADDR", c.InferenceAddr},
		{"inference gRPC", "INFERENCE_GRPC_ADDR", c.InferenceGRPC},
		{"control plane", "CONTROL_PLANE_ADDR", c.ControlPlaneAddr},
		{"tracker", "TRACKER_ADDR", c.TrackerAddr},
		{"orchestrator", "ORCHESTRATOR_ADDR", c.OrchestratorAddr},
		{"evidence API", "EVIDENCE_API_ADDR", c.EvidenceAddr},
		{"assistant", "ASSISTANT_ADDR", c.AssistantAddr},
		{"bus bridge", "BUS_ADDR", c.BusAddr},
		{"NATS", "NATS_ADDR", c.NATSAddr},
	}
	if c.PostgresPort > 0 && c.DatabaseURL == "" {
		list = append(list, address{"Postgres", "PLATFORM_POSTGRES_PORT", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.PostgresPort))})
	}
	return list
}
