package outbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/embedded/natsd"
	"github.com/mlp-platform/platform/libs/embedded/pg"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
)

// TestProcess is a helper: other tests run it in a separate process, as a relay
// or a broker, and kill that.
func TestProcess(t *testing.T) {
	switch os.Getenv("OUTBOX_TEST_ROLE") {
	case "relay":
		pool, err := postgres.Open(t.Context(), os.Getenv("OUTBOX_TEST_DATABASE"), schema)
		if err != nil {
			t.Fatal(err)
		}
		r := outbox.NewRelay(outbox.RelayConfig{Service: "test-service", Pool: pool, URL: os.Getenv("OUTBOX_TEST_BROKER")}, nil, nil)
		fmt.Println("ready")
		_ = r.Run(t.Context()) // until the process is killed
	case "broker":
		port, err := strconv.Atoi(os.Getenv("OUTBOX_TEST_PORT"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := natsd.Start(natsd.Config{Dir: os.Getenv("OUTBOX_TEST_DIR"), Port: port, Throwaway: os.Getenv("OUTBOX_TEST_SYNCED") == ""}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("ready")
		select {}
	}
}

func startProcess(t *testing.T, env ...string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed, which is an error here
		}
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the process said %q, %v; want line == \"ready\\n\"", line, err)
	}
	return kill
}

func TestKilledRelayLosesNothing(t *testing.T) {
	t.Parallel()
	b := setupBundle(t)
	events := numberedEvents(8000)
	for part := events; len(part) > 0; part = part[1000:] {
		b.insert(t, part[:1000]...)
	}
	relay := []string{"OUTBOX_TEST_ROLE=relay", "OUTBOX_TEST_DATABASE=" + b.url, "OUTBOX_TEST_BROKER=" + b.broker.URL()}
	for i := range 3 {
		kill := startProcess(t, relay...)
		b.inStream(t, 1000*(i+1)+1)
		kill()
	}
	startProcess(t, relay...)
	b.await(t, events, false) // a batch that was cut short is sent again, the ids keep it single
	if n := b.refusals(t); n != 0 {
		t.Errorf("the kills cost %d attempts; want 0", n)
	}
}

func TestKilledBrokerLosesNothing(t *testing.T) {
	t.Parallel()
	for name, synced := range map[string]string{"buffered": "", "synced": "yes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBundle(t)
			b.broker.Stop() // its address goes to the process
			u, err := url.Parse(b.broker.URL())
			if err != nil {
				t.Fatal(err)
			}
			broker := []string{
				"OUTBOX_TEST_ROLE=broker", "OUTBOX_TEST_DIR=" + t.TempDir(), "OUTBOX_TEST_PORT=" + u.Port(), "OUTBOX_TEST_SYNCED=" + synced,
			}
			events := numberedEvents(9000)
			b.insert(t, events[:3000]...)
			kill := startProcess(t, broker...)
			b.relay(t, nil)
			for part := 1; part < 3; part++ { // each kill falls into some batch
				b.inStream(t, 3000*(part-1)+500)
				kill()
				b.insert(t, events[3000*part:3000*(part+1)]...)
				kill = startProcess(t, broker...)
			}
			b.await(t, events, false)
			if n := b.refusals(t); n != 0 {
				t.Errorf("the kills cost %d attempts; want 0", n)
			}
		})
	}
}

func TestKilledDatabaseLosesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	start := func() *pg.Server {
		s, err := pg.Start(t.Context(), pg.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
			defer cancel()
			_ = s.Stop(ctx) // one of the two was killed
		})
		return s
	}
	server := start()
	b := setupAt(t, testenv.NewBroker(t), server.URL(""), func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, schema, outbox.Migrations())
	})
	events := numberedEvents(6000)
	b.insert(t, events[:3000]...)
	b.relay(t, nil)
	b.inStream(t, 500)

	pidFile, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(pidFile), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-server.Wait(); err == nil {
		t.Error("a killed server ended without an error")
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	start()
	testenv.Eventually(t, 10*time.Second, func() error {
		return postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
			err := outbox.Insert(t.Context(), tx, events[3000:]...)
			if postgres.IsUnique(err, "") {
				return nil // the commit of the try before had reached the disk
			}
			return err
		})
	})
	b.await(t, events, false)
	if n := b.refusals(t); n != 0 {
		t.Errorf("the kill cost %d attempts; want 0", n)
	}
}

func TestAConsumerWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	server, err := pg.Start(t.Context(), pg.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b := setupAt(t, testenv.NewBroker(t), server.URL(""), func(ctx context.Context, url string) error {
		return postgres.Migrate(ctx, url, schema, outbox.Migrations())
	})
	_, stop := b.relay(t, nil)
	events := numberedEvents(5)
	b.insert(t, events...)
	b.published(t, events)
	stop()
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := b.consume(t, func(c *outbox.ConsumerConfig) { c.Retry = time.Millisecond })
	select {
	case e := <-got:
		t.Errorf("handled %s without a database", e.ID)
	case <-time.After(2 * time.Second): // far longer than five deliveries would take
	}
	if server, err = pg.Start(t.Context(), pg.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for i, want := range events {
		select {
		case e := <-got:
			if e.ID != want.ID {
				t.Errorf("event %d is %s; want e.ID == %v", i, e.ID, want.ID)
			}
		case <-time.After(20 * time.Second):
			t.Fatal(errors.New("not handled after the database came back"))
		}
	}
}
