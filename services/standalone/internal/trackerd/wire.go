package trackerd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// lists are the parameters that may come more than once in a query.
var lists = map[string]bool{"order_by": true, "stages": true, "experiment_ids": true, "run_ids": true}

// decodeRequest reads the parameters of a request: of a GET from its query, else from
// its JSON body, and from its path. Unknown ones are let pass, as a real server
// does, so that newer clients work.
func decodeRequest(r *http.Request, dst any) error {
	if r.Method == http.MethodGet {
		m := map[string]any{}
		for k, v := range r.URL.Query() {
			if lists[k] {
				m[k] = v
			} else {
				m[k] = v[0]
			}
		}
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if err := unmarshalParams(b, dst); err != nil {
			return err
		}
		return fromPath(r, dst)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return err
		}
		return invalidParameter("The request body ended early: %v", err)
	}
	if len(bytes.TrimSpace(b)) > 0 {
		// Also what keeps forms of foreign pages out.
		if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
			return invalidParameter("Bad Request. Content-Type must be one of ['application/json'].")
		}
		if err := unmarshalParams(b, dst); err != nil {
			return err
		}
	}
	return fromPath(r, dst)
}

// fromPath lets the identifiers in the path win over those in the body.
func fromPath(r *http.Request, dst any) error {
	m := map[string]string{}
	for _, k := range []string{"model_id", "tag_key", "webhook_id"} {
		if v := r.PathValue(k); v != "" {
			m[k] = v
		}
	}
	if len(m) == 0 {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return unmarshalParams(b, dst)
}

func unmarshalParams(b []byte, dst any) error {
	err := json.Unmarshal(b, dst)
	var wrong *json.UnmarshalTypeError
	var ref *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ref):
		return ref
	case errors.As(err, &wrong) && wrong.Field != "":
		return invalidParameter("Invalid value for parameter '%s' supplied: Hint: Value was of type '%s'. See the API docs for more information about request parameters.", wrong.Field, wrong.Value)
	}
	if wrong != nil {
		return invalidParameter("The request body must be a JSON object; it is of type '%s'.", wrong.Value)
	}
	return invalidParameter("The request body is not JSON: %v.", err)
}

// integer is an int64 written as a number, with or without a fraction that is
// dropped, or as a string.
type integer int64

func (i *integer) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || !(math.Abs(f) < 1<<63) {
			return invalidParameter("Invalid value %s supplied: a whole number is needed. See the API docs for more information about request parameters.", clipValue(string(b)))
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
		return invalidParameter("Invalid value %s supplied: a number, \"NaN\", \"Infinity\" or \"-Infinity\" is needed. See the API docs for more information about request parameters.", clipValue(string(b)))
	}
	*n = number(v)
	return nil
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

// orEmptyTags makes sure that what is written to the database is never null.
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
