package promotion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/alias"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Tags in which the trainer records the source of a version.
const (
	TagOrigin    = "data_origin"
	TagDigest    = alias.TagDigest
	TagFlowRun   = "prefect_flow_run_id"
	originMadeUp = "generated"
	gateTimeout  = 20 * time.Second
)

// GateParts are the dependencies of a Gate.
type GateParts struct {
	Store    *store.Store
	Tracker  *tracker.Client
	Files    *tracker.Client // the same server, with a download limit
	Registry *registry.Registry
	// AllowGenerated reports whether versions trained on generated data may reach Production.
	AllowGenerated func() bool
}

// Gate checks whether a version may be promoted.
type Gate struct{ GateParts }

// NewGate returns a Gate, or an error for a missing part.
func NewGate(p GateParts) (*Gate, error) {
	if err := service.RequireParts("promotion gate", p); err != nil {
		return nil, err
	}
	return &Gate{p}, nil
}

// Question is a promotion to check. Empty fields take the policy's values.
type Question struct {
	// Tenant owns the promotion: its evaluations and the platform's count.
	Tenant                   string
	Model, Version, From, To string
	Conditions               []api.Condition
	// Outside means that the request was a move of the alias at the tracker: the version then need not hold From, and
	// every other check stays.
	Outside bool
}

// Verdict is the gate's result.
type Verdict struct {
	Question
	Policy  *store.Policy // nil if there is none
	Checks  []api.Check
	Metrics map[string]float64 // of the version's run; may hold non-finite values
	// Evals are the version's latest evaluation of each suite.
	Evals []store.Eval
	Dummy bool
	// Digest of the version's files according to its tag at the time of the check; empty without one.
	Digest string
	// FlowRunID is the orchestrator's run that created the version, if known.
	FlowRunID string
}

// Allowed reports whether every check passes.
func (v Verdict) Allowed() bool {
	return !slices.ContainsFunc(v.Checks, func(c api.Check) bool { return !c.Pass })
}

// Reasons lists the details of the failed checks.
func (v Verdict) Reasons() []string {
	out := []string{}
	for _, c := range v.Checks {
		if !c.Pass {
			out = append(out, c.Detail)
		}
	}
	return out
}

func (v *Verdict) check(name string, pass bool, format string, a ...any) {
	v.Checks = append(v.Checks, api.Check{Name: name, Pass: pass, Detail: fmt.Sprintf(format, a...)})
}

// Judge runs every check against the current holders of the aliases. If the tracker
// does not answer, nothing can be checked and the error is a problem.
func (g *Gate) Judge(ctx context.Context, q Question, holders alias.Holders) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	v := Verdict{Question: q, Metrics: map[string]float64{}}
	policy, err := g.Store.GetPolicy(ctx, q.Model)
	switch {
	case err == nil:
		v.Policy = &policy
	case !store.None(err):
		return v, err
	}
	v.defaults()
	if v.Version == "" {
		v.Version = holders[v.From]
	}
	v.policyCheck()
	if v.Version == "" {
		v.check("version", false, "no version holds %s", v.From)
		return v, nil
	}
	mv, err := Version(ctx, g.Tracker, g.Registry.TrackerName(v.Model), v.Version)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		v.check("version", false, "the tracker has no version %s of %s", v.Version, v.Model)
		return v, nil
	case err != nil:
		return v, alias.Problem(err)
	}
	v.check("version", mv.Status == "" || mv.Status == "READY", "version %s is registered (%s)", v.Version, strings.ToLower(mv.Status))
	v.holderChecks(holders)
	run, err := g.run(ctx, mv)
	if err != nil {
		return v, err
	}
	maps.Copy(v.Metrics, run.Metrics)
	v.FlowRunID = run.Tags[TagFlowRun]
	v.metricChecks()
	if err := g.evaluationCheck(ctx, &v); err != nil {
		return v, err
	}
	if err := g.artifactChecks(ctx, &v, mv); err != nil {
		return v, err
	}
	v.Dummy = alias.Dummy(mv, run)
	v.check("dummy", !v.Dummy || v.To == alias.Staging, "%s", map[bool]string{
		true: "version " + v.Version + " is a dummy; it goes no further than Staging", false: "not a dummy",
	}[v.Dummy])
	if alias.Dirty(mv, run) {
		v.check("definition", v.To == alias.Staging, "version %s was trained on a definition that no commit holds; it goes no further than Staging", v.Version)
	}
	if Generated(mv, run) {
		g.generatedCheck(&v)
	}
	return v, nil
}

// Version reads a version from the tracker. The tracker fails on numbers over 32 bits,
// so they are reported as not found without asking it.
func Version(ctx context.Context, t *tracker.Client, name, version string) (tracker.ModelVersion, error) {
	if _, err := strconv.ParseInt(version, 10, 32); err != nil {
		return tracker.ModelVersion{}, fmt.Errorf("version %s: %w", version, tracker.ErrNotFound)
	}
	return t.GetModelVersion(ctx, name, version)
}

// Finite reports whether a metric can be compared. The tracker stores infinity as the
// largest float.
func Finite(v float64) bool { return math.Abs(v) < math.MaxFloat64 } // false for NaN

// Generated reports whether a version was trained on generated data.
func Generated(v tracker.ModelVersion, r tracker.Run) bool {
	return versionOrRunTag(v, r, TagOrigin) == originMadeUp
}

// versionOrRunTag reads the version's tag, or its run's.
func versionOrRunTag(v tracker.ModelVersion, r tracker.Run, name string) string {
	if s := v.Tags[name]; s != "" {
		return strings.ToLower(s)
	}
	return strings.ToLower(r.Tags[name])
}

func (v *Verdict) defaults() {
	from, to := alias.Staging, alias.Production
	if v.Policy != nil {
		from, to = v.Policy.FromAlias, v.Policy.ToAlias
	}
	if v.From == "" {
		v.From = from
	}
	if v.To == "" {
		v.To = to
	}
}

func (v *Verdict) policyCheck() {
	switch p := v.Policy; {
	case p == nil, !p.Enabled:
		v.check("policy", false, "no enabled promotion policy")
	case p.FromAlias != v.From || p.ToAlias != v.To:
		v.check("policy", false, "the promotion policy is for %s → %s, not for %s → %s", p.FromAlias, p.ToAlias, v.From, v.To)
	default:
		v.check("policy", true, "enabled: %s %s %s, %s → %s", p.Metric, operatorSymbol(p.Operator), formatNumber(p.Threshold), p.FromAlias, p.ToAlias)
	}
}

func (v *Verdict) holderChecks(holders alias.Holders) {
	now := holders[v.From]
	switch {
	case v.Outside:
		v.check("from", true, "asked for by moving %s at the tracker", v.To)
	case now == v.Version:
		v.check("from", true, "%s holds version %s", v.From, v.Version)
	case now == "":
		v.check("from", false, "no version holds %s", v.From)
	default:
		v.check("from", false, "%s holds version %s, not %s", v.From, now, v.Version)
	}
	if holders[v.To] == v.Version {
		v.check("to", false, "%s holds version %s already", v.To, v.Version)
	}
}

// run reads the run that created the version; a deleted run has no metrics.
func (g *Gate) run(ctx context.Context, mv tracker.ModelVersion) (tracker.Run, error) {
	if mv.RunID == "" {
		return tracker.Run{}, nil
	}
	run, err := g.Tracker.GetRun(ctx, mv.RunID)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return tracker.Run{}, nil
	case err != nil:
		return run, alias.Problem(err)
	}
	return run, nil
}

func (v *Verdict) metricChecks() {
	if p := v.Policy; p != nil {
		v.condition("policy_metric", api.Condition{Metric: p.Metric, Op: api.Operator(p.Operator), Value: p.Threshold})
	}
	for _, c := range v.Conditions {
		v.condition("condition", c)
	}
}

func (v *Verdict) condition(name string, c api.Condition) {
	got, ok := v.Metrics[c.Metric]
	switch {
	case !ok:
		v.check(name, false, "metric %s is absent", c.Metric)
	case !Finite(got):
		v.check(name, false, "metric %s is not finite", c.Metric)
	default:
		v.check(name, conditionHolds(got, c), "%s is %s; wanted %s %s", c.Metric, formatNumber(got), operatorSymbol(string(c.Op)), formatNumber(c.Value))
	}
}

func conditionHolds(got float64, c api.Condition) bool {
	switch c.Op {
	case api.Lt:
		return got < c.Value
	case api.Lte:
		return got <= c.Value
	case api.Gt:
		return got > c.Value
	case api.Gte:
		return got >= c.Value
	}
	return false
}

func operatorSymbol(op string) string {
	return map[string]string{"lt": "<", "lte": "≤", "gt": ">", "gte": "≥"}[op]
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// artifactChecks require what serving needs: a digest to verify the files, and the signature of the inputs.
func (g *Gate) artifactChecks(ctx context.Context, v *Verdict, mv tracker.ModelVersion) error {
	switch d := mv.Tags[TagDigest]; {
	case d == "":
		v.check("digest", false, "version %s has no tag %s", v.Version, TagDigest)
	case !alias.ValidDigest(d):
		v.check("digest", false, "tag %s of version %s is not 64 lower-case hexadecimal digits", TagDigest, v.Version)
	default:
		v.Digest = d
		v.check("digest", true, "files have digest %s", d)
	}
	signed, err := g.signed(ctx, mv)
	if err != nil {
		return err
	}
	v.check("signature", signed, "%s", map[bool]string{true: "the model tells its inputs", false: "version " + v.Version + " has no signature of its inputs"}[signed])
	return nil
}

// signed reports whether the version's MLmodel file has a signature.
func (g *Gate) signed(ctx context.Context, mv tracker.ModelVersion) (bool, error) {
	if mv.Source == "" {
		return false, nil
	}
	var b bytes.Buffer
	err := g.Files.DownloadArtifact(ctx, strings.TrimRight(mv.Source, "/")+"/MLmodel", &b)
	var refused *tracker.Error
	switch {
	case errors.Is(err, tracker.ErrUnavailable), ctx.Err() != nil:
		return false, alias.Problem(err)
	case errors.As(err, &refused) && refused.Status >= 500:
		return false, alias.Problem(err)
	case err != nil: // missing or malformed file
		return false, nil
	}
	return hasSignature(b.Bytes()), nil
}

// GeneratedAllowed reports whether a version trained on generated data may get the alias.
func (g *Gate) GeneratedAllowed(to string) bool { return to != alias.Production || g.AllowGenerated() }

func (g *Gate) generatedCheck(v *Verdict) {
	if g.GeneratedAllowed(v.To) {
		v.check("generated_data", true, "trained on generated data, which is allowed here")
	} else {
		v.check("generated_data", false, "version %s was trained on generated data, which does not reach %s here", v.Version, v.To)
	}
}
