package store_test

import (
	"testing"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestMigrateTwice(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	for range 2 {
		if err := postgres.Migrate(t.Context(), url, store.Schema, outbox.Migrations(), store.Migrations()); err != nil {
			t.Fatal(err)
		}
	}
	pool, err := postgres.Open(t.Context(), url, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := postgres.Check(t.Context(), pool, store.Migrations()); err != nil {
		t.Fatal(err)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a": "a", "a\x00b": "a\ufffdb", "\xff": "\ufffd"} {
		if got := store.Text(in); got != want {
			t.Errorf("%q became %q; want got == %v", in, got, want)
		}
	}
	if store.Opt("") != nil || *store.Opt("x") != "x" {
		t.Error("Opt")
	}
}
