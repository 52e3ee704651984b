package inference_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// testWait is how long tests wait for effects outside a request.
const testWait = 30 * time.Second

// storedSnapshot is a prediction as it was written down.
type storedSnapshot struct {
	alias, version, source, job string
	prediction, norm            float64
}

// snapshots returns the snapshots of a model written so far, oldest first.
func (i *instance) snapshots(model string) (out []storedSnapshot) {
	i.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	db, err := pgx.Connect(ctx, i.Database)
	if err != nil {
		i.T.Fatal(err)
	}
	defer func() { _ = db.Close(ctx) }()
	rows, err := db.Query(ctx, `select alias, version, source, coalesce(job_id, ''), prediction, norm from inference.snapshots where model = $1 order by id`, model)
	if err != nil {
		i.T.Fatal(err)
	}
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s storedSnapshot, err error) {
		return s, row.Scan(&s.alias, &s.version, &s.source, &s.job, &s.prediction, &s.norm)
	})
	if err != nil {
		i.T.Fatal(err)
	}
	return out
}
