package gate

import (
	"slices"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
)

// Codes of a matrix that is refused.
const (
	MissingField     = "missing_field"
	UnknownField     = "unknown_field" // only in closed documents, never in a matrix
	InvalidDocument  = "invalid_document"
	InvalidType      = "invalid_type"
	InvalidValue     = "invalid_value"
	DuplicateID      = "duplicate_id"
	UnknownCandidate = "unknown_candidate"
	InvalidProbe     = "invalid_probe"
	TooFewCandidates = "too_few_candidates"
	TooManyVerifiers = "too_many_verifiers"
)

// Codes is the list of faults for package closed, which other documents of the gate family share.
var Codes = closed.Codes{
	Missing: MissingField, Unknown: UnknownField, Root: InvalidDocument,
	Shape: InvalidType, Type: InvalidType, Value: InvalidValue,
}

// Limits of a matrix, in addition to the 2 MiB of a document. They keep every report small and every audit fast: 256
// verifiers make 32,640 pairs.
const (
	MaxVerifiers = 256
	MaxID        = 256 // characters of an id, a gate's id or a kind of probe
)

// Matrix holds the verdicts on each candidate.
type Matrix struct {
	GateID        string
	EvidenceClass string  // "synthetic" or "observed"
	Quorum        float64 // a panel accepts if more than this share of its votes accept
	Candidates    []Candidate
	Verifiers     []Verifier
	Digest        string // hex SHA-256 of the whole document in form C2

	quorum       gatestat.Quorum // Quorum as an exact fraction
	rows, probes []int           // candidates by kind
}

// Candidate is one thing that was judged.
type Candidate struct {
	ID        string
	Good      bool // its ground truth is accept
	Probe     bool // it was planted to see whether it gets through
	ProbeKind string
}

// Verifier is one reviewer.
type Verifier struct {
	ID      string
	Accepts []bool // by candidate
}

// IsID reports whether s is a valid name in documents of the gate family.
func IsID(s string) bool { return s != "" && len(s) <= 4*MaxID && utf8.RuneCountInString(s) <= MaxID }

// WhatID describes a valid id, see IsID.
const WhatID = "text of 1 to 256 characters"

// Read reads a matrix. Keys it does not know are ignored, but digested. A fault is a *closed.Fault.
func Read(doc canon.Value) (*Matrix, error) {
	r := closed.NewReader(Codes)
	o := r.Open(doc, "", "gate_id", "evidence_class", "candidates", "verifiers")
	m := &Matrix{
		GateID:        o.Match("gate_id", InvalidValue, WhatID, IsID),
		EvidenceClass: o.OneOf("evidence_class", InvalidValue, "synthetic", "observed"),
		Quorum:        0.5,
		quorum:        gatestat.Majority(),
	}
	if o.Has("quorum") {
		if m.Quorum = o.Number("quorum"); m.Quorum < 0 || m.Quorum >= 1 {
			o.Fail(InvalidValue, "quorum", "expected a number from 0 to below 1")
		}
		m.Quorum += 0 // of -0.0 too
		if r.OK() {
			m.quorum = gatestat.ParseQuorum(m.Quorum)
		}
		if !m.quorum.InRange() {
			o.Fail(InvalidValue, "quorum", "expected a number from 0 to below 1; this one is read as 1")
		}
	}
	m.readCandidates(r, o)
	m.readVerifiers(r, o)
	if f := r.Fault(); f != nil {
		return nil, f
	}
	m.Digest = canon.DigestHexC2(doc)
	return m, nil
}

func (m *Matrix) readCandidates(r *closed.Reader, o closed.Object) {
	seen := map[string]bool{}
	o.Array("candidates", 0, func(v canon.Value, path string) {
		e := r.Open(v, path, "id", "ground_truth")
		c := Candidate{
			ID:   e.Match("id", InvalidValue, WhatID, IsID),
			Good: e.OneOf("ground_truth", InvalidValue, "accept", "reject") == "accept",
		}
		if seen[c.ID] {
			e.Fail(DuplicateID, "id", "another candidate has this id")
		}
		seen[c.ID] = true
		if e.Has("probe") {
			c.Probe = e.Bool("probe")
		}
		if e.Has("probe_kind") {
			c.ProbeKind = e.Match("probe_kind", InvalidValue, WhatID, IsID)
			if !c.Probe {
				e.Fail(InvalidProbe, "probe_kind", "only a probe has a kind")
			}
		}
		if c.Probe && c.Good {
			e.Fail(InvalidProbe, "ground_truth", "the ground truth of a probe is reject")
		}
		if c.Probe {
			m.probes = append(m.probes, len(m.Candidates))
		} else {
			m.rows = append(m.rows, len(m.Candidates))
		}
		m.Candidates = append(m.Candidates, c)
	})
	if r.OK() && len(m.rows) < 2 {
		o.Fail(TooFewCandidates, "candidates", "there must be two or more candidates that are no probes")
	}
}

func (m *Matrix) readVerifiers(r *closed.Reader, o closed.Object) {
	seen := map[string]bool{}
	o.Array("verifiers", 1, func(v canon.Value, path string) {
		e := r.Open(v, path, "id", "verdicts")
		id := e.Match("id", InvalidValue, WhatID, IsID)
		if seen[id] {
			e.Fail(DuplicateID, "id", "another verifier has this id")
		}
		if len(m.Verifiers) == MaxVerifiers {
			r.Fail(TooManyVerifiers, path, "a matrix has at most %d verifiers", MaxVerifiers)
		}
		seen[id] = true
		m.Verifiers = append(m.Verifiers, Verifier{ID: id, Accepts: m.readVerdicts(r, e)})
	})
}

func (m *Matrix) readVerdicts(r *closed.Reader, e closed.Object) []bool {
	verdicts := r.Open(e.Value("verdicts"), e.At("verdicts"))
	if !r.OK() {
		return nil
	}
	out := make([]bool, len(m.Candidates))
	for i, c := range m.Candidates {
		if !verdicts.Has(c.ID) {
			verdicts.Fail(MissingField, c.ID, "the verdict on this candidate is missing")
			return nil
		}
		out[i] = verdicts.OneOf(c.ID, InvalidValue, "accept", "reject") == "accept"
	}
	// All candidates have a verdict, so a longer map judges something else: a slip of the pen that would go unseen.
	if all, _ := e.Value("verdicts").(*canon.Object); all.Len() > len(out) {
		keys := all.Keys()
		slices.Sort(keys) // the fault must not depend on the order of keys
		for _, k := range keys {
			if !slices.ContainsFunc(m.Candidates, func(c Candidate) bool { return c.ID == k }) {
				verdicts.Fail(UnknownCandidate, k, "no candidate has this id")
				break
			}
		}
	}
	return out
}

// VoteQuorum is the quorum as an exact fraction.
func (m *Matrix) VoteQuorum() gatestat.Quorum { return m.quorum }

// GoodRows reports for every row whether its candidate is good.
func (m *Matrix) GoodRows() Column {
	out := make(Column, len(m.rows))
	for i, c := range m.rows {
		out[i] = m.Candidates[c].Good
	}
	return out
}

// Rows are the candidates other than probes; all rates are about them.
func (m *Matrix) Rows() []int { return m.rows }

// Probes are the candidates that are probes.
func (m *Matrix) Probes() []int { return m.probes }

// Index finds a verifier.
func (m *Matrix) Index(id string) (int, bool) {
	i := slices.IndexFunc(m.Verifiers, func(v Verifier) bool { return v.ID == id })
	return i, i >= 0
}

// IDs names verifiers.
func (m *Matrix) IDs(verifiers []int) []string {
	out := make([]string, len(verifiers))
	for i, v := range verifiers {
		out[i] = m.Verifiers[v].ID
	}
	return out
}

// All lists every verifier.
func (m *Matrix) All() []int {
	out := make([]int, len(m.Verifiers))
	for i := range out {
		out[i] = i
	}
	return out
}
