package modelrepo

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated table of docs/trainer.md")

// Every estimator but a command has hyperparameters, listed by name, whose defaults are accepted.
func TestHyperparameterTable(t *testing.T) {
	t.Parallel()
	for kind, types := range Estimators {
		for _, typ := range types {
			known := Hyperparameters(kind, typ)
			if (len(known) == 0) != (kind == EstimatorCommand) {
				t.Errorf("%s, %s: got %d hyperparameters", kind, typ, len(known))
			}
			if !slices.IsSortedFunc(known, func(a, b Hyperparameter) int { return strings.Compare(a.Name, b.Name) }) {
				t.Errorf("%s, %s: want them by name", kind, typ)
			}
			given := map[string]any{}
			for _, h := range known {
				given[h.Name] = h.Default
			}
			values, err := ParseHyperparameters(kind, typ, given)
			if err != nil || !reflect.DeepEqual(map[string]any(values), given) {
				t.Errorf("%s, %s: got %v, %v; want the defaults %v", kind, typ, values, err, given)
			}
		}
	}
	for kind := range hyperparameters {
		if Estimators[kind] == nil {
			t.Errorf("%s has hyperparameters and is no estimator", kind)
		}
	}
}

func TestHyperparameterValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind        string
		typ         Type
		name        string
		value, want any // want is a value, or the end of an error
	}{
		{"ridge", Regression, "alpha", uint64(2), 2.0},
		{"ridge", Regression, "alpha", nil, 1.0},
		{"ridge", Regression, "alpha", -1, "hyperparameter alpha is -1, want a number from 0 to 1e+12"},
		{"logistic", Classification, "alpha", 1, `logistic has no hyperparameter "alpha"; known are C, class_weight, max_iter, tol`},
		{"random_forest", Regression, "class_weight", "balanced", `"class_weight" only for classification; for regression known are bootstrap, max_depth, max_features, min_samples_leaf, min_samples_split, n_estimators`},
		{"random_forest", Regression, "bootstrap", false, false},
		{"random_forest", Regression, "bootstrap", "no", "bootstrap is no, want true or false"},
		{"random_forest", Regression, "max_features", 0.5, 0.5},
		{"random_forest", Regression, "max_features", 1.5, "max_features is 1.5, want all, sqrt, log2, third, a count, or a fraction below 1"},
		{"random_forest", Classification, "max_features", nil, "sqrt"},
		{"gbt", Regression, "n_estimators", 1.5, "n_estimators is 1.5, want a whole number from 1 to 10000"},
		{"gbt", Regression, "loss", "hinge", "loss is hinge, want one of squared_error, absolute_error"},
	} {
		values, err := ParseHyperparameters(c.kind, c.typ, map[string]any{c.name: c.value})
		if err != nil {
			if want, ok := c.want.(string); !ok || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s %s %v: got %v, want %v", c.kind, c.name, c.value, err, c.want)
			}
			continue
		}
		if values[c.name] != c.want {
			t.Errorf("%s %s %v: got %v, want %v", c.kind, c.name, c.value, values[c.name], c.want)
		}
	}
}

// The manual contains the table unchanged.
func TestHyperparametersInTheManual(t *testing.T) {
	t.Parallel()
	const manual, begin, end = "../../docs/trainer.md", "<!-- generated: hyperparameters -->\n", "<!-- end -->"
	var b strings.Builder
	fmt.Fprint(&b, "| Estimator | Hyperparameter | Default | Values | Meaning |\n|---|---|---|---|---|\n")
	for _, kind := range sortedKeys(hyperparameters) {
		for _, h := range hyperparameters[kind] {
			name, accepts := "`"+h.Name+"`", h.Accepts()
			if h.Types != nil {
				name += fmt.Sprintf(" (%s)", h.Types[0])
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", kind, name, h.FormatDefault(), accepts, h.Meaning)
		}
	}
	page, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	table, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the marks %q and %q", manual, begin, end)
	}
	if *update {
		if err := os.WriteFile(manual, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != b.String() {
		t.Error("docs/trainer.md is out of date; run: go test ./libs/modelrepo -run HyperparametersInTheManual -update")
	}
}
