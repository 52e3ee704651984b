package catalogue

import "github.com/mlp-platform/platform/libs/evidence/canon"

// UnexpectedParameter returns the fault of a query name that the endpoint does not have.
func UnexpectedParameter(allowed []string) *Fault {
	return New(UnexpectedQueryParameters, "allowed", TextArray(allowed...))
}

// TextArray returns an array of texts for the details of a fault.
func TextArray(list ...string) canon.Array {
	out := canon.Array{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
