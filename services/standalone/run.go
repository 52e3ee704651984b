package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
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
	"github.com/mlp-platform/platform/services/standalone/internal/portcheck"
	"github.com/mlp-platform/platform/services/standalone/internal/samples"
	"github.com/mlp-platform/platform/services/trainer"
)

// streamMaxBytes bounds the event stream of one machine; its oldest events go first.
const streamMaxBytes = 256 << 20

// Run starts everything, seeds the samples on first start, and serves until ctx ends or a part fails.
// Shutdown goes the other way round: the services first, then the stand-ins, then NATS and Postgres.
func Run(ctx context.Context, cfg Config) error {
	p := &platform{cfg: cfg, con: console.New(os.Stderr), begin: time.Now()}
	err := p.run(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // asked to stop while starting
	}
	return err
}

type platform struct {
	cfg   Config
	con   *console.Console
	log   *slog.Logger
	begin time.Time

	dir   *datadir.Dir
	creds credentials.Credentials
	repo  string // the model repository's folder

	databaseURL string
	natsURL     string
	embeddedPG  *pg.Server // nil with PLATFORM_DATABASE_URL

	trainer  *trainer.Trainer // carries out the runs; the seeds' held-out rows are read by it too
	progress progressHub
	tower    tower // the evidence API, once it listens
}

func (p *platform) path(elem ...string) string {
	return filepath.Join(append([]string{p.dir.Path()}, elem...)...)
}

func (p *platform) run(ctx context.Context) (err error) {
	dir, err := datadir.Open(p.cfg.DataDir)
	if err != nil {
		return err
	}
	p.dir = dir
	defer func() { err = errors.Join(err, dir.Close()) }()

	var logTo = os.Stderr
	if p.cfg.LogTo == "file" {
		file := &lumberjack.Logger{Filename: p.path("platform.log"), MaxSize: 50, MaxBackups: 3}
		defer file.Close()
		p.log = service.NewLogger(file, p.cfg.LogLevel)
	} else {
		p.log = service.NewLogger(logTo, p.cfg.LogLevel)
	}
	klog.SetSlogLogger(p.log.With(slog.String("service", "assistant"))) // client-go would write over the console
	p.con.Say("%s %s  data in %s", p.con.Bold("platform"), service.Version, p.dir.Path())

	if p.creds, err = credentials.LoadOrCreate(p.dir.Path()); err != nil {
		return err
	}
	listeners, err := p.listen()
	if err != nil {
		return err
	}
	defer listeners.close()

	// Postgres and NATS, side by side.
	start, startCtx := errgroup.WithContext(ctx)
	var nats *natsd.Server
	start.Go(func() error {
		t := time.Now()
		if u := p.cfg.DatabaseURL.Reveal(); u != "" {
			p.databaseURL = u
			p.con.Step("postgres", "PLATFORM_DATABASE_URL", time.Since(t))
			return nil
		}
		srv, err := pg.Start(startCtx, pg.Config{Dir: p.path("postgres"), Port: p.cfg.PostgresPort, CacheDir: p.path("cache", "postgres"), Log: logWriter(p.log, "postgres")})
		if err != nil {
			return fmt.Errorf("start Postgres: %w", err)
		}
		p.embeddedPG, p.databaseURL = srv, srv.URL("")
		p.con.Step("postgres", "embedded, "+p.path("postgres"), time.Since(t))
		return nil
	})
	start.Go(func() error {
		t := time.Now()
		_, port, _ := net.SplitHostPort(p.cfg.NATSAddr)
		n, err := natsd.Start(natsd.Config{Dir: p.path("nats"), Port: atoi(port), Token: p.creds.NATSToken, Log: p.log})
		if err != nil {
			return fmt.Errorf("start NATS: %w", err)
		}
		nats, p.natsURL = n, n.URL()
		p.con.Step("nats", "embedded, "+p.cfg.NATSAddr, time.Since(t))
		return nil
	})
	err = start.Wait()
	defer func() {
		if nats != nil {
			nats.Stop()
		}
		if p.embeddedPG != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.StopTimeout)
			defer cancel()
			err = errors.Join(err, p.embeddedPG.Stop(stop))
		}
	}()
	if err != nil {
		return err
	}

	t := time.Now()
	p.repo = p.path("modelrepo")
	made, err := samples.Ensure(p.repo, modelrepo.Files, time.Now())
	if err != nil {
		return err
	}
	if made {
		p.con.Step("model repo", "sample git repository made in "+p.repo, time.Since(t))
	}
	t = time.Now()
	if err := p.migrate(ctx); err != nil {
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
	return p.serve(ctx, listeners)
}

// serve runs the stand-ins and the services until ctx ends or one fails.
func (p *platform) serve(ctx context.Context, ls *listeners) error {
	// Three nested lives: the back (stand-ins) outlives the front (services), which outlives the talk.
	backCtx, endBack := context.WithCancel(context.WithoutCancel(ctx))
	defer endBack()
	back, backCtx := errgroup.WithContext(backCtx)
	frontCtx, endFront := context.WithCancel(context.WithoutCancel(ctx))
	defer endFront()
	front, frontCtx := errgroup.WithContext(frontCtx)

	t := time.Now()
	if err := p.startBack(backCtx, back, ls); err != nil {
		return errors.Join(err, back.Wait())
	}
	if err := p.startFront(frontCtx, front, ls); err != nil {
		endFront()
		ferr := front.Wait()
		endBack()
		return errors.Join(err, ferr, back.Wait())
	}
	talk, talkCtx := errgroup.WithContext(ctx)
	talk.Go(func() error { return p.talk(talkCtx, t) })
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
		return errors.New("a service ended by itself; see platform.log in the data directory")
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

// talk waits for readiness, announces it, seeds on first start, and prints what to try next.
func (p *platform) talk(ctx context.Context, since time.Time) error {
	for _, svc := range []struct{ name, url string }{
		{"tracker", p.trackerURL() + "/health"},
		{"orchestrator", p.orchestratorURL() + "/health"},
		{"inference", p.servingURL() + "/readyz"},
		{"control plane", p.controlPlaneURL() + "/readyz"},
		{"evidence API", p.evidenceURL() + "/readyz"},
		{"assistant", p.assistantURL() + p.assistantProbe()},
	} {
		if err := p.awaitReady(ctx, svc.url); err != nil {
			return fmt.Errorf("%s is not ready: %w", svc.name, err)
		}
		p.con.Step(svc.name, svc.url, time.Since(since))
	}
	if err := p.dir.WriteRuntime(p.runtime()); err != nil {
		return err
	}
	p.con.Say("%s", p.con.Bold(fmt.Sprintf("ready in %.2f s", time.Since(p.begin).Seconds())))
	if err := p.endOrphans(ctx); err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "tracker runs of a killed process are not ended", slog.Any("err", err))
	}
	if err := p.seed(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		p.log.ErrorContext(ctx, "seeding failed", slog.Any("err", err))
		p.con.Say("some samples are not served; they are tried again at the next start:\n  %v", err)
	}
	// Opening models and training leave garbage that an idle process would keep until its next collection.
	debug.FreeOSMemory()
	p.banner()
	<-ctx.Done()
	return nil
}

// awaitReady polls a readiness address until it answers 200. When ctx ends, its error is returned.
func (p *platform) awaitReady(parent context.Context, url string) error {
	ctx, cancel := context.WithTimeout(parent, time.Minute)
	defer cancel()
	hc := &http.Client{Timeout: 2 * time.Second}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := hc.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s answers %s", url, resp.Status)
		}
		select {
		case <-ctx.Done():
			if parent.Err() != nil {
				return parent.Err()
			}
			return err
		case <-time.After(15 * time.Millisecond):
		}
	}
}

// listeners are the addresses taken before anything starts, so that a port in use is the first thing said.
type listeners struct {
	inference, controlPlane, evidence, assistant, tracker, orchestrator net.Listener
}

func (p *platform) listen() (*listeners, error) {
	ls := &listeners{}
	for _, a := range p.cfg.addresses() {
		if a.name == "NATS" {
			if err := portcheck.Free(a.addr, a.name, a.env); err != nil {
				ls.close()
				return nil, err
			}
			continue
		}
		l, err := portcheck.Listen(a.addr, a.name, a.env)
		if err != nil {
			ls.close()
			return nil, err
		}
		// What was taken is what the others are told: localhost may be more than one address.
		addr := l.Addr().String()
		switch a.name {
		case "inference":
			ls.inference, p.cfg.InferenceAddr = l, addr
		case "control plane":
			ls.controlPlane, p.cfg.ControlPlaneAddr = l, addr
		case "evidence API":
			ls.evidence, p.cfg.EvidenceAddr = l, addr
		case "assistant":
			ls.assistant, p.cfg.AssistantAddr = l, addr
		case "tracker":
			ls.tracker, p.cfg.TrackerAddr = l, addr
		case "orchestrator":
			ls.orchestrator, p.cfg.OrchestratorAddr = l, addr
		}
	}
	return ls, nil
}

// close is harmless on listeners that a server has closed.
func (ls *listeners) close() {
	for _, l := range []net.Listener{ls.inference, ls.controlPlane, ls.evidence, ls.assistant, ls.tracker, ls.orchestrator} {
		if l != nil {
			_ = l.Close()
		}
	}
}
