package guard

import (
	"reflect"
	"slices"
	"strconv"
)

// podSpecOf walks into plain JSON values; nil where there is nothing.
func podSpecOf(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func textAt(v any, path ...string) string {
	s, _ := podSpecOf(v, path...).(string)
	return s
}

// objectList are the objects of a list.
func objectList(v any) []map[string]any {
	list, _ := v.([]any)
	var found []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

func textList(v any) []string {
	list, _ := v.([]any)
	var found []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// maxDepth limits the walk; no API object comes near.
const maxDepth = 64

// podSpecs finds every pod spec of an object by where it stands: also those of kinds
// that are not known here, since all of them hold a list of containers.
func podSpecs(object map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	for key, v := range object {
		if key != "status" && key != "metadata" {
			collectSpecs(found, v, key, 0)
		}
	}
	return found
}

func collectSpecs(found map[string]map[string]any, v any, path string, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["containers"].([]any); ok {
			found[path] = v
		}
		for key, inner := range v {
			collectSpecs(found, inner, path+"."+key, depth+1)
		}
	case []any:
		for i, inner := range v {
			collectSpecs(found, inner, path+"."+strconv.Itoa(i), depth+1)
		}
	}
}

// containersOf returns all containers of a pod spec by name, whatever list they are in.
// The API refuses a name twice; other kinds may not, and none may hide another.
func containersOf(spec map[string]any) map[string]map[string]any {
	byName := map[string]map[string]any{}
	doubles := 0
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range objectList(podSpecOf(spec, list)) {
			name := textAt(c, "name")
			key := name
			for byName[key] != nil {
				doubles++
				key = name + "#" + strconv.Itoa(doubles)
			}
			byName[key] = c
		}
	}
	return byName
}

// changesImageOrResources compares containers of an object that exists. One that is
// added brings an image that was not there.
func changesImageOrResources(before, after map[string]any) bool {
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		was, ok := old[path]
		if !ok || valuesDiffer(podSpecOf(was, "resources"), podSpecOf(spec, "resources")) {
			return true
		}
		mounted := imageVolumes(was)
		for _, image := range imageVolumes(spec) {
			if !slices.Contains(mounted, image) {
				return true
			}
		}
		had := containersOf(was)
		for name, c := range containersOf(spec) {
			h, ok := had[name]
			if !ok || textAt(h, "image") != textAt(c, "image") || valuesDiffer(h["resources"], c["resources"]) {
				return true
			}
		}
	}
	return false
}

// imageVolumes are the images that are mounted and not run; what they hold may run all
// the same.
func imageVolumes(spec map[string]any) []string {
	var found []string
	for _, v := range objectList(spec["volumes"]) {
		if image := textAt(v, "image", "reference"); image != "" {
			found = append(found, image)
		}
	}
	return found
}

// valuesDiffer compares values; an empty object is as good as none.
func valuesDiffer(a, b any) bool { return !reflect.DeepEqual(pruneEmpty(a), pruneEmpty(b)) }

func pruneEmpty(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	kept := map[string]any{}
	for key, inner := range m {
		if inner = pruneEmpty(inner); inner != nil {
			kept[key] = inner
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// lostFinalizers are those that an object had and no longer has.
func lostFinalizers(before, after map[string]any) []string {
	var lost []string
	for _, path := range [][]string{{"metadata", "finalizers"}, {"spec", "finalizers"}} {
		kept := textList(podSpecOf(after, path...))
		for _, f := range textList(podSpecOf(before, path...)) {
			if !slices.Contains(kept, f) {
				lost = append(lost, f)
			}
		}
	}
	return lost
}

// newNoExecute are the taints that evict and were not there.
func newNoExecute(before, after map[string]any) []string {
	var had, added []string
	key := func(t map[string]any) string {
		return textAt(t, "key") + "=" + textAt(t, "value") + ":" + textAt(t, "effect")
	}
	for _, t := range objectList(podSpecOf(before, "spec", "taints")) {
		had = append(had, key(t))
	}
	for _, t := range objectList(podSpecOf(after, "spec", "taints")) {
		if textAt(t, "effect") == "NoExecute" && !slices.Contains(had, key(t)) {
			added = append(added, key(t))
		}
	}
	return added
}
