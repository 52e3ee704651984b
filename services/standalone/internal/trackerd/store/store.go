// Package store holds the SQL of the tracker stand-in.
package store

import (
	"embed"
	"io/fs"
)

//go:generate sh ../../../../../scripts/sqlc.sh

//go:embed migrations/*.sql
var files embed.FS

// Tags are tags or parameters by key.
type Tags map[string]string

// Migrations holds the numbered migrations at its root.
func Migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the embedded folder has this very name
	}
	return sub
}
