package assistanttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// Namespace contains all objects.
const Namespace = "shop"

// Cluster has deployments with a number of replicas, in a table of the test's database.
type Cluster struct {
	Pool *pgxpool.Pool
	// Before and After run around the write of Execute; nil does nothing. Execute returns their errors.
	Before, After func(context.Context) error
}

// NewDatabase returns a migrated database with deployments of these names, one replica each.
func NewDatabase(t testing.TB, names ...string) (url string) {
	t.Helper()
	url = testenv.Migrated(t, "assistant", func(ctx context.Context, url string) error {
		if err := postgres.Migrate(ctx, url, store.Schema, outbox.Migrations(), store.Migrations()); err != nil {
			return err
		}
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `create table public.deployments (name text primary key, uid text not null, rv bigint not null,
			generation bigint not null, replicas integer not null, writes integer not null default 0)`)
		return errors.Join(err, conn.Close(ctx))
	})
	pool := OpenPool(t, url)
	for _, n := range names {
		if _, err := pool.Exec(t.Context(), "insert into public.deployments values ($1, $2, 100, 1, 1)", n, "uid-"+n); err != nil {
			t.Fatal(err)
		}
	}
	return url
}

// OpenPool opens a replica's own connection to the database.
func OpenPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(context.Background(), url, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// NewReplica returns an action service with its own pool on the database, like that of another process.
func NewReplica(t testing.TB, url string, now func() time.Time, c action.Config) (*action.Service, *Cluster) {
	t.Helper()
	return NewActions(OpenPool(t, url), now, c, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// NewActions is NewReplica on an existing pool.
func NewActions(pool *pgxpool.Pool, now func() time.Time, c action.Config, log *slog.Logger) (*action.Service, *Cluster) {
	cluster := &Cluster{Pool: pool}
	s, err := action.New(c, action.Deps{
		Store: store.Open(pool), Target: cluster.Target, Judge: JudgeRole, Now: now, Log: log,
	})
	if err != nil {
		panic(err) // every part is above
	}
	return s, cluster
}

// ScaleOperation returns the only operation that the cluster supports.
func ScaleOperation(name string, replicas int32) operation.Operation {
	return operation.Operation{Verb: operation.Scale, Kind: "deployment", Names: []string{name}, Namespace: Namespace, Replicas: &replicas}
}

// JudgeRole permits writes to all but readonly callers; scaling to zero always requires a decision.
func JudgeRole(role guard.Role, ops []operation.Expanded) guard.Verdict {
	v := guard.Verdict{Answer: guard.Approval, Row: guard.MediumWrite, Risk: operation.Medium}
	if role == guard.Readonly {
		v.Answer, v.Code, v.Reason = guard.Refuse, "role", "Readonly callers change nothing."
		return v
	}
	for _, o := range ops {
		if *o.Replicas == 0 {
			v.Answer, v.Risk, v.Confirms = guard.AlwaysAsk, operation.High, []guard.Confirm{guard.RemovesMany}
		}
	}
	return v
}

type deployment struct {
	uid            string
	rv, generation int64
	replicas       int32
}

func (c *Cluster) read(ctx context.Context, name string) (deployment, error) {
	var d deployment
	err := c.Pool.QueryRow(ctx, "select uid, rv, generation, replicas from public.deployments where name = $1", name).
		Scan(&d.uid, &d.rv, &d.generation, &d.replicas)
	return d, err
}

// Target returns this cluster whatever its name.
func (c *Cluster) Target(string) (action.Target, error) { return c, nil }

// Plan implements action.Cluster.
func (c *Cluster) Plan(ctx context.Context, role guard.Role, ops []operation.Operation) (action.Plan, error) {
	var p action.Plan
	for _, op := range ops {
		d, err := c.read(ctx, op.Names[0])
		if err != nil {
			return p, operation.Refuse(operation.InvalidArgument, "names", "There is no deployment %s.", op.Names[0])
		}
		p.Operations = append(p.Operations, operation.Expanded{Operation: op, Targets: []operation.Target{{
			Ref: operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: Namespace, Name: op.Names[0]},
			UID: d.uid, Fingerprint: strconv.FormatInt(d.generation, 10), ResourceVersion: strconv.FormatInt(d.rv, 10),
		}}})
		p.Command += fmt.Sprintf("kubectl scale deployment/%s -n %s --replicas=%d", op.Names[0], Namespace, *op.Replicas)
		p.Diff += fmt.Sprintf("-  replicas: %d\n+  replicas: %d\n", d.replicas, *op.Replicas)
	}
	p.Digest = operation.Digest("cluster-1", p.Operations)
	p.Verdict = JudgeRole(role, p.Operations)
	return p, nil
}

// Execute implements action.Cluster.
func (c *Cluster) Execute(ctx context.Context, a action.Action) (string, error) {
	if c.Before != nil {
		if err := c.Before(ctx); err != nil {
			return "", err
		}
	}
	for _, e := range a.Observed {
		target := e.Targets[0]
		tag, err := c.Pool.Exec(ctx, `update public.deployments set replicas = $1, rv = rv + 1, generation = generation + 1, writes = writes + 1
			where name = $2 and uid = $3 and rv = $4::text::bigint`, *e.Replicas, target.Ref.Name, target.UID, target.ResourceVersion)
		if err != nil {
			return "", err
		}
		if tag.RowsAffected() == 0 {
			return "", errors.New("the object has been modified")
		}
	}
	if c.After != nil {
		if err := c.After(ctx); err != nil {
			return "", err
		}
	}
	return "Scaled.", nil
}

// Verify implements action.Cluster.
func (c *Cluster) Verify(ctx context.Context, a action.Action) (string, error) {
	d, err := c.read(ctx, a.Operations[0].Names[0])
	return fmt.Sprintf("%d replicas, as observed.", d.replicas), err
}

// Probe implements action.Probe.
func (c *Cluster) Probe(ctx context.Context, a action.Action) (action.Effect, error) {
	e := a.Observed[0]
	d, err := c.read(ctx, e.Names[0])
	if err != nil {
		return action.Unclear, err
	}
	before, err := strconv.ParseInt(e.Targets[0].ResourceVersion, 10, 64)
	switch {
	case err != nil:
		return action.Unclear, err
	case d.rv == before:
		return action.Unmoved, nil
	case d.rv == before+1 && d.replicas == *e.Replicas:
		return action.Present, nil
	}
	return action.Unclear, nil
}

// Edit changes a deployment like another client would.
func (c *Cluster) Edit(t testing.TB, name string, replicas int32) {
	t.Helper()
	if _, err := c.Pool.Exec(t.Context(), "update public.deployments set replicas = $1, rv = rv + 7, generation = generation + 1 where name = $2", replicas, name); err != nil {
		t.Fatal(err)
	}
}

// Writes returns how often Execute changed a deployment, and its current replicas.
func (c *Cluster) Writes(t testing.TB, name string) (writes, replicas int) {
	t.Helper()
	if err := c.Pool.QueryRow(t.Context(), "select writes, replicas from public.deployments where name = $1", name).Scan(&writes, &replicas); err != nil {
		t.Fatal(err)
	}
	return writes, replicas
}

// Clock is set by the test.
type Clock struct {
	mu sync.Mutex
	at time.Time // guarded by mu
}

// NewClock returns a clock at a whole second of the current time.
func NewClock() *Clock { return &Clock{at: time.Now().UTC().Truncate(time.Second)} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Forward advances the clock.
func (c *Clock) Forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
