package question

import (
	"regexp"
	"slices"
	"strings"
)

// Fact is one thing that can be told of every object of some kinds.
type Fact struct {
	Name  string
	paths map[string][]string // of the fields that hold it, by kind
	// narrows are facts among whose values its words choose instead: "the memory limit".
	narrows []string
	expr    *regexp.Regexp
}

// Paths returns the paths of the fields that hold the fact in objects of a kind, or nil. A path in braces is no field
// but names what is derived from several objects.
func (f Fact) Paths(kind string) []string {
	if paths := f.paths[kind]; paths != nil {
		return paths
	}
	return f.paths[anyKind]
}

// Kinds returns the kinds whose objects have the fact; nil for one that every kind has.
func (f Fact) Kinds() []string {
	var kinds []string
	for kind := range f.paths {
		if kind == anyKind {
			return nil
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// FactQuery is a question for facts.
type FactQuery struct {
	Facts []Fact
	Kind  string   // the kind in question, unless its word is one of a fact: the node of a pod
	Read  []string // the words of the facts
	// Rest are the other words, of which those that are keys of a value narrow it: "the memory limit".
	Rest []string
	// HowMany wants the number of values, Whether only whether there are any, and Compares the difference of two objects.
	HowMany, Whether, Compares bool
	// Most and Least want the object with the greatest or the smallest value.
	Most, Least bool
	Sorted      bool // wants all in the order of their values
	// Operators are the words that compare and rank.
	Operators []string
}

var (
	comparesExpr = Pattern(`\b(compare|compared|versus|vs|differ|differs|differences?|different|same|equal)\b|\b(more|less|fewer|bigger|smaller|higher|lower) (\S+ ){0,2}than\b`)
	whetherExpr  = Pattern(`^(do|does|did|has|have|is|are|was) (?:there )?`)
	headedExpr   = Pattern(`^(what|which) (is|was|are|were) (the |its |their )?(last |current )?`)
	sortedExpr   = Pattern(`\b(sort|sorted|order|ordered) by\b`)
	clusterAge   = Pattern(`\b(cluster) (is|was|running|up|created)\b|\b(is|age of|was) (the|this|our|my)? ?cluster\b`)
)

// FactQuery returns the facts that a question names.
func (a Ask) FactQuery() FactQuery {
	q := FactQuery{
		HowMany: strings.Contains(a.Words, "how many"), Whether: whetherExpr.MatchString(a.said.low), Compares: comparesExpr.MatchString(a.said.low),
		Most: mostExpr.MatchString(a.said.low) || strings.Contains(a.Words, "oldest"), Least: leastExpr.MatchString(a.said.low) || strings.Contains(a.Words, "newest"),
	}
	q.Sorted = sortedExpr.MatchString(a.said.low)
	for _, expr := range []*regexp.Regexp{comparesExpr, mostExpr, leastExpr, sortedExpr} {
		q.Operators = append(q.Operators, strings.Fields(expr.FindString(a.said.low))...)
	}
	low := a.said.low
	for _, w := range a.said.words { // a name is no word for a fact
		if (w.known || w.quoted) && kindOf(w.low) == "" {
			low = replaceWord(low, strings.ReplaceAll(w.low, "-", "_"))
			low = replaceWord(low, w.low)
		}
	}
	read := map[string]bool{}
	for _, f := range facts {
		narrows := slices.ContainsFunc(q.Facts, func(of Fact) bool { return slices.Contains(f.narrows, of.Name) })
		if found := f.expr.FindAllString(low, -1); found != nil && !narrows {
			q.Facts = append(q.Facts, f)
			low = f.expr.ReplaceAllString(low, " _ ")
			for word := range strings.FieldsSeq(strings.Join(found, " ")) {
				if !read[word] && !functionWords[word] {
					read[word] = true
					q.Read = append(q.Read, word)
				}
			}
		}
	}
	q.Rest = strings.Fields(strings.ReplaceAll(low, "_", " "))
	q.takeKind(a)
	if q.Kind == "" && clusterAge.MatchString(low) {
		q.Kind = "node" // the cluster itself is no object
	}
	return q
}

// sizes are the facts that make an object of a kind the biggest or the smallest.
var sizes = map[string][]string{"node": {"memory", "cpu"}, "persistentvolumeclaim": {"size"}}

// compared are the facts in which two objects are compared if the question names none.
var compared = setOf("type image replicas requests limits ports selector environment strategy")

// Comparison returns the question with the facts in which two objects are compared if it names none.
func (q FactQuery) Comparison() FactQuery {
	for _, f := range facts {
		if compared[f.Name] {
			q.Facts = append(q.Facts, f)
		}
	}
	return q
}

// takeKind finds the kind in question. The word for one is that of a fact only if the question has no other: the labels of
// pods, but the pods of a node.
func (q *FactQuery) takeKind(a Ask) {
	kinds := []string{a.Kind}
	for _, m := range a.Mentions {
		kinds = append(kinds, m.Kind)
	}
	if m := splitByExpr.FindStringSubmatch(a.said.low); m != nil && kindOf(m[2]) != "" {
		kinds = []string{kindOf(m[2])} // "how many pods on each node"
	}
	for _, kind := range kinds {
		isKind := func(word string) bool { return kindOf(word) == kind }
		at := slices.IndexFunc(q.Facts, func(f Fact) bool {
			return slices.ContainsFunc(q.Read, func(word string) bool { return isKind(word) && f.expr.MatchString(word) })
		})
		switch {
		case kind == "":
		case slices.ContainsFunc(q.Rest, isKind):
			q.Kind = kind
			return
		case at >= 0 && (q.Most || q.Least) && len(q.Facts) == 1 && sizes[kind] != nil: // "the smallest node"
			q.Kind, q.Facts = kind, nil
			for _, f := range facts {
				if slices.Contains(sizes[kind], f.Name) {
					q.Facts = append(q.Facts, f)
				}
			}
			return
		case at >= 0 && len(q.Facts) > 1:
			q.Kind, q.Facts = kind, slices.Delete(q.Facts, at, at+1)
			q.Read = slices.DeleteFunc(q.Read, isKind)
			return
		}
	}
}

// asksFact reports whether a sentence that no other rule answers asks for facts: it is worded as a question or an order
// to show something, or is a phrase that begins with the fact, and it reports no fault.
func (a Ask) asksFact(s sentence) bool {
	headed := headedExpr.FindString(s.low)
	if a.unread || a.Intent != Diagnosis && a.Intent != Unclear && a.Intent != Describe || len(s.words) < 2 || headed == "" && badExpr.MatchString(s.low) || whyExpr.MatchString(s.low) ||
		negatedExpr.MatchString(s.low) || hypothesisExpr.MatchString(s.low) {
		return false
	}
	first := s.words[0].low
	q := a.FactQuery()
	if headed != "" && badExpr.MatchString(s.low) && !slices.ContainsFunc(q.Facts, func(f Fact) bool {
		at := f.expr.FindStringIndex(s.low[len(headed):])
		return at != nil && at[0] == 0
	}) {
		return false // "what is the error of web", but "what is the exit code of the crash"
	}
	if bare := !slices.ContainsFunc(q.Read, func(word string) bool { return kindOf(word) == "" }); bare && !q.HowMany && !q.Most && !q.Least && !q.Compares && len(a.Mentions) == 0 {
		return false // "pods that are not on worker-1" wants a list
	}
	if len(q.Facts) > 0 {
		return s.asks && !auxiliaries[first] || interrogatives[first] || whetherExpr.MatchString(s.low) || asking[first] || slices.Contains(q.Read, first) || mostExpr.MatchString(first) || leastExpr.MatchString(first)
	}
	return false
}

// replaceWord replaces a word by one that means nothing.
func replaceWord(low, word string) string {
	words := strings.Fields(low)
	for i := range words {
		if words[i] == word {
			words[i] = "_"
		}
	}
	return strings.Join(words, " ")
}
