package steward

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// ReportSchema names the format of a report.
const ReportSchema = "auto-draft-pr-steward-report-v0.1"

// The codes of a report's faults.
const (
	InvalidDocument    = "invalid_document"
	MissingField       = "missing_field"
	UnknownField       = "unknown_field"
	InvalidType        = "invalid_type"
	InvalidValue       = "invalid_value"
	UnsupportedSchema  = "unsupported_schema"
	InvalidRepository  = "invalid_repository"
	InvalidTimestamp   = "invalid_timestamp"
	InvalidRevision    = "invalid_revision"
	InvalidDigest      = "invalid_digest"
	InvalidState       = "invalid_state"
	AuthorityViolation = "authority_violation"
	CountMismatch      = "count_mismatch"
	DuplicateValue     = "duplicate_value"
	OutcomeNotPlanned  = "outcome_not_planned"
	StateConflict      = "state_conflict"
)

var reportSchema = shape.New("steward-report", "", shape.Codes{
	Codes: closed.Codes{
		Missing: MissingField, Unknown: UnknownField, Root: InvalidDocument,
		Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
	},
	Duplicate: DuplicateValue,
	Terms:     reportTerms(),
})

func reportTerms() map[string]shape.Term {
	terms := map[string]shape.Term{
		"/schema":        {Code: UnsupportedSchema},
		"/repository":    {Code: InvalidRepository, What: "owner/name"},
		"/generated_at":  {Code: InvalidTimestamp, What: "a time such as 2026-01-02T03:04:05Z"},
		"/status":        {Code: InvalidState},
		"/policy/sha256": {Code: InvalidDigest, What: "64 lower-case hex digits"},
		"revision":       {Code: InvalidRevision, What: "a revision, 40 or 64 lower-case hex digits,"},
		"ordinal":        {What: "a number of 1 or more"},
	}
	granted, withheld := Authority()
	for _, key := range append(withheld, granted) {
		terms["/authority/"+key] = shape.Term{Code: AuthorityViolation}
	}
	return terms
}

// The states of a run of the steward.
const (
	Completed = "completed"
	Blocked   = "blocked"
	Disabled  = "disabled"
)

// PolicyDisabled is the blocked_reason of a disabled run, and of no other.
const PolicyDisabled = "policy_disabled"

// Reasons why a planned pull request was not made.
const (
	HeadMoved       = "head_moved"
	PRAlreadyExists = "pr_already_exists"
)

// Report is one run of the steward.
type Report struct {
	Repository         string     `json:"repository"` // owner/name
	GeneratedAt        string     `json:"generated_at"`
	Status             string     `json:"status"`
	DryRun             bool       `json:"dry_run"`
	Policy             Policy     `json:"policy"`
	Provenance         Provenance `json:"provenance"`
	CandidateCount     *int64     `json:"candidate_count"`
	RateLimitRemaining *int64     `json:"rate_limit_remaining"`
	BlockedReason      *string    `json:"blocked_reason"`
	Planned            []Branch   `json:"planned"`
	Created            []Created  `json:"created"`
	Skipped            []Skipped  `json:"skipped"`

	Document canon.Value `json:"-"` // the report as it was read
	Digest   string      `json:"-"` // hex SHA-256 of its C1
}

// Policy is the file that the steward obeyed.
type Policy struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Provenance is the workflow run that was the steward.
type Provenance struct {
	Workflow       string  `json:"workflow"`
	RunID          Ordinal `json:"run_id"`
	RunAttempt     Ordinal `json:"run_attempt"`
	TrustedHeadSHA *string `json:"trusted_head_sha"`
}

// Ordinal is a number of 1 or more. A workflow has its own numbers as texts, the forge's API as numbers; reports
// contain both.
type Ordinal int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *Ordinal) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if *n = Ordinal(v); err != nil {
		return &json.UnmarshalTypeError{Value: "number"}
	}
	return nil
}

// Branch is a branch for which a pull request was planned.
type Branch struct {
	Branch   string `json:"branch"`
	Base     string `json:"base"`
	HeadSHA  string `json:"head_sha"`
	AheadBy  int64  `json:"ahead_by"`
	BehindBy int64  `json:"behind_by"`
}

// Created is a draft pull request that was made.
type Created struct {
	Branch
	Number int64  `json:"number"`
	URL    string `json:"url"`
}

// Skipped is one that was not.
type Skipped struct {
	Branch
	Reason         string `json:"reason"`
	CurrentHeadSHA string `json:"current_head_sha"` // of head_moved
}

// Authority lists the permissions that the steward has and those it lacks, as every report must state them.
func Authority() (granted string, withheld []string) {
	return "draft_pr_create", []string{"ready_for_review", "approve", "merge", "auto_merge", "delete_branch", "close_issue",
		"label_write", "contents_write", "repository_settings"}
}

// Parse reads a report and holds it against itself. An error is a *closed.Fault.
func Parse(v canon.Value) (*Report, error) {
	var d struct {
		Report
		Summary map[string]int64 `json:"summary"`
	}
	if err := reportSchema.Decode(v, &d); err != nil {
		return nil, err
	}
	r := &d.Report
	rd := closed.NewReader(closed.Codes{})
	checkEntries(rd, r)
	checkCounts(rd, r, d.Summary)
	checkOutcomes(rd, r)
	checkState(rd, r)
	if fault := rd.Fault(); fault != nil {
		return nil, fault
	}
	r.Document = v
	r.Digest = strings.TrimPrefix(canon.Digest(v), "sha256:")
	return r, nil
}

func checkEntries(rd *closed.Reader, r *Report) {
	for i, c := range r.Created {
		if c.URL != fmt.Sprintf("https://github.com/%s/pull/%d", r.Repository, c.Number) {
			rd.Fail(InvalidValue, canon.Element("/created", i)+"/url", "expected the address of the repository's pull request with this number")
		}
	}
	for i, s := range r.Skipped {
		path := canon.Element("/skipped", i) + "/current_head_sha"
		switch there := s.CurrentHeadSHA != ""; {
		case there && s.Reason != HeadMoved:
			rd.Fail(UnknownField, path, "the key is allowed with the reason head_moved only")
		case !there && s.Reason == HeadMoved:
			rd.Fail(MissingField, path, "the key is required with the reason head_moved")
		}
	}
}

func checkCounts(rd *closed.Reader, r *Report, summary map[string]int64) {
	for _, c := range []struct {
		key  string
		have int
	}{{"planned", len(r.Planned)}, {"created", len(r.Created)}, {"skipped", len(r.Skipped)}} {
		if summary[c.key] != int64(c.have) {
			rd.Fail(CountMismatch, "/summary/"+c.key, "the list has %d entries", c.have)
		}
	}
	if r.CandidateCount != nil && int64(len(r.Planned)) > *r.CandidateCount {
		rd.Fail(CountMismatch, "/planned", "more is planned than there are candidates")
	}
}

// checkOutcomes compares the results with the plan: nothing else, each once.
func checkOutcomes(rd *closed.Reader, r *Report) {
	type id struct{ branch, base, head string }
	planned := map[id]Branch{}
	for i, b := range r.Planned {
		key := id{b.Branch, b.Base, b.HeadSHA}
		if _, twice := planned[key]; twice {
			failAt(rd, DuplicateValue, "planned", i, "the branch is planned twice")
		}
		planned[key] = b
	}
	done, numbers := map[id]bool{}, map[int64]bool{}
	outcome := func(list string, i int, b Branch) {
		key := id{b.Branch, b.Base, b.HeadSHA}
		switch want, ok := planned[key]; {
		case !ok || want != b:
			failAt(rd, OutcomeNotPlanned, list, i, "the branch is not planned like this")
		case done[key]:
			failAt(rd, DuplicateValue, list, i, "the branch has an outcome already")
		}
		done[key] = true
	}
	for i, c := range r.Created {
		outcome("created", i, c.Branch)
		if numbers[c.Number] {
			failAt(rd, DuplicateValue, "created", i, "another pull request has this number")
		}
		numbers[c.Number] = true
	}
	for i, s := range r.Skipped {
		outcome("skipped", i, s.Branch)
	}
}

func failAt(rd *closed.Reader, code, list string, i int, detail string) {
	rd.Fail(code, canon.Element("/"+list, i), "%s", detail)
}

func checkState(rd *closed.Reader, r *Report) {
	if r.Status == Completed {
		if r.BlockedReason != nil {
			rd.Fail(StateConflict, "/blocked_reason", "a completed run was not blocked")
		}
		if r.CandidateCount == nil {
			rd.Fail(StateConflict, "/candidate_count", "a completed run has counted its candidates")
		}
		return
	}
	switch {
	case r.BlockedReason == nil:
		rd.Fail(StateConflict, "/blocked_reason", "expected the reason")
	case (*r.BlockedReason == PolicyDisabled) != (r.Status == Disabled):
		rd.Fail(StateConflict, "/blocked_reason", PolicyDisabled+" is the reason of disabled runs, and their only one")
	case r.CandidateCount != nil:
		rd.Fail(StateConflict, "/candidate_count", "a run that did not start has counted nothing")
	case len(r.Planned)+len(r.Created)+len(r.Skipped) > 0:
		rd.Fail(StateConflict, "/planned", "a run that did not start has done nothing")
	}
}
