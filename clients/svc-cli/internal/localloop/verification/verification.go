// Package verification is the verification result v0.1: what a verifier observed of a
// candidate and what it recommends.
package verification

import (
	"fmt"
	"math/big"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/manifest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/workunit"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// SchemaVersion is the version of a result.
const SchemaVersion = "0.1"

// The states of a check and of a result.
const (
	Passed = report.Passed
	Failed = "failed"
	Error  = "error" // the check could not be done
)

// Result is a verification result in the order of its keys.
type Result struct {
	SchemaVersion    string          `json:"schema_version"`
	ID               string          `json:"id"`
	ResultManifestID string          `json:"result_manifest_id"`
	WorkUnitID       string          `json:"work_unit_id"`
	WorkUnitVersion  int64           `json:"work_unit_version"`
	Attempt          int64           `json:"attempt"`
	Verifier         Verifier        `json:"verifier"`
	Independence     Independence    `json:"independence"`
	Status           string          `json:"status"`
	StartedAt        string          `json:"started_at"`
	FinishedAt       string          `json:"finished_at"`
	Checks           []Check         `json:"checks"`
	Evidence         []Evidence      `json:"evidence"`
	Findings         []Finding       `json:"findings"`
	Metrics          Metrics         `json:"metrics"`
	Resources        Resources       `json:"resources"`
	Provenance       Provenance      `json:"provenance"`
	DecisionSupport  DecisionSupport `json:"decision_support"`
}

// Verifier is who verified.
type Verifier struct {
	ID      string `json:"id"`
	Adapter string `json:"adapter"`
	Version string `json:"version"`
}

// Independence is what is known of the distance between verifier and worker; null is
// not known.
type Independence struct {
	IndependentFromWorker bool   `json:"independent_from_worker"`
	WorkerIDObserved      string `json:"worker_id_observed"`
	SharedModelFamily     *bool  `json:"shared_model_family"`
	SharedRuntime         *bool  `json:"shared_runtime"`
}

// Check is one check and the evidence it rests on.
type Check struct {
	ID          string   `json:"id"`
	Status      string   `json:"status"`
	Required    bool     `json:"required"`
	EvidenceIDs []string `json:"evidence_ids"`
}

// Evidence is one observation, by its digest.
type Evidence struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
}

// Finding is one sentence about what a check saw.
type Finding struct {
	CheckID string `json:"check_id"`
	Message string `json:"message"`
}

// Metrics count the checks.
type Metrics struct {
	ChecksPassed  int64 `json:"checks_passed"`
	ChecksFailed  int64 `json:"checks_failed"`
	ChecksErrored int64 `json:"checks_errored"`
}

// Resources is what the verification took.
type Resources struct {
	WallSeconds float64 `json:"wall_seconds"`
}

// Provenance binds the result to what it is about.
type Provenance struct {
	ResultManifestDigest string      `json:"result_manifest_digest"`
	WorkUnitDigest       string      `json:"work_unit_digest"`
	SourceRevision       string      `json:"source_revision"`
	Environment          Environment `json:"environment"`
	VerifierConfigDigest string      `json:"verifier_config_digest,omitempty"`
}

// Environment is where the verifier ran.
type Environment struct {
	Architecture    string `json:"architecture"`
	OperatingSystem string `json:"operating_system"`
	Runtime         string `json:"runtime"`
}

// DecisionSupport is advice to the person who decides.
type DecisionSupport struct {
	Recommendation string  `json:"recommendation"`
	Confidence     float64 `json:"confidence"` // 0 to 1, of the recommendation
	Rationale      string  `json:"rationale"`
}

// SemanticDigest is the digest of what the verifier saw and said, without when and
// where: two runs over the same candidate have the same.
func (r *Result) SemanticDigest() string {
	checks, evidence := canon.Array{}, canon.Array{}
	for _, c := range r.Checks {
		checks = append(checks, canon.Array{c.ID, c.Status, canon.MustFrom(c.EvidenceIDs)})
	}
	for _, e := range r.Evidence {
		evidence = append(evidence, canon.Array{e.ID, e.Digest})
	}
	return canon.Digest(canon.NewObject(
		canon.Member{Key: "status", Value: r.Status},
		canon.Member{Key: "checks", Value: checks},
		canon.Member{Key: "evidence", Value: evidence},
		canon.Member{Key: "recommendation", Value: r.DecisionSupport.Recommendation},
	))
}

// Check says what is wrong with a result; a fault is a *closed.Fault.
func (r *Result) Check() error {
	v, err := canon.From(r)
	if err != nil {
		return &closed.Fault{Code: field.InvalidType, Detail: err.Error()}
	}
	_, err = Read(v)
	return err
}

// Read checks a parsed result: every key, and that status, recommendation and counts
// are what the checks make them.
func Read(v canon.Value) (*Result, error) {
	rd := field.NewReader()
	o := rd.Root(v, "schema_version", "id", "result_manifest_id", "work_unit_id", "work_unit_version", "attempt", "verifier",
		"independence", "status", "started_at", "finished_at", "checks", "evidence", "findings", "metrics", "resources",
		"provenance", "decision_support")
	r := &Result{
		SchemaVersion:    o.OneOf("schema_version", field.InvalidValue, SchemaVersion),
		ID:               field.Identifier(o, "id"),
		ResultManifestID: field.Identifier(o, "result_manifest_id"),
		WorkUnitID:       workunit.ID(o, "work_unit_id"),
		WorkUnitVersion:  o.Int("work_unit_version", 1),
		Attempt:          o.Int("attempt", 1),
	}
	who := o.Object("verifier", "id", "adapter", "version")
	r.Verifier = Verifier{ID: field.Identifier(who, "id"), Adapter: who.Text("adapter"), Version: who.Text("version")}
	apart := o.Object("independence", "independent_from_worker", "worker_id_observed", "shared_model_family", "shared_runtime")
	r.Independence = Independence{
		IndependentFromWorker: apart.Bool("independent_from_worker"), WorkerIDObserved: field.Identifier(apart, "worker_id_observed"),
		SharedModelFamily: readOptionalBool(rd, apart, "shared_model_family"), SharedRuntime: readOptionalBool(rd, apart, "shared_runtime"),
	}
	r.Status = o.OneOf("status", field.InvalidValue, Passed, Failed, Error)
	manifest.Period(o)
	r.StartedAt, r.FinishedAt = field.Time(o, "started_at"), field.Time(o, "finished_at")
	r.readObservations(rd, o)
	counts := o.Object("metrics", "checks_passed", "checks_failed", "checks_errored")
	r.Metrics = Metrics{counts.Int("checks_passed", 0), counts.Int("checks_failed", 0), counts.Int("checks_errored", 0)}
	spent := o.Object("resources", "wall_seconds")
	field.Number(spent, "wall_seconds")
	r.Resources.WallSeconds = numberValue(spent.Value("wall_seconds"))
	from := o.Object("provenance", field.With(o.Value("provenance"), []string{"result_manifest_digest", "work_unit_digest", "source_revision", "environment"}, "verifier_config_digest")...)
	r.Provenance = Provenance{
		ResultManifestDigest: field.Digest(from, "result_manifest_digest"), WorkUnitDigest: field.Digest(from, "work_unit_digest"),
		SourceRevision: field.Revision(from, "source_revision"),
	}
	place := from.Object("environment", "architecture", "operating_system", "runtime")
	r.Provenance.Environment = Environment{Architecture: place.Text("architecture"), OperatingSystem: place.Text("operating_system"), Runtime: place.Text("runtime")}
	if held, _ := o.Value("provenance").(*canon.Object); held != nil {
		if _, ok := held.Get("verifier_config_digest"); ok {
			r.Provenance.VerifierConfigDigest = field.Digest(from, "verifier_config_digest")
		}
	}
	advice := o.Object("decision_support", "recommendation", "confidence", "rationale")
	r.DecisionSupport = DecisionSupport{
		Recommendation: advice.OneOf("recommendation", field.InvalidValue, report.AcceptCandidate, report.RejectCandidate, report.Escalate, report.InsufficientEvidence),
		Confidence:     numberValue(advice.Value("confidence")), Rationale: advice.Text("rationale"),
	}
	field.Number(advice, "confidence")
	if r.DecisionSupport.Confidence > 1 {
		advice.Fail(field.InvalidValue, "confidence", "a number from 0 to 1 must stand here")
	}
	r.agree(o)
	if f := rd.Fault(); f != nil {
		return nil, f
	}
	return r, nil
}

func (r *Result) readObservations(rd *closed.Reader, o closed.Object) {
	evidence, checks := map[string]bool{}, map[string]bool{}
	r.Evidence, r.Checks, r.Findings = []Evidence{}, []Check{}, []Finding{}
	o.Array("evidence", 0, func(v canon.Value, path string) {
		e := rd.Object(v, path, "id", "digest")
		id := field.Identifier(e, "id")
		field.Once(rd, evidence, id, e.At("id"))
		r.Evidence = append(r.Evidence, Evidence{ID: id, Digest: field.Digest(e, "digest")})
	})
	o.Array("checks", 1, func(v canon.Value, path string) {
		c := rd.Object(v, path, "id", "status", "required", "evidence_ids")
		id := field.Identifier(c, "id")
		field.Once(rd, checks, id, c.At("id"))
		check := Check{ID: id, Status: c.OneOf("status", field.InvalidValue, Passed, Failed, Error), Required: c.Bool("required"),
			EvidenceIDs: field.Identifiers(rd, c, "evidence_ids", 0)}
		for i, e := range check.EvidenceIDs {
			if !evidence[e] {
				rd.Fail(field.InvalidValue, canon.Element(c.At("evidence_ids"), i), "no evidence has this id")
			}
		}
		r.Checks = append(r.Checks, check)
	})
	o.Array("findings", 0, func(v canon.Value, path string) {
		f := rd.Object(v, path, "check_id", "message")
		id := field.Identifier(f, "check_id")
		if !checks[id] {
			f.Fail(field.InvalidValue, "check_id", "no check has this id")
		}
		r.Findings = append(r.Findings, Finding{CheckID: id, Message: f.Text("message")})
	})
}

// agree holds status and counts against the checks.
func (r *Result) agree(o closed.Object) {
	if status := Overall(r.Checks); r.Status != status {
		o.Fail(field.InvalidValue, "status", "the checks make it %s", status)
	}
	if r.Metrics != Count(r.Checks) {
		o.Fail(field.InvalidValue, "metrics", "the checks say otherwise")
	}
}

// Overall is the status that checks make: a check that failed outweighs one that could
// not be done.
func Overall(checks []Check) string {
	status := Passed
	for _, c := range checks {
		switch {
		case c.Status == Failed:
			return Failed
		case c.Status == Error:
			status = Error
		}
	}
	return status
}

// Count counts checks by their status.
func Count(checks []Check) Metrics {
	var m Metrics
	for _, c := range checks {
		switch c.Status {
		case Passed:
			m.ChecksPassed++
		case Failed:
			m.ChecksFailed++
		default:
			m.ChecksErrored++
		}
	}
	return m
}

// Recommend is the advice that checks and the worker's own status make: a required
// check that failed rejects, one that could not be done leaves too little evidence, and
// a worker that does not itself claim success is for a person to look at.
func Recommend(checks []Check, workerStatus string) DecisionSupport {
	var failed, errored int
	for _, c := range checks {
		switch {
		case c.Required && c.Status == Failed:
			failed++
		case c.Required && c.Status == Error:
			errored++
		}
	}
	switch {
	case failed > 0:
		return DecisionSupport{report.RejectCandidate, 1, fmt.Sprintf("%d of %d checks failed that are required.", failed, len(checks))}
	case errored > 0:
		return DecisionSupport{report.InsufficientEvidence, 0, fmt.Sprintf("%d of %d checks could not be done that are required.", errored, len(checks))}
	case workerStatus != manifest.Succeeded:
		return DecisionSupport{report.Escalate, 0, "The checks passed, but the worker's own status is " + workerStatus + "."}
	}
	return DecisionSupport{report.AcceptCandidate, 1, "Every required check passed. That is no proof beyond these checks."}
}

func readOptionalBool(rd *closed.Reader, o closed.Object, key string) *bool {
	if !rd.OK() || o.Null(key) {
		return nil
	}
	b := o.Bool(key)
	return &b
}

func numberValue(v canon.Value) float64 {
	switch n := v.(type) {
	case canon.Float:
		return float64(n)
	case canon.Int:
		f, _ := new(big.Float).SetInt(n.Big()).Float64()
		return f
	}
	return 0
}
