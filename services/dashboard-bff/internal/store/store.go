// Package store is the dashboard's schema and all of its SQL.
package store

import (
	"embed"
	"io/fs"

	"github.com/mlp-platform/platform/libs/postgres"
)

//go:generate sh ../../../../scripts/sqlc.sh

// Schema is where the service's tables are; no other service touches it.
const Schema = "dashboard"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns the migrations of the service's own tables.
func Migrations() postgres.Set {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return postgres.Set{Name: "dashboard", FS: sub}
}
