package operation

import (
	"slices"
	"strconv"
	"strings"
)

// JSONPatch is the patch type of RFC 6902: a list of steps, each on a path.
const JSONPatch = "json"

// MaxSteps limits a JSON patch.
const MaxSteps = 100

// PatchStep is one step of a JSON patch.
type PatchStep struct {
	Op   string // add, remove, replace, move, copy or test
	Path string
	From string // of move and copy
	// Value has the types listed at [Document].
	Value any
}

// Whether a step has a value and a source.
var stepMembers = map[string]struct{ value, from bool }{
	"add": {value: true}, "replace": {value: true}, "test": {value: true}, "remove": {}, "move": {from: true}, "copy": {from: true},
}

// PatchSteps parses a JSON patch, which may be YAML like other patches. The error is a *Fault.
func PatchSteps(text string) ([]PatchStep, error) {
	list, err := patchList(text)
	if err != nil {
		return nil, err
	}
	steps := make([]PatchStep, 0, len(list))
	for i, item := range list {
		step, problem := readStep(item)
		if problem != "" {
			return nil, Refuse(InvalidManifest, "patch", "Step %d of the JSON patch %s.", i+1, problem)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func patchList(text string) ([]any, error) {
	root, err := patchRoot(text, "list of steps")
	if err != nil {
		return nil, err
	}
	list, ok := root.([]any)
	switch {
	case !ok || len(list) == 0:
		return nil, Refuse(InvalidManifest, "patch", `A patch of type json is a list of steps, such as [{"op":"replace","path":"/spec/replicas","value":2}].`)
	case len(list) > MaxSteps:
		return nil, Refuse(TooLarge, "patch", "At most %d steps in one JSON patch.", MaxSteps)
	}
	return list, nil
}

// readStep parses one step. problem is the end of a sentence that describes the fault.
func readStep(item any) (s PatchStep, problem string) {
	members, ok := item.(map[string]any)
	if !ok {
		return s, "is no object"
	}
	for name := range members {
		if !slices.Contains([]string{"op", "path", "from", "value"}, name) {
			return s, "has the member " + Quote(name) + "; known are op, path, value and from"
		}
	}
	s.Op, _ = members["op"].(string)
	s.Path, _ = members["path"].(string)
	s.From, _ = members["from"].(string)
	value, hasValue := members["value"]
	s.Value = value
	takes, known := stepMembers[s.Op]
	switch {
	case !known:
		return s, "needs an op of add, remove, replace, move, copy and test"
	case !isPointer(s.Path):
		return s, "needs a path such as /spec/replicas; a slash in a name is written ~1, a tilde ~0"
	case !takes.value && hasValue, !takes.from && members["from"] != nil:
		return s, "has a member that " + s.Op + " does not take"
	case takes.value && !hasValue:
		return s, "needs a value"
	case takes.from && !isPointer(s.From):
		return s, "needs a path in from"
	case takes.from && !isSpecPath(s.From):
		// These contain text of programs, which could change before it is copied.
		return s, "copies from metadata, status or annotations; write the value itself"
	}
	return s, ""
}

// isPointer reports whether a text is a JSON pointer to a part of an object. The whole object can only be replaced.
func isPointer(path string) bool {
	if !strings.HasPrefix(path, "/") || len(path) > MaxText || !cleanText(path) {
		return false
	}
	for i := range len(path) {
		if path[i] == '~' && (i+1 == len(path) || path[i+1] != '0' && path[i+1] != '1') {
			return false
		}
	}
	return true
}

func isSpecPath(path string) bool {
	names := splitPointer(path)
	return names[0] != "metadata" && names[0] != "status" && !slices.Contains(names, "annotations")
}

func splitPointer(path string) []string {
	names := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i := range names {
		names[i] = strings.ReplaceAll(strings.ReplaceAll(names[i], "~1", "/"), "~0", "~")
	}
	return names
}

// Names returns the parts of the step's path.
func (s PatchStep) Names() []string { return splitPointer(s.Path) }

// Name returns the field that the step changes: the last part of its path that is not a list position.
func (s PatchStep) Name() string {
	names := s.Names()
	for i := len(names) - 1; i >= 0; i-- {
		if _, err := strconv.Atoi(names[i]); err != nil && names[i] != "-" {
			return names[i]
		}
	}
	return ""
}

// EncodeSteps encodes steps in the form stored in an operation.
func EncodeSteps(steps []PatchStep) (string, error) {
	list := make([]any, 0, len(steps))
	for _, s := range steps {
		members := map[string]any{"op": s.Op, "path": s.Path}
		if takes := stepMembers[s.Op]; takes.value {
			members["value"] = s.Value
		} else if takes.from {
			members["from"] = s.From
		}
		list = append(list, members)
	}
	return encodeJSON(list)
}

// canonicalPatch returns the canonical form of a patch of a type: compact JSON with sorted keys. The error is a *Fault.
func canonicalPatch(kind, text string) (string, error) {
	if kind != JSONPatch {
		return CanonicalPatch(text)
	}
	steps, err := PatchSteps(text)
	if err != nil {
		return "", err
	}
	patch, err := EncodeSteps(steps)
	if err != nil {
		return "", Refuse(InvalidManifest, "patch", "The patch cannot be written as JSON.")
	}
	return patch, nil
}
