// Package app puts the one-process platform together: configuration, wiring, and the order in which its
// parts start and stop.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"

	"github.com/mlp-platform/platform/deploy/modelrepo"
	"github.com/mlp-platform/platform/libs/embedded/natsd"
	"github.com/mlp-platform/platform/libs/embedded/pg"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/console"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
	"github.com/mlp-platform/platform/services/standalone/internal/datadir"
	"github.com/mlp-platform/platform/services/standalone/internal/samples"
)

// streamMaxBytes limits the event stream of one machine; its oldest events go first.
const streamMaxBytes = 256 << 20

// Run starts everything, seeds the samples on first start, and serves until ctx ends or a part fails.
// Shutdown is in reverse order: the services first, then the stand-ins, then NATS and Postgres.
func Run(ctx context.Context, cfg Config) error {
	err := run(ctx, cfg)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // asked to stop while starting
	}
	return err
}

func run(ctx context.Context, cfg Config) (err error) {
	p, err := openPlatform(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.con.Say("%s %s  data in %s", p.con.Bold("platform"), service.Version, p.dir.Path())
	listeners, err := p.listen()
	if err != nil {
		return err
	}
	defer listeners.close()
	stopEmbedded, err := p.startEmbedded(ctx)
	defer func() { err = errors.Join(err, stopEmbedded()) }()
	if err != nil {
		return err
	}
	services, err := p.services(listeners)
	if err != nil {
		return err
	}
	if err := p.prepareData(ctx, services); err != nil {
		return err
	}
	return p.serve(ctx, listeners, services)
}

// platform is the state shared by all parts of the process.
type platform struct {
	// Set by openPlatform.
	cfg      Config // listen puts the addresses that were taken in place of the requested ones
	begin    time.Time
	con      *console.Console
	root     string // absolute path of the data directory
	dir      *datadir.Dir
	log      *slog.Logger
	closeLog func()
	creds    credentials.Credentials
	repo     string // the model repository's folder

	// Set by startEmbedded.
	databaseURL string
	natsURL     string

	// delegationTrust lets the services accept delegations of the dashboard, assistantTrust lets the assistant read
	// from them the user on whose behalf the dashboard's keys call; set by services.
	delegationTrust, assistantTrust string

	embeddedPG *pg.Server // nil with PLATFORM_DATABASE_URL

	progress progressHub
	tower    tower // the evidence API, once it listens
}

// openPlatform locks the data directory and opens its log and secrets.
func openPlatform(cfg Config) (*platform, error) {
	dir, err := datadir.Open(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	p := &platform{cfg: cfg, begin: time.Now(), con: console.New(os.Stderr), root: dir.Path(), dir: dir}
	p.repo = p.path("modelrepo")
	p.log, p.closeLog = openLog(cfg, p.path("platform.log"))
	if p.creds, err = credentials.LoadOrCreate(dir.Path()); err == nil && !cfg.KeepTokens {
		p.creds, err = credentials.RenewStandIns(dir.Path(), p.creds)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *platform) close() error {
	p.closeLog()
	return p.dir.Close()
}

func (p *platform) path(elem ...string) string {
	return filepath.Join(append([]string{p.root}, elem...)...)
}

// openLog makes the logger; closeLog closes its file.
func openLog(cfg Config, path string) (log *slog.Logger, closeLog func()) {
	closeLog = func() {}
	var logTo io.Writer = os.Stderr
	if cfg.LogTo == "file" {
		file := &lumberjack.Logger{Filename: path, MaxSize: 50, MaxBackups: 3}
		logTo, closeLog = file, func() { _ = file.Close() } // there is no log left to report it to
	}
	log = service.NewLogger(logTo, cfg.LogLevel)
	klog.SetSlogLogger(log.With(slog.String("service", "assistant"))) // client-go would write over the console
	return log, closeLog
}

// startEmbedded starts Postgres and NATS, side by side. stop ends what was started, also after an error.
func (p *platform) startEmbedded(ctx context.Context) (stop func() error, err error) {
	var nats *natsd.Server
	g, startCtx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.startPostgres(startCtx) })
	g.Go(func() error {
		t := time.Now()
		_, port, _ := net.SplitHostPort(p.cfg.NATSAddr)
		number, _ := strconv.Atoi(port) // the address was validated
		n, err := natsd.Start(natsd.Config{Dir: p.path("nats"), Port: number, Token: p.creds.NATSToken, Users: p.busUsers(), MaxBytes: streamMaxBytes, Log: p.log})
		if err != nil {
			return fmt.Errorf("start NATS: %w", err)
		}
		nats, p.natsURL = n, n.URL()
		p.con.Step("nats", "embedded, "+p.cfg.NATSAddr, time.Since(t))
		return nil
	})
	err = g.Wait()
	return func() error {
		if nats != nil {
			nats.Stop()
		}
		if p.embeddedPG == nil {
			return nil
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.StopTimeout)
		defer cancel()
		return p.embeddedPG.Stop(stop)
	}, err
}

// startPostgres starts the embedded Postgres unless the configuration names another.
func (p *platform) startPostgres(ctx context.Context) error {
	t := time.Now()
	if u := p.cfg.DatabaseURL.Reveal(); u != "" {
		p.databaseURL = u
		p.con.Step("postgres", "PLATFORM_DATABASE_URL", time.Since(t))
		return nil
	}
	srv, err := pg.Start(ctx, pg.Config{Dir: p.path("postgres"), CacheDir: p.path("cache", "postgres"), Log: logWriter(p.log, "postgres")})
	if err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	p.embeddedPG, p.databaseURL = srv, srv.URL("")
	p.con.Step("postgres", "embedded, "+p.path("postgres"), time.Since(t))
	return nil
}

// logWriter turns a child's output into log lines.
func logWriter(log *slog.Logger, name string) io.Writer {
	return slog.NewLogLogger(log.With(slog.String("service", name)).Handler(), slog.LevelInfo).Writer()
}

// prepareData creates what the services need: the model repository, their schemas, the evidence store.
func (p *platform) prepareData(ctx context.Context, services []hosted) error {
	t := time.Now()
	made, err := samples.Ensure(p.repo, modelrepo.Files, time.Now())
	if err != nil {
		return err
	}
	if made {
		p.con.Step("model repo", "sample git repository made in "+p.repo, time.Since(t))
	}
	t = time.Now()
	if err := p.migrate(ctx, services); err != nil {
		return err
	}
	p.con.Step("schemas", "", time.Since(t))
	t = time.Now()
	if made, err = p.ensureEvidence(ctx); err != nil {
		return err
	}
	if made {
		p.con.Step("evidence", "sample store made in "+p.evidenceStore(), time.Since(t))
	}
	return nil
}

// serve runs the stand-ins and the services until ctx ends or one fails.
func (p *platform) serve(ctx context.Context, ls *listeners, services []hosted) error {
	// Three nested lifetimes: the back (stand-ins) outlives the front (services), which outlives the talk.
	backCtx, endBack := context.WithCancel(context.WithoutCancel(ctx))
	defer endBack()
	back, backCtx := errgroup.WithContext(backCtx)
	frontCtx, endFront := context.WithCancel(context.WithoutCancel(ctx))
	defer endFront()
	front, frontCtx := errgroup.WithContext(frontCtx)

	t := time.Now()
	trainer, err := p.startStandIns(backCtx, back, ls)
	if err != nil {
		return errors.Join(err, back.Wait())
	}
	if ls.postgres != nil && p.embeddedPG != nil {
		back.Go(func() error { return servePostgres(backCtx, ls.postgres, p.embeddedPG.Socket()) })
	}
	p.startServices(frontCtx, front, services)
	talk, talkCtx := errgroup.WithContext(ctx)
	talk.Go(func() error { return p.announce(talkCtx, trainer, t) })
	// Any part that ends before it was asked to ends the platform.
	var pgDied <-chan error
	if p.embeddedPG != nil {
		pgDied = p.embeddedPG.Wait()
	}
	talk.Go(func() error {
		select {
		case <-talkCtx.Done():
			return nil
		case <-frontCtx.Done():
			return errEnded
		case <-backCtx.Done():
			return errEnded
		case err := <-pgDied:
			return fmt.Errorf("the embedded Postgres ended: %w", err)
		}
	})
	talkErr := talk.Wait()
	p.con.Flush()
	if ctx.Err() != nil {
		p.con.Say("stopping")
	}
	endFront()
	frontErr := front.Wait()
	endBack()
	backErr := back.Wait()
	if errors.Is(talkErr, errEnded) || errors.Is(talkErr, context.Canceled) {
		talkErr = nil
	}
	if err := errors.Join(talkErr, ignoreCancel(frontErr), ignoreCancel(backErr)); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return errors.New("a service ended unexpectedly; see platform.log in the data directory")
	}
	p.con.Say("stopped")
	return nil
}

var errEnded = errors.New("a part ended")

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
