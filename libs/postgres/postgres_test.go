package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func openPool(t *testing.T, url, schema string, o ...postgres.Option) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, schema, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func execSQL(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func migrationFiles(statements ...string) fs.FS {
	m := fstest.MapFS{}
	for i, s := range statements {
		m[fmt.Sprintf("%03d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(s)}
	}
	return m
}

// setupThings returns a pool on a schema with the table things(id unique, n).
func setupThings(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	url := testenv.Postgres(t)
	set := postgres.Set{Name: "main", FS: migrationFiles("create table things (id text constraint things_id primary key, n int not null default 0);")}
	if err := postgres.Migrate(t.Context(), url, "own", set); err != nil {
		t.Fatal(err)
	}
	return openPool(t, url, "own"), url
}

func TestPoolSeesItsOwnSchemaOnly(t *testing.T) {
	t.Parallel()
	pool, url := setupThings(t)
	other := openPool(t, url, "other")
	execSQL(t, pool, "insert into things values ('a')")
	if _, err := other.Exec(t.Context(), "select * from things"); err == nil {
		t.Error("another service's table is in the search path")
	}
	execSQL(t, other, "create schema other")
	execSQL(t, other, "create table mine ()")
	var schema, zone, app, timeout string
	err := pool.QueryRow(t.Context(), `select (select table_schema from information_schema.tables where table_name = 'mine'),
		current_setting('timezone'), current_setting('application_name'), current_setting('statement_timeout')`).Scan(&schema, &zone, &app, &timeout)
	if err != nil || schema != "other" || zone != "UTC" || app != "own" || timeout != "30s" {
		t.Errorf(`%q %q %q %q %v; want schema == "other" && zone == "UTC" && app == "own" && timeout == "30s"`, schema, zone, app, timeout, err)
	}
	tuned := openPool(t, url, "own", postgres.MaxConns(2), postgres.AppName("relay"), postgres.StatementTimeout(0))
	if err := tuned.QueryRow(t.Context(), "select current_setting('application_name') || current_setting('statement_timeout')").Scan(&app); err != nil || app != "relay0" || tuned.Config().MaxConns != 2 {
		t.Errorf(`%q %v; want app == "relay0" && tuned.Config().MaxConns == 2`, app, err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	real, err := url.Parse(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	ln.Close()
	missing, wrong, nobody := *real, *real, *real
	missing.Path = "/absent"
	wrong.User = url.UserPassword(real.User.Username(), "hunter2")
	nobody.Host = closed
	for name, tc := range map[string]struct{ url, schema, want string }{
		"not a URL":      {"postgres://u:hunter2@h:port/db", "own", "cannot be read"},
		"bad schema":     {real.String(), "Own; drop", "schema"},
		"no database":    {missing.String(), "own", `no connection to database "absent" at ` + real.Host},
		"wrong password": {wrong.String(), "own", "password authentication failed"},
		"nobody there":   {nobody.String(), "own", "at " + closed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			pool, err := postgres.Open(t.Context(), tc.url, tc.schema, postgres.StartupWait(100*time.Millisecond))
			if err == nil {
				pool.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf(`%v; want strings.Contains(err.Error(), tc.want) && !strings.Contains(err.Error(), "hunter2")`, err)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("took %s; want took <= 15 * time.Second", took)
			}
		})
	}
}

func TestOpenWaitsForAServerThatStarts(t *testing.T) {
	t.Parallel()
	real, err := url.Parse(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	late := *real
	late.Host = ln.Addr().String()
	// A server that hangs up on the first connections, then passes them on.
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ln.Close()
	wg.Go(func() {
		for n := 0; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if n < 3 {
				conn.Close()
				continue
			}
			wg.Go(func() { forwardConn(conn, real.Host) })
		}
	})
	pool, err := postgres.Open(t.Context(), late.String(), "own")
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if pool, err := postgres.Open(ctx, late.String(), "own"); err == nil {
		pool.Close()
		t.Error("opened for a caller that had given up")
	}
}

func forwardConn(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	client.Close()
	<-done
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	one := postgres.Set{Name: "main", FS: migrationFiles("create table a (id int);")}
	two := postgres.Set{Name: "main", FS: migrationFiles("create table a (id int);", "alter table a add column b text;")}
	lib := postgres.Set{Name: "outbox", FS: migrationFiles("create table o (id int);")}
	pool := openPool(t, url, "own")
	if err := postgres.Check(t.Context(), pool, one); !errors.Is(err, postgres.ErrPending) {
		t.Errorf("before: %v; want errors.Is(err, postgres.ErrPending)", err)
	}
	// Replicas that start together migrate once.
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- postgres.Migrate(t.Context(), url, "own", one, lib) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := postgres.Check(t.Context(), pool, one, lib); err != nil {
		t.Errorf("after: %v", err)
	}
	if err := postgres.Check(t.Context(), pool, two); !errors.Is(err, postgres.ErrPending) || !strings.Contains(err.Error(), "version 1 of 2") {
		t.Errorf(`behind: %v; want errors.Is(err, postgres.ErrPending) && strings.Contains(err.Error(), "version 1 of 2")`, err)
	}
	if err := postgres.Migrate(t.Context(), url, "own", two); err != nil {
		t.Fatal(err)
	}
	execSQL(t, pool, "insert into a values (1, 'b')")
	for name, err := range map[string]error{
		"migrate": postgres.Migrate(t.Context(), url, "own", one), "check": postgres.Check(t.Context(), pool, one),
	} {
		if !errors.Is(err, postgres.ErrNewer) {
			t.Errorf("%s of older code: %v; want errors.Is(err, postgres.ErrNewer)", name, err)
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), "select count(*) from a where b = 'b'").Scan(&n); err != nil || n != 1 {
		t.Errorf("older code changed the table: %d %v; want n == 1", n, err)
	}
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	broken := postgres.Set{Name: "main", FS: migrationFiles("create table a (id int);", "create table b (id int); create tabel c;")}
	err := postgres.Migrate(t.Context(), url, "own", broken)
	if err == nil || !strings.Contains(err.Error(), "002_step.sql") {
		t.Fatalf(`%v; want an error && strings.Contains(err.Error(), "002_step.sql")`, err)
	}
	fixed := postgres.Set{Name: "main", FS: migrationFiles("create table a (id int);", "create table b (id int);")}
	if err := postgres.Migrate(t.Context(), url, "own", fixed); err != nil {
		t.Errorf("the half of a failed step is there: %v", err)
	}
	for name, set := range map[string]postgres.Set{
		"no files": {Name: "main", FS: fstest.MapFS{}}, "bad name": {Name: "a b", FS: migrationFiles("select 1")}, "gap": {Name: "gap", FS: fstest.MapFS{"002_x.sql": {Data: []byte("select 1")}}},
	} {
		if err := postgres.Migrate(t.Context(), url, "own", set); err == nil {
			t.Errorf("%s: no error; want an error", name)
		}
	}
	if err := postgres.Migrate(t.Context(), url, "own;", fixed); err == nil {
		t.Error("bad schema: no error")
	}
}

func TestInTx(t *testing.T) {
	t.Parallel()
	pool, _ := setupThings(t)
	count := func(id string) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), "select count(*) from things where id = $1", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	insert := func(tx pgx.Tx, id string) error {
		_, err := tx.Exec(t.Context(), "insert into things (id) values ($1)", id)
		return err
	}
	if err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return insert(tx, "kept") }); err != nil || count("kept") != 1 {
		t.Errorf(`commit: %v; want count("kept") == 1`, err)
	}
	boom := errors.New("boom")
	if err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return errors.Join(insert(tx, "gone"), boom) }); !errors.Is(err, boom) || count("gone") != 0 {
		t.Errorf(`rollback: %v; want errors.Is(err, boom) && count("gone") == 0`, err)
	}
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return insert(tx, "kept") })
	if !postgres.IsUnique(err, "things_id") || !postgres.IsUnique(err, "") || postgres.IsUnique(err, "other") || postgres.Unavailable(err) {
		t.Errorf(`unique: %v; want postgres.IsUnique(err, "things_id") && postgres.IsUnique(err, "") && !postgres.IsUnique(err, "other") && !postgres.Unavailable(err)`, err)
	}
	for code, want := range map[string]int{"40001": 3, "40P01": 3, "22012": 1} {
		tries := 0
		err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			tries++
			_, err := tx.Exec(t.Context(), fmt.Sprintf("do $$ begin raise sqlstate '%s'; end $$", code))
			return err
		})
		if err == nil || tries != want {
			t.Errorf("%s: %d tries, %v; want an error && tries == want", code, tries, err)
		}
	}
}

// Two transactions that lock in opposite order: Postgres ends one, InTx repeats
// it, both succeed.
func TestInTxOutlivesADeadlock(t *testing.T) {
	t.Parallel()
	pool, _ := setupThings(t)
	execSQL(t, pool, "insert into things (id) values ('a'), ('b')")
	var met sync.WaitGroup
	met.Add(2)
	errs := make(chan error, 2)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			var first sync.Once
			errs <- postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				for i, id := range order {
					if _, err := tx.Exec(t.Context(), "update things set n = n + 1 where id = $1", id); err != nil {
						return err
					}
					if i == 0 {
						first.Do(func() { met.Done(); met.Wait() })
					}
				}
				return nil
			})
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), "select sum(n) from things").Scan(&n); err != nil || n != 4 {
		t.Errorf("%d updates, want 4: %v", n, err)
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	pool, url := setupThings(t)
	if postgres.Unavailable(nil) || postgres.Unavailable(pgx.ErrNoRows) || postgres.Unavailable(context.Canceled) {
		t.Error("harmless errors count as unavailable")
	}
	slow := openPool(t, url, "own", postgres.StatementTimeout(20*time.Millisecond))
	if _, err := slow.Exec(t.Context(), "select pg_sleep(5)"); err == nil || postgres.Unavailable(err) {
		t.Errorf("statement timeout: %v; want an error && !postgres.Unavailable(err)", err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	execSQL(t, slow, "select pg_terminate_backend($1)", conn.Conn().PgConn().PID())
	for what := range 2 { // the end reported by the server, then the closed connection
		if _, err := conn.Exec(t.Context(), "select 1"); !postgres.Unavailable(err) {
			t.Errorf("%d: %v; want postgres.Unavailable(err)", what, err)
		}
	}
}

// A silent server is given up; a connection of the same configuration that waits
// for notifications is not.
func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	_, url := setupThings(t)
	pool := openPool(t, url, "own", postgres.StatementTimeout(time.Second)) // ten times as long as the statements below
	listener, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.WithoutCancel(t.Context()))
	if _, err := listener.Exec(t.Context(), "listen news"); err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() {
		if t.Failed() { // nothing notifies any more
			stop()
		}
		wg.Wait()
		stop()
	}()
	wg.Go(func() {
		if _, err := listener.WaitForNotification(waiting); err != nil {
			t.Errorf("listener: %v", err)
		}
	})
	begin := time.Now()
	err = postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "set local statement_timeout = 0; select pg_sleep(30)")
		return err
	})
	if d := time.Since(begin); !postgres.Unavailable(err) || d < 5*time.Second || d > 15*time.Second {
		t.Errorf("after %v: %v; want postgres.Unavailable(err) && d >= 5 * time.Second && d <= 15 * time.Second", d, err)
	}
	for range 10 { // past the listener's own 6 s, had it any
		execSQL(t, pool, "select pg_sleep(0.1)")
	}
	execSQL(t, pool, "notify news")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := pool.Exec(ctx, "select pg_sleep(0.15)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller's own deadline: %v; want errors.Is(err, context.DeadlineExceeded)", err)
	}
}
