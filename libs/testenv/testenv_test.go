package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { Main(m) }

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		url := Postgres(t)
		if seen[url] {
			t.Fatalf("%s was given twice; want !seen[url]", url)
		}
		seen[url] = true
		if _, err := connectTo(t, url).Exec(t.Context(), "create table only_here (id int)"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepLeavesDirectoriesThatAreHeld(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	done := make(chan struct{})
	var sweeps sync.WaitGroup
	for range 4 {
		sweeps.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					sweepStale(root)
				}
			}
		})
	}
	for range 200 {
		dir, lock, err := claimDir(root)
		if err != nil {
			t.Error(err)
			break
		}
		if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
			t.Errorf("a directory that is held was swept: %v", err)
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	sweeps.Wait()
	sweepStale(root)
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v; want len(left) == 0", left, err)
	}
}

func TestMigratedRunsOncePerKey(t *testing.T) {
	t.Parallel()
	runs := 0
	migrate := func(ctx context.Context, url string) error {
		runs++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "create table fruit (name text); insert into fruit values ('quince')")
		return errors.Join(err, conn.Close(ctx))
	}
	for range 3 {
		conn := connectTo(t, Migrated(t, "fruit", migrate))
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) from fruit").Scan(&n); err != nil || n != 1 {
			t.Fatalf("%d rows, %v; want n == 1", n, err)
		}
		if _, err := conn.Exec(t.Context(), "insert into fruit values ('medlar')"); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("migrate ran %d times; want 1", runs)
	}
}

func TestBrokerKeepsItsStreamsUntilWiped(t *testing.T) {
	t.Parallel()
	b := NewBroker(t)
	nc, err := nats.Connect(b.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	messages := func() (uint64, error) {
		s, err := js.Stream(t.Context(), "S")
		if err != nil {
			return 0, err
		}
		return s.CachedInfo().State.Msgs, nil
	}
	b.Stop()
	b.Start()
	Eventually(t, 10*time.Second, func() error {
		if n, err := messages(); err != nil || n != 1 {
			return fmt.Errorf("%d messages, %v", n, err)
		}
		return nil
	})
	b.Wipe()
	b.Start()
	Eventually(t, 10*time.Second, func() error {
		if _, err := messages(); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("the stream is still there: %v", err)
		}
		return nil
	})
}

func TestRedisAnswers(t *testing.T) {
	t.Parallel()
	addr := strings.TrimSuffix(strings.TrimPrefix(Redis(t), "redis://"), "/0")
	if err := pingServer(addr); err != nil {
		t.Fatal(err)
	}
	if one, other := Prefix(t), Prefix(t); one == other {
		t.Errorf("%s was given twice; want one != other", one)
	}
}
