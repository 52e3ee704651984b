package steward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// HistorySchema names the format of a history.
const HistorySchema = "auto-draft-pr-steward-history-v0.1"

// Codes of reports that make no history together.
const (
	RepositoryMismatch = "repository_mismatch"
	DuplicateReport    = "duplicate_report"
	NoReports          = "no_reports"
)

// Entry holds the part of one report that a history keeps: a thousand whole ones
// would not fit.
type Entry struct {
	Repository string
	Run        Run
}

// NewEntry extracts from a report the part that a history keeps.
func NewEntry(source string, r *Report) Entry {
	return Entry{r.Repository, Run{
		Source: source, GeneratedAt: r.GeneratedAt, Status: r.Status, CandidateCount: r.CandidateCount, Outcomes: countOutcomes(r),
		RateLimitRemaining: r.RateLimitRemaining, BlockedReason: r.BlockedReason, PolicySHA256: r.Policy.SHA256, ReportSHA256: r.Digest,
		RunID: int64(r.Provenance.RunID), RunAttempt: int64(r.Provenance.RunAttempt), TrustedHeadSHA: r.Provenance.TrustedHeadSHA,
	}}
}

// History summarises the reports of one repository.
type History struct {
	Schema           string        `json:"schema"`
	Repository       string        `json:"repository"`
	ReportCount      int           `json:"report_count"`
	FirstGeneratedAt string        `json:"first_generated_at"`
	LastGeneratedAt  string        `json:"last_generated_at"`
	StatusCounts     StatusCounts  `json:"status_counts"`
	OutcomeTotals    Outcomes      `json:"outcome_totals"`
	APIBudget        APIBudget     `json:"api_budget"`
	Policy           PolicyHistory `json:"policy"`
	Integrity        Integrity     `json:"integrity"`
	Runs             []Run         `json:"runs"` // the oldest first
}

// StatusCounts counts runs by their state.
type StatusCounts struct {
	Completed int `json:"completed"`
	Blocked   int `json:"blocked"`
	Disabled  int `json:"disabled"`
}

// Outcomes counts the branches by their outcome.
type Outcomes struct {
	Planned         int `json:"planned"`
	Created         int `json:"created"`
	Skipped         int `json:"skipped"`
	HeadMoved       int `json:"head_moved"`
	PRAlreadyExists int `json:"pr_already_exists"`
}

// APIBudget is the remaining rate limit of the forge.
type APIBudget struct {
	ObservedRuns int    `json:"observed_runs"`
	MinRemaining *int64 `json:"min_remaining"`
	MaxRemaining *int64 `json:"max_remaining"`
}

// PolicyHistory counts the changes of the policy.
type PolicyHistory struct {
	DistinctDigests int    `json:"distinct_digests"`
	Changes         int    `json:"changes"` // from one run to the next
	LatestSHA256    string `json:"latest_sha256"`
}

// Integrity binds the history to its reports.
type Integrity struct {
	Algorithm             string `json:"algorithm"`
	SemanticNormalization string `json:"semantic_normalization"`
	InputSetSHA256        string `json:"input_set_sha256"`
}

// Run is one report in a history.
type Run struct {
	Source             string  `json:"source"`
	GeneratedAt        string  `json:"generated_at"`
	Status             string  `json:"status"`
	CandidateCount     *int64  `json:"candidate_count"`
	Outcomes                   // in place
	RateLimitRemaining *int64  `json:"rate_limit_remaining"`
	BlockedReason      *string `json:"blocked_reason"`
	PolicySHA256       string  `json:"policy_sha256"`
	ReportSHA256       string  `json:"report_sha256"`
	RunID              int64   `json:"run_id"`
	RunAttempt         int64   `json:"run_attempt"`
	TrustedHeadSHA     *string `json:"trusted_head_sha"`
}

// NewHistory puts reports together: those of one repository, each run's attempt once.
func NewHistory(entries []Entry) (History, error) {
	if len(entries) == 0 {
		return History{}, command.Failf(NoReports, "there is no %s among the inputs", FileName)
	}
	type attempt struct{ run, attempt int64 }
	seen := map[attempt]string{}
	runs := make([]Run, len(entries))
	for i, e := range entries {
		if first := entries[0]; e.Repository != first.Repository {
			return History{}, command.Failf(RepositoryMismatch, "%s is about %s and %s about %s: a history is of one repository",
				first.Run.Source, first.Repository, e.Run.Source, e.Repository)
		}
		key := attempt{e.Run.RunID, e.Run.RunAttempt}
		if other, twice := seen[key]; twice {
			return History{}, command.Failf(DuplicateReport, "%s and %s are about the same run %d, attempt %d", other, e.Run.Source, key.run, key.attempt)
		}
		seen[key] = e.Run.Source
		runs[i] = e.Run
	}
	slices.SortFunc(runs, Run.compare)
	return foldRuns(entries[0].Repository, runs), nil
}

func (r Run) compare(b Run) int {
	return cmp.Or(
		r.instant().Compare(b.instant()),
		cmp.Compare(r.RunID, b.RunID),
		cmp.Compare(r.RunAttempt, b.RunAttempt),
		strings.Compare(r.ReportSHA256, b.ReportSHA256),
		strings.Compare(r.Source, b.Source),
	)
}

// instant is the time of a report. Its text is a checked timestamp; two spellings may
// be the same instant.
func (r Run) instant() time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.GeneratedAt)
	if err != nil {
		panic(fmt.Sprintf("steward: a checked time does not parse: %v", err))
	}
	return t
}

// foldRuns counts over runs, which are in order.
func foldRuns(repository string, runs []Run) History {
	first, last := runs[0], runs[len(runs)-1]
	h := History{
		Schema: HistorySchema, Repository: repository, ReportCount: len(runs), Runs: runs,
		FirstGeneratedAt: first.GeneratedAt, LastGeneratedAt: last.GeneratedAt,
		Integrity: Integrity{Algorithm: "sha256", SemanticNormalization: "validated-canonical-json-v0.1"},
	}
	digests := map[string]bool{}
	for i, r := range runs {
		h.StatusCounts.add(r.Status)
		h.OutcomeTotals.add(r.Outcomes)
		h.APIBudget.add(r.RateLimitRemaining)
		digests[r.PolicySHA256] = true
		if i > 0 && r.PolicySHA256 != runs[i-1].PolicySHA256 {
			h.Policy.Changes++
		}
	}
	h.Policy.DistinctDigests, h.Policy.LatestSHA256 = len(digests), last.PolicySHA256
	h.Integrity.InputSetSHA256 = inputSet(h)
	return h
}

func (c *StatusCounts) add(status string) {
	switch status {
	case Completed:
		c.Completed++
	case Blocked:
		c.Blocked++
	case Disabled:
		c.Disabled++
	}
}

func countOutcomes(r *Report) Outcomes {
	o := Outcomes{Planned: len(r.Planned), Created: len(r.Created), Skipped: len(r.Skipped)}
	for _, s := range r.Skipped {
		if s.Reason == HeadMoved {
			o.HeadMoved++
		} else {
			o.PRAlreadyExists++
		}
	}
	return o
}

func (o *Outcomes) add(b Outcomes) {
	o.Planned += b.Planned
	o.Created += b.Created
	o.Skipped += b.Skipped
	o.HeadMoved += b.HeadMoved
	o.PRAlreadyExists += b.PRAlreadyExists
}

func (b *APIBudget) add(remaining *int64) {
	if remaining == nil {
		return
	}
	b.ObservedRuns++
	if b.MinRemaining == nil || *remaining < *b.MinRemaining {
		b.MinRemaining = remaining
	}
	if b.MaxRemaining == nil || *remaining > *b.MaxRemaining {
		b.MaxRemaining = remaining
	}
}

// inputSet is the digest of the runs. It does not depend on where their files lay.
func inputSet(h History) string {
	reports := make(canon.Array, len(h.Runs))
	for i, r := range h.Runs {
		o := canon.MustFrom(r).(*canon.Object)
		o.Delete("source")
		reports[i] = o
	}
	set := canon.NewObject(
		canon.Member{Key: "schema", Value: HistorySchema},
		canon.Member{Key: "report_schema", Value: ReportSchema},
		canon.Member{Key: "repository", Value: h.Repository},
		canon.Member{Key: "reports", Value: reports},
	)
	return strings.TrimPrefix(canon.Digest(set), "sha256:")
}
