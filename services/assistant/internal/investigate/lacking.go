package investigate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// mostLacking limits the objects in one list.
const mostLacking = 50

// listLacking lists the objects of a kind that do not set the field that a question names: "which pods have no node?"
// It reports false if the question names none, or no field that objects of the kind have.
func (w *work) listLacking(a question.Ask, t *topic) bool {
	if len(a.Lacks) == 0 {
		return false
	}
	var field, lacking []string
	all, place := 0, t.where()
	for _, o := range nameableObjects(t.snap) {
		if !isKind(a.Kind, o.ref.Kind) || o.ref.Kind == "Secret" || !withinNamespace(o.ref, t.namespace) || t.except.Has(o.ref) {
			continue
		}
		if field == nil {
			if field = fieldNamed(reflect.TypeOf(o.meta).Elem(), a.Kind, a.Lacks); field == nil {
				return false
			}
		}
		if all++; o.ref.Namespace == "" {
			place = report.Place("", t.except)
		}
		if !isSet(reflect.ValueOf(o.meta).Elem(), field) {
			lacking = append(lacking, "- "+refTitle(o.ref))
		}
	}
	if all == 0 {
		return false
	}
	path := report.Code("." + strings.Join(field, "."))
	if len(lacking) == 0 {
		w.say(fmt.Sprintf("%s is set in %d of %d %s %s.", path, all, all, report.PluralOf(a.Kind), place))
		return true
	}
	more := ""
	if len(lacking) > mostLacking {
		more = fmt.Sprintf("\n- and %d more", len(lacking)-mostLacking)
	}
	w.say(fmt.Sprintf("%s is not set in %d of %d %s %s:\n\n%s%s", path, len(lacking), all, report.PluralOf(a.Kind), place, strings.Join(lacking[:min(len(lacking), mostLacking)], "\n"), more))
	return true
}

// sayAged names the object of a kind that was created first or last. It reports false if the question is not for one.
func (w *work) sayAged(a question.Ask, t *topic) bool {
	if a.Aged == "" {
		return false
	}
	var of *thing
	all, ties := 0, 0
	for _, o := range nameableObjects(t.snap) {
		at := o.meta.GetCreationTimestamp()
		if !isKind(a.Kind, o.ref.Kind) || at.IsZero() || !withinNamespace(o.ref, t.namespace) || t.except.Has(o.ref) {
			continue
		}
		all++
		if of != nil && at.Time.Equal(of.meta.GetCreationTimestamp().Time) {
			ties++
		}
		if of == nil || at.Time.Before(of.meta.GetCreationTimestamp().Time) == (a.Aged == "oldest") && !at.Time.Equal(of.meta.GetCreationTimestamp().Time) {
			of, ties = &o, 0
		}
	}
	if of == nil {
		return false
	}
	beside := ""
	if ties > 0 {
		beside = fmt.Sprintf(" Created in the same second: %d more.", ties)
	}
	place := t.where()
	if of.ref.Namespace == "" {
		place = report.Place("", t.except)
	}
	at := of.meta.GetCreationTimestamp()
	w.say(fmt.Sprintf("The %s of %d %s %s is %s, created at %s (%s ago).%s", a.Aged, all, report.PluralOf(a.Kind), place, refTitle(of.ref),
		at.UTC().Format(time.RFC3339), duration.HumanDuration(t.snap.Taken.Sub(at.Time)), beside))
	return true
}

// deepestField limits how deep in an object a field named by a question may be.
const deepestField = 4

// fieldNamed returns the path of the field of an object whose name comes nearest to some words: the node of a pod is
// .spec.nodeName. It is nil if no name has all the words.
func fieldNamed(object reflect.Type, kind string, words []string) []string {
	matches := func(name string) bool { // each word is the beginning of a part, a short one all of it
		if strings.HasPrefix(strings.ToLower(name), strings.Join(words, "")) {
			return true
		}
		parts := nameParts.FindAllString(name, -1)
		return !slices.ContainsFunc(words, func(word string) bool {
			stem := strings.Join(stemsOf([]string{word}), "")
			return !slices.ContainsFunc(parts, func(part string) bool {
				part = strings.ToLower(part)
				return part == word || stem != "" && strings.HasPrefix(part, stem)
			})
		})
	}
	// A field of the object itself comes before one of a list, then the name with the fewest other parts, then one that
	// names an object or has the kind in its name, then the shallowest.
	var best []string
	var bestRank []int
	rank := func(path []string, lists int) []int {
		name := path[len(path)-1]
		plain := 1
		if strings.HasSuffix(name, "Name") || strings.HasSuffix(name, "Ref") || strings.HasPrefix(strings.ToLower(name), kind) {
			plain = 0
		}
		return []int{lists, len(nameParts.FindAllString(name, -1)), plain, len(path)}
	}
	var walk func(of reflect.Type, path []string, lists int)
	walk = func(of reflect.Type, path []string, lists int) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				lists++
			}
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || len(path) == deepestField {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" && f.Anonymous {
				walk(f.Type, path, lists)
				continue
			}
			if name == "" || name == "-" || name == "managedFields" || strings.HasPrefix(f.Name, "Deprecated") {
				continue
			}
			at := append(slices.Clone(path), name)
			if r := rank(at, lists); matches(name) && (best == nil || slices.Compare(r, bestRank) < 0) {
				best, bestRank = at, r
			}
			walk(f.Type, at, lists)
		}
	}
	walk(object, nil, 0)
	return best
}

// isSet reports whether an object sets a field; in a list, whether any item does.
func isSet(v reflect.Value, path []string) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	if len(path) == 0 {
		return !v.IsZero() && (v.Kind() != reflect.Slice && v.Kind() != reflect.Map || v.Len() > 0)
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if isSet(v.Index(i), path) {
				return true
			}
		}
		return false
	}
	if v.Kind() != reflect.Struct {
		return false
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == path[0] && isSet(v.Field(i), path[1:]) || name == "" && f.Anonymous && isSet(v.Field(i), path) {
			return true
		}
	}
	return false
}
