package marginal

import (
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/closed"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gate"
)

// Codes of a choice of verifiers that is refused.
const (
	UnknownVerifier   = "unknown_verifier"
	DuplicateVerifier = "duplicate_verifier"
	NoCurrent         = "no_current_verifier"
	NoCandidate       = "no_candidate_verifier"
)

// Selection is the verifiers of a matrix that are compared, in the order of the matrix.
type Selection struct {
	Current    []int // at least one
	Candidates []int // at least one, none of them current
}

// Select finds verifiers. Without candidates, all that are not current are meant. A fault is a *closed.Fault; its path
// names nothing, since the ids come from a command line or another document.
func Select(m *gate.Matrix, current, candidates []string) (Selection, error) {
	var s Selection
	if len(current) == 0 {
		return s, newFault(NoCurrent, "name the verifiers of the current panel")
	}
	var err error
	if s.Current, err = findVerifiers(m, current); err != nil {
		return s, err
	}
	if len(candidates) == 0 {
		for _, v := range m.All() {
			if !slices.Contains(s.Current, v) {
				s.Candidates = append(s.Candidates, v)
			}
		}
	} else if s.Candidates, err = findVerifiers(m, candidates); err != nil {
		return s, err
	}
	if len(s.Candidates) == 0 {
		return s, newFault(NoCandidate, "every verifier of the matrix is in the current panel, so none is left to add")
	}
	for _, v := range s.Candidates {
		if slices.Contains(s.Current, v) {
			return s, newFault(DuplicateVerifier, "a verifier is named both current and candidate: "+m.Verifiers[v].ID)
		}
	}
	return s, nil
}

func findVerifiers(m *gate.Matrix, ids []string) ([]int, error) {
	var out []int
	for _, id := range ids {
		v, ok := m.Index(id)
		if !ok {
			return nil, newFault(UnknownVerifier, "the matrix has no verifier "+clipID(id))
		}
		if slices.Contains(out, v) {
			return nil, newFault(DuplicateVerifier, "a verifier is named twice: "+id)
		}
		out = append(out, v)
	}
	slices.Sort(out)
	return out, nil
}

// clipID shortens an id from the command line to fit one line.
func clipID(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func newFault(code, detail string) error { return &closed.Fault{Code: code, Detail: detail} }
