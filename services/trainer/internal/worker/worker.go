package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/orchestrator"
)

// Config of a worker; all is required.
type Config struct {
	Client *orchestrator.Client
	// Name identifies this worker in the pool, followed by an id of its state folder. So two workers with the same name
	// count as two, and one that has lost its state folder counts as a new one. The states of the runs that it claims
	// contain it.
	Name string
	// Limit is how many runs it carries out at once.
	Limit int
	// StateDir holds the journal.
	StateDir string
	// ModelRepoDir is the folder of the model repository, Env the registry in force; Env may be empty.
	ModelRepoDir, Env string
	// Command is the program of a training with its first arguments; the model and the run's other parameters follow.
	Command []string
	// Environ is the environment of the trainings.
	Environ []string
	// Poll is the poll interval for runs and cancellations, Heartbeat the heartbeat interval.
	Poll, Heartbeat time.Duration
	// LostAfter is how long another worker may be silent before its runs are marked CRASHED.
	LostAfter time.Duration
	Log       *slog.Logger
}

// callTimeout limits one call to the orchestrator.
const callTimeout = 10 * time.Second

// maxAttempts limits how often a run may start: one that crashes its worker each time must not repeat for ever.
const maxAttempts = 3

// Worker carries out flow runs. It is run once.
type Worker struct {
	cfg     Config
	log     *slog.Logger
	client  *orchestrator.Client
	journal *journal
	name    string // cfg.Name and the id of the state folder
	lost    *absence
	wake    chan struct{} // an attempt has ended

	heard atomic.Pointer[time.Time] // when the orchestrator last took a heartbeat; nil before the first

	mu          sync.Mutex // guards those below
	attempts    map[uuid.UUID]*attempt
	deployments map[uuid.UUID]deployment
}

// attempt is a run that this process carries out.
type attempt struct {
	deployment uuid.UUID
	cancel     context.CancelCauseFunc
}

// New refuses a configuration without a required part.
func New(cfg Config) (*Worker, error) {
	switch {
	case cfg.Client == nil || cfg.Log == nil || cfg.Name == "" || cfg.StateDir == "" || cfg.ModelRepoDir == "" || len(cfg.Command) == 0:
		return nil, errors.New("worker: a client, a log, a name, a state folder, the model repository and the command are required")
	case cfg.Limit < 1 || cfg.Poll <= 0 || cfg.Heartbeat < time.Second || cfg.LostAfter <= cfg.Heartbeat:
		return nil, errors.New("worker: the limit and the intervals must be positive, and a worker is lost only after more than a heartbeat")
	case strings.Contains(cfg.Name, ": "):
		return nil, fmt.Errorf("worker: the name %q must not contain a colon and a space", cfg.Name)
	}
	return &Worker{
		cfg: cfg, log: cfg.Log, client: cfg.Client, wake: make(chan struct{}, 1), lost: newAbsence(),
		attempts: map[uuid.UUID]*attempt{}, deployments: map[uuid.UUID]deployment{},
	}, nil
}

// Run works until ctx ends, then stops its trainings and hands their runs back. An orchestrator that is away is
// waited for; one that refuses the registration is an error.
func (w *Worker) Run(ctx context.Context) error {
	j, err := openJournal(w.cfg.StateDir)
	if err != nil {
		return err
	}
	defer j.close()
	w.journal = j
	id, err := j.instance()
	if err != nil {
		return err
	}
	w.name = w.cfg.Name + "-" + id
	if err := w.registerFirst(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	// Before the first claim: to others a worker that has claimed a run and was never heard of would be lost.
	if err := w.heartbeat(ctx); err != nil {
		w.log.WarnContext(ctx, "the first heartbeat failed", slog.Any("err", err))
	}
	w.log.InfoContext(ctx, "worker started", slog.String("worker", w.name), slog.String("pool", Pool), slog.Int("limit", w.cfg.Limit))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { w.beat(ctx); return nil })
	g.Go(func() error { w.tidy(ctx); return nil })
	g.Go(func() error { return w.work(ctx) })
	return g.Wait()
}

// beat sends the worker's heartbeats. It does nothing else: slow work must not make the worker look dead.
func (w *Worker) beat(ctx context.Context) {
	for pause(ctx, w.cfg.Heartbeat) {
		w.try(ctx, "heartbeat", w.heartbeat)
	}
}

func (w *Worker) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := w.client.Heartbeat(ctx, Pool, w.name, w.cfg.Heartbeat); err != nil {
		return err
	}
	now := time.Now()
	w.heard.Store(&now)
	return nil
}

// missedBeats is how many heartbeats may fail before the worker counts as cut off.
const missedBeats = 3

// Heard returns why this worker gets no runs: it is not registered yet, or the orchestrator accepts no heartbeats. Nil
// means that it gets runs.
func (w *Worker) Heard() error {
	last := w.heard.Load()
	if last == nil {
		return errors.New("not registered at the orchestrator yet")
	}
	if silent := time.Since(*last); silent > missedBeats*w.cfg.Heartbeat {
		return fmt.Errorf("the orchestrator has taken no heartbeat for %s", silent.Round(time.Second))
	}
	return nil
}

// tidy keeps the deployments up to date and ends the runs of lost workers.
func (w *Worker) tidy(ctx context.Context) {
	for {
		w.try(ctx, "register the deployments", w.register)
		w.try(ctx, "look for runs of lost workers", w.crashLost)
		if !pause(ctx, w.cfg.Heartbeat) {
			return
		}
	}
}

// try makes calls that may fail now and succeed at the next turn.
func (w *Worker) try(ctx context.Context, what string, fn func(context.Context) error) {
	if ctx.Err() != nil {
		return
	}
	if err := fn(ctx); err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, what+" failed; it is tried again", slog.Any("err", err))
	}
}

// work polls for runs and carries them out until ctx ends.
func (w *Worker) work(ctx context.Context) error {
	var running sync.WaitGroup
	for ctx.Err() == nil {
		w.try(ctx, "watch the runs", w.watch)
		w.try(ctx, "settle the journal", w.settle)
		w.try(ctx, "take runs", func(ctx context.Context) error { return w.take(ctx, &running) })
		t := time.NewTimer(w.cfg.Poll)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-t.C:
		}
		t.Stop()
	}
	running.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := w.settle(last); err != nil {
		w.log.WarnContext(last, "some runs could not be handed back; they wait in the journal", slog.Any("err", err))
	}
	return nil
}

// take claims due runs while there is room for them.
func (w *Worker) take(ctx context.Context, running *sync.WaitGroup) error {
	// More than there is room for: those ahead may belong to deployments that are at their limit, or to none of ours.
	const ahead = 50
	free := w.cfg.Limit - len(w.busy())
	if free <= 0 {
		return nil
	}
	for item, err := range w.client.AllScheduledFlowRuns(ctx, Pool, time.Now(), free+ahead) {
		if err != nil {
			return err
		}
		if free == 0 || ctx.Err() != nil {
			break
		}
		run := item.FlowRun
		if !w.mayStart(run) {
			continue
		}
		claimed, err := w.claim(ctx, run)
		if err != nil {
			return err
		}
		if !claimed {
			continue
		}
		free--
		runCtx, cancel := context.WithCancelCause(ctx)
		w.mu.Lock()
		w.attempts[run.ID] = &attempt{*run.DeploymentID, cancel}
		w.mu.Unlock()
		running.Go(func() {
			w.carryOut(runCtx, run)
			cancel(nil)
			w.mu.Lock()
			delete(w.attempts, run.ID)
			w.mu.Unlock()
			select {
			case w.wake <- struct{}{}:
			default: // it is woken already
			}
		})
	}
	return nil
}

// mayStart reports whether the run is one of ours, not under way, and within its deployment's limit.
func (w *Worker) mayStart(run orchestrator.FlowRun) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if run.DeploymentID == nil || w.attempts[run.ID] != nil {
		return false
	}
	d, ok := w.deployments[*run.DeploymentID]
	if !ok {
		return false // another flow in this pool: not ours to run
	}
	n := 0
	for _, a := range w.attempts {
		if a.deployment == *run.DeploymentID {
			n++
		}
	}
	return d.limit == 0 || n < d.limit
}

func (w *Worker) busy() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]uuid.UUID, 0, len(w.attempts))
	for id := range w.attempts {
		ids = append(ids, id)
	}
	return ids
}

func (w *Worker) attempt(id uuid.UUID) *attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempts[id]
}

func (w *Worker) openRepo() (*modelrepo.Repo, error) {
	return modelrepo.Open(w.cfg.ModelRepoDir, w.cfg.Env)
}

// mayPass reports whether the same call may succeed later.
func mayPass(err error) bool {
	var refused *orchestrator.Error
	if errors.As(err, &refused) {
		return refused.Temporary()
	}
	return true // no whole answer, or one that was cut off
}

// pause returns false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
