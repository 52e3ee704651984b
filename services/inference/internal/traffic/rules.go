// Package traffic splits the requests of a model among its aliases, and selects the alias that scores some of them
// again after the answer (shadow.go).
//
// The rules are rows in Postgres. Each replica keeps them in memory, where a prediction finds them with one atomic
// load, and polls for changes every half second, so that a change takes effect everywhere within a second, with or
// without a broker. While the database is unreachable, the last rules stay in effect.
package traffic

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
)

// Weights are percentages by alias, 100 in all; an alias that is absent has none.
type Weights map[string]int

// hundred is the sum of all weights.
const hundred = 100

// Rule is a model's weights, ready to choose by.
type Rule struct {
	percent []int  // in the order of the aliases
	only    string // the alias that gets all; empty if there is a choice
}

// NewRule returns the rule of weights that add up to 100.
func NewRule(w Weights) *Rule {
	r := &Rule{percent: make([]int, len(catalog.Aliases))}
	for i, alias := range catalog.Aliases {
		if r.percent[i] = w[alias]; w[alias] == hundred {
			r.only = alias
		}
	}
	return r
}

// Alias chooses for a key, which is evaluated only if there is a choice. The same key gets the same alias as long as
// the rule stays; when Production shrinks, only the keys that leave it move to Canary.
func (r *Rule) Alias(trackerName string, key func() string) string {
	if r.only != "" {
		return r.only
	}
	place := bucket(trackerName, key())
	for i, percent := range r.percent {
		if place -= percent; place < 0 {
			return catalog.Aliases[i]
		}
	}
	return catalog.Production // not reached: weights add up to 100
}

// bucket is the place of a key among 100 for one model.
func bucket(trackerName, key string) int {
	text := make([]byte, 0, 128) // on the stack for keys of usual length
	text = append(append(append(text, trackerName...), 0), key...)
	sum := sha256.Sum256(text)
	return int(binary.BigEndian.Uint64(sum[:8]) % hundred)
}

// parseWeights checks a request's weights. The error is a 422 that lists the faults.
func parseWeights(body map[string]*json.RawMessage) (Weights, error) {
	w := Weights{}
	var faults []problem.Field
	fault := func(name, msg string) {
		faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg})
	}
	for name, raw := range body {
		alias, ok := catalog.CanonicalAlias(name)
		if !ok {
			fault(problem.Shorten(name), "is no alias; the aliases are "+strings.Join(catalog.Aliases, ", "))
			continue
		}
		if _, twice := w[alias]; twice {
			fault(name, "is given more than once")
			continue
		}
		var percent int
		if raw == nil || json.Unmarshal(*raw, &percent) != nil || percent < 0 || percent > hundred {
			fault(name, "must be a whole number from 0 to 100")
			continue
		}
		w[alias] = percent
	}
	if len(faults) == 0 {
		if sum := w.sum(); sum != hundred {
			faults = []problem.Field{{Loc: []string{"body"}, Msg: fmt.Sprintf("the percentages add up to %d; they must add up to 100", sum)}}
		}
	}
	if len(faults) > 0 {
		return nil, invalidRules(faults)
	}
	return w, nil
}

// invalidRules returns the 422 that lists the faults, sorted, since a JSON object has no order.
func invalidRules(faults []problem.Field) error {
	slices.SortFunc(faults, func(a, b problem.Field) int {
		return strings.Compare(strings.Join(a.Loc, ".")+a.Msg, strings.Join(b.Loc, ".")+b.Msg)
	})
	return problem.Validation.New("The rules are not valid: " + strings.Join(faults[0].Loc, ".") + ": " + faults[0].Msg + ".").WithErrors(faults...)
}

func (w Weights) sum() int {
	sum := 0
	for _, percent := range w {
		sum += percent
	}
	return sum
}
