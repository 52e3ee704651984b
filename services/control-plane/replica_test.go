package controlplane_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A prober with a one-second timeout took every replica out of service while Redis hung: each answer waited for it, for
// one or two seconds.
func TestProbesDoNotWaitForAHungRedis(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	redis := testenv.NewProxy(t, u.Host)
	u.Host = redis.Addr()
	p := controlplanetest.Start(t, "COORDINATOR=redis", "REDIS_URL="+u.String())
	redis.Hang()
	const probes = 50 // of each route; half a minute or more if each waited
	var took []time.Duration
	begin := time.Now()
	for range probes {
		for _, path := range []string{"/readyz", "/health"} {
			one := time.Now()
			p.Want(200, "GET", path, "", nil)
			took = append(took, time.Since(one))
		}
	}
	if all := time.Since(begin); all > 20*time.Second {
		t.Errorf("%d probes took %s, want far less than a time-out of Redis for each", len(took), all)
	}
	slices.Sort(took)
	t.Logf("median %s, slowest %s", took[len(took)/2], took[len(took)-1])
	testenv.Eventually(t, 20*time.Second, func() error {
		if check := p.Health()["startup_checks"].(doc)["coordinator"]; !strings.HasPrefix(check.(string), "warn: the coordinator does not answer") {
			return fmt.Errorf("coordinator: got %v, want a warning", check)
		}
		return nil
	})
	p.Want(200, "GET", "/readyz", "", nil)
}

// An upgrade migrates first and then replaces one replica after another: the old ones stay ready meanwhile.
func TestReplicaStaysReadyOnANewerSchema(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.SQL("update control_plane.schema_version_control_plane set version = version + 1")
	testenv.Eventually(t, 20*time.Second, func() error {
		if check := p.Health()["startup_checks"].(doc)["db"]; !strings.HasPrefix(check.(string), "warn: a newer version has migrated the database") {
			return fmt.Errorf("db: got %v, want a warning", check)
		}
		return nil
	})
	p.Want(200, "GET", "/readyz", "", nil)
}
