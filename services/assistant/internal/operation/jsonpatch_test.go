package operation_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func TestPatchSteps(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{"value":2,"path":"/spec/replicas","op":"replace"}]`:                     `[{"op":"replace","path":"/spec/replicas","value":2}]`,
		"- op: remove\n  path: /metadata/labels/a~1b\n":                            `[{"op":"remove","path":"/metadata/labels/a~1b"}]`,
		`[{"op":"add","path":"/spec/x","value":null}]`:                             `[{"op":"add","path":"/spec/x","value":null}]`,
		`[{"op":"move","from":"/spec/a","path":"/spec/b"}]`:                        `[{"from":"/spec/a","op":"move","path":"/spec/b"}]`,
		`[{"op":"test","path":"/metadata/annotations/x","value":{"b":1,"a":"<"}}]`: `[{"op":"test","path":"/metadata/annotations/x","value":{"a":"<","b":1}}]`,
	} {
		o := operation.Normalize(operation.Operation{Verb: operation.Patch, Kind: "deployment", Names: []string{"api"}, PatchType: operation.JSONPatch, Patch: text})
		if err := o.Validate(); err != nil || o.Patch != want {
			t.Errorf("%s: got %s, %v; want %s", text, o.Patch, err, want)
		}
	}
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"remove","path":"/a"},`, operation.MaxSteps+1), ",") + "]"
	for text, want := range map[string]string{
		`{"spec":{}}`: "is a list of steps", `[]`: "is a list of steps", `[`: "no valid YAML", `["x"]`: "Step 1 of the JSON patch is no object",
		`[{"op":"remove","path":"/a"},{"op":"merge","path":"/a"}]`: "Step 2 of the JSON patch needs an op", `[{"path":"/a"}]`: "needs an op",
		`[{"op":"Remove","path":"/a"}]`: "needs an op", `[{"op":"remove"}]`: "needs a path", `[{"op":"remove","path":""}]`: "needs a path", `[{"op":"remove","path":"a"}]`: "needs a path",
		`[{"op":"remove","path":"/a~2"}]`: "needs a path", `[{"op":"remove","path":"/a~"}]`: "needs a path", `[{"op":"add","path":"/a"}]`: "needs a value",
		`[{"op":"remove","path":"/a","value":1}]`: "does not take", `[{"op":"add","path":"/a","value":1,"from":"/b"}]`: "does not take", `[{"op":"copy","path":"/a"}]`: "needs a path in from",
		`[{"op":"remove","path":"/a","paths":"/b"}]`: "has the member", `[{"op":"remove","op":"add","path":"/a"}]`: "twice",
		`[{"op":"copy","from":"/metadata/annotations/x","path":"/spec/x"}]`: "write the value itself", `[{"op":"copy","from":"/status/x","path":"/spec/x"}]`: "write the value itself",
		`[{"op":"move","from":"/spec/template/metadata/annotations/x","path":"/spec/x"}]`: "write the value itself", many: "At most",
	} {
		var fault *operation.Fault
		if _, err := operation.PatchSteps(text); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want a refusal with %q", text, err, want)
		}
	}
}

// FuzzJSONPatch: the canonical form of the steps is its own canonical form.
func FuzzJSONPatch(f *testing.F) {
	f.Add(`[{"op":"replace","path":"/spec/replicas","value":2}]`)
	f.Add("- {op: copy, from: /spec/a~0b, path: /spec/b/-}")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := operation.PatchSteps(text)
		if err != nil {
			return
		}
		once, err := operation.EncodeSteps(steps)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := operation.PatchSteps(once)
		if err != nil {
			t.Fatalf("%q becomes %q, which is refused: %v", text, once, err)
		}
		if twice, err := operation.EncodeSteps(again); err != nil || twice != once {
			t.Fatalf("%q: got %q, %v; want %q", text, twice, err, once)
		}
	})
}
