package steward

import (
	"fmt"
	"strconv"
	"strings"
)

// Fact is one line of the summary of a report or a history.
type Fact struct{ Name, Value string }

// Facts summarises the report.
func (r *Report) Facts() []Fact {
	granted, withheld := Authority()
	return []Fact{
		{"repository", r.Repository},
		{"status", r.Status},
		{"generated", r.GeneratedAt},
		{"candidates", numberOr(r.CandidateCount, "not counted")},
		{"planned", strconv.Itoa(len(r.Planned))},
		{"created draft PRs", strconv.Itoa(len(r.Created))},
		{"skipped", strconv.Itoa(len(r.Skipped))},
		{"API remaining", numberOr(r.RateLimitRemaining, "not observed")},
		{"blocked reason", textOr(r.BlockedReason, "none")},
		{"authority", granted + " only; not " + strings.Join(withheld, ", ")},
	}
}

// Facts summarises the history.
func (h History) Facts() []Fact {
	budget := "not observed"
	if h.APIBudget.MinRemaining != nil {
		budget = fmt.Sprintf("%d to %d in %d runs", *h.APIBudget.MinRemaining, *h.APIBudget.MaxRemaining, h.APIBudget.ObservedRuns)
	}
	return []Fact{
		{"repository", h.Repository},
		{"reports", strconv.Itoa(h.ReportCount)},
		{"first generated", h.FirstGeneratedAt},
		{"last generated", h.LastGeneratedAt},
		{"completed", strconv.Itoa(h.StatusCounts.Completed)},
		{"blocked", strconv.Itoa(h.StatusCounts.Blocked)},
		{"disabled", strconv.Itoa(h.StatusCounts.Disabled)},
		{"planned", strconv.Itoa(h.OutcomeTotals.Planned)},
		{"created draft PRs", strconv.Itoa(h.OutcomeTotals.Created)},
		{"skipped", fmt.Sprintf("%d (head moved %d, PR already exists %d)", h.OutcomeTotals.Skipped, h.OutcomeTotals.HeadMoved, h.OutcomeTotals.PRAlreadyExists)},
		{"API remaining", budget},
		{"policies", fmt.Sprintf("%d, changed %d times", h.Policy.DistinctDigests, h.Policy.Changes)},
		{"input set", h.Integrity.InputSetSHA256},
	}
}

func numberOr(n *int64, absent string) string {
	if n == nil {
		return absent
	}
	return strconv.FormatInt(*n, 10)
}

func textOr(s *string, absent string) string {
	if s == nil {
		return absent
	}
	return *s
}

// Note is the reason of a skipped branch, with the head that it found.
func (s Skipped) Note() string {
	if s.Reason == HeadMoved {
		return HeadMoved + " to " + s.CurrentHeadSHA
	}
	return s.Reason
}
