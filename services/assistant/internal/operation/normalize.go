package operation

import (
	"slices"
	"strings"
)

// suspendPatches are the patches that kubectl users write for lack of a suspend command. Both forms mean the same
// operation, so they become the typed one.
var suspendPatches = map[string]Verb{
	`{"spec":{"suspend":true}}`:  Suspend,
	`{"spec":{"suspend":false}}`: Resume,
}

// Normalize returns the canonical form of an operation: no empty lists, removals sorted, kinds folded, a manifest ended
// by a line feed. It runs before anything is shown or stored, and validates nothing.
func Normalize(o Operation) Operation {
	o.Names = normalList(o.Names)
	o.Remove = sortedSet(o.Remove)
	o.Taints = sortedSet(o.Taints)
	o.RemoveTaints = sortedSet(o.RemoveTaints)
	for _, m := range []*map[string]string{&o.Images, &o.Requests, &o.Limits, &o.Set} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	o.Kind, o.Names = foldKinds(o.Kind, o.Names)
	if s := specOf(o.Verb); s != nil && s.refs == chosenNodes {
		mixed := slices.ContainsFunc(o.Names, func(n string) bool { return strings.Contains(n, "/") })
		if o.Kind == "" && !mixed || oneOf(o.Kind, nodeKinds) {
			o.Kind = "node"
		}
	}
	if o.PatchType == "strategic" {
		o.PatchType = ""
	}
	if o.Cascade == "background" {
		o.Cascade = ""
	}
	if o.Patch != "" && !isCanonicalPatch(o.Patch) {
		if c, err := canonicalPatch(o.PatchType, o.Patch); err == nil {
			o.Patch = c
		}
	}
	if v, ok := suspendPatches[o.Patch]; ok && o.Verb == Patch && oneOf(o.Kind, jobKinds) {
		o.Verb, o.Patch, o.PatchType = v, "", ""
	}
	if o.Manifest != "" {
		o.Manifest = strings.TrimSuffix(strings.ReplaceAll(o.Manifest, "\r\n", "\n"), "\n") + "\n"
	}
	return o
}

// AsPatch returns the patch that is equivalent to a suspend, or to the resume of a job, since kubectl has no command
// for these. Other operations are returned unchanged.
func (o Operation) AsPatch() Operation {
	if o.Verb != Suspend && (o.Verb != Resume || !oneOf(o.Kind, jobKinds)) {
		return o
	}
	for patch, verb := range suspendPatches {
		if verb == o.Verb {
			o.Verb, o.Patch, o.PatchType = Patch, patch, "merge"
			break
		}
	}
	return o
}

// foldKinds turns kind/name entries that share a kind into a kind and names, and removes the duplicates in a
// comma-separated list.
func foldKinds(kind string, names []string) (string, []string) {
	if kind != "" {
		kinds := strings.Split(kind, ",")
		return strings.Join(normalList(kinds), ","), names
	}
	if len(names) == 0 {
		return "", nil
	}
	shared, _, _ := strings.Cut(names[0], "/")
	bare := make([]string, 0, len(names))
	for _, n := range names {
		k, name, ok := strings.Cut(n, "/")
		if !ok || k != shared {
			return "", names
		}
		bare = append(bare, name)
	}
	return shared, bare
}

// normalList removes duplicates and keeps the order; an empty list becomes nil.
func normalList(list []string) []string {
	var kept []string
	seen := make(map[string]bool, len(list)) // the list's length is not limited yet
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

func sortedSet(list []string) []string {
	kept := slices.Compact(slices.Sorted(slices.Values(list)))
	if len(kept) == 0 {
		return nil
	}
	return kept
}
