package redact

import (
	"regexp"
	"strings"
	"sync"
)

// rule finds secrets by an expression. It runs only around its keywords, and is compiled when one of them is first seen: most
// processes never need most rules.
type rule struct {
	name     string
	keywords []string // one of them is in each match; ASCII letters in lower case, and match any case
	form     func() *regexp.Regexp
	// before and after limit the text examined around a keyword. Zero: its line.
	before, after int
	// inner, if set, finds the secrets inside the groups of form.
	inner func() *regexp.Regexp
	// only is the group that holds the secret, or the next one that matched; 0: each group does.
	only int
	// accept decides which matches are secrets; nil: all are.
	accept func(match, value string) bool
}

// newRule returns a rule whose secrets are the groups of expr, or without groups the whole match.
func newRule(name, keywords, expr string, accept func(match, value string) bool) *rule {
	return &rule{name: name, keywords: strings.Split(keywords, "|"), form: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) }), accept: accept}
}

// near sets how much text around a keyword a rule examines.
func (r *rule) near(before, after int) *rule {
	r.before, r.after = before, after
	return r
}

// inside limits the secrets to the groups of expr within each match.
func (r *rule) inside(expr string) *rule {
	r.inner = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	return r
}

// maxLine limits the part of a line examined on each side of a keyword.
const maxLine = 4 << 10

func (r *rule) ahead() int {
	if r.after > 0 {
		return r.after
	}
	return maxLine
}

// window returns the part of s around a keyword that a rule examines.
func (r *rule) window(s string, from, to int) (int, int) {
	if r.after > 0 {
		return max(0, from-r.before), min(len(s), to+r.after)
	}
	low := max(0, from-maxLine)
	if i := strings.LastIndexByte(s[low:from], '\n'); i >= 0 {
		low += i + 1
	}
	high := min(len(s), to+maxLine)
	if i := strings.IndexByte(s[to:high], '\n'); i >= 0 {
		high = to + i
	}
	return low, high
}

// find appends the secrets between from and to.
func (r *rule) find(s string, from, to int, spans []span) []span {
	part := s[from:to]
	for _, m := range r.form().FindAllStringSubmatchIndex(part, -1) {
		if r.inner == nil {
			spans = r.collect(part, from, m, spans)
			continue
		}
		for _, inner := range r.inner().FindAllStringSubmatchIndex(part[m[0]:m[1]], -1) {
			spans = r.collect(part[m[0]:m[1]], from+m[0], inner, spans)
		}
	}
	return spans
}

// collect appends the secrets of one match in part, which begins at base.
func (r *rule) collect(part string, base int, m []int, spans []span) []span {
	groups := m[min(len(m), 2*max(1, r.only)):]
	if len(groups) == 0 {
		groups = m
	}
	for g := 0; g < len(groups); g += 2 {
		a, b := groups[g], groups[g+1]
		if a < 0 || a == b {
			continue
		}
		value := part[a:b]
		if strings.HasPrefix(value, "[redacted ") || r.accept != nil && !r.accept(part[m[0]:m[1]], value) {
			continue
		}
		spans = append(spans, span{from: base + a, to: base + b})
		if r.only > 0 {
			break
		}
	}
	return spans
}

// ruleSet finds the keywords of all rules in one pass over a text, with an Aho-Corasick automaton.
type ruleSet struct {
	rules   []*rule
	class   [256]uint8 // of a byte; 0 is that of bytes in no keyword
	classes int
	next    []int32      // by state and class
	hits    [][]wordRule // by state: keywords that end there
}

type wordRule struct {
	rule   int32
	length int32
}

func newRuleSet(rules []*rule) *ruleSet {
	set := &ruleSet{rules: rules, classes: 1}
	for _, r := range rules {
		for _, word := range r.keywords {
			for i := range len(word) {
				if c := word[i]; set.class[c] == 0 {
					set.class[c] = uint8(set.classes)
					if 'a' <= c && c <= 'z' {
						set.class[c-'a'+'A'] = uint8(set.classes)
					}
					set.classes++
				}
			}
		}
	}
	set.addState()
	for at, r := range rules {
		for _, word := range r.keywords {
			state := int32(0)
			for i := range len(word) {
				edge := int(state)*set.classes + int(set.class[word[i]])
				if set.next[edge] < 0 {
					to := set.addState() // moves next
					set.next[edge] = to
				}
				state = set.next[edge]
			}
			set.hits[state] = append(set.hits[state], wordRule{int32(at), int32(len(word))})
		}
	}
	set.link()
	return set
}

func (set *ruleSet) addState() int32 {
	for range set.classes {
		set.next = append(set.next, -1)
	}
	set.hits = append(set.hits, nil)
	return int32(len(set.hits) - 1)
}

// link sets the failure transitions, breadth first.
func (set *ruleSet) link() {
	fail := make([]int32, len(set.hits))
	var queue []int32
	for c := range set.classes {
		if to := set.next[c]; to > 0 {
			queue = append(queue, to)
		} else {
			set.next[c] = 0
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		set.hits[state] = append(set.hits[state], set.hits[fail[state]]...)
		for c := range set.classes {
			edge := int(state)*set.classes + c
			other := set.next[int(fail[state])*set.classes+c]
			if to := set.next[edge]; to >= 0 {
				fail[to] = other
				queue = append(queue, to)
			} else {
				set.next[edge] = other
			}
		}
	}
}

// find returns the secrets that the rules find in s.
func (set *ruleSet) find(s string, spans []span) []span {
	var windows map[int32]window // of rules whose keyword was seen: the part not examined yet
	state := int32(0)
	for i := 0; i < len(s); i++ {
		state = set.next[int(state)*set.classes+int(set.class[s[i]])]
		for _, hit := range set.hits[state] {
			r := set.rules[hit.rule]
			last, seen := windows[hit.rule]
			if seen && (i+1+r.ahead()/2 <= last.to || i < last.to && r.after == 0 && last.to < len(s) && s[last.to] == '\n') {
				continue // the window has enough of the following text
			}
			from, to := r.window(s, i+1-int(hit.length), i+1)
			switch {
			case seen && from <= last.to:
				from = last.from
			case seen:
				spans = r.find(s, last.from, last.to, spans)
			}
			if windows == nil {
				windows = map[int32]window{}
			}
			windows[hit.rule] = window{from, to}
		}
	}
	for at, w := range windows {
		spans = set.rules[at].find(s, w.from, w.to, spans)
	}
	return spans
}

type window struct{ from, to int }
