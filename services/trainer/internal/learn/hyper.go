package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// hyper reads hyperparameters and remembers which were asked for, so that a misspelt one is an error that
// names the known ones.
type hyper struct {
	kind   string
	values map[string]any
	known  []string
	faults []error
}

func (h *hyper) err() error {
	faults := h.faults
	for _, name := range slices.Sorted(maps.Keys(h.values)) {
		if !slices.Contains(h.known, name) {
			slices.Sort(h.known)
			faults = append(faults, fmt.Errorf("%s has no hyperparameter %q; known are %s", h.kind, name, strings.Join(h.known, ", ")))
		}
	}
	return errors.Join(faults...)
}

func (h *hyper) value(name string) (any, bool) {
	h.known = append(h.known, name)
	v, ok := h.values[name]
	return v, ok && v != nil
}

func (h *hyper) fault(name string, v any, want string) {
	h.faults = append(h.faults, fmt.Errorf("%s: hyperparameter %s is %v, want %s", h.kind, name, v, want))
}

// parseNumber accepts what YAML and JSON decoders make of a number.
func parseNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
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

// float reads a number in [lo, hi].
func (h *hyper) float(name string, def, lo, hi float64) float64 {
	v, ok := h.value(name)
	if !ok {
		return def
	}
	f, ok := parseNumber(v)
	if !ok || math.IsNaN(f) || f < lo || f > hi {
		h.fault(name, v, fmt.Sprintf("a number from %v to %v", lo, hi))
		return def
	}
	return f
}

// int reads a whole number in [lo, hi].
func (h *hyper) int(name string, def, lo, hi int) int {
	v, ok := h.value(name)
	if !ok {
		return def
	}
	f, ok := parseNumber(v)
	if !ok || f != math.Trunc(f) || f < float64(lo) || f > float64(hi) {
		h.fault(name, v, fmt.Sprintf("a whole number from %d to %d", lo, hi))
		return def
	}
	return int(f)
}

func (h *hyper) choice(name, def string, choices ...string) string {
	v, ok := h.value(name)
	if !ok {
		return def
	}
	if s, ok := v.(string); ok && slices.Contains(choices, s) {
		return s
	}
	h.fault(name, v, "one of "+strings.Join(choices, ", "))
	return def
}

func (h *hyper) bool(name string, def bool) bool {
	v, ok := h.value(name)
	if !ok {
		return def
	}
	if b, ok := v.(bool); ok {
		return b
	}
	h.fault(name, v, "true or false")
	return def
}

// features reads max_features: all, sqrt, log2, third, a count of at least 1 (whole number), or a
// fraction below 1. The result maps the number of features to how many a split looks at.
func (h *hyper) features(name, def string) func(int) int {
	v, ok := h.value(name)
	if !ok {
		v = def
	}
	if s, ok := v.(string); ok {
		switch s {
		case "all":
			return func(n int) int { return n }
		case "sqrt":
			return func(n int) int { return max(int(math.Sqrt(float64(n))), 1) }
		case "log2":
			return func(n int) int { return max(int(math.Log2(float64(n))), 1) }
		case "third":
			return func(n int) int { return max(n/3, 1) }
		}
	}
	f, ok := parseNumber(v)
	switch {
	case ok && f > 0 && f < 1:
		return func(n int) int { return max(int(f*float64(n)), 1) }
	case ok && f >= 1 && f == math.Trunc(f) && f < 1<<31:
		return func(n int) int { return min(int(f), n) }
	}
	h.fault(name, v, "all, sqrt, log2, third, a count, or a fraction below 1")
	return func(n int) int { return n }
}
