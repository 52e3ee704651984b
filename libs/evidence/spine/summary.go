package spine

import (
	"cmp"
	"slices"
)

// WorkUnit is what the runs of one work unit add up to.
type WorkUnit struct {
	ID        string          `json:"id"`
	RunCount  int64           `json:"run_count"`
	Revisions []RevisionCount `json:"revisions"` // by version, digest, source revision
}

// RevisionCount is one revision of a work unit and the number of its runs.
type RevisionCount struct {
	Version        int64  `json:"version"`
	Digest         string `json:"digest"`
	SourceRevision string `json:"source_revision"`
	RunCount       int64  `json:"run_count"`
}

// Project is what the runs of one project add up to. Every state has its count.
type Project struct {
	ProjectID     string          `json:"project_id"`
	RunCount      int64           `json:"run_count"`
	RunsByState   map[State]int64 `json:"runs_by_state"`
	WorkUnitCount int64           `json:"work_unit_count"`
}

// WorkUnits derives the work units of runs, by id in code point order.
func WorkUnits(runs []Run) []WorkUnit {
	counts := map[Revision]int64{}
	for _, r := range runs {
		counts[r.WorkUnit]++
	}
	byID := map[string]*WorkUnit{}
	for rev, n := range counts {
		w := byID[rev.ID]
		if w == nil {
			w = &WorkUnit{ID: rev.ID}
			byID[rev.ID] = w
		}
		w.RunCount += n
		w.Revisions = append(w.Revisions, RevisionCount{rev.Version, rev.Digest, rev.SourceRevision, n})
	}
	out := make([]WorkUnit, 0, len(byID))
	for _, w := range byID {
		SortRevisions(w.Revisions)
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b WorkUnit) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// SortRevisions puts revisions in the order of their documents.
func SortRevisions(list []RevisionCount) {
	slices.SortFunc(list, func(a, b RevisionCount) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.SourceRevision, b.SourceRevision))
	})
}

// NewProject is a project without runs: every state stands in it with 0.
func NewProject(id string) Project {
	p := Project{ProjectID: id, RunsByState: map[State]int64{}}
	for _, s := range States() {
		p.RunsByState[s] = 0
	}
	return p
}

// ProjectOf derives a project from runs, of which it takes its own. A project that no
// run names does not exist: its RunCount is 0.
func ProjectOf(id string, runs []Run) Project {
	p := NewProject(id)
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
