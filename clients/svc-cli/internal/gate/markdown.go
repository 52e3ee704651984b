package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// disclaimer ends every audit that people read.
const disclaimer = "This audit describes the verdicts in one matrix. It is no proof that the gate is right about anything else, " +
	"and it allows no routing and no merge."

// Markdown is the report for people: rates with four decimals, votes with two.
func (r *Report) Markdown() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	noun := "verifiers"
	if r.Inputs.Verifiers == 1 {
		noun = "verifier"
	}
	line("# %d %s ~ %s effective votes", r.Inputs.Verifiers, noun, formatVotes(r.Panel.Votes))
	line("")
	line("Gate %s, %s evidence: %d candidates (%d good, %d bad) and %d probes.", escapeMarkdown(r.GateID), r.EvidenceClass,
		r.Inputs.NonProbeCandidates, r.Inputs.KnownGood, r.Inputs.KnownBad, r.Inputs.ProbeCandidates)
	line("")
	line("## Verifiers")
	line("")
	line("| Verifier | Accuracy | Errors |")
	line("|---|---:|---:|")
	for _, v := range r.Verifiers {
		line("| %s | %.4f | %d |", escapeMarkdown(v.ID), v.Accuracy, v.Errors)
	}
	line("")
	line("## Panel")
	line("")
	line("| Measure | Value |")
	line("|---|---:|")
	p := r.Panel
	line("| Quorum | more than %s of %d votes |", strconv.FormatFloat(p.Quorum, 'g', -1, 64), p.NominalVotes)
	line("| Mean verifier accuracy | %.4f |", p.Accuracy)
	line("| Mean pairwise error correlation | %s |", formatRate(p.Correlation))
	line("| Pairs without a correlation | %d |", p.SkippedPairs)
	line("| Panel error | %.4f |", p.Error)
	line("| False accept rate | %s |", formatRate(p.FalseAccept))
	line("| False reject rate | %s |", formatRate(p.FalseReject))
	line("| Effective votes | %s |", formatVotes(p.Votes))
	line("| Heuristic votes | %s |", formatPlainVotes(p.Heuristic))
	line("| Ceiling of effective votes | %s |", ceilingText(p.Ceiling))
	r.markdownUncertainty(line)
	r.markdownProbes(line)
	line("")
	line("## Warnings")
	line("")
	for _, w := range r.Warnings {
		line("- %s", escapeMarkdown(w))
	}
	if len(r.Warnings) == 0 {
		line("None.")
	}
	line("")
	line("---")
	line("")
	line("%s", disclaimer)
	line("")
	line("%s %s, input SHA-256 `%s`", r.Provenance.Tool, escapeMarkdown(r.Provenance.ToolVersion), r.Provenance.InputDigest)
	return []byte(b.String())
}

func (r *Report) markdownUncertainty(line func(string, ...any)) {
	u := r.Uncertainty
	if u == nil {
		return
	}
	line("")
	line("## Uncertainty")
	line("")
	if !u.Sufficient {
		line("%d candidates are too few for an interval; %d are needed.", u.Rows, u.MinRows)
		return
	}
	line("Percentile intervals of level %s from %d replicates, seed %s.", strconv.FormatFloat(u.ConfidenceLevel, 'g', -1, 64), u.Replicates, clipNumber(u.Seed.String()))
	line("")
	line("| Measure | Value | Low | High | Undefined replicates |")
	line("|---|---:|---:|---:|---:|")
	row := func(name string, m gatestat.Metric, figure func(*float64) string) {
		line("| %s | %s | %s | %s | %d |", name, figure(m.Point), figure(m.CILow), figure(m.CIHigh), m.ReplicatesUndefined)
	}
	row("Panel error", u.Metrics.Error, formatRate)
	row("Mean verifier accuracy", u.Metrics.Accuracy, formatRate)
	row("Mean pairwise error correlation", u.Metrics.Correlation, formatRate)
	row("Effective votes", u.Metrics.Votes.Metric, formatVotes)
}

func (r *Report) markdownProbes(line func(string, ...any)) {
	if r.Probes == nil {
		return
	}
	line("")
	line("## Probes")
	line("")
	line("| Kind | Probes | Breached | Rate |")
	line("|---|---:|---:|---:|")
	kinds := make([]string, 0, len(r.Probes.ByKind))
	for kind := range r.Probes.ByKind {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		c := r.Probes.ByKind[kind]
		line("| %s | %d | %d | %.4f |", escapeMarkdown(kind), c.Total, c.Breached, c.Rate)
	}
	line("| all | %d | %d | %.4f |", r.Probes.Total, r.Probes.Breached, r.Probes.Rate)
}

const undefined = "undefined"

func formatRate(x *float64) string { return formatFixed(x, 4) }

func formatPlainVotes(x *float64) string { return formatFixed(x, 2) }

func formatFixed(x *float64, decimals int) string {
	if x == nil {
		return undefined
	}
	return strconv.FormatFloat(*x, 'f', decimals, 64)
}

// formatVotes shows a number at the limit of what can be measured as such.
func formatVotes(x *float64) string {
	if Censored(x) {
		return fmt.Sprintf(">= %.0f", gatestat.Saturated)
	}
	return formatPlainVotes(x)
}

func ceilingText(x any) string {
	switch x := x.(type) {
	case float64:
		return formatVotes(&x)
	case string:
		return x
	}
	return undefined
}

// clipNumber shortens a number from the input, of up to 4,300 digits, to fit its line.
func clipNumber(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// escapeMarkdown is text of others as one line of Markdown: what could break a table, or become a link, a picture or HTML, is
// escaped.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r):
			b.WriteByte(' ')
		case strings.ContainsRune("\\`*[]<>|#&", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
