package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
)

func preparedPlatform(t *testing.T, environ ...string) *platform {
	t.Helper()
	cfg, err := LoadConfig(environ)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return &platform{cfg: cfg, root: dir.Path(), dir: dir, repo: dir.Path() + "/modelrepo", creds: credentials.Credentials{TrainerToken: strings.Repeat("trainer-", 6)}}
}

func TestTrainerSeesTheEnvironment(t *testing.T) {
	t.Parallel()
	p := preparedPlatform(t, "GPU_COST_PER_HOUR=4.5", "MODELREPO_ENV=staging", "CONTROL_PLANE_TOKEN=someone-else's", "MODELREPO_DIR=/elsewhere")
	cfg, err := p.trainerConfig()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.GPUCostPerHour != 4.5 || cfg.Env != "staging" {
		t.Errorf(`not the caller's: %+v; want cfg.GPUCostPerHour == 4.5 && cfg.Env == "staging"`, cfg)
	}
	if cfg.ControlPlaneToken.Reveal() != p.creds.TrainerToken || cfg.ModelRepoDir != p.repo || cfg.TrackingURI != p.cfg.trackerURL() || cfg.ControlPlaneURL != p.cfg.controlPlaneURL() {
		t.Errorf("not this process's own: %+v; want cfg.ControlPlaneToken.Reveal() == p.creds.TrainerToken && cfg.ModelRepoDir == p.repo && cfg.TrackingURI == p.cfg.trackerURL() && …", cfg)
	}
	if cfg, err = preparedPlatform(t).trainerConfig(); err != nil || cfg.Env != "dev" || cfg.DataCacheDir == "" {
		t.Errorf(`defaults: %+v, %v; want cfg.Env == "dev" && cfg.DataCacheDir != ""`, cfg, err)
	}
}

func TestAwaitReadyEndsAsAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel() // the stop comes while the service is not ready
	}))
	defer srv.Close()
	if err := awaitReady(ctx, srv.URL); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want the context's error", err)
	}
}

// The announced address is the one that was taken.
func TestListenKeepsTheAddress(t *testing.T) {
	t.Parallel()
	var env []string
	for _, name := range []string{"DASHBOARD_ADDR", "DASHBOARD_TOOLS_ADDR", "INFERENCE_ADDR", "INFERENCE_GRPC_ADDR", "CONTROL_PLANE_ADDR", "TRACKER_ADDR", "ORCHESTRATOR_ADDR", "EVIDENCE_API_ADDR", "ASSISTANT_ADDR", "BUS_ADDR", "NATS_ADDR"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		env = append(env, name+"=localhost:"+port)
		defer l.Close()
		l.Close()
	}
	p := preparedPlatform(t, env...)
	ls, err := p.listen()
	if err != nil {
		t.Fatalf("a port was taken meanwhile: %v", err)
	}
	defer ls.close()
	if got, want := p.cfg.trackerURL(), "http://"+ls.tracker.Addr().String(); got != want {
		t.Fatalf("tracker at %s, listens at %s", got, want)
	}
}

const holdDir = "STANDALONE_TEST_HOLD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		d, err := datadir.Open(dir)
		if err == nil {
			err = d.WriteRuntime(datadir.Runtime{PID: os.Getpid()})
		}
		if err != nil {
			panic(err)
		}
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		select {
		case <-stop:
		case <-time.After(time.Minute): // the test was killed
		}
		os.Exit(0)
	}
	testenv.Main(m)
}

// A process that has ended and was not waited for still has a pid; stopping it succeeds nonetheless.
func TestStopOfAProcessNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdDir+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	testenv.Eventually(t, 10*time.Second, func() error {
		_, err := datadir.ReadRuntime(dir)
		return err
	})
	cfg, err := LoadConfig([]string{"PLATFORM_DATA_DIR=" + dir, "PLATFORM_STOP_TIMEOUT=1s", "DRAIN_SECONDS=0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	if err := Stop(ctx, cfg, &out); err != nil || out.String() != "stopped\n" {
		t.Fatalf("%v, %q; want out.String() == \"stopped\\n\"", err, out.String())
	}
}

func TestStopLimitIsTheSum(t *testing.T) {
	t.Parallel()
	cfg, err := LoadConfig([]string{"PLATFORM_STOP_TIMEOUT=7s", "DRAIN_SECONDS=3"})
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.stopLimit(); got != 6*time.Second+backStop+7*time.Second {
		t.Fatal(got, "want got == 6*time.Second + backStop + 7*time.Second")
	}
}

// A start that fails halfway leaves no connection and no goroutine of the tracker behind.
func TestFailedStartGivesEverythingBack(t *testing.T) {
	t.Parallel()
	p := preparedPlatform(t)
	p.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	p.databaseURL = testenv.Postgres(t)
	if err := postgres.Migrate(t.Context(), p.databaseURL, trackerd.Schema, trackerd.Migrations()); err != nil {
		t.Fatal(err)
	}
	g, ctx := errgroup.WithContext(t.Context())
	if _, err := p.startStandIns(ctx, g, &listeners{}); err == nil || !strings.Contains(err.Error(), "orchestrator") {
		t.Fatalf("%v, want the orchestrator's schema to be missing", err)
	}
	pool, err := postgres.Open(t.Context(), p.databaseURL, trackerd.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	testenv.Eventually(t, 10*time.Second, func() error { // a backend ends a moment after its client
		var others int
		if err := pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()").Scan(&others); err != nil {
			return err
		}
		if others > 0 {
			return fmt.Errorf("%d connections are left", others)
		}
		return nil
	})
}

// A service that fails is named, and one that ends without an error ends the platform as well.
func TestServicesAreNamedInErrors(t *testing.T) {
	t.Parallel()
	p := preparedPlatform(t)
	var log bytes.Buffer
	p.log = slog.New(slog.NewTextHandler(&log, nil))
	services := []hosted{{name: "evidence API", run: func(_ context.Context, log *slog.Logger) error {
		log.Info("begins")
		return errors.New("port in use")
	}}}
	g, ctx := errgroup.WithContext(t.Context())
	p.startServices(ctx, g, services)
	if err := g.Wait(); err == nil || err.Error() != "evidence API: port in use" {
		t.Errorf("startServices ended with %v, want the service's name and error", err)
	}
	if want := "service=evidence-api"; !strings.Contains(log.String(), want) {
		t.Errorf("log is %q, want %s in it", log.String(), want)
	}
}

// The stand-ins' secrets reach the services that call them, and no orchestrator but our own.
func TestServicesGetTheStandInsSecrets(t *testing.T) {
	t.Parallel()
	creds, err := credentials.LoadOrCreate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := preparedPlatform(t, "MLFLOW_TRACKING_TOKEN=of-another-platform-0123456789", "PREFECT_API_KEY=of-another-platform-0123456789")
	p.creds = creds
	p.databaseURL, p.natsURL = "postgres://u@127.0.0.1/d", "nats://127.0.0.1:4222"
	tr, err := p.trainerConfig()
	if err != nil {
		t.Fatal(err)
	}
	inf, err := p.inferenceConfig()
	if err != nil {
		t.Fatal(err)
	}
	cp, err := p.controlPlaneConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"trainer": tr.TrackingToken.Reveal(), "inference": inf.TrackingToken.Reveal(), "control plane": cp.TrackingToken.Reveal()} {
		if got != creds.TrackerToken {
			t.Errorf("tracker token of the %s: got %q, want this platform's", name, got)
		}
	}
	if got := cp.OrchestratorKey.Reveal(); got != creds.OrchestratorKey {
		t.Errorf("orchestrator key: got %q, want this platform's", got)
	}
	if inf.SeparationOfDuties != "enforce" || inf.ControlPlaneToken.Reveal() != creds.InferenceToken || !inf.RequireDigest {
		t.Errorf("got inference %+v, want the gate required, its own token and digests", inf)
	}
	p.cfg.environ = append(p.cfg.environ, "PREFECT_API_URL=http://elsewhere.example/api")
	if cp, err = p.controlPlaneConfig(); err != nil {
		t.Fatal(err)
	}
	if got := cp.OrchestratorKey.Reveal(); got != "of-another-platform-0123456789" {
		t.Errorf("key for another orchestrator: got %q, want the caller's", got)
	}
}
