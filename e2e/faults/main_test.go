//go:build e2e || faults

// Package faults kills every process of an installation under load and then asks whether anything was
// lost or done twice. The installation is real: two control planes, Postgres, Redis, NATS with a disk
// that is synced, the orchestrator's stand-in in a separate process, and a consumer of all events.
//
//	FAULTS_KILLS     kill -9 of each process, default 10 (make faults)
//	FAULTS_COMMANDS  retrains, and as many notices with approvals, default 500 (make faults)
//	FAULTS_SEED      of the order and the moments of the kills; the default is the time, and is printed
package faults

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/libs/embedded/natsd"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
)

// roleEnv makes the test binary one of the processes to kill.
const roleEnv = "FAULTS_ROLE"

// Schema of the consumer, in the database of the control planes.
const consumerSchema = "faults"

func TestMain(m *testing.M) {
	role, ok := map[string]func() error{"nats": runBroker, "consumer": runConsumer}[os.Getenv(roleEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runBroker is NATS as shipped: each acknowledged message is on disk.
func runBroker() error {
	port, err := strconv.Atoi(os.Getenv("FAULTS_PORT"))
	if err != nil {
		return err
	}
	s, err := natsd.Start(natsd.Config{Dir: os.Getenv("FAULTS_DIR"), Port: port, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	untilAskedToEnd()
	s.Stop()
	return nil
}

// runConsumer records every event of the stream, in the transaction of its inbox. The table has no key: an event that
// is handled twice has two rows.
func runConsumer() error {
	ctx := context.Background()
	pool, err := postgres.Open(ctx, os.Getenv("FAULTS_DATABASE"), consumerSchema, postgres.MaxConns(2))
	if err != nil {
		return err
	}
	nc, err := nats.Connect(os.Getenv("FAULTS_BROKER"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	return outbox.Consume(ctx, outbox.ConsumerConfig{
		Conn: nc, Pool: pool, Name: "faults", Subjects: []string{"platform.>"},
		Handle: func(ctx context.Context, tx pgx.Tx, e outbox.Envelope) error {
			_, err := tx.Exec(ctx, "insert into handled (event_id, type) values ($1, $2)", e.ID, e.Type)
			return err
		},
	}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

// untilAskedToEnd waits for the end of stdin, by which a parent requests a clean stop.
func untilAskedToEnd() { _, _ = io.Copy(io.Discard, os.Stdin) }
