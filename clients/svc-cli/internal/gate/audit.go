package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// Options of an audit.
type Options struct {
	Version   string              // of the program, for the provenance
	Bootstrap *gatestat.Bootstrap // nil: no intervals
	Progress  gatestat.Progress   // of the bootstrap; may be nil
}

// Audit reads a matrix and audits the gate. A fault of the matrix is a *closed.Fault; with a bootstrap, the end of ctx
// is an error too.
func Audit(ctx context.Context, doc canon.Value, o Options) (*Report, error) {
	m, err := Read(doc)
	if err != nil {
		return nil, err
	}
	return m.Audit(ctx, o)
}

// Audit audits the gate of all verifiers.
func (m *Matrix) Audit(ctx context.Context, o Options) (*Report, error) {
	panel := m.Panel(m.All())
	measures := m.Measure(panel)
	r := &Report{
		Schema: ReportSchema, GateID: m.GateID, EvidenceClass: m.EvidenceClass,
		Inputs: m.inputs(),
		Panel:  m.panelReport(panel, measures),
		Probes: m.probeReport(panel),
		Provenance: Provenance{
			Tool: Tool, ToolVersion: o.Version, InputDigest: m.Digest,
		},
	}
	for i, v := range m.Verifiers {
		errors := panel.Errors[i].Count()
		r.Verifiers = append(r.Verifiers, VerifierReport{ID: v.ID, Accuracy: Accuracy(errors, len(m.rows)), Errors: errors})
	}
	r.Warnings = r.warnings()
	if o.Bootstrap != nil {
		r.Schema = BootstrapReportSchema
		u, err := m.uncertainty(ctx, panel, measures, *o.Bootstrap, o.Progress)
		if err != nil {
			return nil, err
		}
		r.Uncertainty = u
	}
	return r, nil
}

func (m *Matrix) inputs() Inputs {
	in := Inputs{Candidates: len(m.Candidates), NonProbeCandidates: len(m.rows), ProbeCandidates: len(m.probes), Verifiers: len(m.Verifiers)}
	for _, c := range m.rows {
		if m.Candidates[c].Good {
			in.KnownGood++
		} else {
			in.KnownBad++
		}
	}
	return in
}

func (m *Matrix) panelReport(p *Panel, x Measures) PanelReport {
	in := m.inputs()
	falseAccepts, falseRejects := 0, 0
	for i, c := range m.rows {
		switch {
		case !p.Wrong[i]:
		case m.Candidates[c].Good:
			falseRejects++
		default:
			falseAccepts++
		}
	}
	return PanelReport{
		Quorum: m.Quorum, NominalVotes: len(p.Members), Accuracy: x.Accuracy,
		Correlation: x.Correlation, SkippedPairs: x.Skipped, Error: x.Error,
		FalseAccept: rateOf(falseAccepts, in.KnownBad), FalseReject: rateOf(falseRejects, in.KnownGood),
		Votes: x.Votes, Heuristic: heuristicVotes(len(p.Members), x.Correlation), Ceiling: votesCeiling(x),
	}
}

// rateOf is null over an empty group.
func rateOf(n, of int) *float64 {
	if of == 0 {
		return nil
	}
	r := float64(n) / float64(of)
	return &r
}

// heuristicVotes is the usual estimate of independent votes, for positive correlation.
func heuristicVotes(members int, rho *float64) *float64 {
	if rho == nil || *rho <= 0 {
		return nil
	}
	n := float64(members) / (1 + float64(float64(members-1)**rho))
	return &n
}

// votesCeiling limits the effective votes of any number of verifiers of this accuracy and correlation: the share of
// errors that they have in common stays, whatever their number.
func votesCeiling(x Measures) any {
	if x.Correlation == nil || x.Accuracy <= 0.5 {
		return nil
	}
	if *x.Correlation <= 0 {
		return Unbounded
	}
	votes, _ := gatestat.EffectiveVotes(gatestat.Setting{Accuracy: x.Accuracy, Quorum: gatestat.Majority()}, *x.Correlation*(1-x.Accuracy))
	return votes
}

// unspecified is the kind of probes that name none.
const unspecified = "unspecified"

func (m *Matrix) probeReport(p *Panel) *Probes {
	if len(m.probes) == 0 {
		return nil
	}
	out := &Probes{ByKind: map[string]ProbeCount{}}
	for _, c := range m.probes {
		kind := m.Candidates[c].ProbeKind
		if kind == "" {
			kind = unspecified
		}
		k := out.ByKind[kind]
		k.add(p.Accepts[c])
		out.ByKind[kind] = k
		out.add(p.Accepts[c])
	}
	return out
}

func (c *ProbeCount) add(breached bool) {
	c.Total++
	if breached {
		c.Breached++
	}
	c.Rate = float64(c.Breached) / float64(c.Total)
}

// The warning about a panel whose error no panel of independent verifiers has.
const (
	UndefinedAtQuorum     = "effective_votes_undefined_at_quorum"
	UndefinedAtQuorumText = "no number of independent verifiers errs as often as the panel does at this quorum."
)

func (r *Report) warnings() []string {
	out := []string{}
	warn := func(code, format string, args ...any) { out = append(out, code+": "+fmt.Sprintf(format, args...)) }
	for _, v := range r.Verifiers {
		if v.Accuracy <= 0.5 {
			warn("verifier_not_better_than_chance", "verifier %s is right on half of the candidates or fewer.", v.ID)
		}
	}
	if r.Panel.Correlation == nil {
		warn("correlation_not_measurable", "no pair of verifiers has errors that vary on both sides, so their dependence is unknown.")
	}
	if r.Panel.Accuracy <= 0.5 {
		warn("panel_not_better_than_chance", "the verifiers are right on half of the candidates or fewer on average, so no number of votes describes the panel.")
	}
	if r.Panel.Votes == nil && r.Panel.Accuracy > 0.5 {
		warn(UndefinedAtQuorum, UndefinedAtQuorumText)
	}
	if Censored(r.Panel.Votes) {
		warn("effective_votes_saturated", "the panel makes too few errors here to distinguish more than %.0f effective votes.", gatestat.Saturated)
	}
	if c, ok := r.Panel.Ceiling.(float64); ok {
		if r.Panel.Heuristic != nil && *r.Panel.Heuristic > c {
			warn("heuristic_above_ceiling", "the heuristic number of votes is above the ceiling that the correlation allows.")
		}
		if r.Panel.Votes != nil && *r.Panel.Votes > c {
			warn("effective_votes_above_ceiling", "the effective votes are above the ceiling that the correlation allows.")
		}
	}
	if r.Probes != nil && r.Probes.Breached > 0 {
		warn("probes_breached", "the panel accepted %d of %d probes.", r.Probes.Breached, r.Probes.Total)
	}
	return out
}

// Dependence shows, pair by pair, which verifiers are wrong together.
func (m *Matrix) Dependence(version string) *Dependence {
	order := m.All()
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(m.Verifiers[a].ID, m.Verifiers[b].ID) })
	d := &Dependence{
		Schema: DependenceSchema, GateID: m.GateID, EvidenceClass: m.EvidenceClass, Authority: DiagnosticOnly,
		Rows: len(m.rows), VerifierIDs: m.IDs(order), Pairs: []Pair{}, Warnings: []string{},
		Provenance: Provenance{Tool: Tool, ToolVersion: version, InputDigest: m.Digest},
	}
	panel := m.Panel(order)
	pairs, unmeasurable := gatestat.NewPairs(len(m.rows)), 0
	for i, a := range panel.Errors {
		for j := i + 1; j < len(order); j++ {
			b := panel.Errors[j]
			p := Pair{A: d.VerifierIDs[i], B: d.VerifierIDs[j], Joint: a.Joint(b), AErrors: a.Count(), BErrors: b.Count()}
			if phi, ok := pairs.Phi(p.AErrors, p.BErrors, p.Joint); ok {
				p.Phi, p.Measurable = &phi, true
			} else {
				unmeasurable++
			}
			d.Pairs = append(d.Pairs, p)
		}
	}
	switch {
	case len(d.Pairs) == 0:
		d.Warnings = append(d.Warnings, "no_pairs: one verifier makes no pair.")
	case unmeasurable > 0:
		d.Warnings = append(d.Warnings, fmt.Sprintf("pairs_not_measurable: the errors of one verifier or both do not vary in %d of %d pairs.", unmeasurable, len(d.Pairs)))
	}
	return d
}
