package modelrepo

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxCombinations limits the combinations of hyperparameters that one training tries on validation.
const MaxCombinations = 24

// Hyperparameter is one setting of an estimator. Its default determines the accepted values: for a float64 any number
// from Min to Max, for an int whole ones, for a bool true and false, for a string one of Words.
type Hyperparameter struct {
	Name     string
	Default  any
	Min, Max float64
	Words    []string
	// Share accepts, in addition to Words, a count of at least 1 or a fraction below 1.
	Share bool
	// Types of models that have it; nil: all that the estimator suits.
	Types   []Type
	Meaning string
}

// unlimited is the largest count of rows or leaves.
const unlimited = 1 << 30

var (
	regressionOnly     = []Type{Regression}
	classificationOnly = []Type{Classification}

	shareWords = []string{"all", "sqrt", "log2", "third"}

	classWeight = Hyperparameter{Name: "class_weight", Default: "none", Words: []string{"none", "balanced"}, Types: classificationOnly,
		Meaning: "balanced: each class counts the same, however few its rows are"}
	treeDepth = Hyperparameter{Name: "max_depth", Default: 0, Min: 0, Max: 64, Meaning: "levels of a tree; 0: not limited"}
)

// hyperparameters of each estimator. Validation, training and the manual (docs/trainer.md) read this table alone.
var hyperparameters = map[string][]Hyperparameter{
	"ridge": {
		{Name: "alpha", Default: 1.0, Min: 0, Max: 1e12, Meaning: "L2 penalty on the coefficients"},
	},
	"logistic": {
		{Name: "C", Default: 1.0, Min: 1e-12, Max: 1e12, Meaning: "inverse of the L2 penalty on the coefficients"},
		classWeight,
		{Name: "max_iter", Default: 500, Min: 1, Max: 100_000, Meaning: "iterations of the solver"},
		{Name: "tol", Default: 1e-6, Min: 1e-14, Max: 1, Meaning: "gradient at which the solver stops, per row"},
	},
	"random_forest": {
		{Name: "bootstrap", Default: true, Meaning: "each tree draws its rows with replacement"},
		classWeight,
		treeDepth,
		{Name: "max_features", Default: "third", Words: shareWords, Share: true, Types: regressionOnly, Meaning: "features that a split looks at"},
		{Name: "max_features", Default: "sqrt", Words: shareWords, Share: true, Types: classificationOnly, Meaning: "features that a split looks at"},
		{Name: "min_samples_leaf", Default: 1, Min: 1, Max: unlimited, Meaning: "rows of a leaf"},
		{Name: "min_samples_split", Default: 2, Min: 2, Max: unlimited, Meaning: "rows of a node that is split"},
		{Name: "n_estimators", Default: 100, Min: 1, Max: 10_000, Meaning: "trees"},
	},
	"gbt": {
		{Name: "colsample", Default: 1.0, Min: 0.001, Max: 1, Meaning: "fraction of the features that a tree looks at"},
		{Name: "early_stopping_rounds", Default: 0, Min: 0, Max: 10_000, Meaning: "rounds without a lower loss on held-out rows, after which it stops; 0: never"},
		{Name: "l2", Default: 0.0, Min: 0, Max: 1e12, Meaning: "L2 penalty on the leaves"},
		{Name: "learning_rate", Default: 0.1, Min: 1e-6, Max: 1, Meaning: "weight of each tree"},
		{Name: "loss", Default: "squared_error", Words: []string{"squared_error", "absolute_error"}, Types: regressionOnly, Meaning: "what is minimised; of classes it is the log loss"},
		treeDepth,
		{Name: "max_leaves", Default: 31, Min: 0, Max: 1 << 20, Meaning: "leaves of a tree; 0: not limited"},
		{Name: "min_samples_leaf", Default: 20, Min: 1, Max: unlimited, Meaning: "rows of a leaf"},
		{Name: "n_estimators", Default: 100, Min: 1, Max: 10_000, Meaning: "rounds; each grows one tree, or one per class of three or more"},
		{Name: "subsample", Default: 1.0, Min: 0.01, Max: 1, Meaning: "fraction of the rows that a tree is grown on"},
		{Name: "validation_fraction", Default: 0.1, Min: 0.01, Max: 0.5, Meaning: "fraction of the rows held out for early_stopping_rounds"},
	},
	"isolation_forest": {
		{Name: "contamination", Default: 0.1, Min: 1e-6, Max: 0.5, Meaning: "fraction of the fitted rows that reach the threshold"},
		{Name: "max_samples", Default: 256, Min: 2, Max: 1 << 20, Meaning: "rows of a tree"},
		{Name: "n_estimators", Default: 100, Min: 1, Max: 10_000, Meaning: "trees"},
	},
}

// Hyperparameters lists those that an estimator has for models of a type, by name. Those of kind command are its
// command's, which alone knows them.
func Hyperparameters(kind string, t Type) []Hyperparameter {
	var out []Hyperparameter
	for _, h := range hyperparameters[kind] {
		if h.Types == nil || slices.Contains(h.Types, t) {
			out = append(out, h)
		}
	}
	return out
}

// Accepts describes the values that are accepted.
func (h Hyperparameter) Accepts() string {
	switch h.Default.(type) {
	case float64:
		return fmt.Sprintf("a number from %v to %v", h.Min, h.Max)
	case int:
		return fmt.Sprintf("a whole number from %.0f to %.0f", h.Min, h.Max)
	case bool:
		return "true or false"
	}
	if h.Share {
		return strings.Join(h.Words, ", ") + ", a count, or a fraction below 1"
	}
	return "one of " + strings.Join(h.Words, ", ")
}

// parse returns the value in the type of the default; a share may also be a float64. Null is the default.
func (h Hyperparameter) parse(v any) (any, error) {
	f, isNumber := parseNumber(v)
	inRange := isNumber && f >= h.Min && f <= h.Max
	whole := f == math.Trunc(f)
	word, isText := v.(string)
	flag, isFlag := v.(bool)
	switch h.Default.(type) {
	case float64:
		if inRange {
			return f, nil
		}
	case int:
		if inRange && whole {
			return int(f), nil
		}
	case bool:
		if isFlag {
			return flag, nil
		}
	default:
		switch {
		case isText && slices.Contains(h.Words, word):
			return word, nil
		case h.Share && isNumber && f > 0 && (f < 1 || whole && f <= math.MaxInt32):
			return f, nil
		}
	}
	if v == nil {
		return h.Default, nil
	}
	return nil, fmt.Errorf("hyperparameter %s is %.80s, want %s", h.Name, fmt.Sprint(v), h.Accepts())
}

// parseNumber reads what YAML and JSON decoders make of a number.
func parseNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, !math.IsNaN(x)
	case float32:
		return float64(x), true
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	}
	return 0, false
}

// HyperValues holds every hyperparameter of an estimator, those that were left out with their defaults. The getters
// panic for a name or type that the table does not have.
type HyperValues map[string]any

// Float is the value of a number.
func (v HyperValues) Float(name string) float64 { return v[name].(float64) }

// Int is the value of a whole number.
func (v HyperValues) Int(name string) int { return v[name].(int) }

// Bool is the value of a switch.
func (v HyperValues) Bool(name string) bool { return v[name].(bool) }

// Word is the value of a choice.
func (v HyperValues) Word(name string) string { return v[name].(string) }

// Share maps the number of all features to the number chosen, at least 1.
func (v HyperValues) Share(name string) func(of int) int {
	switch s := v[name].(type) {
	case float64:
		if s < 1 {
			return func(n int) int { return max(int(s*float64(n)), 1) }
		}
		return func(n int) int { return min(int(s), n) }
	case string:
		switch s {
		case "sqrt":
			return func(n int) int { return max(int(math.Sqrt(float64(n))), 1) }
		case "log2":
			return func(n int) int { return max(int(math.Log2(float64(n))), 1) }
		case "third":
			return func(n int) int { return max(n/3, 1) }
		}
	}
	return func(n int) int { return n }
}

// ParseHyperparameters reads one combination of values.
func ParseHyperparameters(kind string, t Type, values map[string]any) (HyperValues, error) {
	known := Hyperparameters(kind, t)
	out := make(HyperValues, len(known))
	var faults []error
	for _, h := range known {
		v, err := h.parse(values[h.Name])
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", kind, err))
		}
		out[h.Name] = v
	}
	for _, name := range sortedKeys(values) {
		if _, ok := out[name]; !ok {
			faults = append(faults, unknownHyperparameter(kind, t, name))
		}
	}
	return out, errors.Join(faults...)
}

func unknownHyperparameter(kind string, t Type, name string) error {
	known := Hyperparameters(kind, t)
	names := make([]string, len(known))
	for i, h := range known {
		names[i] = h.Name
	}
	for _, h := range hyperparameters[kind] {
		if h.Name == name {
			return fmt.Errorf("%s has hyperparameter %q only for %s; for %s known are %s", kind, name, h.Types[0], t, strings.Join(names, ", "))
		}
	}
	return fmt.Errorf("%s has no hyperparameter %.80q; known are %s", kind, name, strings.Join(names, ", "))
}

// hyperparameterFaults checks each value of each hyperparameter once, whatever combinations the lists make. The keys
// are the hyperparameters' names; "" is for the combination.
func (e Estimator) hyperparameterFaults(t Type) map[string]error {
	faults := map[string]error{}
	for _, name := range sortedKeys(e.Hyperparameters) {
		list, ok := e.Hyperparameters[name].([]any)
		switch {
		case !ok:
			list = []any{e.Hyperparameters[name]}
		case len(list) == 0:
			faults[name] = fmt.Errorf("hyperparameter %s is an empty list", name)
		}
		if e.Kind == EstimatorCommand {
			continue
		}
		for _, v := range list {
			if _, err := ParseHyperparameters(e.Kind, t, map[string]any{name: v}); err != nil {
				faults[name] = err
				break
			}
		}
	}
	if e.combinations() > MaxCombinations {
		faults[""] = fmt.Errorf("the lists among the hyperparameters make more than %d combinations", MaxCombinations)
	}
	return faults
}

// combinations counts those that the lists make, up to one more than is allowed.
func (e Estimator) combinations() int {
	n := 1
	for _, v := range e.Hyperparameters {
		if list, ok := v.([]any); ok && len(list) > 0 {
			n = min(n*min(len(list), MaxCombinations+1), MaxCombinations+1)
		}
	}
	return n
}

// CheckHyperparameters reports every hyperparameter that the estimator does not have, or not with that value.
func (e Estimator) CheckHyperparameters(t Type) error {
	faults := e.hyperparameterFaults(t)
	var errs []error
	for _, name := range sortedKeys(faults) {
		errs = append(errs, faults[name])
	}
	return errors.Join(errs...)
}

// Combinations unfolds hyperparameters whose value is a list into one combination per element.
func (e Estimator) Combinations() []map[string]any {
	first := maps.Clone(e.Hyperparameters)
	if first == nil {
		first = map[string]any{}
	}
	out := []map[string]any{first}
	for _, name := range sortedKeys(e.Hyperparameters) {
		list, ok := e.Hyperparameters[name].([]any)
		if !ok {
			continue
		}
		var next []map[string]any
		for _, c := range out {
			for _, v := range list {
				c := maps.Clone(c)
				c[name] = v
				next = append(next, c)
			}
		}
		out = next
	}
	return out
}

// FormatDefault is the default as model.yaml has it.
func (h Hyperparameter) FormatDefault() string {
	if f, ok := h.Default.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(h.Default)
}
