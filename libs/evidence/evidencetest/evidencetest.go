// Package evidencetest makes events, documents and totals from runs in memory, for tests of the values that the store
// and the API derive by other means.
package evidencetest

import (
	"cmp"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// RunEvents are the creation and the cancellation of the fixture run, the first two
// events of a store.
func RunEvents() [2]spine.Event {
	run := fixture.Run()
	return [2]spine.Event{
		spine.CreatedEvent(1, fixture.CreatedAt, run, spine.CreateRequestDigest(run), nil),
		spine.CancelledEvent(2, fixture.CancelledAt, run, spine.Proposed),
	}
}

func newHead(kind string) document.Head {
	return document.Head{APIVersion: document.APIVersion, SchemaVersion: spine.SchemaVersion, Kind: kind, OK: true}
}

// NewRun makes the API's response about a run.
func NewRun(d document.RunDetail) document.Run {
	return document.Run{Head: newHead(document.KindRun), RunDetail: d}
}

// NewRunEvidence makes the API's response about a run's evidence.
func NewRunEvidence(r *report.Report) document.RunEvidence {
	return document.RunEvidence{Head: newHead(document.KindRunEvidence), EvidenceDetail: document.EvidenceDetail{
		RunID: r.RunID, EvidenceReportDigest: r.Digest(), EvidenceReport: r,
	}}
}

// WorkUnits derives the work units of runs, by id in code point order.
func WorkUnits(runs []spine.Run) []spine.WorkUnit {
	counts := map[spine.Revision]int64{}
	for _, r := range runs {
		counts[r.WorkUnit]++
	}
	byID := map[string]*spine.WorkUnit{}
	for rev, n := range counts {
		w := byID[rev.ID]
		if w == nil {
			w = &spine.WorkUnit{ID: rev.ID}
			byID[rev.ID] = w
		}
		w.RunCount += n
		w.Revisions = append(w.Revisions, spine.RevisionCount{
			Version: rev.Version, Digest: rev.Digest, SourceRevision: rev.SourceRevision, RunCount: n,
		})
	}
	out := make([]spine.WorkUnit, 0, len(byID))
	for _, w := range byID {
		spine.SortRevisions(w.Revisions)
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b spine.WorkUnit) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// ProjectOf derives a project from its own runs among runs. A project that no run names does not exist: its RunCount is
// 0.
func ProjectOf(id string, runs []spine.Run) spine.Project {
	p := spine.NewProject(id)
	units := map[string]bool{}
	for _, r := range runs {
		if r.ProjectID != id {
			continue
		}
		p.RunCount++
		p.RunsByState[r.State]++
		units[r.WorkUnit.ID] = true
	}
	p.WorkUnitCount = int64(len(units))
	return p
}
