package investigate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

const (
	// mostFieldObjects limits the objects whose fields one answer shows, and mostFields the fields of each.
	mostFieldObjects, mostFields = 3, 8
	// longestValue limits a shown value, in bytes.
	longestValue = 600
	// leastStem is the shortest part of a word that matches a field's name.
	leastStem = 2
)

// factExpr matches a question about a fact, not a yes/no question.
var factExpr = question.Pattern(`^(what|which|who|whose|when|where|how)\b`)

// sayFields shows those fields of a topic's objects that the question names: "what port does catalog listen on?" If no
// object has such a field, it says so to a question about a fact. said is false if there is nothing to say. No field of
// a Secret is shown.
func (w *work) sayFields(ctx context.Context, t *topic, a question.Ask, words []string) (said bool, err error) {
	stems := stemsOf(words)
	if len(stems) == 0 {
		return false, nil
	}
	shown := 0
	for _, r := range t.objects {
		if r.Kind == "Secret" || r.Kind == "Namespace" || shown == mostFieldObjects {
			continue
		}
		op := newOperation(operation.Get, r)
		op.Output = "json"
		out, err := w.tools.Call(ctx, operation.Normalize(op))
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		var object map[string]any
		if err != nil || json.Unmarshal([]byte(out.Whole), &object) != nil {
			continue
		}
		lines := fieldsLike(object, stems)
		if len(lines) == 0 {
			continue
		}
		if shown == 0 {
			w.synthesize()
		}
		shown++
		w.say(fmt.Sprintf("The fields of %s whose names come nearest to %s:\n\n%s", refTitle(r), joinCodes(words), strings.Join(lines, "\n")))
	}
	if shown == 0 {
		if !factExpr.MatchString(a.Words) || !slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return judged[r.Kind] }) {
			return false, nil
		}
		w.synthesize()
		w.sayStandings(t)
		w.say(fmt.Sprintf("I cannot answer more: no rule, table or field of %s covers %s.", refTitles(t.objects), joinCodes(words)))
	}
	if about, _ := t.found(nil); len(about) > 0 {
		w.say(fmt.Sprintf("Something is wrong with it, too: ask %s.", report.Code("what is wrong with "+t.objects[0].Name+"?")))
	}
	return true, nil
}

// sayStandings describes the state of each object of a topic in a line.
func (w *work) sayStandings(t *topic) {
	for _, r := range t.objects {
		if line := describeStanding(t.snap, r); line != "" {
			w.say(line)
		}
	}
}

// nameParts matches the parts of a name such as failureThreshold or app.kubernetes.io/part-of.
var nameParts = regexp.MustCompile(`[A-Z]*[a-z0-9]+|[A-Z]+`)

// contentWords are the words of a sentence that have a meaning of their own.
func contentWords(words string) []string {
	return slices.DeleteFunc(strings.Fields(words), question.IsFunctionWord)
}

// stemsOf returns words without plural and verb endings.
func stemsOf(words []string) []string {
	var stems []string
	for _, word := range words {
		for _, ending := range []string{"ing", "ies", "es", "ed", "s"} {
			if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) >= leastStem {
				word = stem
				break
			}
		}
		if len(word) >= leastStem {
			stems = append(stems, word)
		}
	}
	return stems
}

// fieldsLike returns lines with those fields of an object whose names, or whose items' names, contain one of the stems.
func fieldsLike(object map[string]any, stems []string) []string {
	var lines []string
	like := func(name string) bool {
		return slices.ContainsFunc(nameParts.FindAllString(name, -1), func(part string) bool {
			return slices.ContainsFunc(stems, func(stem string) bool {
				return strings.ToLower(part) == stem || len(stem) > 2 && strings.HasPrefix(strings.ToLower(part), stem)
			})
		})
	}
	var walk func(path string, value any)
	add := func(path string, value any) {
		if raw, err := json.Marshal(value); err == nil && len(lines) < mostFields {
			lines = append(lines, fmt.Sprintf("- %s: %s", report.Code(path), engine.QuoteCode(cutValue(string(raw)))))
		}
	}
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				switch at := path + "." + key; {
				case key == "managedFields" || key == "message":
				case like(key):
					add(at, v[key])
				default:
					walk(at, v[key])
				}
			}
		case []any:
			for i, item := range v {
				at := fmt.Sprintf("%s[%d]", path, i)
				if m, ok := item.(map[string]any); ok {
					if name, ok := m["name"].(string); ok && like(name) {
						add(at, m)
						continue
					}
				}
				walk(at, item)
			}
		}
	}
	walk("", object)
	return lines
}

func cutValue(text string) string {
	if len(text) <= longestValue {
		return text
	}
	return strings.ToValidUTF8(text[:longestValue], "") + "…"
}
