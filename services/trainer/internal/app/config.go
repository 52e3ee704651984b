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
	// ControlPlaneURL is notified of new versions and moves the aliases; empty: no notification, and aliases stay as
	// they are.
	ControlPlaneURL string `env:"CONTROL_PLANE_URL"`
	// ControlPlaneToken is the bearer for it.
	ControlPlaneToken service.Secret `env:"CONTROL_PLANE_TOKEN"`
	// ModelRepoDir is the folder of the model repository.
	ModelRepoDir string `env:"MODELREPO_DIR" envDefault:"deploy/modelrepo"`
	// Env is the registry in force: dev, staging, prod or empty for base alone.
	Env string `env:"MODELREPO_ENV"`
	// DataCacheDir holds models while they are checked; default the system's temporary folder.
	DataCacheDir string `env:"DATA_CACHE_DIR"`
	// S3Endpoint is the address of the object store of data sets with the backend object_store; empty: none.
	S3Endpoint string `env:"S3_ENDPOINT"`
	// S3Region of it; empty for stores without regions.
	S3Region string `env:"S3_REGION"`
	// S3AccessKey and S3SecretKey for it; empty: anonymous access.
	S3AccessKey string         `env:"S3_ACCESS_KEY"`
	S3SecretKey service.Secret `env:"S3_SECRET_KEY"`
	// DataplaneURL is the address that the paths of data sets with the backend dataplane are below.
	DataplaneURL string `env:"DATAPLANE_URL" envDefault:"http://localhost:8010"`
	// DataplaneToken is the bearer for it; empty: none.
	DataplaneToken service.Secret `env:"DATAPLANE_TOKEN"`
	// AllowPrivateArchives permits private addresses and plain http for public archives. Every author of the model
	// repository can then read what this machine reaches. Default false.
	AllowPrivateArchives bool `env:"PUBLIC_ARCHIVE_ALLOW_PRIVATE"`
	// CommandAllow lists the commands that estimators of kind command may run, separated by commas, each word for word.
	// Every author of the model repository can then run them. Empty: none.
	CommandAllow []string `env:"TRAINER_COMMAND_ALLOW"`
	// CommandTimeout limits one run of such a command; 0 means DefaultCommandTimeout.
	CommandTimeout time.Duration `env:"TRAINER_COMMAND_TIMEOUT"`
	// SchedulerMode is mock, which trains in this process, or slurm, by the commands of Slurm.
	SchedulerMode string `env:"PLATFORM_SCHEDULER_MODE" envDefault:"mock"`
	// HPCPartition, HPCAccount and HPCQOS are passed on to the scheduler; empty: its defaults.
	HPCPartition string `env:"HPC_PARTITION"`
	HPCAccount   string `env:"HPC_ACCOUNT"`
	HPCQOS       string `env:"HPC_QOS"`
	// HPCSSHHost is the login node on which Slurm's commands are run over SSH; empty: they run on this machine.
	HPCSSHHost string `env:"HPC_SSH_HOST"`
	HPCSSHPort int    `env:"HPC_SSH_PORT" envDefault:"22"`
	HPCSSHUser string `env:"HPC_SSH_USER"`
	// HPCSSHKey is the private key's text, without a passphrase; HPC_SSH_KEY_FILE names its file.
	HPCSSHKey service.Secret `env:"HPC_SSH_KEY"`
	// HPCSSHHostKey pins the login node's public key, as a line such as "ssh-ed25519 AAAA…"; any other is refused.
	HPCSSHHostKey string `env:"HPC_SSH_HOST_KEY"`
	// HPCWorkDir is a folder that this machine and the nodes share by the same path, as they do the model repository;
	// needed by slurm.
	HPCWorkDir string `env:"HPC_WORK_DIR"`
	// HPCTrainer is the trainer on the nodes; default the one next to this program.
	HPCTrainer string `env:"HPC_TRAINER"`
	// HPCPollSeconds is the poll interval for a job; 0 means 10.
	HPCPollSeconds int `env:"HPC_POLL_SECONDS"`
	// GPUCostPerHour in USD prices the synthetic GPU hours of mock jobs; 0 means DefaultGPUCostPerHour.
	GPUCostPerHour float64 `env:"GPU_COST_PER_HOUR"`
	// FlowRunID is the orchestrator's flow run that `trainer train` is part of; it tells the control plane the approval
	// and commit of a version. Empty: none, and the control plane is not notified.
	FlowRunID string `env:"PREFECT_FLOW_RUN_ID"`
	// Traceparent is the W3C trace context that `trainer train` continues; the worker sets it for each flow run.
	Traceparent string `env:"TRACEPARENT"`
	// Tracing is where spans go.
	Tracing service.Tracing
	// OrchestratorURL is the API, including /api, of the orchestrator whose runs `trainer worker` carries out.
	OrchestratorURL string `env:"PREFECT_API_URL" envDefault:"http://localhost:14200/api"`
	// OrchestratorKey is the bearer for it; empty: none.
	OrchestratorKey service.Secret `env:"PREFECT_API_KEY"`
	// WorkerName identifies the worker in the pool, followed by an id of its state folder; default the host's name.
	WorkerName string `env:"WORKER_NAME"`
	// WorkerStateDir keeps which runs the worker has claimed, beyond its death; one folder a worker, of its user's own
	// with mode 0700. Default platform-worker in DATA_CACHE_DIR, else in ~/.local/state.
	WorkerStateDir string `env:"WORKER_STATE_DIR"`
	// WorkerAddr is where the worker answers /livez, /readyz and /metrics, such as 127.0.0.1:18005; empty: nowhere.
	WorkerAddr string `env:"WORKER_ADDR"`
	// Concurrency is how many runs the worker carries out at once.
	Concurrency int `env:"PLATFORM_TRAINING_CONCURRENCY" envDefault:"1"`
	// WorkerPollSeconds is the poll interval for runs and cancellations.
	WorkerPollSeconds int `env:"WORKER_POLL_SECONDS" envDefault:"5"`
	// WorkerHeartbeatSeconds is the pause between two signs of life.
	WorkerHeartbeatSeconds int `env:"WORKER_HEARTBEAT_SECONDS" envDefault:"30"`
	// WorkerLostSeconds is how long another worker may be silent before its runs are marked CRASHED.
	WorkerLostSeconds int `env:"WORKER_LOST_SECONDS" envDefault:"300"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `env:"LOG_LEVEL" envDefault:"info"`
	// RetryDelays are the pauses before each retry of a transient failure; default 5, 15 and 30 s.
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

// LoadConfig reads the environment and reports all faults together.
func LoadConfig(environ []string) (Config, error) {
	var c Config
	err := service.LoadConfig(&c, environ)
	return c, err
}

// Validate reports all faults, by the names of the environment.
func (c *Config) Validate() error {
	var faults []error
	for name, v := range map[string]string{"TRACKING_URI": c.TrackingURI, "CONTROL_PLANE_URL": c.ControlPlaneURL, "S3_ENDPOINT": c.S3Endpoint, "DATAPLANE_URL": c.DataplaneURL, "PREFECT_API_URL": c.OrchestratorURL} {
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
	for name, v := range map[string]service.Secret{"S3_SECRET_KEY": c.S3SecretKey, "DATAPLANE_TOKEN": c.DataplaneToken, "PREFECT_API_KEY": c.OrchestratorKey} {
		if err := service.CheckSecret(name, v); err != nil {
			faults = append(faults, err)
		}
	}
	if (c.S3AccessKey == "") != (c.S3SecretKey == "") {
		faults = append(faults, errors.New("S3_ACCESS_KEY and S3_SECRET_KEY belong together; set both or none"))
	}
	if c.ModelRepoDir == "" {
		faults = append(faults, errors.New("MODELREPO_DIR is not set"))
	}
	if c.SchedulerMode != "" && !slices.Contains(scheduler.Modes, c.SchedulerMode) {
		faults = append(faults, fmt.Errorf("PLATFORM_SCHEDULER_MODE %q is not in this build; it has %s", c.SchedulerMode, strings.Join(scheduler.Modes, ", ")))
	}
	if c.SchedulerMode == scheduler.SlurmMode {
		faults = append(faults, c.checkSlurm())
	}
	if c.CommandTimeout < 0 {
		faults = append(faults, errors.New("TRAINER_COMMAND_TIMEOUT must not be negative"))
	}
	if c.GPUCostPerHour < 0 {
		faults = append(faults, errors.New("GPU_COST_PER_HOUR must not be negative"))
	}
	return errors.Join(faults...)
}

// MakeCacheDir makes DATA_CACHE_DIR. It is apart from Validate, since reading a configuration must change nothing.
func (c *Config) MakeCacheDir() error {
	if c.DataCacheDir == "" {
		return nil
	}
	if err := os.MkdirAll(c.DataCacheDir, 0o755); err != nil {
		return fmt.Errorf("DATA_CACHE_DIR: %w", err)
	}
	return nil
}
