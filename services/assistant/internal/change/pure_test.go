package change

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func parseObject(t testing.TB, text string) object {
	t.Helper()
	var o object
	if err := utiljson.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live, body string
		want       bool
	}{
		"less is held":             {`{"a":1,"b":2}`, `{"a":1}`, true},
		"another value":            {`{"a":1}`, `{"a":2}`, false},
		"a whole number":           {`{"a":1}`, `{"a":1.0}`, true},
		"absent as asked":          {`{"a":1}`, `{"b":null}`, true},
		"still there":              {`{"b":1}`, `{"b":null}`, false},
		"absent deep down":         {`{}`, `{"spec":{"x":null}}`, true},
		"a container by its name":  {`{"l":[{"name":"x","i":1},{"name":"y","i":2}]}`, `{"l":[{"name":"y","i":2}]}`, true},
		"the other container":      {`{"l":[{"name":"x","i":1},{"name":"y","i":2}]}`, `{"l":[{"name":"y","i":1}]}`, false},
		"a container to be gone":   {`{"l":[{"name":"x"}]}`, `{"l":[{"name":"y","$patch":"delete"}]}`, true},
		"a container not gone":     {`{"l":[{"name":"y"}]}`, `{"l":[{"name":"y","$patch":"delete"}]}`, false},
		"a plain list":             {`{"l":["a","b"]}`, `{"l":["a"]}`, false},
		"an amount in other words": {`{"limits":{"memory":"256Mi"}}`, `{"limits":{"memory":"0.25Gi"}}`, true},
		"text in other words":      {`{"env":{"memory":"256Mi"}}`, `{"env":{"memory":"0.25Gi"}}`, false},
	} {
		if got := satisfiesBody(parseObject(t, c.live), parseObject(t, c.body), false); got != c.want {
			t.Errorf("%s: %v; want got == %v", name, got, c.want)
		}
	}
}

// An object after a merge patch satisfies the patch.
func FuzzHolds(f *testing.F) {
	f.Add(`{"spec":{"replicas":2}}`, `{"spec":{"replicas":3,"paused":null}}`)
	f.Add(`{"a":[1,{"name":"x"}]}`, `{"a":[{"name":"x","b":null}]}`)
	f.Fuzz(func(t *testing.T, live, patch string) {
		var o, p object
		if utiljson.Unmarshal([]byte(live), &o) != nil || utiljson.Unmarshal([]byte(patch), &p) != nil || o == nil || p == nil {
			return
		}
		a, err := json.Marshal(o)
		if err != nil {
			return
		}
		b, err := json.Marshal(p)
		if err != nil || strings.Contains(patch, "$patch") || strings.Contains(patch, `"status"`) || strings.Contains(patch, `"name"`) || strings.Contains(patch, "[") {
			return // lists are replaced whole, which is another rule
		}
		merged, err := jsonpatch.MergePatch(a, b)
		if err != nil {
			return
		}
		var after object
		if err := utiljson.Unmarshal(merged, &after); err != nil {
			return
		}
		if !satisfiesBody(after, p, false) {
			t.Errorf("%s with %s is %s; want satisfiesBody(after, p, false)", a, b, merged)
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(text string) string { return hashWanted(&unstructured.Unstructured{Object: parseObject(t, text)}) }
	if got := of(`{"metadata":{"generation":3}}`); got != "generation 3" {
		t.Error(got, `want "generation 3"`)
	}
	base := of(`{"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"v"},"status":{"x":1}}`)
	if base != of(`{"metadata":{"name":"a","resourceVersion":"2","managedFields":[]},"data":{"k":"v"}}`) {
		t.Error("status, managed fields or resource version count")
	}
	if base == of(`{"metadata":{"name":"a"},"data":{"k":"w"}}`) {
		t.Error("data does not count")
	}
}

// Stateful sets and daemon sets keep their revisions as patches.
func TestRollbackOfSets(t *testing.T) {
	t.Parallel()
	ref := operation.Ref{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	kept := func(n int64, image string) revision {
		return revision{number: n, ref: operation.Ref{Group: "apps", Kind: "ControllerRevision"}, kept: unstructured.Unstructured{Object: object{
			"revision": n, "data": parseObject(t, `{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"c","image":"`+image+`"}]}}}}`),
		}}}
	}
	all := []revision{kept(1, "a"), kept(2, "b"), kept(4, "c")}
	for asked, want := range map[int64]int64{0: 2, 1: 1, 4: 4} {
		r, err := findRevision(ref, all, asked)
		if err != nil || r.number != want {
			t.Errorf("revision %d: %d, %v; want r.number == want", asked, r.number, err)
		}
	}
	if _, err := findRevision(ref, all, 3); err == nil || !strings.Contains(err.Error(), "it has 1, 2, 4") {
		t.Error(err, `want an error && strings.Contains(err.Error(), "it has 1, 2, 4")`)
	}
	c := call{kind: "application/strategic-merge-patch+json", body: rollbackPatch(ref, all[0]), live: &unstructured.Unstructured{Object: parseObject(t,
		`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","image":"c"},{"name":"new","image":"x"}]}}}}`)}}
	after, err := computeLocally(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(objectsAt(after, "spec", "template", "spec", "containers")); n != 1 || numberAt(after, "spec", "replicas") != 3 {
		t.Errorf(`%v; want n == 1 && numberAt(after, "spec", "replicas") == 3`, after)
	}
	if fingerprintOf(all[0]) == fingerprintOf(all[1]) {
		t.Error("two revisions with one fingerprint")
	}
}

func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	var gone []guard.Change
	for range 5 {
		gone = append(gone, guard.Change{Ref: podRef("shop", "a"), Before: object{"kind": "Pod"}})
	}
	if got := diffChanges(gone); got != strings.Repeat("- pod/a in shop\n", 5) {
		t.Errorf("%s; want got == strings.Repeat(\"- pod/a in shop\\n\", 5)", got)
	}
	big := object{"kind": "ConfigMap", "data": object{"text": strings.Repeat("line of text\n", 20_000)}}
	got := diffChanges([]guard.Change{{Ref: operation.Ref{Kind: "ConfigMap", Name: "big"}, After: big}})
	if len(got) > maxDiff+100 || !strings.Contains(got, "# the diff is cut") {
		t.Errorf(`%d bytes; want len(got) <= maxDiff + 100 && strings.Contains(got, "# the diff is cut")`, len(got))
	}
}

// A round cut short by the timeout knows neither why pods stayed nor all of them.
func TestARoundThatIsCutShortChangesNothing(t *testing.T) {
	t.Parallel()
	var r remaining
	r.note(remaining{pods: []string{"shop/a", "shop/b"}, why: "the budget holds them"}, nil)
	r.note(remaining{pods: []string{"shop/a"}}, context.DeadlineExceeded)
	if len(r.pods) != 2 || r.why != "the budget holds them" {
		t.Errorf("left %+v; want both pods and why", r)
	}
	if r.note(remaining{}, nil); len(r.pods) != 0 || r.why != "" {
		t.Errorf("left %+v; want none", r)
	}
}
