package shape_test

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/looptest"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/shape"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

var schema = shape.New("result-manifest", "", field.Codes)

func decodeChanged(t *testing.T, change func(*looptest.Loop)) *closed.Fault {
	t.Helper()
	loop := looptest.JSON().Seal()
	change(loop)
	var out struct {
		ID string `json:"id"`
	}
	err := schema.Decode(loop.Manifests[0], &out)
	var fault *closed.Fault
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("got %v, want a *closed.Fault", err)
	}
	return fault
}

// A fault has the code, the pointer and the words of the product; the least deep one is reported.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes map[string]canon.Value
		want    *closed.Fault
	}{
		"as it is": {nil, nil},
		"a float for an integer": {map[string]canon.Value{"attempt": canon.Float(1)},
			&closed.Fault{Code: "invalid_type", Path: "/attempt", Detail: "expected an integer"}},
		"an integer for a number": {map[string]canon.Value{"resources.wall_seconds": canon.NewInt(2)}, nil},
		"another version before another value": {map[string]canon.Value{"schema_version": "9", "attempt": canon.NewInt(0)},
			&closed.Fault{Code: "invalid_value", Path: "/schema_version", Detail: "expected 0.1"}},
		"a leap second": {map[string]canon.Value{"started_at": "2016-12-31T23:59:60Z"},
			&closed.Fault{Code: "invalid_value", Path: "/started_at", Detail: "expected a time such as 2026-01-02T03:04:05Z"}},
		"the type of no alternative": {map[string]canon.Value{"provenance.environment": canon.NewInt(1)},
			&closed.Fault{Code: "invalid_type", Path: "/provenance/environment", Detail: "expected a string or an object"}},
		"the closest alternative": {map[string]canon.Value{"provenance.environment": ""},
			&closed.Fault{Code: "invalid_value", Path: "/provenance/environment", Detail: "the string must not be empty"}},
		"twice the same": {map[string]canon.Value{"verification_request.expected_validator_ids": canon.Array{"a", "b", "a"}},
			&closed.Fault{Code: "duplicate_value", Path: "/verification_request/expected_validator_ids/2", Detail: "an earlier one is the same"}},
		"the tenth element": {map[string]canon.Value{"self_report.claims": canon.Array{"a", "a", "a", "a", "a", "a", "a", "a", "a", nil, nil}},
			&closed.Fault{Code: "invalid_type", Path: "/self_report/claims/9", Detail: "expected a string or an object"}},
	} {
		got := decodeChanged(t, func(l *looptest.Loop) {
			for path, value := range c.changes {
				looptest.Set(l.Manifests[0], path, value)
			}
		})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// An integer that no Go number holds is a fault of the document at its place, and names no Go type.
func TestNumbersBeyondGo(t *testing.T) {
	t.Parallel()
	var out struct {
		Resources struct {
			WallSeconds float64 `json:"wall_seconds"`
		} `json:"resources"`
	}
	loop := looptest.JSON().Seal()
	huge, err := canon.Parse([]byte("1" + strings.Repeat("0", 400)))
	if err != nil {
		t.Fatal(err)
	}
	looptest.Set(loop.Manifests[0], "resources.wall_seconds", huge)
	want := &closed.Fault{Code: "invalid_value", Path: "/resources/wall_seconds", Detail: "the number is beyond 64 bits"}
	if got := schema.Decode(loop.Manifests[0], &out); !reflect.DeepEqual(got, error(want)) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A document that is wrong in a million places costs little more than one that is wrong in one.
func TestCostOfWrongElements(t *testing.T) {
	wrong := make(canon.Array, 1_000_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := decodeChanged(t, func(l *looptest.Loop) { looptest.Set(l.Manifests[0], "self_report.claims", wrong) })
	runtime.ReadMemStats(&after)
	if want := "/self_report/claims/0"; got == nil || got.Path != want {
		t.Errorf("got %v, want a fault at %s", got, want)
	}
	if got, want := (after.TotalAlloc-before.TotalAlloc)>>20, uint64(128); got > want {
		t.Errorf("got %d MiB allocated, want at most %d", got, want)
	}
}
