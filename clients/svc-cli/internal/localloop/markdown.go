package localloop

import (
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/report"
)

// renderMarkdown describes the run for a reader. Nothing in it depends on a
// clock.
func renderMarkdown(o *Outcome, attempts []attempt) []byte {
	var b strings.Builder
	r := o.Report
	p := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	p("# Evidence report %s\n", plainText(r.RunID))
	p("- Run state: %s", o.Record.RunState)
	p("- Work unit: %s version %d, `%s`", plainText(r.WorkUnit.ID), r.WorkUnit.Version, r.WorkUnit.Digest)
	c := o.Record.VerificationControl
	p("- Verification: %s %s version %s, backend %s, `%s`", c.Kind, plainText(c.ID), c.SchemaVersion, c.Backend, c.Digest)
	p("- Config: `%s`", r.SourceConfigDigest)
	p("- Run record: `%s`", r.SourceRunDigest)
	p("- Evidence report: `%s`", r.Digest())
	p("- Human decision: %s. Nothing is selected and nothing is integrated.\n", r.HumanDecision.Status)
	p("| Attempt | Adapter | State | Worker says | Verifier recommends | Evidence |")
	p("|---|---|---|---|---|---|")
	for _, a := range r.Attempts {
		worker, advice := "-", "-"
		if a.Worker != nil {
			worker = a.Worker.Status
		}
		if a.Verifier != nil {
			advice = a.Verifier.Recommendation
		}
		p("| %s | %s | %s | %s | %s | %s |", plainText(a.AttemptID), a.WorkerAdapter, a.State, worker, advice, a.EvidenceState)
	}
	p("")
	for i := range attempts {
		attemptText(p, r.Attempts[i], &attempts[i])
	}
	p("## Warnings\n")
	for _, w := range r.Warnings {
		p("- %s", w)
	}
	return []byte(b.String())
}

func attemptText(p func(string, ...any), shown report.Attempt, a *attempt) {
	p("## Attempt %s\n", plainText(shown.AttemptID))
	if shown.Error != nil {
		p("Error: %s\n", plainText(*shown.Error))
	}
	if w := shown.Worker; w != nil {
		p("Worker %s reported %s in manifest %s, `%s`.\n", plainText(w.ID), w.Status, plainText(w.ResultManifestID), w.ResultManifestDigest)
	}
	v := a.result
	if v == nil {
		return
	}
	p("Verifier %s (%s %s): %s, %s. %s\n", plainText(v.Verifier.ID), v.Verifier.Adapter, v.Verifier.Version, v.Status,
		v.DecisionSupport.Recommendation, plainText(v.DecisionSupport.Rationale))
	p("| Check | Status | Evidence |")
	p("|---|---|---|")
	for _, c := range v.Checks {
		p("| %s | %s | %s |", c.ID, c.Status, strings.Join(c.EvidenceIDs, ", "))
	}
	p("")
	if len(v.Findings) > 0 {
		for _, f := range v.Findings {
			p("- %s: %s", f.CheckID, plainText(f.Message))
		}
		p("")
	}
	p("Semantic digest: `%s`\n", shown.Verifier.VerificationSemanticDigest)
}

// plainText escapes external text so that Markdown shows it literally, on one
// line.
func plainText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case r < 0x20 || r >= 0x7f && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069:
			b.WriteRune('\uFFFD') // control characters, and those that turn the direction of what follows
		case strings.ContainsRune("\\`*_{}[]()<>#|!~&", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// nextSteps lists what a person can do with the folder.
func nextSteps(o *Outcome, revision string) []byte {
	if revision == "" {
		revision = "REVISION"
	}
	return []byte(fmt.Sprintf(`# Next steps

This folder holds what run %s observed. Nothing was selected, nothing was integrated:
that is for an accountable person to decide. Work in this folder.

## Inspect

Read evidence-report.md, or open the report in the browser page:

    svc control-tower evidence-report.json

See that the same files still make the same evidence. CONFIG is the config of the run,
config digest %s:

    svc local-loop CONFIG --replay .

## Import

Keep the evidence in a store, where the evidence API serves it. STORE is the store's
file, PROJECT the id of the project%s:

    svc run import-evidence . --store STORE --idempotency-key %s --project-id PROJECT --source-revision %s
    svc run evidence %s --store STORE
`, plainText(o.Report.RunID), o.Record.ConfigDigest, revisionHint(revision), o.Report.RunID, revision, o.Report.RunID))
}

func revisionHint(revision string) string {
	if revision == "REVISION" {
		return ", REVISION the source revision that was worked on"
	}
	return ""
}
