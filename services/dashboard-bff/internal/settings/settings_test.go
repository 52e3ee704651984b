package settings_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/settings"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var _ upstream.Settings = (*settings.Settings)(nil)

const path = "/api/config"

// keyOf returns a configured key of 32 bytes that differ by n.
func keyOf(n byte) string {
	raw := make([]byte, 32)
	for i := range raw {
		raw[i] = byte(i) + n
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func keys(t *testing.T, list string) *sealing.Keys {
	t.Helper()
	k, err := sealing.ParseKeys(service.Secret(list))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// replica is one instance of the service on a database.
type replica struct {
	*recordstest.App
	*settings.Settings
	pool *pgxpool.Pool
	log  *bytes.Buffer
}

func newReplica(t *testing.T, pool *pgxpool.Pool, change func(*settings.Config)) replica {
	t.Helper()
	log := &bytes.Buffer{}
	cfg := settings.Config{
		Pool: pool, Keys: keys(t, keyOf(1)), Log: slog.New(slog.NewJSONHandler(log, nil)), OperatorTenants: []string{"default"},
		Environment: map[string]service.Secret{"tracker_url": "http://tracker.internal:5000", "control_plane_token": "token-of-the-environment"},
		StepUp:      func(echo.Context) error { return nil },
	}
	if change != nil {
		change(&cfg)
	}
	s, err := settings.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.GET(path, s.Get)
	app.Echo.PUT(path, s.Put)
	app.Echo.GET(path+"/keys", s.Keys)
	return replica{app, s, pool, log}
}

func start(t *testing.T) replica {
	t.Helper()
	return newReplica(t, recordstest.Pool(t), nil)
}

func (r replica) read() map[string]any {
	r.T.Helper()
	return r.Want(200, recordstest.Viewer, "GET", path, nil).Object()
}

func TestStoredValueBeatsEnvironmentBeatsDefault(t *testing.T) {
	t.Parallel()
	r := start(t)
	check := func(key, want string, source api.ConfigKeySource) {
		t.Helper()
		if got := r.Value(key); got != want {
			t.Errorf("Value(%q): got %q, want %q", key, got, want)
		}
		all := recordstest.Decode[[]api.ConfigKey](r.Want(200, recordstest.Viewer, "GET", path+"/keys", nil))
		i := slices.IndexFunc(all, func(k api.ConfigKey) bool { return k.Key == key })
		if i < 0 || all[i].Source != source || all[i].HasValue != (want != "") {
			t.Errorf("keys: got %+v at %d; want %s from %s", all, i, key, source)
		}
	}
	check("serving_url", "http://localhost:18001", api.Default)
	check("metrics_store_url", "", api.Default)
	check("tracker_url", "http://tracker.internal:5000", api.Environment)
	r.Want(200, recordstest.Admin, "PUT", path, `{"tracker_url": "http://tracker.internal:5000/mlflow"}`)
	check("tracker_url", "http://tracker.internal:5000/mlflow", api.Stored)
	r.Want(200, recordstest.Admin, "PUT", path, `{"tracker_url": null}`)
	check("tracker_url", "http://tracker.internal:5000", api.Environment)
	if got := r.Value("no_such_key"); got != "" {
		t.Errorf("unknown key: got %q, want nothing", got)
	}
}

func TestGetAnswersEveryKeyAsStringNullOrMask(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Want(200, recordstest.Admin, "PUT", path, `{"forge_token": "s3cr3t-forge", "threshold_JPCP_rmse": "12.5"}`)
	for _, who := range []func() map[string]any{r.read, func() map[string]any { return r.Want(200, recordstest.Admin, "GET", path, nil).Object() }} {
		got := who()
		for key, want := range map[string]any{
			"forge_token": "***", "control_plane_token": "***", "forge_pipeline_token": nil, "dashboards_api_key": nil, "threshold_jpcp_rmse": "12.5",
			"metrics_store_url": nil, "scheduler_mode": "mock", "tracker_url": "http://tracker.internal:5000",
		} {
			if v, there := got[key]; v != want || !there {
				t.Errorf("%s: got %v, %v; want %v", key, v, there, want)
			}
		}
		if len(got) != 22 {
			t.Errorf("got %d keys %v; want the 21 fixed ones and the threshold", len(got), got)
		}
	}
}

func TestOneBadKeyChangesNothing(t *testing.T) {
	t.Parallel()
	r := start(t)
	before := fmt.Sprint(r.read())
	for body, named := range map[string][]string{
		`{"serving_url": "http://localhost:18001", "no_such_key": "x"}`:                        {"no_such_key"},
		`{"serving_url": "http://localhost:18001", "forge_project_id": 7}`:                     {"forge_project_id"},
		`{"serving_url": "http://localhost:18001", "forge_token": ""}`:                         {"forge_token"},
		`{"serving_url": "http://localhost:18001", "forge_token": "***"}`:                      {"forge_token"},
		`{"serving_url": "", "tracker_url": "x", "bus_url": ["a"]}`:                            {"bus_url", "serving_url", "tracker_url"},
		`{"serving_url": "ftp://localhost"}`:                                                   {"serving_url"},
		`{"serving_url": "http://user:hunter2@localhost"}`:                                     {"serving_url"},
		`{"serving_url": "http://169.254.169.254/latest"}`:                                     {"serving_url"},
		`{"serving_url": "http://localhost.evil.example"}`:                                     {"serving_url"},
		`{"serving_url": "http://localhost?a=b"}`:                                              {"serving_url"},
		`{"forge_url": "javascript:alert(1)"}`:                                                 {"forge_url"},
		`{"scheduler_time": "01:00\n02:00"}`:                                                   {"scheduler_time"},
		`{"threshold_JPCP_rmse": "NaN"}`:                                                       {"threshold_JPCP_rmse"},
		`{"threshold_JPCP_rmse": "1", "threshold_jpcp_rmse": "2"}`:                             {"threshold_jpcp_rmse"},
		`{"threshold__rmse": "1"}`:                                                             {"threshold__rmse"},
		`{"scheduler_partition": "` + strings.Repeat("p", 4097) + `", "serving_url": null}`:    {"scheduler_partition"},
		`{"forge_token": {"a": 1}, "forge_pipeline_token": true, "serving_url": "http://x.y"}`: {"forge_pipeline_token", "forge_token", "serving_url"},
	} {
		answer := r.Refused(422, "validation_failed", recordstest.Admin, "PUT", path, body)
		var got []string
		for _, e := range answer.Object()["errors"].([]any) {
			got = append(got, e.(map[string]any)["loc"].([]any)[1].(string))
		}
		if !slices.Equal(got, named) {
			t.Errorf("%s: got faults of %v, want %v", body, got, named)
		}
		if strings.Contains(string(answer.Body), "hunter2") {
			t.Errorf("%s: got the password back: %s", body, answer.Body)
		}
	}
	if after := fmt.Sprint(r.read()); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
	if e := recordstest.Events(t, r.pool, ""); len(e) != 0 {
		t.Errorf("got events %v, want none", e)
	}
}

func TestChangesAreAuditedAndAnnouncedWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Want(200, recordstest.Admin, "PUT", path, `{"serving_url": "http://localhost:18001", "forge_token": "s3cr3t-one", "scheduler_mode": "slurm"}`)
	r.Want(200, recordstest.Admin, "PUT", path, `{"serving_url": "http://localhost:18002", "forge_token": "s3cr3t-two", "scheduler_mode": "slurm"}`)
	r.Want(200, recordstest.Admin, "PUT", path, `{"serving_url": null, "forge_token": null, "bus_url": null}`)
	r.Want(200, recordstest.Admin, "PUT", path, `{}`)
	var got []string
	for _, action := range []string{"config.set", "config.clear"} {
		for _, a := range recordstest.Audits(t, r.pool, action) {
			if a["actor"] != "local:admin" || a["tenant"] != "default" || a["outcome"] != "ok" || a["source"] != "dashboard" {
				t.Errorf("got fact %v; want it by local:admin of default", a)
			}
			d := a["details"].(map[string]any)
			got = append(got, fmt.Sprint(action, " ", a["target"], " ", d["old"], " ", d["new"], " ", d["secret"]))
		}
	}
	want := []string{
		"config.set config:forge_token <nil> <nil> true", "config.set config:scheduler_mode <nil> slurm <nil>",
		"config.set config:serving_url <nil> http://localhost:18001 <nil>", "config.set config:forge_token <nil> <nil> true",
		"config.set config:serving_url http://localhost:18001 http://localhost:18002 <nil>", "config.clear config:forge_token <nil> <nil> true",
		"config.clear config:serving_url http://localhost:18002 <nil> <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	var told []string
	for _, e := range recordstest.Events(t, r.pool, "event.config_changed") {
		told = append(told, fmt.Sprint(e.Tenant, " ", e.Actor, " ", e.Data["scope"], e.Data["keys"]))
	}
	if want := []string{"platform local:admin dashboard[forge_token scheduler_mode serving_url]", "platform local:admin dashboard[forge_token serving_url]", "platform local:admin dashboard[forge_token serving_url]"}; !slices.Equal(told, want) {
		t.Errorf("got %q\nwant %q", told, want)
	}
	for _, e := range recordstest.Events(t, r.pool, "") {
		if strings.Contains(fmt.Sprint(e), "s3cr3t") {
			t.Errorf("got a secret in %v", e)
		}
	}
	if strings.Contains(r.log.String(), "s3cr3t") {
		t.Errorf("got a secret in the log: %s", r.log)
	}
}

func TestStaleIfMatchIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	tag := r.Want(200, recordstest.Viewer, "GET", path, nil).Header.Get("ETag")
	next := r.Want(200, recordstest.Admin, "PUT", path, `{"forge_token": "first"}`, "If-Match", tag).Header.Get("ETag")
	if next == tag || next == "" {
		t.Errorf("got ETag %q after a secret changed; want another than %q", next, tag)
	}
	r.Refused(412, "config_changed", recordstest.Admin, "PUT", path, `{"scheduler_mode": "slurm"}`, "If-Match", tag)
	if got := r.read()["scheduler_mode"]; got != "mock" {
		t.Errorf("got %v after a refusal; want mock", got)
	}
	r.Want(200, recordstest.Admin, "PUT", path, `{"scheduler_mode": "slurm"}`, "If-Match", `"other", `+next)
	r.Want(200, recordstest.Admin, "PUT", path, `{"scheduler_mode": "flux"}`, "If-Match", "*")
}

func TestOfTwoWritersWithOneETagOneWins(t *testing.T) {
	t.Parallel()
	a := start(t)
	b := newReplica(t, recordstest.Reopen(t, a.pool.Config().ConnString()), nil)
	for round := range 10 {
		tag := a.Want(200, recordstest.Viewer, "GET", path, nil).Header.Get("ETag")
		statuses := make(chan int, 2)
		var wg sync.WaitGroup
		for i, r := range []replica{a, b} {
			wg.Go(func() {
				statuses <- r.Do(recordstest.Admin, "PUT", path, map[string]string{"scheduler_time": fmt.Sprintf("%02d:%02d:00", round, i)}, "If-Match", tag).Status
			})
		}
		wg.Wait()
		if first, second := <-statuses, <-statuses; first+second != 200+412 {
			t.Fatalf("round %d: got %d and %d, want 200 and 412", round, first, second)
		}
	}
}

func TestOnlyOperatorTenantsWriteAndSecretsNeedStepUp(t *testing.T) {
	t.Parallel()
	pool := recordstest.Pool(t)
	r := newReplica(t, pool, func(c *settings.Config) {
		c.StepUp = func(echo.Context) error { return fault.StepUpRequired.New("Sign in again.") }
	})
	r.Refused(403, "operator_tenant_required", recordstest.StrangerAdmin, "PUT", path, `{"scheduler_mode": "slurm"}`)
	r.Refused(401, "step_up_required", recordstest.Admin, "PUT", path, `{"scheduler_mode": "slurm", "forge_token": null}`)
	r.Refused(401, "step_up_required", recordstest.Admin, "PUT", path, `{"no_such_key": "", "forge_token": 7}`)
	if got := r.read()["scheduler_mode"]; got != "mock" {
		t.Errorf("got %v after a refusal; want mock", got)
	}
	r.Want(200, recordstest.Admin, "PUT", path, `{"scheduler_mode": "slurm"}`)
}

func TestChangeReachesOtherReplicas(t *testing.T) {
	t.Parallel()
	a := start(t)
	b := newReplica(t, recordstest.Reopen(t, a.pool.Config().ConnString()), nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Watch(ctx) }()
	a.Want(200, recordstest.Admin, "PUT", path, `{"serving_url": "http://localhost:18003", "forge_token": "s3cr3t"}`)
	testenv.Eventually(t, 20*time.Second, func() error {
		if url, token := b.Value("serving_url"), b.Value("forge_token"); url != "http://localhost:18003" || token != "s3cr3t" {
			return fmt.Errorf("got %q and %q", url, token)
		}
		return nil
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestValuesHoldWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.Want(200, recordstest.Admin, "PUT", path, `{"serving_url": "http://localhost:18003"}`)
	a.pool.Close()
	if err := a.Load(t.Context()); err == nil {
		t.Error("got no error of Load on a closed pool")
	}
	if got := a.Value("serving_url"); got != "http://localhost:18003" {
		t.Errorf("got %q, want the last value", got)
	}
}

func TestRequestsWithoutADatabaseAreAnswered503(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := settings.New(settings.Config{
		Pool: pool, Keys: keys(t, keyOf(1)), Log: recordstest.Log(), Environment: map[string]service.Secret{}, OperatorTenants: []string{"default"},
		StepUp: func(echo.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.GET(path, s.Get)
	app.Echo.PUT(path, s.Put)
	refused := app.Refused(503, "store_unavailable", recordstest.Viewer, "GET", path, nil)
	if refused.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
	app.Refused(503, "store_unavailable", recordstest.Admin, "PUT", path, `{"scheduler_mode": "slurm"}`)
}

func TestRotatedSecretsOpenUnderTheNewKeyAlone(t *testing.T) {
	t.Parallel()
	old := start(t)
	old.Want(200, recordstest.Admin, "PUT", path, `{"forge_token": "s3cr3t-forge", "object_store_secret_key": "s3cr3t-store", "scheduler_mode": "slurm"}`)
	tag := old.Want(200, recordstest.Viewer, "GET", path, nil).Header.Get("ETag")

	between := newReplica(t, old.pool, func(c *settings.Config) { c.Keys = keys(t, keyOf(2)+","+keyOf(1)) })
	if got := between.Value("forge_token"); got != "s3cr3t-forge" {
		t.Errorf("before rotation: got %q", got)
	}
	for _, want := range []int{2, 0} {
		if n, err := between.RotateSecrets(t.Context()); n != want || err != nil {
			t.Fatalf("got %d, %v; want %d rewritten", n, err, want)
		}
	}
	fresh := newReplica(t, old.pool, func(c *settings.Config) { c.Keys = keys(t, keyOf(2)) })
	if got := fresh.Value("forge_token") + " " + fresh.Value("object_store_secret_key"); got != "s3cr3t-forge s3cr3t-store" {
		t.Errorf("after rotation: got %q", got)
	}
	if err := fresh.Check(t.Context()); err != nil {
		t.Errorf("ready: got %v, want nil", err)
	}
	if got := fresh.Want(200, recordstest.Viewer, "GET", path, nil).Header.Get("ETag"); got != tag {
		t.Errorf("got ETag %s, want %s: rotation changes nothing that people see", got, tag)
	}
	var dump string
	if err := old.pool.QueryRow(t.Context(), "select string_agg(c::text, ' ') || coalesce((select string_agg(o::text, ' ') from outbox o), '') from config_values c").Scan(&dump); err != nil || strings.Contains(dump, "s3cr3t") {
		t.Errorf("got %v, dump %s; want no secret in it", err, dump)
	}
}

func TestSecretOfAnUnknownKeyIsReportedAndNotReplaced(t *testing.T) {
	t.Parallel()
	old := start(t)
	old.Want(200, recordstest.Admin, "PUT", path, `{"control_plane_token": "s3cr3t"}`)
	lost := newReplica(t, old.pool, func(c *settings.Config) { c.Keys = keys(t, keyOf(2)) })
	if got := lost.Value("control_plane_token"); got != "" {
		t.Errorf("got %q; want nothing, and not the environment's value that was replaced", got)
	}
	if err := lost.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "control_plane_token") || !errors.Is(err, sealing.ErrUnknownKey) {
		t.Errorf("ready: got %v; want control_plane_token named", err)
	}
	if n, err := lost.RotateSecrets(t.Context()); n != 0 || !errors.Is(err, sealing.ErrUnknownKey) {
		t.Errorf("rotate: got %d, %v; want ErrUnknownKey", n, err)
	}
}

func TestAllowListReplacesTheHostsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	r := newReplica(t, recordstest.Pool(t), func(c *settings.Config) { c.AllowedHosts = []string{"Tools.Example", "db.example:9000", "[::1]"} })
	for url, status := range map[string]int{
		"https://tools.example/x": 200, "http://TOOLS.example": 200, "http://tools.example:443": 200, "http://db.example:9000": 200, "http://[::1]": 200,
		"http://tools.example:8080": 422, "http://[::1]:5000": 422, "http://db.example:9001": 422, "http://db.example": 422, "http://localhost:18001": 422, "http://tracker.internal:5000": 422,
	} {
		r.Want(status, recordstest.Admin, "PUT", path, map[string]string{"dashboards_url": url})
	}
}

// A stored address must not lead the dashboard to whatever else listens on the machines that it calls.
func TestStoredAddressesKeepToThePortsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	r := start(t)
	for url, status := range map[string]int{
		"http://tracker.internal:5000/x": 200, "http://localhost:18002": 200, "http://tracker.internal": 422, "http://tracker.internal:5432": 422,
		"http://localhost:6379": 422, "https://localhost": 422,
	} {
		r.Want(status, recordstest.Admin, "PUT", path, map[string]string{"dashboards_url": url})
	}
}

func TestNewRefusesMissingPartsAndBadEnvironment(t *testing.T) {
	t.Parallel()
	if _, err := settings.New(settings.Config{}); err == nil || !strings.Contains(err.Error(), "Pool, Keys, Log") {
		t.Errorf("got %v; want the missing parts named", err)
	}
	r := start(t)
	cfg := settings.Config{Pool: r.pool, Keys: keys(t, keyOf(1)), Log: recordstest.Log(), StepUp: func(echo.Context) error { return nil }}
	for _, env := range []map[string]service.Secret{{"x_url": "http://a"}, {"tracker_url": "http://user:hunter2@a"}} {
		cfg.Environment = env
		if _, err := settings.New(cfg); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: got %v; want a refusal without the password", env, err)
		}
	}
}
