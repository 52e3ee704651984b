package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/trainer/internal/external"
	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// Config of a trainer.
type Config struct {
	// TrackingURI is the address of the tracker.
	TrackingURI string `env:"TRACKING_URI" envDefault:"http://localhost:15000"`
	// TrackingToken is the bearer for it; empty: none.
	TrackingToken service.Secret `env:"MLFLOW_TRACKING_TOKEN"`
	// ControlPlaneURL is told of new versions and moves the aliases; empty means that nobody does.
	ControlPlaneURL string `env:"CONTROL_PLANE_URL"`
	// ControlPlaneToken is the bearer for it.
	ControlPlaneToken service.Secret `env:"CONTROL_PLANE_TOKEN"`
	// ModelRepoDir is the folder of the model repository.
	ModelRepoDir string `env:"MODELREPO_DIR" envDefault:"deploy/modelrepo"`
	// Env is the registry in force: dev, staging, prod or empty for base alone.
	Env string `env:"MODELREPO_ENV"`
	// DataCacheDir is where models lie while they are checked; default the system's temporary folder.
	DataCacheDir string `env:"DATA_CACHE_DIR"`
	// S3Endpoint is the address of the object store of data sets with the backend object_store; empty: none.
	S3Endpoint string `env:"S3_ENDPOINT_URL"`
	// S3Region of it; empty for stores without regions.
	S3Region string `env:"AWS_REGION"`
	// S3AccessKey and S3SecretKey for it; empty reads what anybody may.
	S3AccessKey string         `env:"AWS_ACCESS_KEY_ID"`
	S3SecretKey service.Secret `env:"AWS_SECRET_ACCESS_KEY"`
	// DataplaneURL is the address that the paths of data sets with the backend dataplane are below; empty: none.
	DataplaneURL string `env:"DATAPLANE_URL"`
	// DataplaneToken is the bearer for it; empty: none.
	DataplaneToken service.Secret `env:"DATAPLANE_TOKEN"`
	// AllowPrivateArchives lets public archives be at addresses that are not public, and speak plain http. Whoever can
	// change the model repository can then read what this machine reaches. Default false.
	AllowPrivateArchives bool `env:"PUBLIC_ARCHIVE_ALLOW_PRIVATE"`
	// CommandAllow lists the commands that estimators of kind command may run, separated by commas, each word for word.
	// Whoever can change the model repository can then run them. Empty: none.
	CommandAllow []string `env:"TRAINER_COMMAND_ALLOW"`
	// CommandTimeout limits one run of such a command; 0 means DefaultCommandTimeout.
	CommandTimeout time.Duration `env:"TRAINER_COMMAND_TIMEOUT"`
	// SchedulerMode is mock.
	SchedulerMode string `env:"PLATFORM_SCHEDULER_MODE" envDefault:"mock"`
	// GPUCostPerHour in USD prices the synthetic GPU hours of mock jobs; 0 means DefaultGPUCostPerHour.
	GPUCostPerHour float64 `env:"GPU_COST_PER_HOUR"`
	// FlowRunID is the orchestrator's flow run that `trainer train` is part of: the control plane then
	// knows which approval and commit a version came from. Empty: none, and nobody is told.
	FlowRunID string `env:"PREFECT_FLOW_RUN_ID"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `env:"LOG_LEVEL" envDefault:"info"`
	// RetryDelays are the pauses before each further attempt at what may pass by itself; default 5, 15 and 30 s.
	RetryDelays []time.Duration `env:"-"`
}

// Sources are where data outside the model repository is fetched from.
func (c *Config) Sources() *source.Sources {
	return source.New(source.Config{
		AllowPrivate: c.AllowPrivateArchives, S3Endpoint: c.S3Endpoint, S3Region: c.S3Region, S3AccessKey: c.S3AccessKey,
		S3SecretKey: c.S3SecretKey.Reveal(), DataplaneURL: c.DataplaneURL, DataplaneToken: c.DataplaneToken.Reveal(),
	})
}

// DefaultCommandTimeout of one fit by a command.
const DefaultCommandTimeout = 2 * time.Hour

func (c *Config) commands(log *slog.Logger) external.Config {
	out := external.Config{Timeout: cmp.Or(c.CommandTimeout, DefaultCommandTimeout), Log: log}
	for _, text := range c.CommandAllow {
		if argv := strings.Fields(text); len(argv) > 0 {
			out.Allow = append(out.Allow, argv)
		}
	}
	return out
}

// DefaultGPUCostPerHour in USD.
const DefaultGPUCostPerHour = 2.50

// DefaultRetryDelays before the second, third and fourth attempt.
var DefaultRetryDelays = []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second}

// LoadConfig reads the environment and tells all faults at once.
func LoadConfig(environ []string) (Config, error) {
	var c Config
	err := service.LoadConfig(&c, environ)
	return c, err
}

// Validate tells all that is wrong, by the names of the environment.
func (c *Config) Validate() error {
	var faults []error
	for name, v := range map[string]string{"TRACKING_URI": c.TrackingURI, "CONTROL_PLANE_URL": c.ControlPlaneURL, "S3_ENDPOINT_URL": c.S3Endpoint, "DATAPLANE_URL": c.DataplaneURL} {
		if v == "" && name != "TRACKING_URI" {
			continue
		}
		if u, err := url.Parse(v); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			faults = append(faults, fmt.Errorf("%s is not an http(s) address", name))
		}
	}
	if err := service.CheckSecret("CONTROL_PLANE_TOKEN", c.ControlPlaneToken); err != nil {
		faults = append(faults, err)
	}
	if err := service.CheckSecret("MLFLOW_TRACKING_TOKEN", c.TrackingToken); err != nil {
		faults = append(faults, err)
	}
	for name, v := range map[string]service.Secret{"AWS_SECRET_ACCESS_KEY": c.S3SecretKey, "DATAPLANE_TOKEN": c.DataplaneToken} {
		if err := service.CheckSecret(name, v); err != nil {
			faults = append(faults, err)
		}
	}
	if (c.S3AccessKey == "") != (c.S3SecretKey == "") {
		faults = append(faults, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together; set both or none"))
	}
	if c.ModelRepoDir == "" {
		faults = append(faults, errors.New("MODELREPO_DIR is not set"))
	}
	if c.SchedulerMode != "" && !slices.Contains(scheduler.Modes, c.SchedulerMode) {
		faults = append(faults, fmt.Errorf("PLATFORM_SCHEDULER_MODE %q is not in this build; it has %s", c.SchedulerMode, strings.Join(scheduler.Modes, ", ")))
	}
	if c.DataCacheDir != "" {
		if err := os.MkdirAll(c.DataCacheDir, 0o755); err != nil {
			faults = append(faults, fmt.Errorf("DATA_CACHE_DIR: %w", err))
		}
	}
	if c.CommandTimeout < 0 {
		faults = append(faults, errors.New("TRAINER_COMMAND_TIMEOUT must not be negative"))
	}
	if c.GPUCostPerHour < 0 {
		faults = append(faults, errors.New("GPU_COST_PER_HOUR must not be negative"))
	}
	return errors.Join(faults...)
}
