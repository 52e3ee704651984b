package guard

import (
	"reflect"
	"slices"
	"strconv"
)

// podSpecOf follows a path into plain JSON values; nil if it leads nowhere.
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

// objectList returns the objects in a list.
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

// maxDepth limits the recursion; no API object comes near it.
const maxDepth = 64

// podSpecs finds every pod spec of an object, by its path. It also finds those of unknown
// kinds, since all pod specs contain a list of containers.
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

// containersOf returns all containers of a pod spec by name, whatever list they are in. The API
// rejects duplicate names, other kinds may not, and no duplicate may hide another container.
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

// changesImageOrResources compares the containers of an existing object. An added container
// brings a new image.
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

// imageVolumes returns images that are mounted rather than run; their contents may still be
// executed.
func imageVolumes(spec map[string]any) []string {
	var found []string
	for _, v := range objectList(spec["volumes"]) {
		if image := textAt(v, "image", "reference"); image != "" {
			found = append(found, image)
		}
	}
	return found
}

// valuesDiffer compares values; an empty object equals an absent one.
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

// lostFinalizers returns the finalizers that an object no longer has.
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

// newNoExecute returns the evicting taints that are new.
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
