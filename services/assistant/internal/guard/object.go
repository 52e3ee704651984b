package guard

import (
	"reflect"
	"slices"
	"strconv"
)

// at walks into plain JSON values; nil where there is nothing.
func at(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func text(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

// objects are the objects of a list.
func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var found []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

func texts(v any) []string {
	list, _ := v.([]any)
	var found []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// maxDepth bounds the walk; no API object comes near.
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

// containersOf gives all containers of a pod spec by name, whatever list they are in.
// The API refuses a name twice; other kinds may not, and none may hide another.
func containersOf(spec map[string]any) map[string]map[string]any {
	byName := map[string]map[string]any{}
	doubles := 0
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range objects(at(spec, list)) {
			name := text(c, "name")
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
		if !ok || differ(at(was, "resources"), at(spec, "resources")) {
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
			if !ok || text(h, "image") != text(c, "image") || differ(h["resources"], c["resources"]) {
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
	for _, v := range objects(spec["volumes"]) {
		if image := text(v, "image", "reference"); image != "" {
			found = append(found, image)
		}
	}
	return found
}

// differ compares values; an empty object is as good as none.
func differ(a, b any) bool { return !reflect.DeepEqual(pruned(a), pruned(b)) }

func pruned(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	kept := map[string]any{}
	for key, inner := range m {
		if inner = pruned(inner); inner != nil {
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
		kept := texts(at(after, path...))
		for _, f := range texts(at(before, path...)) {
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
		return text(t, "key") + "=" + text(t, "value") + ":" + text(t, "effect")
	}
	for _, t := range objects(at(before, "spec", "taints")) {
		had = append(had, key(t))
	}
	for _, t := range objects(at(after, "spec", "taints")) {
		if text(t, "effect") == "NoExecute" && !slices.Contains(had, key(t)) {
			added = append(added, key(t))
		}
	}
	return added
}
