package outbox

import (
	"embed"
	"io/fs"

	"github.com/mlp-platform/platform/libs/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations makes the tables outbox, inbox and dead_letter in a service's schema.
func Migrations() postgres.Set {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name is a constant
	}
	return postgres.Set{Name: "outbox", FS: sub}
}
