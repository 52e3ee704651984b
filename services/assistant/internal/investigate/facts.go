package investigate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
)

const (
	// mostFactValues limits the values of one fact in a list.
	mostFactValues = 40
	// fewObjects are read one by one; more are read as a list of their kind.
	fewObjects = 5
)

// told is one object with the values of the facts that a question is about, in their order.
type told struct {
	ref    operation.Ref
	values [][]string
	known  []bool // whether the values of a fact are all, and were read
}

// tellFacts answers a question for facts. done is false if no object of the question has one of them.
func (w *work) tellFacts(ctx context.Context, a question.Ask, t *topic) (done bool, err error) {
	q := a.FactQuery()
	general := q.Facts == nil && q.Compares
	if general {
		q = q.Comparison()
	}
	refs := t.factSubjects(q)
	if general {
		refs = ofOneKind(refs)
	}
	has := func(f question.Fact) bool {
		return slices.ContainsFunc(refs, func(r operation.Ref) bool { return f.Paths(strings.ToLower(r.Kind)) != nil })
	}
	for _, f := range q.Facts {
		if has(f) || len(q.Facts) == 1 || general {
			continue
		}
		for _, kind := range f.Kinds() { // "how big is the volume of web?" is about its claim
			if of, _ := t.belonging(kind); len(of) > 0 {
				refs = append(refs, of...)
				break
			}
		}
	}
	q.Facts = slices.DeleteFunc(slices.Clone(q.Facts), func(f question.Fact) bool { return !has(f) })
	if len(refs) == 0 || len(q.Facts) == 0 {
		return false, nil
	}
	if slices.ContainsFunc(refs, func(r operation.Ref) bool { return r.Namespace == "" }) { // the pods of nodes are in every namespace
		if t.snap, err = w.snapshot(ctx, ""); err != nil {
			return false, err
		}
	}
	rows, narrowing, err := w.readFacts(ctx, t, refs, q)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	w.synthesize()
	if left := slices.DeleteFunc(t.unread(a.Words), func(word string) bool { return slices.Contains(slices.Concat(narrowing, q.Read, q.Operators), word) }); len(left) > 0 {
		w.say("Not understood, and left out: " + joinCodes(left) + ".")
	}
	w.sayFacts(t, q, rows)
	if about, _ := t.found(nil); len(about) > 0 && len(t.objects) > 0 && len(rows) <= fewObjects {
		w.say(fmt.Sprintf("Something is wrong with it, too: ask %s.", report.Code("what is wrong with "+t.objects[0].Name+"?")))
	}
	return true, nil
}

// inTables are the intents whose tables answer a question unless they leave out the words for a fact.
var inTables = map[question.Intent]bool{
	question.Number: true, question.List: true, question.Describe: true, question.Images: true, question.Starts: true, question.Overview: true, question.Users: true,
	question.Health: true, question.Restarts: true, question.Keys: true, question.Dependencies: true,
}

// askFacts answers a question for facts, also one that a table would answer without the words for them. If done is
// false, the question is no longer one for facts.
func (w *work) askFacts(ctx context.Context, a *question.Ask, t *topic) (done bool, err error) {
	switch {
	case a.Intent == question.Facts:
	case !inTables[a.Intent] || question.TellsFault(a.Words), a.Intent == question.List && conditionExpr.MatchString(a.Words), a.Intent == question.Number && a.Count.HasConditions():
		return false, nil
	default:
		q := a.FactQuery()
		read := q.Read
		if a.Intent != question.Restarts { // which rank by themselves
			read = slices.Concat(read, q.Operators)
		}
		if len(q.Facts) == 0 && !(q.Compares && len(t.objects) > 1) || !slices.ContainsFunc(read, a.Ignores) {
			return false, nil
		}
	}
	if done, err = w.tellFacts(ctx, *a, t); done || err != nil || a.Intent != question.Facts {
		return done, err
	}
	words := t.contentWords(a.Words)
	if said, err := w.sayFields(ctx, t, *a, words); said || err != nil {
		return true, err
	}
	w.synthesize()
	if len(t.objects) > 0 {
		w.say(fmt.Sprintf("I cannot answer that: no rule, table or field of %s covers %s.", refTitles(t.objects), joinCodes(words)))
	} else {
		w.say(fmt.Sprintf("I cannot answer that without a name: say whose %s you mean, for example `which %s has NAME?`", joinCodes(a.FactQuery().Read), a.FactQuery().Facts[0].Name))
	}
	return true, nil
}

// besideOnNode makes "on the same node as web" a question for the pods on the node of web.
func (w *work) besideOnNode(a *question.Ask, t *topic) bool {
	if !sameNodeExpr.MatchString(a.Words) {
		return false
	}
	nodes, _ := t.belonging("node")
	if len(nodes) > 0 {
		w.say(fmt.Sprintf("%s is on %s.", engine.UpperFirst(refTitles(t.objects[:1])), refTitles(nodes)))
		t.objects, a.Intent, a.Count = nodes, question.Number, question.Count{Kind: "pod"}
	}
	return len(nodes) > 0
}

// widen makes the topic of a question for pods on nodes the whole cluster, unless it names a namespace.
func (w *work) widen(ctx context.Context, a question.Ask, t *topic) (err error) {
	nodes, rest := partitionRefs(t.objects, func(r operation.Ref) bool { return r.Kind == "Node" })
	if len(nodes) == 0 || len(rest) > 0 || a.Namespace != "" || t.namespace == "" {
		return nil
	}
	t.namespace = ""
	t.snap, err = w.snapshot(ctx, "")
	return err
}

var sameNodeExpr = question.Pattern(`\bsame (node|machine|host) (as|like|with)\b`)

// factSubjects returns the objects that a question for facts is about.
func (t *topic) factSubjects(q question.FactQuery) []operation.Ref {
	has := func(r operation.Ref) bool {
		return r.Kind != "Secret" && slices.ContainsFunc(q.Facts, func(f question.Fact) bool { return f.Paths(strings.ToLower(r.Kind)) != nil })
	}
	ofKind := func(kind string) (found []operation.Ref) {
		for _, o := range nameableObjects(t.snap) {
			if isKind(kind, o.ref.Kind) && withinNamespace(o.ref, t.namespace) && !t.except.Has(o.ref) && has(o.ref) {
				found = append(found, o.ref)
			}
		}
		return found
	}
	var found []operation.Ref
	kinds := []string{q.Kind, "pod", "node", "service"}
	switch {
	case len(t.objects) == 0 && q.Kind != "":
		return ofKind(q.Kind)
	case len(t.objects) == 0:
		of := q.Facts[0].Kinds()
		switch {
		case len(of) == 1:
			return ofKind(of[0])
		case slices.Contains(of, "deployment") && t.namespace != "":
			return slices.Concat(ofKind("deployment"), ofKind("statefulset"), ofKind("daemonset"))
		}
		return nil
	case q.Kind == "":
		if found, _ = partitionRefs(t.objects, has); len(found) > 0 {
			return found
		}
		kinds = kinds[1:]
	}
	for _, kind := range kinds {
		found, _ = partitionRefs(t.objects, func(r operation.Ref) bool { return isKind(kind, r.Kind) })
		if len(found) == 0 {
			found, _ = t.belonging(kind)
		}
		if found, _ = partitionRefs(found, has); len(found) > 0 {
			return found
		}
	}
	found, _ = partitionRefs(t.objects, has)
	return found
}

// ofOneKind returns the objects of the first kind of which there are several, or all.
func ofOneKind(all []operation.Ref) []operation.Ref {
	for _, r := range all {
		if same, _ := partitionRefs(all, func(o operation.Ref) bool { return o.Kind == r.Kind }); len(same) > 1 {
			return same
		}
	}
	return all
}

func partitionRefs(all []operation.Ref, ok func(operation.Ref) bool) (yes, no []operation.Ref) {
	for _, r := range all {
		if ok(r) {
			yes = append(yes, r)
		} else {
			no = append(no, r)
		}
	}
	return yes, no
}

// readFacts reads the facts of some objects. narrowing are the words of the question that chose among the values.
func (w *work) readFacts(ctx context.Context, t *topic, refs []operation.Ref, q question.FactQuery) (rows []told, narrowing []string, err error) {
	fields := map[operation.Ref]map[string][]any{}
	asked := map[[2]string]bool{}
	for _, r := range refs {
		arguments := map[string]any{"kind": strings.ToLower(r.Kind), "namespace": r.Namespace, "paths": pathsOf(q, r.Kind)}
		if len(refs) <= fewObjects {
			arguments["name"] = r.Name
		} else if asked[[2]string{r.Kind, r.Namespace}] {
			continue
		}
		asked[[2]string{r.Kind, r.Namespace}] = true
		if err := w.readPaths(ctx, arguments, fields); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range refs {
		row := told{ref: r}
		of, read := fields[plainRef(r)]
		for _, f := range q.Facts {
			var values []string
			known := read
			for _, path := range f.Paths(strings.ToLower(r.Kind)) {
				if strings.HasPrefix(path, "{") {
					more, ok := t.view().Derived(r, path)
					values, known = append(values, more...), ok
					continue
				}
				head := headOf(f, path, len(f.Paths(strings.ToLower(r.Kind))))
				for _, value := range of[path] {
					more, used := flattenValue(t.snap.Taken, value, q.Rest)
					narrowing = append(narrowing, used...)
					for _, v := range more {
						values = append(values, head+v)
					}
				}
			}
			row.values, row.known = append(row.values, values), append(row.known, known)
		}
		if slices.Contains(row.known, true) {
			rows = append(rows, row)
		}
	}
	return rows, narrowing, nil
}

// headOf returns what tells the values of one of several paths from those of the others.
func headOf(f question.Fact, path string, of int) string {
	parts := strings.Split(path, ".")
	last := parts[len(parts)-1]
	switch {
	case of == 1:
		return ""
	case last == f.Name:
		return parts[len(parts)-2] + ": "
	case strings.HasPrefix(f.Name, last):
		return ""
	}
	return last + ": "
}

// pathsOf returns the paths of the fields that a question needs of a kind; without any, the name.
func pathsOf(q question.FactQuery, kind string) []string {
	var paths []string
	for _, f := range q.Facts {
		for _, path := range f.Paths(strings.ToLower(kind)) {
			if !strings.HasPrefix(path, "{") {
				paths = append(paths, path)
			}
		}
	}
	if paths == nil {
		return []string{".metadata.name"}
	}
	return paths
}

// readPaths adds the fields that the tool of that name returns. A refusal leaves them unread.
func (w *work) readPaths(ctx context.Context, arguments map[string]any, into map[operation.Ref]map[string][]any) error {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	out, err := w.facts.Call(ctx, w.tools, "fields", raw)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if list, ok := out.Data.(*registry.Fields); ok && err == nil {
		for _, o := range list.Objects {
			into[operation.Ref{Kind: o.Object.Kind, Namespace: o.Object.Namespace, Name: o.Object.Name}] = o.Fields
		}
	}
	return nil
}

// flattenValue returns the parts of a field's value as text: the items of a list, and the members of a map as key=value.
// If the question has the key of a member, only that one, and used is the key.
func flattenValue(now time.Time, value any, words []string) (parts, used []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			more, key := flattenValue(now, item, words)
			if _, is := item.(map[string]any); is {
				more = []string{strings.Join(more, ", ")}
			}
			parts, used = append(parts, more...), append(used, key...)
		}
		if named, ok := chosenByName(v, words); ok {
			return flattenValue(now, named, nil)
		}
		return parts, used
	case map[string]any:
		if text, ok := titleOfValue(v); ok {
			return []string{text}, nil
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text := flattenMember(now, key, v[key])
			if slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, key) }) {
				used = append(used, strings.ToLower(key))
				parts = slices.Insert(parts, len(used)-1, text)
				continue
			}
			parts = append(parts, text)
		}
		if len(used) > 0 {
			return parts[:len(used)], used
		}
		return parts, nil
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return []string{fmt.Sprintf("%s (%s ago)", v, duration.HumanDuration(now.Sub(at)))}, nil
		}
		return []string{v}, nil
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}, nil
	}
	return []string{fmt.Sprint(value)}, nil
}

// flattenMember formats a member of an object as key=value, those of an object inside it as key.member=value.
func flattenMember(now time.Time, key string, value any) string {
	members, nested := value.(map[string]any)
	if !nested {
		parts, _ := flattenValue(now, value, nil)
		return key + "=" + strings.Join(parts, ",")
	}
	var parts []string
	for _, member := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, flattenMember(now, key+"."+member, members[member]))
	}
	return strings.Join(parts, ", ")
}

// chosenByName returns the items of a list whose name the question has.
func chosenByName(list []any, words []string) (chosen []any, ok bool) {
	for _, item := range list {
		if m, is := item.(map[string]any); is {
			name, _ := m["name"].(string)
			if slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, name) }) {
				chosen = append(chosen, item)
			}
		}
	}
	return chosen, len(chosen) > 0
}

// titleOfValue formats an object with a name: an owner, or a variable with its value. ok is false for any other.
func titleOfValue(v map[string]any) (text string, ok bool) {
	name, _ := v["name"].(string)
	kind, _ := v["kind"].(string)
	switch {
	case name == "":
		return "", false
	case kind != "":
		return strings.ToLower(kind) + " " + name, true
	}
	rest := maps.Clone(v)
	delete(rest, "name")
	if value, is := rest["value"].(string); is && len(rest) == 1 {
		return name + "=" + value, true
	}
	if len(rest) == 0 {
		return name, true
	}
	parts, _ := flattenValue(time.Time{}, rest, nil)
	return name + ": " + strings.Join(parts, ", "), true
}

// sayFacts shows the facts: of one object in sentences and lists, of several in a table.
func (w *work) sayFacts(t *topic, q question.FactQuery, rows []told) {
	if len(rows) == 1 {
		for i, f := range q.Facts {
			w.say(tellOne(t, rows[0], i, f, q.HowMany))
		}
		return
	}
	w.say(compareFacts(t, q, rows))
	grid := [][][]string{{{"Object"}}}
	for _, f := range q.Facts {
		grid[0] = append(grid[0], []string{engine.UpperFirst(f.Name)})
	}
	counts := q.HowMany || q.Most || q.Least || q.Compares && slices.ContainsFunc(rows, func(row told) bool { return len(row.values[0]) > fewObjects })
	for _, row := range rows {
		line := [][]string{{strings.ToLower(row.ref.Kind) + " " + row.ref.Name}}
		for i := range q.Facts {
			cell := row.values[i]
			switch {
			case !row.known[i]:
				cell = []string{"not read"}
			case counts && !isQuantity(cell):
				cell = []string{strconv.Itoa(len(cell))}
			}
			line = append(line, cell)
		}
		grid = append(grid, line)
	}
	if len(q.Facts) > len(rows) { // side by side
		grid = transposed(grid)
		grid[0][0] = []string{"Fact"}
	}
	var head []string
	for i, cell := range grid[0] {
		if head = append(head, cell[0]); i > 0 && len(q.Facts) > len(rows) {
			head[i] = report.Code(cell[0])
		}
	}
	w.say(report.Grid(head, grid[1:]))
}

func transposed(grid [][][]string) [][][]string {
	turned := make([][][]string, len(grid[0]))
	for _, line := range grid {
		for i, cell := range line {
			turned[i] = append(turned[i], cell)
		}
	}
	return turned
}

// tellOne tells one fact of one object.
func tellOne(t *topic, row told, i int, f question.Fact, howMany bool) string {
	name, values := engine.UpperFirst(t.short(row.ref)), row.values[i]
	switch {
	case !row.known[i]:
		return fmt.Sprintf("The %s of %s could not be read.", f.Name, t.short(row.ref))
	case len(values) == 0 && f.Paths(strings.ToLower(row.ref.Kind)) == nil:
		return ""
	case len(values) == 0:
		return fmt.Sprintf("%s has no %s: the field is not set.", name, f.Name)
	case howMany && len(values) > 1:
		return fmt.Sprintf("%s, %s: %d.\n\n%s", name, f.Name, len(values), listValues(values))
	case len(values) == 1:
		return fmt.Sprintf("%s, %s: %s.", name, f.Name, report.Code(values[0]))
	}
	return fmt.Sprintf("%s, %s:\n\n%s", name, f.Name, listValues(values))
}

func listValues(values []string) string {
	var b strings.Builder
	for _, v := range values[:min(len(values), mostFactValues)] {
		b.WriteString("- " + report.Code(v) + "\n")
	}
	if left := len(values) - mostFactValues; left > 0 {
		fmt.Fprintf(&b, "- and %d more\n", left)
	}
	return b.String()
}

// compareFacts orders the rows by the first fact and names the first ones, if the question wants the most or the least;
// for a comparison it says whether the values are equal. Otherwise it returns nothing.
func compareFacts(t *topic, q question.FactQuery, rows []told) string {
	name := q.Facts[0].Name
	if q.Sorted {
		slices.SortStableFunc(rows, func(x, y told) int { return cmp.Compare(amountOf(x.values[0]), amountOf(y.values[0])) })
		return ""
	}
	if q.Most || q.Least {
		slices.SortStableFunc(rows, func(x, y told) int {
			if q.Least {
				x, y = y, x
			}
			return cmp.Compare(amountOf(y.values[0]), amountOf(x.values[0]))
		})
		var first []string
		for _, row := range rows {
			if row.known[0] && amountOf(row.values[0]) == amountOf(rows[0].values[0]) {
				first = append(first, t.short(row.ref))
			}
		}
		switch which := map[bool]string{true: "most", false: "least"}[q.Most]; {
		case len(first) == len(rows) && !isQuantity(rows[0].values[0]):
			return fmt.Sprintf("All %d have the same number of %s:", len(rows), name)
		case len(first) == len(rows):
			return fmt.Sprintf("All %d have the same %s:", len(rows), name)
		case len(first) > fewObjects:
			return fmt.Sprintf("%d of %d share the %s by %s:", len(first), len(rows), which, name)
		default:
			return fmt.Sprintf("The %s by %s: %s.", which, name, strings.Join(first, ", "))
		}
	}
	if !q.Compares {
		return ""
	}
	var equal, differ []string
	for i, f := range q.Facts {
		same := func(x, y told) bool {
			if len(x.values[i]) > fewObjects || len(y.values[i]) > fewObjects { // then only their number is shown
				return len(x.values[i]) == len(y.values[i])
			}
			return slices.Equal(x.values[i], y.values[i])
		}
		if slices.ContainsFunc(rows, func(row told) bool { return !row.known[i] || !same(row, rows[0]) }) {
			differ = append(differ, f.Name)
		} else {
			equal = append(equal, f.Name)
		}
	}
	switch {
	case len(equal) == 0:
		return fmt.Sprintf("They differ in %s:", joinPlain(differ))
	case len(differ) == 0:
		return fmt.Sprintf("They are equal in %s:", joinPlain(equal))
	}
	return fmt.Sprintf("They differ in %s, and are equal in %s:", joinPlain(differ), joinPlain(equal))
}

// joinPlain joins names for a sentence.
func joinPlain(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// isQuantity reports whether values are numbers, amounts or times.
func isQuantity(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, func(value string) bool {
		at, _, _ := strings.Cut(value, " (")
		_, err := time.Parse(time.RFC3339, at)
		if _, of, headed := strings.Cut(value, ": "); headed {
			value = of
		}
		_, amount, _ := strings.Cut("="+value, "=")
		if _, of, pair := strings.Cut(amount, "="); pair {
			amount = of
		}
		_, notAmount := resource.ParseQuantity(amount)
		return err != nil && notAmount != nil
	})
}

// amountOf returns the sum of values that are quantities, else their number. An older time is a greater amount.
func amountOf(values []string) float64 {
	sum := 0.0
	for _, value := range values {
		at, _, _ := strings.Cut(value, " (")
		if created, err := time.Parse(time.RFC3339, at); err == nil {
			return -float64(created.Unix())
		}
		_, amount, pair := strings.Cut(value, "=")
		if !pair {
			amount = value
		}
		n, err := resource.ParseQuantity(amount)
		if err != nil {
			return float64(len(values))
		}
		sum += n.AsApproximateFloat64()
	}
	return sum
}
