package outboxbench

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
)

// publishJob is an event as a job: the envelope is ready, and the worker only publishes it.
type publishJob struct {
	ID      string          `json:"id"`
	Subject string          `json:"subject"`
	Body    json.RawMessage `json:"body"`
}

// Kind is the job's name.
func (publishJob) Kind() string { return "publish" }

// publisher publishes an event and awaits its acknowledgement; River then takes the job for done.
type publisher struct {
	river.WorkerDefaults[publishJob]
	js jetstream.JetStream
}

// Work publishes one event.
func (p *publisher) Work(ctx context.Context, job *river.Job[publishJob]) error {
	msg := &nats.Msg{Subject: job.Args.Subject, Data: job.Args.Body, Header: nats.Header{}}
	msg.Header.Set(jetstream.MsgIDHeader, job.Args.ID)
	_, err := p.js.PublishMsg(ctx, msg)
	return err
}

// jobs is a database with River's tables.
type jobs struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// river runs River until stop, with settings in its favour: as many events unacknowledged as the relay has in a batch, and
// half the usual pause between fetches. With 1, 5 and 25 ms it was slower, since it fetched fewer jobs at a time.
func (env *bundle) river(b testing.TB) (stop func()) {
	b.Helper()
	url := testenv.Migrated(b, "river", func(ctx context.Context, url string) error {
		conn, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close()
		m, err := rivermigrate.New(riverpgxv5.New(conn), nil)
		if err != nil {
			return err
		}
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	workers := river.NewWorkers()
	river.AddWorker(workers, &publisher{js: env.js})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
		FetchCooldown: 50 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond,
		Workers: workers, Logger: slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := client.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	env.jobs = &jobs{pool, client}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := client.Stop(ctx); err != nil {
			b.Errorf("river: %v", err)
		}
	}
}

// insertJobs commits the events as jobs, in transactions of ten, by the fastest way that River has in a transaction.
func (env *bundle) insertJobs(b testing.TB) {
	for part := numberedEvents(benchEvents); len(part) > 0; part = part[10:] {
		params := make([]river.InsertManyParams, 10)
		for i, e := range part[:10] {
			params[i].Args = newPublishJob(b, e)
		}
		err := pgx.BeginFunc(b.Context(), env.jobs.pool, func(tx pgx.Tx) error {
			_, err := env.jobs.client.InsertManyFastTx(b.Context(), tx, params)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// newPublishJob encodes an event as the outbox does.
func newPublishJob(b testing.TB, e outbox.Event) publishJob {
	data, err := json.Marshal(e.Payload)
	if err != nil {
		b.Fatal(err)
	}
	name := e.Namespace + "." + e.Name
	body, err := json.Marshal(outbox.Envelope{
		SpecVersion: "1.0", ID: e.ID, Source: "/services/test-service", Type: "platform." + name, Time: time.Now().UTC(),
		DataContentType: "application/json", DataSchema: "urn:platform:event:" + name + ":1", Tenant: e.Tenant, Actor: e.Actor, Data: data,
	})
	if err != nil {
		b.Fatal(err)
	}
	return publishJob{ID: e.ID.String(), Subject: outbox.Subject(e.Tenant, e.Namespace, e.Name), Body: body}
}
