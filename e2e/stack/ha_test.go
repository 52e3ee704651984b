//go:build e2e && full && ha

package stack

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// A broker, the primary database and the Redis master die one after the other and stay dead for half a minute: the
// others take over automatically, within that time, and nothing that was accepted is lost. It needs the stack of
// compose.ha.yaml; `make e2e-ha` starts it.
func TestLostDataServicesAreReplaced(t *testing.T) {
	if os.Getenv("PLATFORM_HA") != "true" {
		t.Fatal("this test needs the stack of compose.ha.yaml: PLATFORM_HA=true, as make e2e-ha sets it")
	}
	for _, c := range []struct {
		name string
		find func(t *testing.T) harness.Container
	}{
		{"broker", func(t *testing.T) harness.Container { return harness.Containers(t, "nats-2")[0] }},
		{"primary database", primaryDatabase},
		{"Redis master", redisMaster},
	} {
		t.Run(c.name, func(t *testing.T) { replaceUnderLoad(t, c.find(t)) })
	}
}

// primaryDatabase queries the databases themselves.
func primaryDatabase(t *testing.T) (primary harness.Container) {
	t.Helper()
	harness.Eventually(t, 3*time.Minute, func() error {
		for _, service := range []string{"postgres-1", "postgres-2"} {
			for _, c := range harness.Containers(t, service) {
				// One that is starting refuses.
				if out, err := harness.TryUp(t, "docker", "exec", c.ID, "psql", "-h", "/var/run/postgresql", "-U", "postgres", "-Atc", "select pg_is_in_recovery() or not exists (select from pg_stat_replication where sync_state = 'sync')"); err == nil && out == "f" {
					primary = c
					return nil
				}
			}
		}
		return fmt.Errorf("no database is primary with a synchronous standby")
	})
	return primary
}

func redisMaster(t *testing.T) (master harness.Container) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func() error {
		for _, service := range []string{"redis", "redis-2"} {
			for _, c := range harness.Containers(t, service) {
				// No shell: only the configuration reads the password, and redis-cli takes it from its environment.
				if role, err := harness.TryUp(t, "docker", "exec", "-e", "REDISCLI_AUTH="+redisPassword(t), c.ID, "redis-cli", "info", "replication"); err == nil && strings.Contains(role, "role:master") && strings.Contains(role, "state=online") {
					master = c
					return nil
				}
			}
		}
		return fmt.Errorf("no Redis server is master with a replica")
	})
	return master
}

func redisPassword(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("PLATFORM_SECRETS_DIR") + "/redis-ha/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(line, "requirepass ")
}

func replaceUnderLoad(t *testing.T, victim harness.Container) {
	t.Helper()
	run := strings.ToUpper("HA-" + strings.ReplaceAll(strings.TrimPrefix(victim.Name, os.Getenv("COMPOSE_PROJECT_NAME")+"-"), ".", "-") + "-" + names)
	token := login(t, environment["DASHBOARD_URL"], "admin")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	a := newAccepted()
	wg.Go(func() { a.write(ctx, run, token) })
	sleep(t, 5*time.Second)
	killed := time.Now()
	docker(t, "kill", victim.ID)
	sleep(t, outage)
	// It is still dead, and writes are accepted again.
	before := a.count()
	harness.Eventually(t, 2*time.Minute, func() error {
		if a.count() < before+5 {
			return fmt.Errorf("%d notices were accepted since, want 5", a.count()-before)
		}
		return nil
	})
	took := a.longestGap(killed)
	docker(t, "start", victim.ID)
	sleep(t, 5*time.Second)
	stop()
	wg.Wait()
	a.check(t, run, token)
	t.Logf("%s killed: the longest time without an accepted notice was %.1f s", victim.Name, took.Seconds())
}
