package verification

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/confined"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/control"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Input is all that a verifier reads.
type Input struct {
	AttemptID string
	RunID     string
	Unit      *workunit.Unit
	Manifest  *manifest.Manifest
	Control   *control.Control
	Candidate *confined.Folder
	Now       func() time.Time
}

// Draft is a result that is being made.
type Draft struct {
	in      Input
	started time.Time
	who     Verifier
	checks  []*Judgement

	evidence []Evidence
}

// NewDraft starts a result.
func NewDraft(in Input, adapter, version string) *Draft {
	return &Draft{in: in, started: in.Now(), who: Verifier{ID: in.Control.VerifierID, Adapter: adapter, Version: version}}
}

// Judgement is one required check in progress. It passes unless a fault is recorded.
type Judgement struct {
	id       string
	failed   bool
	errored  bool
	evidence []string
	findings []string
	more     int
}

// Check starts a check.
func (d *Draft) Check(id string) *Judgement {
	j := &Judgement{id: id}
	d.checks = append(d.checks, j)
	return j
}

// Failf records that the check failed.
func (j *Judgement) Failf(format string, a ...any) {
	j.failed = true
	j.find(format, a...)
}

// Errorf records that the check, or a part of it, could not be done.
func (j *Judgement) Errorf(format string, a ...any) {
	j.errored = true
	j.find(format, a...)
}

// A candidate can break a rule any number of times; a person needs to read some.
const (
	maxFindings = 20
	maxFinding  = 500
)

func (j *Judgement) find(format string, a ...any) {
	if len(j.findings) == maxFindings {
		j.more++
		return
	}
	text := strings.ToValidUTF8(fmt.Sprintf(format, a...), "\uFFFD")
	if r := []rune(text); len(r) > maxFinding {
		text = string(r[:maxFinding]) + "…"
	}
	j.findings = append(j.findings, text)
}

// Observe keeps one observation by its digest, as evidence for the checks.
func (d *Draft) Observe(id, digest string, checks ...*Judgement) {
	d.evidence = append(d.evidence, Evidence{ID: id, Digest: digest})
	for _, j := range checks {
		j.evidence = append(j.evidence, id)
	}
}

// ObserveDocument is Observe of a document.
func (d *Draft) ObserveDocument(id string, doc any, checks ...*Judgement) {
	d.Observe(id, canon.Digest(canon.MustFrom(doc)), checks...)
}

func (j *Judgement) status() string {
	switch {
	case j.failed:
		return Failed
	case j.errored:
		return Error
	}
	return Passed
}

// Finish makes the result.
func (d *Draft) Finish() (*Result, error) {
	m, c := d.in.Manifest, d.in.Control
	no := false
	r := &Result{
		SchemaVersion:    SchemaVersion,
		ID:               d.id(),
		ResultManifestID: m.ID, WorkUnitID: d.in.Unit.ID, WorkUnitVersion: d.in.Unit.Version, Attempt: m.Attempt,
		Verifier: d.who,
		// The verifier uses no model. It is not known where the worker ran.
		Independence: Independence{IndependentFromWorker: d.who.ID != m.WorkerID, WorkerIDObserved: m.WorkerID, SharedModelFamily: &no},
		Checks:       []Check{}, Evidence: d.evidence, Findings: []Finding{},
		Provenance: Provenance{
			ResultManifestDigest: m.Digest, WorkUnitDigest: d.in.Unit.Digest, SourceRevision: m.SourceRevision,
			Environment:          Environment{Architecture: runtime.GOARCH, OperatingSystem: runtime.GOOS, Runtime: runtime.Version()},
			VerifierConfigDigest: c.Digest,
		},
	}
	for _, j := range d.checks {
		r.Checks = append(r.Checks, Check{ID: j.id, Status: j.status(), Required: true, EvidenceIDs: append([]string{}, j.evidence...)})
		for _, text := range j.findings {
			r.Findings = append(r.Findings, Finding{CheckID: j.id, Message: text})
		}
		if j.more > 0 {
			r.Findings = append(r.Findings, Finding{CheckID: j.id, Message: fmt.Sprintf("There are %d more findings.", j.more)})
		}
	}
	r.Status, r.Metrics, r.DecisionSupport = Overall(r.Checks), Count(r.Checks), Recommend(r.Checks, m.Status)
	finished := d.in.Now()
	if finished.Before(d.started) { // the clock was set back meanwhile
		finished = d.started
	}
	r.StartedAt, r.FinishedAt = spine.FormatTime(d.started), spine.FormatTime(finished)
	r.Resources.WallSeconds = finished.Sub(d.started).Round(time.Microsecond).Seconds()
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("the verification result is not valid: %w", err)
	}
	return r, nil
}

// id depends only on the input, the verifier and the attempt.
func (d *Draft) id() string {
	digest := canon.Digest(canon.NewObject(
		canon.Member{Key: "attempt_id", Value: d.in.AttemptID},
		canon.Member{Key: "result_manifest_digest", Value: d.in.Manifest.Digest},
		canon.Member{Key: "run_id", Value: d.in.RunID},
		canon.Member{Key: "verifier_config_digest", Value: d.in.Control.Digest},
	))
	return "verification/" + strings.TrimPrefix(digest, "sha256:")[:24]
}
