package localloop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/confined"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/jsonverify"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/patchverify"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// Options are a run's dependencies.
type Options struct {
	Now      func() time.Time
	Progress func(text string) // may be nil
}

func (o Options) progress(format string, a ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, a...))
	}
}

// Outcome is a run that took place.
type Outcome struct {
	Record  *Record
	Report  *report.Report
	Results map[string]*verification.Result // by attempt; of those that were verified
	Files   map[string][]byte               // all that a run writes
}

// attempt is the outcome of one attempt.
type attempt struct {
	config   AttemptConfig
	state    string
	problem  *string // why it is in an error state
	manifest *manifest.Manifest
	result   *verification.Result
}

// Run judges both attempts. A fault of their shared input is a *Fault; a fault of
// one attempt is a state of that attempt.
func (s *Source) Run(ctx context.Context, o Options) (*Outcome, error) {
	unit, err := readFile(s.folder, s.Config.WorkUnit, "work unit", workunit.Read)
	if err != nil {
		return nil, err
	}
	o.progress("work unit %s version %d", unit.ID, unit.Version)
	read, what := control.ReadPolicy, "verifier policy"
	if s.Config.Plan {
		read, what = control.ReadPlan, "evaluator plan"
	}
	ctl, err := readFile(s.folder, s.Config.Control, what, read)
	if err != nil {
		return nil, err
	}
	o.progress("%s %s, backend %s", what, ctl.ID, ctl.Backend)
	attempts := make([]attempt, len(s.Config.Attempts))
	for i, a := range s.Config.Attempts {
		o.progress("%s: %s", a.ID, a.Adapter)
		attempts[i] = s.attempt(ctx, a, unit, ctl, o.Now)
		if err := ctx.Err(); err != nil { // which is no state of the attempt
			return nil, err
		}
		o.progress("%s: %s", a.ID, attempts[i].outcome())
	}
	return s.outcome(unit, ctl, attempts)
}

func (a *attempt) outcome() string {
	switch {
	case a.result != nil:
		return a.result.Status + ", " + a.result.DecisionSupport.Recommendation
	case a.problem != nil:
		return a.state + ": " + *a.problem
	}
	return a.state
}

// maxProblem limits the text of an error, parts of which the worker chose.
const maxProblem = 1000

func (a *attempt) fail(state string, err error) {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if r := []rune(text); len(r) > maxProblem {
		text = string(r[:maxProblem]) + "…"
	}
	a.state, a.problem = state, &text
}

// attempt runs one attempt until it fails or is judged.
func (s *Source) attempt(ctx context.Context, c AttemptConfig, unit *workunit.Unit, ctl *control.Control, now func() time.Time) (a attempt) {
	a.config = c
	if c.Adapter == FixtureFailure {
		a.state, a.problem = report.WorkerError, &c.Failure
		return a
	}
	m, err := s.claim(ctx, c, unit)
	if err != nil {
		a.fail(report.ResultManifestError, err)
		return a
	}
	a.manifest = m
	if a.result, err = s.verify(c, unit, m, ctl, now); err != nil {
		a.fail(report.VerificationError, err)
		return a
	}
	a.state = report.Verified
	return a
}

// claim reads the worker's manifest.
func (s *Source) claim(ctx context.Context, c AttemptConfig, unit *workunit.Unit) (*manifest.Manifest, error) {
	data, err := s.folder.Read(c.Manifest, canon.MaxFile)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no result manifest: %w", c.Manifest, err)
	}
	if err := m.CheckUnit(unit.Ref()); err != nil {
		return nil, err
	}
	if c.Adapter == ResultBundle {
		return m, s.checkBundle(ctx, c, m)
	}
	return m, nil
}

// checkBundle checks every file that the manifest names.
func (s *Source) checkBundle(ctx context.Context, c AttemptConfig, m *manifest.Manifest) error {
	root, err := s.folder.Sub(c.CandidateRoot)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, artifact := range m.Artifacts {
		if err := checkFile(ctx, root, artifact.Locator, artifact.Digest); err != nil {
			return fmt.Errorf("artifact %s: %w", artifact.ID, err)
		}
	}
	for _, log := range m.Logs {
		if log.Digest == "" {
			return fmt.Errorf("log %s: the manifest has no digest, which a bundle requires", log.Locator)
		}
		if err := checkFile(ctx, root, log.Locator, log.Digest); err != nil {
			return fmt.Errorf("log %s: %w", log.Locator, err)
		}
	}
	return nil
}

func checkFile(ctx context.Context, root *confined.Folder, name, digest string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	content, err := root.Inspect(name, 0)
	if err != nil {
		return err
	}
	if content.Digest != digest {
		return fmt.Errorf("the file has the digest %s, but the manifest says %s", content.Digest, digest)
	}
	return nil
}

// verify runs the verifier on a candidate, if it can.
func (s *Source) verify(c AttemptConfig, unit *workunit.Unit, m *manifest.Manifest, ctl *control.Control, now func() time.Time) (*verification.Result, error) {
	checks, judge := jsonverify.Checks, jsonverify.Verify
	if ctl.Backend == control.Patch {
		checks, judge = patchverify.Checks, patchverify.Verify
	}
	if err := ctl.Bind(unit, m, checks); err != nil {
		return nil, err
	}
	root, err := s.folder.Sub(c.CandidateRoot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return judge(verification.Input{AttemptID: c.ID, RunID: s.Config.RunID, Unit: unit, Manifest: m, Control: ctl, Candidate: root, Now: now})
}
