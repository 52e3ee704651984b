//go:build e2e

// Package containers runs the tests' own Postgres, NATS and Redis as containers, which a machine without these servers
// would use: on the engine that runs here, or on one that it starts.
package containers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/e2e/harness"
)

// limit is the total timeout; a machine with the packages and build cache needs a quarter.
const limit = 3 * time.Minute

func TestServersInContainers(t *testing.T) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	tests := map[string]string{"testenv": "", "coord": "TestConformance"}
	var builds errgroup.Group
	nats := filepath.Join(dir, "nats-server")
	builds.Go(func() error { // the flags of `make build`, which has compiled most of it
		return runGo(ctx, filepath.Join(harness.Root(t), "libs/embedded"), "build", "-trimpath", "-o", nats, "github.com/nats-io/nats-server/v2")
	})
	builds.Go(func() error {
		for name := range tests {
			if err := runGo(ctx, filepath.Join(harness.Root(t), "libs"), "test", "-c", "-o", filepath.Join(dir, name+".test"), "./"+name); err != nil {
				return err
			}
		}
		return nil
	})
	e := openEngine(t)
	if err := builds.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("engine and binaries after %.1f s", time.Since(begin).Seconds())

	images := importImages(t, ctx, e, nats)
	t.Logf("images after %.1f s", time.Since(begin).Seconds())

	from := time.Now()
	for name, pattern := range tests {
		cmd := e.command(ctx, filepath.Join(dir, name+".test"), "-test.v", "-test.timeout=80s", "-test.run="+pattern)
		cmd.Dir = filepath.Join(harness.Root(t), "libs", name)
		cmd.Env = append(cmd.Env, "TESTENV=containers")
		for variable, tag := range images {
			cmd.Env = append(cmd.Env, variable+"="+tag)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("the tests of libs/%s in containers: %v\n%s", name, err, out)
		}
		if strings.Contains(string(out), "--- SKIP") {
			t.Errorf("tests of libs/%s were skipped\n%s; want !strings.Contains(string(out), \"--- SKIP\")", name, out)
		}
	}
	checkContainers(t, e, images, from)
	t.Logf("all after %.1f s", time.Since(begin).Seconds())
}

func runGo(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd.Run()
}

// importImages returns the tags by the variable that passes them to libs/testenv. They are unique to this run.
func importImages(t *testing.T, ctx context.Context, e *engine, nats string) map[string]string {
	t.Helper()
	tag := func(name string) string {
		return "platform-test/" + name + ":" + strings.ToLower(filepath.Base(filepath.Dir(nats))+"-"+time.Now().Format("150405.000000000"))
	}
	postgres, err := postgresImage(tag("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	redis, err := redisImage(tag("redis"))
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{}
	for variable, i := range map[string]image{"POSTGRES_IMAGE": postgres, "REDIS_IMAGE": redis, "NATS_IMAGE": natsImage(tag("nats"), nats)} {
		if err := i.importTo(ctx, e); err != nil {
			t.Fatalf("assemble the image for %s: %v", variable, err)
		}
		t.Cleanup(func() {
			if _, err := e.docker(context.WithoutCancel(ctx), nil, "image", "rm", i.tag); err != nil {
				t.Error(err)
			}
		})
		tags[variable] = i.tag
	}
	return tags
}

// checkContainers queries the engine: each image was started, and each container is gone.
func checkContainers(t *testing.T, e *engine, images map[string]string, from time.Time) {
	t.Helper()
	started, left := map[string]int{}, map[string]string{}
	for _, one := range e.containerEvents(t, from, time.Now()) {
		tag := one.Actor.Attributes["image"]
		switch one.Action {
		case "create":
			left[one.Actor.ID] = tag
		case "start":
			started[tag]++
		case "destroy":
			delete(left, one.Actor.ID)
		}
	}
	for variable, tag := range images {
		if started[tag] == 0 {
			t.Errorf("no container of %s (%s) was started; started: %v; want started[tag] != 0", tag, variable, started)
		}
		for id, image := range left {
			if image == tag {
				t.Errorf("container %s of %s is left over; want image != tag", id, tag)
			}
		}
	}
	t.Logf("containers started: %v", started)
}
