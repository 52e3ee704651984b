package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"
)

// Set is one lineage of migrations within a schema: the service's own, or those
// of a lib that keeps tables there. FS holds 001_name.sql, 002_name.sql … at its
// root, in the format of tern.
type Set struct {
	Name string
	FS   fs.FS
}

// ErrNewer means that a newer version of the code has migrated the database.
var ErrNewer = errors.New("the database was migrated by a newer version of this program; install that version, or restore an older backup")

// ErrPending means that migrations have not been applied.
var ErrPending = errors.New("migrations are missing; run this program with the argument migrate")

var setName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

func (s Set) table(schema string) (string, error) {
	if !setName.MatchString(s.Name) {
		return "", fmt.Errorf("postgres: migration set %q must match %s", s.Name, setName)
	}
	return schema + ".schema_version_" + s.Name, nil
}

// Migrate creates the schema and brings every set in it up to date. Processes
// that migrate at the same time wait for each other.
func Migrate(ctx context.Context, url, schema string, sets ...Set) (err error) {
	return MigrateAfter(ctx, startupWait, url, schema, sets...)
}

// MigrateAfter is Migrate with the time that it waits for a server that does not answer yet.
func MigrateAfter(ctx context.Context, wait time.Duration, url, schema string, sets ...Set) (err error) {
	if err := checkSchema(schema); err != nil {
		return err
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("postgres: the database URL cannot be read: %w", err)
	}
	setParams(cfg, schema, options{appName: schema + "-migrate"}) // no statement timeout: an index may take long
	// A migration and its number are one transaction, and the log has them in their order. A crash loses at most the
	// last of them, both parts together, and they are applied again: no commit needs to wait for the disk.
	cfg.RuntimeParams["synchronous_commit"] = "off"
	var conn *pgx.Conn
	if err := awaitServer(ctx, cfg, options{wait: wait}, func(ctx context.Context) (err error) {
		conn, err = pgx.ConnectConfig(ctx, cfg)
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	// CREATE … IF NOT EXISTS still fails when two sessions create at once; the
	// lock ends with the session.
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", "platform.migrate."+schema); err != nil {
		return fmt.Errorf("postgres: lock for migrating %s: %w", schema, err)
	}
	if _, err := conn.Exec(ctx, "create schema if not exists "+schema); err != nil {
		return fmt.Errorf("postgres: create schema %s: %w", schema, err)
	}
	for _, set := range sets {
		if err := migrateSet(ctx, conn, schema, set); err != nil {
			return fmt.Errorf("postgres: migrate %s (%s): %w", schema, set.Name, err)
		}
	}
	return nil
}

func migrateSet(ctx context.Context, conn *pgx.Conn, schema string, set Set) error {
	table, err := set.table(schema)
	if err != nil {
		return err
	}
	m, err := migrate.NewMigrator(ctx, conn, table)
	if err != nil {
		return err
	}
	if err := m.LoadMigrations(set.FS); err != nil {
		return err
	}
	current, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return err
	}
	if int(current) > len(m.Migrations) {
		return fmt.Errorf("version %d, this program knows %d: %w", current, len(m.Migrations), ErrNewer)
	}
	return m.Migrate(ctx)
}

// Check reports whether every migration of the sets has been applied, in the
// schema that the pool is bound to. The error is ErrPending, ErrNewer or one of
// the connection.
func Check(ctx context.Context, pool *pgxpool.Pool, sets ...Set) error {
	schema := pool.Config().ConnConfig.RuntimeParams["search_path"]
	for _, set := range sets {
		table, err := set.table(schema)
		if err != nil {
			return err
		}
		known, err := migrate.FindMigrations(set.FS)
		if err != nil {
			return fmt.Errorf("postgres: migrations of %s: %w", set.Name, err)
		}
		var current int
		err = pool.QueryRow(ctx, "select version from "+table).Scan(&current)
		switch {
		case isUndefined(err):
			return fmt.Errorf("postgres: %s (%s) has version 0 of %d: %w", schema, set.Name, len(known), ErrPending)
		case err != nil:
			return fmt.Errorf("postgres: read the version of %s (%s): %w", schema, set.Name, err)
		case current < len(known):
			return fmt.Errorf("postgres: %s (%s) has version %d of %d: %w", schema, set.Name, current, len(known), ErrPending)
		case current > len(known):
			return fmt.Errorf("postgres: %s (%s) has version %d, this program knows %d: %w", schema, set.Name, current, len(known), ErrNewer)
		}
	}
	return nil
}
