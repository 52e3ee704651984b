package trackerd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// integer is an int64 written as a number, with or without a fraction that is
// dropped, or as a string.
type integer int64

func (i *integer) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(math.Abs(f) < 1<<63) {
			return errors.New("not a whole number")
		}
		n = int64(f)
	}
	*i = integer(n)
	return nil
}

// number is a float64 that may be written as "NaN", "Infinity" or "-Infinity".
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || s == "" {
		return errors.New("not a number")
	}
	*n = number(v)
	return nil
}

// python writes a number as Python does, a whole one with its fraction.
func (n number) python() string {
	s := strconv.FormatFloat(float64(n), 'g', -1, 64)
	if strings.Trim(s, "-0123456789") == "" {
		s += ".0"
	}
	return s
}

func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) {
		return []byte(`"NaN"`), nil
	}
	return json.Marshal(float64(n))
}

func clipValue(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// pair is a tag or parameter.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func toPairs(m store.Tags) []pair {
	out := make([]pair, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, pair{k, m[k]})
	}
	return out
}

// orEmptyTags replaces nil tags, so that the database never gets null.
func orEmptyTags(m store.Tags) store.Tags {
	if m == nil {
		return store.Tags{}
	}
	return m
}

func experimentID(s string) (int64, error) {
	if s == "" {
		return 0, missingParameter("experiment_id")
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, invalidParameter("Invalid experiment ID '%s'. Experiment ID must be a valid integer.", clipValue(s))
	}
	return n, nil
}

func versionNumber(s string) (int32, error) {
	if s == "" {
		return 0, missingParameter("version")
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, invalidParameter("Parameter 'version' must be an integer, got '%s'.", clipValue(s))
	}
	return int32(n), nil
}

// requireValues names the first of the pairs of name and value that has no value.
func requireValues(nameValue ...string) error {
	for i := 0; i < len(nameValue); i += 2 {
		if nameValue[i+1] == "" {
			return missingParameter(nameValue[i])
		}
	}
	return nil
}

func formatInt[T int32 | int64](n T) string { return fmt.Sprintf("%d", n) }
