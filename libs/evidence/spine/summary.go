package spine

import (
	"cmp"
	"slices"
)

// WorkUnit summarises the runs of one work unit.
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

// Project summarises the runs of one project. Every state has its count.
type Project struct {
	ProjectID     string          `json:"project_id"`
	RunCount      int64           `json:"run_count"`
	RunsByState   map[State]int64 `json:"runs_by_state"`
	WorkUnitCount int64           `json:"work_unit_count"`
}

// SortRevisions puts revisions in the order of their documents.
func SortRevisions(list []RevisionCount) {
	slices.SortFunc(list, func(a, b RevisionCount) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.SourceRevision, b.SourceRevision))
	})
}

// NewProject returns a project without runs, with a count of 0 for every state.
func NewProject(id string) Project {
	p := Project{ProjectID: id, RunsByState: map[State]int64{}}
	for _, s := range States() {
		p.RunsByState[s] = 0
	}
	return p
}
