package change

import (
	"encoding/json"
	"reflect"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// prepareJSONPatch applies a JSON patch to the live object and turns the difference into a merge patch. So it is bound,
// dry-run, judged and read back like any other patch, and a list position means the element that was there when it was
// shown: the target's fingerprint covers everything that the steps can read, see [bindTarget].
func prepareJSONPatch(c *call, op operation.Operation) error {
	steps, err := operation.PatchSteps(op.Patch)
	if err != nil {
		return err
	}
	after, err := applySteps(c.live.Object, steps)
	if err != nil {
		return operation.Refuse(operation.InvalidArgument, "patch", "%s: %s", c.ref, err.Error())
	}
	c.body, c.done = diffObjects(c.live.Object, after), "patched"
	if redact.HoldsMark(c.body) {
		// A list is sent whole, and of a Secret in it only the mark was read.
		return operation.Refuse(operation.InvalidArgument, "patch", "%s holds values that are redacted here, and the patch would write the mark in their place; do it yourself with your own rights.", c.ref)
	}
	return nil
}

// stepError names the step that cannot be applied. It is shown to people, and quotes no value.
type stepError struct {
	number int
	step   operation.PatchStep
}

func (e *stepError) Error() string {
	text := "step " + strconv.Itoa(e.number) + " of the patch (" + e.step.Op + " " + operation.Quote(e.step.Path) + ") "
	if e.step.Op == "test" {
		return text + "does not hold: the value there is another, or there is none."
	}
	return text + "finds no such path in the object."
}

// applySteps applies the steps one by one; the first that cannot be applied is the error.
func applySteps(live object, steps []operation.PatchStep) (object, error) {
	doc, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	for i, step := range steps {
		raw, err := operation.EncodeSteps([]operation.PatchStep{step})
		if err != nil {
			return nil, err
		}
		patch, err := jsonpatch.DecodePatch([]byte(raw))
		if err != nil {
			return nil, err
		}
		if doc, err = patch.Apply(doc); err != nil {
			return nil, &stepError{i + 1, step}
		}
	}
	var after object
	return after, utiljson.Unmarshal(doc, &after)
}

// diffObjects returns the merge patch that turns one object into another. The library's function compares numbers as
// floats, which are equal for different large ones.
func diffObjects(before, after object) object {
	patch := object{}
	for key, value := range after {
		was, had := before[key]
		old, wasObject := was.(object)
		now, isObject := value.(object)
		switch {
		case wasObject && isObject:
			if inner := diffObjects(old, now); len(inner) > 0 {
				patch[key] = inner
			}
		case !had || !reflect.DeepEqual(was, value):
			patch[key] = value
		}
	}
	for key := range before {
		if _, still := after[key]; !still {
			patch[key] = nil
		}
	}
	return patch
}

// bindTarget returns the target that an approval of an operation is bound to. A JSON patch refers to list positions,
// including those of the metadata, which no generation counts: so it is bound to the whole object except the status.
func bindTarget(op operation.Operation, ref operation.Ref, live *unstructured.Unstructured) operation.Target {
	t := newTarget(ref, live)
	if live != nil && op.PatchType == operation.JSONPatch {
		t.Fingerprint = hashObject(live)
	}
	return t
}

// provingBodies returns what an object contains after the steps, one body for each step. ok is false where that cannot
// be verified later: a removal leaves no trace, and an element inserted into a list may be anywhere.
func provingBodies(live object, steps []operation.PatchStep) (bodies []object, ok bool) {
	for _, step := range steps {
		switch step.Op {
		case "test":
			continue
		case "add", "replace":
		default:
			return nil, false
		}
		body, ok := nestAlong(live, step.Names(), step.Value)
		whole, isObject := body.(object)
		if !ok || !isObject || step.Value == nil {
			return nil, false
		}
		bodies = append(bodies, whole)
	}
	return bodies, len(bodies) > 0
}

// nestAlong nests a value at the end of a path, following the live object: an entry of a list is identified by its
// name.
func nestAlong(live any, path []string, value any) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	list, isList := live.([]any)
	if !isList {
		inner, ok := nestAlong(valueAt(live, path[0]), path[1:], value)
		return object{path[0]: inner}, ok
	}
	at, err := strconv.Atoi(path[0])
	if err != nil || at < 0 || at >= len(list) || len(path) == 1 {
		return nil, false
	}
	inner, ok := nestAlong(list[at], path[1:], value)
	entry, isObject := inner.(object)
	name := textAt(list[at], "name")
	if !ok || !isObject || name == "" {
		return nil, false
	}
	entry["name"] = name
	return []any{entry}, true
}
