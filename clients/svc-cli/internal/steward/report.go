package steward

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/governance"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
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

var codes = closed.Codes{
	Missing: MissingField, Unknown: UnknownField, Root: InvalidDocument,
	Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
}

// The states of a run of the steward.
const (
	Completed = "completed"
	Blocked   = "blocked"
	Disabled  = "disabled"
)

// PolicyDisabled is the blocked_reason of a disabled run, and of no other.
const PolicyDisabled = "policy_disabled"

// The reasons for which a planned pull request was not made.
const (
	HeadMoved       = "head_moved"
	PRAlreadyExists = "pr_already_exists"
)

// Report is one run of the steward.
type Report struct {
	Repository         string // owner/name
	GeneratedAt        string
	Status             string
	DryRun             bool
	Policy             Policy
	Provenance         Provenance
	CandidateCount     *int64
	RateLimitRemaining *int64
	BlockedReason      *string
	Planned            []Branch
	Created            []Created
	Skipped            []Skipped

	Document canon.Value // the report as it was read
	Digest   string      // hex SHA-256 of its C1
}

// Policy is the file that the steward obeyed.
type Policy struct{ Path, SHA256 string }

// Provenance is the workflow run that was the steward.
type Provenance struct {
	Workflow          string
	RunID, RunAttempt int64
	TrustedHeadSHA    *string
}

// Branch is a branch for which a pull request was planned.
type Branch struct {
	Branch, Base, HeadSHA string
	AheadBy, BehindBy     int64
}

// Created is a draft pull request that was made.
type Created struct {
	Branch
	Number int64
	URL    string
}

// Skipped is one that was not.
type Skipped struct {
	Branch
	Reason         string
	CurrentHeadSHA string // of head_moved
}

// Authority lists what the steward may and may not do, as every report must state it.
func Authority() (granted string, withheld []string) {
	return "draft_pr_create", []string{"ready_for_review", "approve", "merge", "auto_merge", "delete_branch", "close_issue",
		"label_write", "contents_write", "repository_settings"}
}

// Parse reads a report and holds it against itself. An error is a *closed.Fault.
func Parse(v canon.Value) (*Report, error) {
	rd := closed.NewReader(codes)
	o := rd.Root(v, "schema", "repository", "generated_at", "status", "dry_run", "policy", "provenance", "authority",
		"candidate_count", "rate_limit_remaining", "blocked_reason", "summary", "planned", "created", "skipped")
	o.OneOf("schema", UnsupportedSchema, ReportSchema)
	r := &Report{
		Repository:  o.Match("repository", InvalidRepository, "owner/name", governance.IsRepository),
		GeneratedAt: o.Match("generated_at", InvalidTimestamp, "a time such as 2026-01-02T03:04:05Z", spine.IsTimestamp),
		Status:      o.OneOf("status", InvalidState, Completed, Blocked, Disabled),
		DryRun:      o.Bool("dry_run"),
	}
	p := o.Object("policy", "path", "sha256")
	r.Policy = Policy{readLine(p, "path"), p.Match("sha256", InvalidDigest, "64 lower-case hex digits", isHexDigest)}
	f := o.Object("provenance", "workflow", "run_id", "run_attempt", "trusted_head_sha")
	r.Provenance = Provenance{
		Workflow: readLine(f, "workflow"), RunID: readOrdinal(f, "run_id"), RunAttempt: readOrdinal(f, "run_attempt"),
		TrustedHeadSHA: f.MatchOrNull("trusted_head_sha", InvalidRevision, revision, spine.IsRevision),
	}
	readAuthority(o)
	r.CandidateCount = countOrNull(o, "candidate_count")
	r.RateLimitRemaining = countOrNull(o, "rate_limit_remaining")
	r.BlockedReason = o.MatchOrNull("blocked_reason", InvalidValue, "a reason of one line", isLine)
	readWork(rd, o, r)
	checkCounts(o, r)
	checkOutcomes(rd, o, r)
	checkState(o, r)
	if fault := rd.Fault(); fault != nil {
		return nil, fault
	}
	r.Document = v
	r.Digest = strings.TrimPrefix(canon.Digest(v), "sha256:")
	return r, nil
}

func readAuthority(o closed.Object) {
	granted, withheld := Authority()
	a := o.Object("authority", append([]string{granted}, withheld...)...)
	if !a.Bool(granted) {
		a.Fail(AuthorityViolation, granted, "true must stand here")
	}
	for _, key := range withheld {
		a.False(key, AuthorityViolation)
	}
}

var branchKeys = []string{"branch", "base", "head_sha", "ahead_by", "behind_by"}

const revision = "a revision, 40 or 64 lower-case hex digits,"

func readBranch(o closed.Object) Branch {
	return Branch{
		Branch: readLine(o, "branch"), Base: readLine(o, "base"), HeadSHA: o.Match("head_sha", InvalidRevision, revision, spine.IsRevision),
		AheadBy: o.Int("ahead_by", 0), BehindBy: o.Int("behind_by", 0),
	}
}

func readWork(rd *closed.Reader, o closed.Object, r *Report) {
	o.Array("planned", 0, func(v canon.Value, path string) {
		r.Planned = append(r.Planned, readBranch(rd.Object(v, path, branchKeys...)))
	})
	o.Array("created", 0, func(v canon.Value, path string) {
		e := rd.ObjectWith(v, path, append([]string{"number", "url"}, branchKeys...), nil)
		c := Created{Branch: readBranch(e), Number: e.Int("number", 1), URL: e.String("url")}
		if want := fmt.Sprintf("https://github.com/%s/pull/%d", r.Repository, c.Number); rd.OK() && c.URL != want {
			e.Fail(InvalidValue, "url", "the address of the repository's pull request of this number must stand here")
		}
		r.Created = append(r.Created, c)
	})
	o.Array("skipped", 0, func(v canon.Value, path string) {
		e := rd.ObjectWith(v, path, append([]string{"reason"}, branchKeys...), []string{"current_head_sha"})
		s := Skipped{Branch: readBranch(e), Reason: e.OneOf("reason", InvalidValue, HeadMoved, PRAlreadyExists)}
		switch there := e.Has("current_head_sha"); {
		case there && s.Reason == HeadMoved:
			s.CurrentHeadSHA = e.Match("current_head_sha", InvalidRevision, revision, spine.IsRevision)
		case there:
			e.Fail(UnknownField, "current_head_sha", "the key stands beside the reason head_moved only")
		case s.Reason == HeadMoved:
			e.Fail(MissingField, "current_head_sha", "the key must stand beside the reason head_moved")
		}
		r.Skipped = append(r.Skipped, s)
	})
}

func checkCounts(o closed.Object, r *Report) {
	s := o.Object("summary", "planned", "created", "skipped")
	for _, c := range []struct {
		key  string
		have int
	}{{"planned", len(r.Planned)}, {"created", len(r.Created)}, {"skipped", len(r.Skipped)}} {
		if n := s.Int(c.key, 0); n != int64(c.have) {
			s.Fail(CountMismatch, c.key, "the list has %d entries", c.have)
		}
	}
	if r.CandidateCount != nil && int64(len(r.Planned)) > *r.CandidateCount {
		o.Fail(CountMismatch, "planned", "more is planned than there are candidates")
	}
}

// checkOutcomes holds what was done against what was planned: nothing else, each once.
func checkOutcomes(rd *closed.Reader, o closed.Object, r *Report) {
	type id struct{ branch, base, head string }
	planned := map[id]Branch{}
	for i, b := range r.Planned {
		key := id{b.Branch, b.Base, b.HeadSHA}
		if _, twice := planned[key]; twice {
			failAt(rd, o, DuplicateValue, "planned", i, "the branch is planned twice")
		}
		planned[key] = b
	}
	done, numbers := map[id]bool{}, map[int64]bool{}
	outcome := func(list string, i int, b Branch) {
		key := id{b.Branch, b.Base, b.HeadSHA}
		switch want, ok := planned[key]; {
		case !ok || want != b:
			failAt(rd, o, OutcomeNotPlanned, list, i, "the branch is not planned like this")
		case done[key]:
			failAt(rd, o, DuplicateValue, list, i, "the branch has an outcome already")
		}
		done[key] = true
	}
	for i, c := range r.Created {
		outcome("created", i, c.Branch)
		if numbers[c.Number] {
			failAt(rd, o, DuplicateValue, "created", i, "another pull request has this number")
		}
		numbers[c.Number] = true
	}
	for i, s := range r.Skipped {
		outcome("skipped", i, s.Branch)
	}
}

func failAt(rd *closed.Reader, o closed.Object, code, list string, i int, detail string) {
	rd.Fail(code, canon.Element(o.At(list), i), "%s", detail)
}

func checkState(o closed.Object, r *Report) {
	if r.Status == Completed {
		if r.BlockedReason != nil {
			o.Fail(StateConflict, "blocked_reason", "a completed run was not blocked")
		}
		if r.CandidateCount == nil {
			o.Fail(StateConflict, "candidate_count", "a completed run has counted its candidates")
		}
		return
	}
	switch {
	case r.BlockedReason == nil:
		o.Fail(StateConflict, "blocked_reason", "the reason must stand here")
	case (*r.BlockedReason == PolicyDisabled) != (r.Status == Disabled):
		o.Fail(StateConflict, "blocked_reason", PolicyDisabled+" is the reason of disabled runs, and their only one")
	case r.CandidateCount != nil:
		o.Fail(StateConflict, "candidate_count", "a run that did not start has counted nothing")
	case len(r.Planned)+len(r.Created)+len(r.Skipped) > 0:
		o.Fail(StateConflict, "planned", "a run that did not start has done nothing")
	}
}

func countOrNull(o closed.Object, key string) *int64 {
	if o.Null(key) {
		return nil
	}
	n := o.Int(key, 0)
	return &n
}

// readOrdinal reads a number of 1 or more. A workflow knows its own as texts, the forge's API
// as numbers; both stand in reports.
func readOrdinal(o closed.Object, key string) int64 {
	s, ok := o.Value(key).(string)
	if !ok {
		return o.Int(key, 1)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != s {
		o.Fail(InvalidValue, key, "a number of 1 or more must stand here")
		return 0
	}
	return n
}

// readLine reads a text of one line: no control characters, not blank, up to 1024 characters.
func readLine(o closed.Object, key string) string {
	return o.Match(key, InvalidValue, "a text of one line", isLine)
}

func isLine(s string) bool {
	return strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= 1024 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isHexDigest(s string) bool { return spine.IsDigest("sha256:" + s) }
