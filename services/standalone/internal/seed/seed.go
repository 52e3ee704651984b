// Package seed brings a fresh platform to life through its ordinary doors: every sample model is trained
// by a dispatch like any other, promoted by the ordinary gate, and given a drift baseline from replayed
// held-out rows. Each step is idempotent, so a killed first start goes on where it stopped.
package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
)

const (
	attempts      = 3   // runs of one sample before it is given up
	baselineRows  = 120 // held-out rows replayed for the drift baseline; inference asks for at least 10
	sampleBodies  = 5   // held-out predict bodies written for people to try
	pollEvery     = 150 * time.Millisecond
	servedTimeout = 30 * time.Second // inference follows an alias within its poll interval of 10 s
)

// Model is one sample.
type Model struct {
	Name    string // upper-case id
	Display string // as its repository spells it
	Dataset string
	Alias   string // the highest rung of its ladder
	JobLog  bool   // predictions on real held-out jobs are written as files to try
}

// Row is one held-out row: an id of its own and the features of a predict body.
type Row struct {
	ID       string
	Features map[string]any
}

// Options are what seeding works with.
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
}

// Run seeds what is not seeded yet. It returns the first failures joined, after every model was tried.
func Run(ctx context.Context, o Options) error {
	st, err := load(o.StateFile)
	if err != nil {
		return err
	}
	s := seeder{o: o, cp: caller{o.HTTP, o.ControlPlane, o.ControlPlaneToken}, inf: caller{o.HTTP, o.Serving, o.ServingToken}}
	open := slices.DeleteFunc(slices.Clone(o.Models), func(m Model) bool { _, ok := st.Done[m.Name]; return ok })
	for _, m := range open {
		o.Begin(m.Display)
	}
	var errs []error
	for _, m := range open {
		version, err := s.model(ctx, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Display, err))
			o.End(m.Display, "failed: "+err.Error(), false)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		st.Done[m.Name] = version
		if err := save(o.StateFile, st); err != nil {
			return err
		}
		o.End(m.Display, m.Alias+" version "+version+" is served", true)
	}
	return errors.Join(errs...)
}

type seeder struct {
	o       Options
	cp, inf caller
}

func (s seeder) model(ctx context.Context, m Model) (version string, err error) {
	for n := 1; ; n++ {
		version, err = s.train(ctx, m, n)
		if err == nil {
			break
		}
		if n == attempts || ctx.Err() != nil {
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

type run struct {
	ID       string `json:"flow_run_id"`
	State    string `json:"state_type"`
	Terminal bool   `json:"is_terminal"`
	Version  string `json:"model_version"`
}

// train dispatches attempt n under a key of its own and follows it to its end.
func (s seeder) train(ctx context.Context, m Model, n int) (string, error) {
	var started struct {
		ID string `json:"flow_run_id"`
	}
	key := fmt.Sprintf("seed:%s:%d", m.Name, n)
	if err := s.retrying(ctx, func() error {
		return s.cp.call(ctx, http.MethodPost, "/retrain", map[string]any{"model_name": m.Name, "dataset_name": m.Dataset}, &started, "Idempotency-Key", key)
	}); err != nil {
		return "", err
	}
	for {
		var r run
		err := s.cp.call(ctx, http.MethodGet, "/retrain/"+url.PathEscape(started.ID), nil, &r)
		switch {
		case err != nil && !temporary(err):
			return "", err
		case err == nil && r.Terminal && r.State != "COMPLETED":
			return "", fmt.Errorf("training run %s ended %s; see its log at the orchestrator", r.ID, r.State)
		case err == nil && r.Terminal && r.Version != "":
			return r.Version, nil
		}
		if err := wait(ctx, pollEvery); err != nil {
			return "", err
		}
	}
}

// promote decides the promotion that the passed Production rung opened.
func (s seeder) promote(ctx context.Context, m Model, version string) error {
	q := url.Values{"model": {m.Name}}
	var last string
	deadline := time.Now().Add(servedTimeout)
	for time.Now().Before(deadline) {
		var list struct {
			Items []struct {
				ID      string `json:"id"`
				Version string `json:"version"`
				State   string `json:"state"`
			} `json:"items"`
		}
		if err := s.cp.call(ctx, http.MethodGet, "/promotions?"+q.Encode(), nil, &list); err != nil {
			return err
		}
		for _, p := range list.Items {
			if p.Version != version {
				continue
			}
			last = p.State
			switch p.State {
			case "promoted":
				return nil
			case "pending":
				err := s.cp.call(ctx, http.MethodPost, "/promotions/"+url.PathEscape(p.ID)+"/approve",
					map[string]any{"reason": "first start: sample model"}, nil)
				if err != nil && !temporary(err) {
					return err
				}
			case "rejected", "failed", "expired", "superseded":
				return fmt.Errorf("its promotion to %s is %s", m.Alias, p.State)
			}
		}
		if err := wait(ctx, pollEvery); err != nil {
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
		var list []struct {
			Name    string `json:"model_name"`
			Version string `json:"model_version"`
		}
		if err := s.inf.call(ctx, http.MethodGet, "/models", nil, &list); err != nil && !temporary(err) {
			return err
		}
		for _, l := range list {
			if strings.EqualFold(l.Name, m.Name) && l.Version == version {
				return nil
			}
		}
		if err := wait(ctx, pollEvery); err != nil {
			return err
		}
	}
	return fmt.Errorf("inference does not serve version %s yet; see %s/health", version, s.o.Serving)
}

// baseline replays held-out rows and makes their predictions the drift baseline.
func (s seeder) baseline(ctx context.Context, m Model) error {
	rows, err := s.o.Heldout(ctx, m.Display, m.Dataset, baselineRows)
	if err != nil {
		return fmt.Errorf("read held-out rows: %w", err)
	}
	for _, row := range rows {
		err := s.retrying(ctx, func() error {
			return s.inf.call(ctx, http.MethodPost, "/predict/"+url.PathEscape(m.Name), map[string]any{"features": row.Features}, nil)
		})
		if err != nil {
			return fmt.Errorf("predict held-out row %s: %w", row.ID, err)
		}
	}
	// Snapshots are written behind the answers; the baseline is taken once they are all there.
	err = s.retrying(ctx, func() error {
		var b struct {
			N int `json:"n"`
		}
		if err := s.inf.call(ctx, http.MethodPost, "/drift/"+url.PathEscape(m.Name)+"/baseline", map[string]any{}, &b); err != nil {
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
		if err == nil || !temporary(err) || time.Now().After(deadline) {
			return err
		}
		pause := pollEvery
		var p *problem.Error
		if errors.As(err, &p) && p.RetryAfter > pause {
			pause = p.RetryAfter
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// temporary tells whether the same request may succeed a moment later.
func temporary(err error) bool {
	if errors.Is(err, errNotAll) {
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
	return !errors.Is(err, context.Canceled) // a lost connection
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func load(path string) (state, error) {
	st := state{Done: map[string]string{}}
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
	return st, nil
}

func save(path string, st state) error {
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("remember what is seeded: %w", err)
	}
	return os.Rename(tmp, path)
}

// Complete tells whether every model is done.
func Complete(stateFile string, models []Model) bool {
	st, err := load(stateFile)
	if err != nil {
		return false
	}
	for _, m := range models {
		if _, ok := st.Done[m.Name]; !ok {
			return false
		}
	}
	return true
}
