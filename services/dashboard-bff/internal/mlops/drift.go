package mlops

import (
	"slices"
	"time"

	"github.com/mlp-platform/platform/clients/go/inference"
)

// modelDrift is the drift of one model, a row per alias.
type modelDrift []inference.DriftStatus

func groupDrift(rows []inference.DriftStatus) map[string]modelDrift {
	out := make(map[string]modelDrift, len(rows)/len(ladder)+1)
	for _, r := range rows {
		r.Alias = aliasName(r.Alias)
		name := modelName(r.Model)
		out[name] = append(out[name], r)
	}
	return out
}

// under returns the row of an alias; nil if nothing is known of it.
func (d modelDrift) under(alias string) *inference.DriftStatus {
	if i := slices.IndexFunc(d, func(r inference.DriftStatus) bool { return r.Alias == alias }); i >= 0 {
		return &d[i]
	}
	return nil
}

// measuredVersion returns the version whose predictions were compared; 0 without any.
func measuredVersion(d *inference.DriftStatus) int {
	if d.NSnapshots == 0 {
		return 0
	}
	return versionNumber(d.Version)
}

// newest returns when the model last predicted, under whichever alias; zero if never.
func (d modelDrift) newest() (at time.Time) {
	for _, r := range d {
		if r.NewestAt != nil && r.NewestAt.After(at) {
			at = *r.NewestAt
		}
	}
	return at
}

// numbers returns the predictions that are numbers, not labels.
func numbers(recent []any) []float64 {
	out := make([]float64, 0, len(recent))
	for _, v := range recent {
		if n, ok := v.(float64); ok {
			out = append(out, n)
		}
	}
	return out
}
