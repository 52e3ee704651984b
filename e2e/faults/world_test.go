//go:build e2e || faults

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/embedded/pg"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
)

var (
	tenants = []string{"alpha", "beta", "gamma", "delta"}
	models  = map[string]string{"JPCP": "JobEmbeddings", "MACK": "JobEmbeddings", "MCBound": "JobEmbeddings", "RuntimeClass": "IpscJobs", "RuntimeRegressor": "IpscJobs"}
)

func tokenOf(tenant string) string { return "token-of-" + tenant + "-0123456789" }

// world is the installation.
type world struct {
	t     *testing.T
	dir   string
	parts []*part // in the order of their start

	replicas     []string // URLs of the control planes
	orchestrator string   // URL of its API, past any proxy
	tracker      string   // URL; the orchestrator's process has one too
	proxy        *harness.Proxy
	plane        *pgxpool.Pool // the control planes' schema, for the final checks
	inbox        *pgxpool.Pool // the consumer's
}

// newWorld starts everything. With a proxy, the control planes reach the orchestrator through it.
func newWorld(t *testing.T, proxied bool) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "platform-faults-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
			return
		}
		t.Logf("logs are kept in %s", dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil { // the user of Postgres must reach its files
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir}
	database := w.addPostgres()
	redis := w.addRedis()
	broker := w.addBroker()
	w.addOrchestrator()
	api := w.orchestrator
	if proxied {
		front := harness.FreePorts(t, 1)[0]
		w.proxy = harness.NewProxy(t, front, strings.TrimSuffix(api, "/api"))
		api = w.proxy.URL + "/api"
	}
	w.addConsumer(database, broker)
	w.addControlPlanes(database, redis, broker, api)
	return w
}

// add starts a part and waits until it works.
func (w *world) add(p *part) {
	w.t.Helper()
	w.parts = append(w.parts, p)
	p.start()
	harness.Eventually(w.t, startTimeout, p.up)
}

func (w *world) part(name string) *part {
	w.t.Helper()
	for _, p := range w.parts {
		if p.name == name {
			return p
		}
	}
	w.t.Fatalf("no part %s", name)
	return nil
}

// allAlive fails when a process ended without being killed.
func (w *world) allAlive() {
	w.t.Helper()
	for _, p := range w.parts {
		if p.ended() {
			w.t.Fatalf("%s ended by itself%s; want !p.ended()", p.name, w.logTail(p.name))
		}
	}
}

func (w *world) addPostgres() (url string) {
	dir := filepath.Join(w.dir, "postgres")
	var server *pg.Server
	start := func() {
		s, err := pg.Start(w.t.Context(), pg.Config{Dir: dir})
		if err != nil {
			w.t.Fatal(err)
		}
		server, url = s, s.URL("")
	}
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return server.Stop(ctx)
	}
	w.t.Cleanup(func() { _ = stop() })
	w.add(&part{
		name: "postgres", start: start, up: func() error { return nil }, // pg.Start has waited
		kill: func() {
			if err := killPostmaster(dir); err != nil {
				w.t.Fatal(err)
			}
			<-server.Wait()
			if err := stop(); err != nil { // releases the lock of the directory
				w.t.Fatal(err)
			}
		},
		ended: func() bool { return !isListening(server.Socket()) },
	})
	return url
}

func killPostmaster(dir string) error {
	f, err := os.Open(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Redis writes each command to disk before it answers, as in compose.
func (w *world) addRedis() (url string) {
	addr := harness.FreePorts(w.t, 1)[0]
	_, port, _ := net.SplitHostPort(addr)
	dir := filepath.Join(w.dir, "redis")
	if err := os.Mkdir(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		w.t.Fatalf("%v; scripts/setup.sh test installs it", err)
	}
	w.add(w.child("redis", func() error { return dialOnce(addr) }, nil, bin,
		"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always"))
	return "redis://" + addr + "/0"
}

func dialOnce(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // fails on a closed connection, as the next line would
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("redis says %q", line)
	}
	return err
}

func isListening(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func (w *world) addBroker() (url string) {
	addr := harness.FreePorts(w.t, 1)[0]
	_, port, _ := net.SplitHostPort(addr)
	up := func() error {
		nc, err := nats.Connect("nats://" + addr)
		if err == nil {
			nc.Close()
		}
		return err
	}
	w.add(w.child("nats", up, []string{roleEnv + "=nats", "FAULTS_PORT=" + port, "FAULTS_DIR=" + filepath.Join(w.dir, "nats")}, os.Args[0]))
	return "nats://" + addr
}

// addOrchestrator runs the platform for its stand-in of the orchestrator, with a separate database. The deployment
// belongs to a work pool, so the stand-in only keeps the runs; see [world.work].
func (w *world) addOrchestrator() {
	p := harness.New(w.t, "PLATFORM_SEED=false", "PLATFORM_KEEP_TOKENS=true") // the control planes live on when it is killed
	w.add(&part{
		name: "orchestrator", start: func() { p.Start(w.t, startTimeout) }, kill: p.Kill, up: func() error { return nil }, // Start has waited
		ended: func() bool {
			select {
			case <-p.Done():
				return true
			default:
				return false
			}
		},
	})
	w.orchestrator, w.tracker = p.Orchestrator(), p.Tracker()
	flow := harness.Want(w.t, 201, "POST", w.orchestrator+"/flows/", "", map[string]any{"name": "faults"}).JSON(w.t)
	harness.Want(w.t, 201, "POST", w.orchestrator+"/work_pools/", "", map[string]any{"name": "recorder", "type": "process"})
	properties := map[string]any{}
	for _, name := range []string{"model_name", "dataset_cls_name", "is_dummy", "backend_name", "tenant", "requested_by", "approval_id"} {
		properties[name] = map[string]any{}
	}
	harness.Want(w.t, 201, "POST", w.orchestrator+"/deployments/", "", map[string]any{
		"name": "recorder", "flow_id": flow["id"], "work_pool_name": "recorder",
		"parameter_openapi_schema": map[string]any{"type": "object", "properties": properties},
	})
}

func (w *world) addConsumer(database, broker string) {
	ctx := w.t.Context()
	if err := postgres.Migrate(ctx, database, consumerSchema, outbox.Migrations()); err != nil {
		w.t.Fatal(err)
	}
	w.inbox = w.open(database, consumerSchema)
	if _, err := w.inbox.Exec(ctx, "create table handled (event_id uuid not null, type text not null, at timestamptz not null default now())"); err != nil {
		w.t.Fatal(err)
	}
	w.add(w.child("consumer", func() error { return nil }, []string{
		roleEnv + "=consumer", "FAULTS_DATABASE=" + database, "FAULTS_BROKER=" + broker,
	}, os.Args[0]))
}

func (w *world) open(database, schema string) *pgxpool.Pool {
	w.t.Helper()
	pool, err := postgres.Open(w.t.Context(), database, schema, postgres.MaxConns(2))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

func (w *world) addControlPlanes(database, redis, broker, orchestrator string) {
	bin := harness.Bin(w.t, "control-plane")
	credentials := map[string]any{}
	for _, tenant := range tenants {
		credentials[tokenOf(tenant)] = map[string]any{"principal": "user-of-" + tenant, "tenant": tenant, "scopes": []string{"read", "write"}}
	}
	secrets, err := json.Marshal(credentials)
	if err != nil {
		w.t.Fatal(err)
	}
	env := []string{
		"DRAIN_DELAY=0s", "PLATFORM_DATABASE_URL=" + database, "COORDINATOR=redis", "REDIS_URL=" + redis,
		"EVENT_PUBLISHER=nats", "NATS_URL=" + broker, "PREFECT_API_URL=" + orchestrator, "PREFECT_DEPLOYMENT_NAME=faults/recorder", "TRACKING_URI=" + w.tracker,
		"PREFECT_CB_RESET_TIMEOUT=1", "COMMAND_LEASE_SECONDS=15", "ADMISSION_MAX_RUNNING=500", "ADMISSION_PER_TENANT=500",
		"CHANGES_RATE_LIMIT_PER_MIN=0", "RETRAIN_RATE_LIMIT_PER_MIN=0", "DECISION_RATE_LIMIT_PER_MIN=0",
		"CONTROL_PLANE_CREDENTIALS_JSON=" + string(secrets), "MODELREPO_DIR=" + filepath.Join(harness.Root(w.t), "deploy", "modelrepo"), "AUDIT_SIGNING_KEY_FILE=" + filepath.Join(w.dir, "audit.key"),
	}
	migrate := exec.Command(bin, "migrate")
	migrate.Env = append(os.Environ(), env...)
	if out, err := migrate.CombinedOutput(); err != nil {
		w.t.Fatalf("migrate: %v\n%s", err, out)
	}
	w.plane = w.open(database, "control_plane")
	for i, addr := range harness.FreePorts(w.t, 2) {
		url := "http://" + addr
		w.replicas = append(w.replicas, url)
		w.add(w.child(fmt.Sprintf("control-plane-%d", i+1), func() error {
			a, err := harness.TryCall("GET", url+"/readyz", "", nil)
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("%d %s", a.Status, a.Body)
			}
			return err
		}, append([]string{"CONTROL_PLANE_ADDR=" + addr}, env...), bin))
	}
}
