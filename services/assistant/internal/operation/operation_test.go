package operation_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestRisk has every row of the risk table, and every verb in exactly one of them.
func TestRisk(t *testing.T) {
	t.Parallel()
	rows := map[operation.Risk][]operation.Verb{
		operation.Low: {operation.List, operation.Get, operation.Describe, operation.Logs, operation.Events, operation.Top, operation.RolloutHistory,
			operation.CanI, operation.Explain, operation.Diff, operation.WhoAmI, operation.APIResources, operation.ClusterInfo, operation.QueryPrometheus, operation.QueryLoki},
		operation.Medium: {operation.Scale, operation.Restart, operation.Undo, operation.Pause, operation.Resume, operation.Patch, operation.Apply, operation.Create,
			operation.Label, operation.Annotate, operation.SetEnv, operation.Expose, operation.Autoscale, operation.Suspend, operation.RunJob, operation.Cordon, operation.Uncordon, operation.Evict},
		operation.High: {operation.Delete, operation.Drain, operation.Replace, operation.Taint, operation.SetImage, operation.SetResources},
	}
	seen := 0
	for risk, verbs := range rows {
		for _, v := range verbs {
			seen++
			if got := (operation.Operation{Verb: v}).Risk(); got != risk {
				t.Errorf("%s is %s, want %s", v, got, risk)
			}
			if got := (operation.Operation{Verb: v, DryRun: true}).Risk(); got != operation.Low {
				t.Errorf("a dry run of %s is %s; want got == %v", v, got, operation.Low)
			}
			if v.Writes() != (risk != operation.Low) || !v.Known() {
				t.Errorf("%s: writes %t; want v.Writes() == (risk != operation.Low) && v.Known()", v, v.Writes())
			}
		}
	}
	if seen != len(operation.Verbs()) {
		t.Errorf("%d verbs in the rows, %d in all; want seen == len(operation.Verbs())", seen, len(operation.Verbs()))
	}
	if got := (operation.Operation{Verb: "exec", DryRun: true}).Risk(); got != operation.High {
		t.Errorf("an unknown verb is %s; want %v", got, operation.High)
	}
	if operation.Low.Max(operation.High) != operation.High || operation.High.Max(operation.Medium) != operation.High {
		t.Error("the graver risk does not win")
	}
}

// TestStored: an operation stored in an action row is read back unchanged.
func TestStored(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, v := range operation.Verbs() {
		for range 200 {
			o := assistanttest.GenerateOperation(r, v)
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var back operation.Operation
			if err := json.Unmarshal(raw, &back); err != nil {
				t.Fatal(err)
			}
			if err := back.Validate(); err != nil || !reflect.DeepEqual(back, o) {
				t.Fatalf("%s\n%v\ngot  %+v\nwant %+v; want reflect.DeepEqual(back, o)", raw, err, back, o)
			}
			if operation.Digest("c", []operation.Expanded{{Operation: o}}) != operation.Digest("c", []operation.Expanded{{Operation: back}}) {
				t.Fatalf(`%s: the digest does not survive storing; want operation.Digest("c", []operation.Expanded{{Operation: o}}) == operation.Digest("c", []operation.Expanded{{Operation: back}})`, raw)
			}
			if again := operation.Normalize(o); !reflect.DeepEqual(again, o) {
				t.Fatalf("normal form of a normal form: %+v, want %+v", again, o)
			}
		}
	}
}

// TestExpandedStored: the embedded operation must not hide targets from the encoder.
func TestExpandedStored(t *testing.T) {
	t.Parallel()
	e := operation.Expanded{
		Operation: operation.Operation{Verb: operation.Delete, Kind: "pod", Names: []string{"a"}},
		Targets:   []operation.Target{{Ref: operation.Ref{Version: "v1", Kind: "Pod", Resource: "pods", Namespace: "shop", Name: "a"}, UID: "u", Fingerprint: "1", ResourceVersion: "7"}},
		Affected:  []operation.Ref{{Kind: "Pod", Name: "b"}}, NoDryRun: true,
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back operation.Expanded
	if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%s: %+v, %v; want reflect.DeepEqual(back, e)", raw, back, err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	base := func() []operation.Expanded {
		n := int32(3)
		return []operation.Expanded{{
			Operation: operation.Operation{Verb: operation.Scale, Kind: "deployment", Names: []string{"api"}, Namespace: "shop", Replicas: &n},
			Targets:   []operation.Target{{Ref: operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "api"}, UID: "u1", Fingerprint: "4", ResourceVersion: "10"}},
		}}
	}
	// Fixed, since a stored digest must outlive a release.
	const want = "sha256:6ce887242766c0eda17a126bd1681fdab0193a2dc555d268b87f676a6aeeeb26"
	if got := operation.Digest("c", base()); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	same := base()
	same[0].Targets[0].ResourceVersion = "11"
	same[0].Affected = []operation.Ref{{Kind: "Pod"}}
	if operation.Digest("c", same) != want {
		t.Error("a resource version moves the digest")
	}
	for name, change := range map[string]func([]operation.Expanded) []operation.Expanded{
		"replicas":    func(e []operation.Expanded) []operation.Expanded { *e[0].Replicas = 4; return e },
		"namespace":   func(e []operation.Expanded) []operation.Expanded { e[0].Namespace = "x"; return e },
		"dry run":     func(e []operation.Expanded) []operation.Expanded { e[0].DryRun = true; return e },
		"uid":         func(e []operation.Expanded) []operation.Expanded { e[0].Targets[0].UID = "u2"; return e },
		"fingerprint": func(e []operation.Expanded) []operation.Expanded { e[0].Targets[0].Fingerprint = "5"; return e },
		"ref":         func(e []operation.Expanded) []operation.Expanded { e[0].Targets[0].Ref.Name = "web"; return e },
		"target": func(e []operation.Expanded) []operation.Expanded {
			e[0].Targets = append(e[0].Targets, e[0].Targets[0])
			return e
		},
		"operation": func(e []operation.Expanded) []operation.Expanded { return append(e, e[0]) },
		"none":      func([]operation.Expanded) []operation.Expanded { return nil },
	} {
		if operation.Digest("c", change(base())) == want {
			t.Errorf(`another %s has the same digest; want operation.Digest("c", change(base())) != want`, name)
		}
	}
	if operation.Digest("d", base()) == want {
		t.Error("another cluster has the same digest")
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		op   operation.Operation
		want []operation.Object
	}{
		{operation.Operation{Kind: "pods,svc", Names: []string{"a", "b"}}, []operation.Object{{"pods", "a"}, {"pods", "b"}, {"svc", "a"}, {"svc", "b"}}},
		{operation.Operation{Kind: "ns,pv", All: true}, []operation.Object{{"ns", ""}, {"pv", ""}}},
		{operation.Operation{Names: []string{"pod/a", "svc/b"}}, []operation.Object{{"pod", "a"}, {"svc", "b"}}},
		{operation.Operation{}, nil},
	} {
		if got := tc.op.Objects(); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.op, got, tc.want)
		}
	}
	if got := (operation.Operation{Names: []string{"pod/a", "pod/b", "svc/c"}}).Kinds(); !slices.Equal(got, []string{"pod", "svc"}) {
		t.Errorf(`kinds %q; want slices.Equal(got, []string{"pod", "svc"})`, got)
	}
}

// TestForeignMembers: a member of another verb is refused, not ignored.
func TestForeignMembers(t *testing.T) {
	t.Parallel()
	n := int32(1)
	for _, o := range []operation.Operation{
		{Verb: operation.List, Kind: "pods", Force: true},
		{Verb: operation.Get, Kind: "pods", Names: []string{"a"}, Replicas: &n},
		{Verb: operation.Delete, Kind: "pods", Names: []string{"a"}, Manifest: "x"},
		{Verb: operation.Cordon, Kind: "node", Names: []string{"a"}, Namespace: "shop"},
		{Verb: operation.Restart, Kind: "deploy", Names: []string{"a"}, LabelSelector: "a=b"},
		{Verb: operation.List, Kind: "pods", Names: []string{}},
		{Verb: operation.Label, Kind: "pods", Names: []string{"a"}, Set: map[string]string{}},
		{Verb: "", Kind: "pods"},
		{Verb: "exec", Kind: "pods", Names: []string{"a"}},
	} {
		var fault *operation.Fault
		if err := o.Validate(); !errors.As(err, &fault) {
			t.Errorf("%+v passes (%v); want errors.As(err, &fault)", o, err)
		}
	}
	many := operation.Operation{Verb: operation.Delete, Kind: "pod"}
	for i := range operation.MaxNames + 1 {
		many.Names = append(many.Names, "a"+strings.Repeat("b", i))
	}
	if err := many.Validate(); err == nil {
		t.Error("too many names pass")
	}
}
