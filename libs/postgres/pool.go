package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// startupWait is how long [Open] and [Migrate] wait by default for a server that does not
// answer yet: compose and standalone start the database beside the services.
const startupWait = 10 * time.Second

// maxStartupPause is the longest pause between two tries.
const maxStartupPause = 2 * time.Second

type options struct {
	maxConns         int32
	appName          string
	statementTimeout time.Duration
	wait             time.Duration
	waiting          func(error)
}

// Option changes a default of [Open].
type Option func(*options)

// MaxConns limits the pool; default 10.
func MaxConns(n int32) Option { return func(o *options) { o.maxConns = n } }

// Wait sets how long to wait for a server that does not answer yet; 0 is one try. waiting,
// unless nil, is called with each failed try that another one follows.
func Wait(limit time.Duration, waiting func(error)) Option {
	return func(o *options) { o.wait, o.waiting = limit, waiting }
}

// schemaName is deliberately narrower than what Postgres allows: names that need
// no quoting anywhere.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func checkSchema(schema string) error {
	if !schemaName.MatchString(schema) {
		return fmt.Errorf("postgres: schema %q must match %s", schema, schemaName)
	}
	return nil
}

// Open connects a pool whose search_path is schema alone, so that a service
// cannot touch another's tables by accident. It waits for a server that is still
// starting; wrong credentials or a missing database fail at once.
func Open(ctx context.Context, url string, schema string, o ...Option) (*pgxpool.Pool, error) {
	opt := options{maxConns: 10, appName: schema, statementTimeout: 30 * time.Second, wait: startupWait}
	for _, f := range o {
		f(&opt)
	}
	if err := checkSchema(schema); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: the database URL cannot be read: %w", err)
	}
	cfg.MaxConns = max(1, opt.maxConns)
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	setParams(cfg.ConnConfig, schema, opt)
	cfg.ConnConfig.Tracer = queryTracer{schema}
	if opt.statementTimeout > 0 {
		// The pool's connections alone: one made from the pool's configuration may
		// wait for notifications.
		cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			limitIO(c, opt.statementTimeout+answerGrace)
			return nil
		}
		cfg.PingTimeout = pingTimeout // before use, of a connection that was idle
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := awaitServer(ctx, cfg.ConnConfig, opt, pool.Ping); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// setParams sets what every connection of a service has.
func setParams(c *pgx.ConnConfig, schema string, opt options) {
	c.ConnectTimeout = 5 * time.Second
	p := c.RuntimeParams
	p["search_path"] = schema
	p["timezone"] = "UTC"
	if p["application_name"] == "" {
		p["application_name"] = opt.appName
	}
	p["statement_timeout"] = formatMillis(opt.statementTimeout)
	p["idle_in_transaction_session_timeout"] = formatMillis(30 * time.Second)
}

func formatMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// awaitServer repeats try while the server does not answer or reports that it is starting.
func awaitServer(ctx context.Context, c *pgx.ConnConfig, opt options, try func(context.Context) error) error {
	deadline := time.Now().Add(opt.wait)
	delay := 25 * time.Millisecond
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("postgres: no connection to database %q at %s as %q: %w",
			c.Database, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.User, err)
		if ctx.Err() != nil || !Unavailable(err) || time.Now().Add(delay).After(deadline) {
			return err
		}
		if opt.waiting != nil {
			opt.waiting(err)
		}
		if err := pauseAbout(ctx, delay); err != nil {
			return err
		}
		delay = min(2*delay, maxStartupPause)
	}
}

// pauseAbout waits d ± 50 %, or until ctx ends.
func pauseAbout(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// txTries limits how often InTx runs fn when the database requests a retry.
const txTries = 3

// InTx runs fn in a transaction and commits when it returns nil. When Postgres aborts the
// transaction for a serialization failure or a deadlock, fn runs again, three times in
// all: it must not leave effects of an aborted try outside the transaction.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	delay := 5 * time.Millisecond
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, pool, fn)
		if err == nil || try == txTries || !retryableError(err) {
			return err
		}
		if perr := pauseAbout(ctx, delay); perr != nil {
			return errors.Join(err, perr)
		}
		delay *= 4
	}
}

func retryableError(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
