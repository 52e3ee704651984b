package guard

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

var urlExpr = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// leastSuspect is the minimum length of a manifest's value for a match in a log to be
// meaningful; true, 8080 and app are everywhere.
const leastSuspect = 6

// confirmOrigin requires confirmation of images, commands, URLs and manifests that the user did not write and that no
// spec or earlier revision contains. Logs, events and annotations are written by any workload in the cluster, so a
// value found there is attributed to them; a value found nowhere was made up, which is no better.
func (v *Verdict) confirmOrigin(c Case) {
	words, known, untrusted := newCorpus(c.Words), newCorpus(c.Known), newCorpus(c.Untrusted)
	for _, value := range novelValues(c) {
		switch {
		case words.mentions(value) || known.mentions(value):
		case untrusted.contains(value):
			v.add(UntrustedValue, "takes "+operation.Quote(value)+" from a log, event or annotation")
		default:
			v.add(UntrustedValue, "takes "+operation.Quote(value)+" from neither your words nor an existing spec")
		}
	}
	for _, e := range c.Operations {
		for _, value := range manifestLeaves(e.Operation) {
			if len(value) >= leastSuspect && untrusted.contains(value) && !words.mentions(value) && !known.mentions(value) {
				v.add(UntrustedValue, "takes "+operation.Quote(value)+" from a log, event or annotation")
			}
		}
	}
}

// novelValues lists, sorted, the new images, commands and URLs in the operations.
func novelValues(c Case) []string {
	found := set{}
	for _, e := range c.Operations {
		for _, image := range e.Images {
			found[image] = true
		}
		for _, value := range e.Set {
			addURLs(found, value)
		}
	}
	for _, change := range c.Changes {
		had := set{}
		for _, base := range []map[string]any{change.Before, change.CopyOf} {
			collectValues(had, base)
		}
		now := set{}
		collectValues(now, change.After)
		for value := range now {
			if !had[value] {
				found[value] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// collectValues collects the images and commands of all pod specs, and all URLs.
func collectValues(found set, object map[string]any) {
	for _, spec := range podSpecs(object) {
		for _, image := range imageVolumes(spec) {
			found[image] = true
		}
		for _, c := range containersOf(spec) {
			if image := textAt(c, "image"); image != "" {
				found[image] = true
			}
			// A command is one value: its single words are too common to be meaningful.
			for _, member := range []string{"command", "args"} {
				if words := textList(c[member]); len(words) > 0 {
					found[strings.Join(words, " ")] = true
				}
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				addCommand(found, podSpecOf(c, probe, "exec", "command"))
			}
			for _, hook := range []string{"postStart", "preStop"} {
				addCommand(found, podSpecOf(c, "lifecycle", hook, "exec", "command"))
			}
		}
	}
	for _, s := range allTexts(object, 0) {
		addURLs(found, s)
	}
}

// SpecTexts returns the texts that [Case].Known needs of an existing object or an earlier
// revision: its spec. It omits status and annotations, also those of a pod template: programs
// write them and can quote anything in them.
func SpecTexts(object map[string]any) []string {
	trusted := map[string]any{}
	for key, v := range object {
		if key != "metadata" && key != "status" {
			trusted[key] = withoutAnnotations(v, 0)
		}
	}
	found := set{}
	collectValues(found, trusted)
	return append(allTexts(trusted, 0), slices.Sorted(maps.Keys(found))...)
}

// withoutAnnotations copies a value without any annotations in its metadata.
func withoutAnnotations(v any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for key, inner := range v {
			kept[key] = withoutAnnotations(inner, depth+1)
			if meta, ok := kept[key].(map[string]any); ok && key == "metadata" {
				delete(meta, "annotations")
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, inner := range v {
			kept[i] = withoutAnnotations(inner, depth+1)
		}
		return kept
	}
	return v
}

func addCommand(found set, command any) {
	if words := textList(command); len(words) > 0 {
		found[strings.Join(words, " ")] = true
	}
}

func addURLs(found set, s string) {
	for _, u := range urlExpr.FindAllString(s, 64) {
		found[u] = true
	}
}

// manifestLeaves returns the values of an operation's own manifest or patch.
func manifestLeaves(o operation.Operation) []string {
	var values []string
	if docs, err := operation.Documents(o.Manifest); err == nil {
		for _, d := range docs {
			values = append(values, allTexts(d.Object, 0)...)
		}
	}
	eachPatchValue(o, func(_ string, value any) { values = append(values, allTexts(value, 0)...) })
	slices.Sort(values)
	return slices.Compact(values)
}

// eachPatchValue calls visit with each value that a patch sets, and the name under which it sets it, if that is not
// within the value. In a JSON patch, list positions and copy sources are values as well: they select the target of the
// change, as the name of a list's entry does in another patch.
func eachPatchValue(o operation.Operation, visit func(name string, value any)) {
	if o.Patch == "" {
		return
	}
	if o.PatchType != operation.JSONPatch {
		if object, err := operation.PatchObject(o.Patch); err == nil {
			visit("", object)
		}
		return
	}
	steps, err := operation.PatchSteps(o.Patch)
	if err != nil {
		return
	}
	for _, step := range steps {
		visit(step.Name(), step.Value)
		if step.From != "" {
			visit("", step.From)
		}
		for _, name := range step.Names() {
			if _, err := strconv.Atoi(name); err == nil {
				visit("", name)
			}
		}
	}
}

func allTexts(v any, depth int) []string {
	if depth > maxDepth {
		return nil
	}
	var found []string
	switch v := v.(type) {
	case string:
		found = append(found, v)
	case map[string]any:
		for key, inner := range v {
			if key != "managedFields" {
				found = append(found, allTexts(inner, depth+1)...)
			}
		}
	case []any:
		for _, inner := range v {
			found = append(found, allTexts(inner, depth+1)...)
		}
	case nil, bool:
	default:
		found = append(found, fmt.Sprint(v))
	}
	return found
}

// corpus is searchable text, in lower case with single blanks.
type corpus struct{ texts []string }

func newCorpus(texts []string) corpus {
	folded := make([]string, len(texts))
	for i, t := range texts {
		folded[i] = foldSpace(t)
	}
	return corpus{folded}
}

func foldSpace(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// contains finds a value anywhere; it is deliberately broad where a match is a warning.
func (c corpus) contains(value string) bool {
	value = foldSpace(value)
	return value != "" && slices.ContainsFunc(c.texts, func(t string) bool { return strings.Contains(t, value) })
}

// mentions finds a value as a separate word, for use where a match clears the value: nginx matches neither nginx:evil
// nor evil/nginx.
func (c corpus) mentions(value string) bool {
	value = foldSpace(value)
	if value == "" {
		return false
	}
	return slices.ContainsFunc(c.texts, func(t string) bool {
		for from := 0; ; {
			i := strings.Index(t[from:], value)
			if i < 0 {
				return false
			}
			start, end := from+i, from+i+len(value)
			if (start == 0 || !isValueByte(t[start-1])) && endsWord(t[end:]) {
				return true
			}
			from = start + 1
		}
	})
}

// isValueByte reports whether a byte belongs to the same value as its neighbour; all non-ASCII
// bytes do.
func isValueByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b >= 0x80 || strings.IndexByte("._/:@-+%?&#~", b) >= 0
}

// endsWord reports whether a value ends here; a full stop or colon that ends a sentence is not
// part of it.
func endsWord(rest string) bool {
	trimmed := strings.TrimLeft(rest, ".:?")
	return rest == "" || !isValueByte(rest[0]) || trimmed == "" || len(trimmed) < len(rest) && trimmed[0] == ' '
}
