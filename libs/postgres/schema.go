package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/tern/v2/migrate"
)

// Schema is one service's schema with its lineages of migrations.
type Schema struct {
	Name string
	Sets []Set
}

// Known returns the newest version of each set that this program has a migration for.
func (s Schema) Known() (map[string]int, error) {
	known := map[string]int{}
	for _, set := range s.Sets {
		files, err := migrate.FindMigrations(set.FS)
		if err != nil {
			return nil, fmt.Errorf("postgres: migrations of %s: %w", set.Name, err)
		}
		known[set.Name] = len(files)
	}
	return known, nil
}

// Versions returns the version of each set in the database: 0 if it was never migrated. It only reads.
func (s Schema) Versions(ctx context.Context, conn *pgx.Conn) (map[string]int, error) {
	versions := map[string]int{}
	for _, set := range s.Sets {
		table, err := set.table(s.Name)
		if err != nil {
			return nil, err
		}
		var version int
		err = conn.QueryRow(ctx, "select version from "+table).Scan(&version)
		if err != nil && !isUndefined(err) {
			return nil, fmt.Errorf("postgres: read the version of %s (%s): %w", s.Name, set.Name, err)
		}
		versions[set.Name] = version
	}
	return versions, nil
}

// isUndefined reports whether a table or its schema does not exist.
func isUndefined(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000")
}
