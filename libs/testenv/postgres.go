package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/mlp-platform/platform/libs/embedded/pg"
)

// maxConnections is enough for many parallel tests with a pool each.
const maxConnections = 400

var (
	postgresServer once[string]
	databases      atomic.Int64

	templates = struct {
		sync.Mutex
		byKey map[string]*once[string]
	}{byKey: map[string]*once[string]{}}
)

// Postgres is the URL of a new, empty database that is dropped after the test.
// The server forgets everything in a crash: it runs without fsync.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	return createDatabase(t, "template0")
}

// Migrated is Postgres with a database that migrate has prepared. It runs once
// per test binary and key; every test gets a copy, which costs milliseconds.
func Migrated(t testing.TB, key string, migrate func(ctx context.Context, url string) error) (url string) {
	t.Helper()
	templates.Lock()
	o := templates.byKey[key]
	if o == nil {
		o = &once[string]{}
		templates.byKey[key] = o
	}
	templates.Unlock()
	template, err := o.get(func(ctx context.Context) (string, error) {
		server, err := postgresServer.get(startPostgres)
		if err != nil {
			return "", err
		}
		name := databaseName("template")
		if err := runAsAdmin(ctx, server, "create database "+name+" template template0"); err != nil {
			return "", err
		}
		return name, migrate(ctx, withDatabase(server, name))
	})
	if err != nil {
		t.Fatalf("testenv: prepare the database %q: %v", key, err)
	}
	return createDatabase(t, template)
}

// process is unique among the test binaries of a shared server. A process id is not: the system uses it again within a
// run.
var process = strings.ToLower(rand.Text()[:12])

// databaseName is unique among the test binaries of a shared server.
func databaseName(kind string) string {
	return fmt.Sprintf("%s_%s_%d", kind, process, databases.Add(1))
}

func createDatabase(t testing.TB, template string) string {
	t.Helper()
	server, err := postgresServer.get(startPostgres)
	if err != nil {
		t.Fatalf("testenv: Postgres: %v", err)
	}
	name := databaseName("test")
	if err := runAsAdmin(t.Context(), server, "create database "+name+" template "+template); err != nil {
		t.Fatalf("testenv: make a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := runAsAdmin(ctx, server, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("testenv: drop the database: %v", err)
		}
	})
	return withDatabase(server, name)
}

// adminLock: Postgres copies a template only while it has no other users.
var adminLock sync.Mutex

func runAsAdmin(ctx context.Context, server, statement string) (err error) {
	adminLock.Lock()
	defer adminLock.Unlock()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err) // made below
	}
	u.Path = "/" + name
	return u.String()
}

func startPostgres(ctx context.Context) (string, error) {
	if url := sharedServer(sharedPostgresVariable); url != "" {
		return url, nil
	}
	_, _, missing := pg.FindBinaries()
	if reason := containerReason(missing); reason != nil {
		return postgresContainer(ctx, reason)
	}
	dir, err := workDir()
	if err != nil {
		return "", err
	}
	s, err := pg.Start(ctx, pg.Config{Dir: filepath.Join(dir, "postgres"), Database: "postgres", MaxConnections: maxConnections, Throwaway: true})
	if err != nil {
		return "", err
	}
	atEnd(func() {
		stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Stop(stop) // its data is thrown away
	})
	return s.URL("postgres"), nil
}

func postgresContainer(ctx context.Context, reason error) (string, error) {
	const password = "throwaway"
	addr, err := startContainer(ctx, reason, testcontainers.ContainerRequest{
		Image: imageName("POSTGRES_IMAGE", "postgres:17"), ExposedPorts: []string{"5432/tcp"},
		Env:        map[string]string{"POSTGRES_PASSWORD": password},
		Cmd:        []string{"postgres", "-c", "fsync=off", "-c", "max_connections=" + strconv.Itoa(maxConnections)},
		WaitingFor: wait.ForLog("database system is ready to accept connections").WithOccurrence(2),
	}, "5432/tcp")
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: addr, Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String(), nil
}
