// Package seed fills a fresh platform through its public APIs: every sample model is trained by an ordinary dispatch,
// promoted by the ordinary gate, and given drift baselines from replayed held-out rows. The results are then recorded
// like a facility's own: the job, its cost, the evaluation, a card, a compliance record and a budget. Each step is
// idempotent, so a killed first start continues where it stopped.
package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
)

const (
	attempts      = 3   // new runs of one sample before it is given up until the next start
	baselineRows  = 120 // held-out rows replayed for the drift baseline; inference requires at least 10
	sampleBodies  = 5   // held-out predict bodies written for people to try
	pollEvery     = 150 * time.Millisecond
	servedTimeout = 30 * time.Second // inference follows an alias within its poll interval of 10 s
	namedTimeout  = 30 * time.Second // a completed run's version is known once the control plane's poll has seen it
)

// Model is one sample.
type Model struct {
	Name    string // upper-case id
	Display string // as its repository spells it
	Dataset string
	Alias   string // the highest rung of its ladder
	JobLog  bool   // predictions on real held-out jobs are written as files to try
	Readme  string // path in the model repository; empty if it has none
}

// Row is one held-out row: its id and the features of a predict body.
type Row struct {
	ID       string
	Features map[string]any
}

// Options configures seeding.
type Options struct {
	Models            []Model
	ControlPlane      string // base address
	ControlPlaneToken string // principal system:seed
	Serving           string
	ServingToken      string
	HTTP              *http.Client
	StateFile         string // remembers which models are done
	SamplesDir        string // predict bodies of held-out rows land here
	Heldout           func(ctx context.Context, model, dataset string, n int) ([]Row, error)

	Begin func(model string)
	Stage func(model, stage string, fraction float64)
	End   func(model, result string, ok bool)
}

type state struct {
	Done map[string]string `json:"done"` // model → version served
	// Attempts is the number of the last dispatch of a model. The control plane never forgets a key, so a number must
	// not be reused for another run.
	Attempts map[string]int `json:"attempts,omitempty"`
	// Recorded is the version whose facility and governance records are written, by model. Data directories of
	// earlier versions have none, and get them at their next start.
	Recorded map[string]string `json:"recorded,omitempty"`
}

func (st state) complete(m Model) bool {
	_, done := st.Done[m.Name]
	_, recorded := st.Recorded[m.Name]
	return done && recorded
}

// Run seeds the samples that are not seeded yet. It returns the first failures joined, after every model was tried.
func Run(ctx context.Context, o Options) error {
	st, err := loadState(o.StateFile)
	if err != nil {
		return err
	}
	cp, inf, err := newClients(o)
	if err != nil {
		return err
	}
	s := seeder{o: o, st: st, cp: cp, inf: inf}
	open := slices.DeleteFunc(slices.Clone(o.Models), st.complete)
	for _, m := range open {
		o.Begin(m.Display)
	}
	var errs []error
	for _, m := range open {
		result, err := s.finishSample(ctx, m)
		if err != nil {
			if ctx.Err() != nil {
				o.End(m.Display, "stopped; the next start continues", false)
				return ctx.Err()
			}
			errs = append(errs, fmt.Errorf("%s: %w", m.Display, err))
			o.End(m.Display, "failed: "+err.Error(), false)
			continue
		}
		o.End(m.Display, result, true)
	}
	return errors.Join(errs...)
}

// finishSample does the remaining steps of one sample, and records each half as soon as it is done.
func (s seeder) finishSample(ctx context.Context, m Model) (result string, err error) {
	if _, done := s.st.Done[m.Name]; !done {
		version, err := s.model(ctx, m)
		if err != nil {
			return "", err
		}
		s.st.Done[m.Name] = version
		if err := saveState(s.o.StateFile, s.st); err != nil {
			return "", err
		}
	}
	s.o.Stage(m.Display, "record", 0.99)
	recorded, err := s.recordFacts(ctx, m)
	if err != nil {
		return "", fmt.Errorf("trained and promoted, but not all its records are written: %w", err)
	}
	s.st.Recorded[m.Name] = recorded
	if err := saveState(s.o.StateFile, s.st); err != nil {
		return "", err
	}
	return m.Alias + " version " + recorded + " is served", nil
}

type seeder struct {
	o   Options
	st  state
	cp  *controlplane.Client
	inf *inference.Client
}

func (s seeder) model(ctx context.Context, m Model) (version string, err error) {
	// The last attempt of an earlier start may still run or have completed; if it is dead, that one does
	// not count.
	first, limit := s.st.Attempts[m.Name], attempts
	if first == 0 {
		first = 1
	} else {
		limit++
	}
	for n := first; ; n++ {
		if s.st.Attempts[m.Name] != n {
			s.st.Attempts[m.Name] = n
			if err := saveState(s.o.StateFile, s.st); err != nil {
				return "", err
			}
		}
		version, err = s.train(ctx, m, n)
		if err == nil {
			break
		}
		if n+1 == first+limit || ctx.Err() != nil {
			return "", err
		}
	}
	s.o.Stage(m.Display, "promote", 0.96)
	if err := s.promote(ctx, m, version); err != nil {
		return "", err
	}
	s.o.Stage(m.Display, "serve", 0.97)
	if err := s.served(ctx, m, version); err != nil {
		return "", err
	}
	s.o.Stage(m.Display, "baseline", 0.98)
	return version, s.baseline(ctx, m)
}

// train dispatches attempt n under a new key and follows it to its end.
func (s seeder) train(ctx context.Context, m Model, n int) (string, error) {
	key := fmt.Sprintf("seed:%s:%d", m.Name, n)
	var started controlplane.Dispatch
	if err := s.retrying(ctx, func() (err error) {
		started, err = wire.Decode[controlplane.Dispatch](s.cp.StartRetrain(ctx, &controlplane.StartRetrainParams{IdempotencyKey: &key},
			controlplane.RetrainRequest{ModelName: m.Name, DatasetName: m.Dataset}))
		return err
	}); err != nil {
		return "", err
	}
	var completed time.Time
	for {
		r, err := wire.Decode[controlplane.RunStatus](s.cp.GetRetrain(ctx, started.FlowRunId))
		switch {
		case err != nil && !temporaryError(err):
			return "", err
		case err != nil || !r.IsTerminal:
		case orEmpty(r.StateType) != "COMPLETED":
			return "", fmt.Errorf("training run %s ended %s; see its log at the orchestrator", r.FlowRunId, orEmpty(r.StateType))
		case orEmpty(r.ModelVersion) != "":
			return *r.ModelVersion, nil
		case completed.IsZero():
			completed = time.Now()
		case time.Since(completed) > namedTimeout:
			return "", fmt.Errorf("training run %s completed, but the control plane names no version for it", r.FlowRunId)
		}
		if err := waitFor(ctx, pollEvery); err != nil {
			return "", err
		}
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// promote decides the promotion that the passed Production rung opened.
func (s seeder) promote(ctx context.Context, m Model, version string) error {
	var last controlplane.PromotionState
	reason := "first start: sample model"
	deadline := time.Now().Add(servedTimeout)
	for time.Now().Before(deadline) {
		list, err := wire.Decode[controlplane.PromotionList](s.cp.ListPromotions(ctx, &controlplane.ListPromotionsParams{Model: &m.Name}))
		if err != nil && !temporaryError(err) {
			return err
		}
		for _, p := range list.Items {
			if p.Version != version {
				continue
			}
			last = p.State
			switch p.State {
			case controlplane.PromotionStatePromoted:
				return nil
			case controlplane.PromotionStatePending:
				_, err := wire.Decode[struct{}](s.cp.ApprovePromotion(ctx, p.Id, controlplane.DecisionReason{Reason: &reason}))
				if err != nil && !temporaryError(err) {
					return err
				}
			case controlplane.PromotionStateRejected, controlplane.PromotionStateFailed, controlplane.PromotionStateExpired, controlplane.PromotionStateSuperseded:
				return fmt.Errorf("its promotion to %s is %s", m.Alias, p.State)
			}
		}
		if err := waitFor(ctx, pollEvery); err != nil {
			return err
		}
	}
	if last == "" {
		return fmt.Errorf("version %s did not pass the %s rung of its ladder", version, m.Alias)
	}
	return fmt.Errorf("its promotion stayed %s", last)
}

// served waits until inference answers with the version.
func (s seeder) served(ctx context.Context, m Model, version string) error {
	deadline := time.Now().Add(servedTimeout)
	for time.Now().Before(deadline) {
		// A version may be served under another alias long before it has this one.
		list, err := wire.Decode[[]inference.LoadedModel](s.inf.ListModels(ctx, &inference.ListModelsParams{Alias: &m.Alias}))
		if err != nil && !temporaryError(err) {
			return err
		}
		for _, l := range list {
			if strings.EqualFold(l.ModelName, m.Name) && strings.EqualFold(l.Alias, m.Alias) && l.ModelVersion == version {
				return nil
			}
		}
		if err := waitFor(ctx, pollEvery); err != nil {
			return err
		}
	}
	return fmt.Errorf("inference does not serve version %s yet; see %s/health", version, s.o.Serving)
}

// baseline replays held-out rows and makes their predictions, and the rows themselves, the drift baselines.
func (s seeder) baseline(ctx context.Context, m Model) error {
	rows, err := s.o.Heldout(ctx, m.Display, m.Dataset, baselineRows)
	if err != nil {
		return fmt.Errorf("read held-out rows: %w", err)
	}
	for _, row := range rows {
		err := s.retrying(ctx, func() error {
			_, err := wire.Decode[inference.Prediction](s.inf.Predict(ctx, m.Name, nil, inference.PredictRequest{Features: row.Features}))
			return err
		})
		if err != nil {
			return fmt.Errorf("predict held-out row %s: %w", row.ID, err)
		}
	}
	// Snapshots are written behind the answers; the baseline is taken once they are all there.
	err = s.retrying(ctx, func() error {
		b, err := wire.Decode[inference.DriftBaseline](s.inf.SetDriftBaseline(ctx, m.Name, inference.AliasChoice{}))
		if err != nil {
			return err
		}
		if b.N < len(rows) {
			return errNotAll
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set the drift baseline: %w", err)
	}
	// Inputs are kept with the same snapshots, so they are all there too.
	err = s.retrying(ctx, func() error {
		_, err := wire.Decode[inference.DriftBaseline](s.inf.SetInputDriftBaseline(ctx, m.Name, inference.AliasChoice{}))
		return err
	})
	if err != nil {
		return fmt.Errorf("set the drift baseline of the inputs: %w", err)
	}
	if !m.JobLog {
		return nil
	}
	if err := os.MkdirAll(s.o.SamplesDir, 0o755); err != nil {
		return fmt.Errorf("write sample requests: %w", err)
	}
	step := max(1, len(rows)/sampleBodies)
	for i := 0; i < len(rows) && i/step < sampleBodies; i += step {
		data, err := json.MarshalIndent(map[string]any{"features": rows[i].Features}, "", "  ")
		if err != nil {
			return fmt.Errorf("write sample requests: %w", err)
		}
		name := filepath.Join(s.o.SamplesDir, fmt.Sprintf("%s-job-%s.json", m.Display, rows[i].ID))
		if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
			return fmt.Errorf("write sample requests: %w", err)
		}
	}
	return nil
}

var errNotAll = errors.New("not every snapshot is written yet")

// retrying repeats fn while it fails in a way that passes, for at most a minute.
func (s seeder) retrying(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := fn()
		if err == nil || !temporaryError(err) || time.Now().After(deadline) {
			return err
		}
		pause := pollEvery
		var p *problem.Error
		if errors.As(err, &p) && p.RetryAfter > pause {
			pause = p.RetryAfter
		}
		if err := waitFor(ctx, pause); err != nil {
			return err
		}
	}
}

// temporaryError reports whether the same request may succeed a moment later.
func temporaryError(err error) bool {
	if errors.Is(err, errNotAll) || errors.Is(err, errRunOpen) {
		return true
	}
	var p *problem.Error
	if errors.As(err, &p) {
		switch p.Kind.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		case http.StatusConflict:
			return slices.Contains([]string{"command_in_progress", "retrain_in_flight", "not_enough_snapshots"}, p.Kind.Code)
		}
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, wire.ErrUnreadable) // a lost connection
}

func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func loadState(path string) (state, error) {
	st := state{Done: map[string]string{}, Attempts: map[string]int{}, Recorded: map[string]string{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil {
		return st, fmt.Errorf("read %s: %w", path, err)
	}
	if st.Done == nil {
		st.Done = map[string]string{}
	}
	if st.Attempts == nil {
		st.Attempts = map[string]int{}
	}
	if st.Recorded == nil {
		st.Recorded = map[string]string{}
	}
	return st, nil
}

func saveState(path string, st state) error {
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("remember what is seeded: %w", err)
	}
	return nil
}

// Complete reports whether every model is done.
func Complete(stateFile string, models []Model) bool {
	return everyModel(stateFile, models, state.complete)
}

// CheckState reports why the record of the samples cannot be read; nil without one.
func CheckState(stateFile string) error {
	_, err := loadState(stateFile)
	return err
}

// Trained reports whether every model is served, even if records of it are missing.
func Trained(stateFile string, models []Model) bool {
	return everyModel(stateFile, models, func(st state, m Model) bool { _, ok := st.Done[m.Name]; return ok })
}

func everyModel(stateFile string, models []Model, holds func(state, Model) bool) bool {
	st, err := loadState(stateFile)
	return err == nil && !slices.ContainsFunc(models, func(m Model) bool { return !holds(st, m) })
}
