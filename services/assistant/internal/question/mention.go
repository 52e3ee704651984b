package question

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Mention is a word that may be the name of an object.
type Mention struct {
	Kind string // as in kubectl; empty: any
	Name string
	// Sure reports that the word is in a place where only a name can be, so that its absence is worth an answer.
	Sure bool
}

// place is the location that a sentence names.
type place struct {
	mentions  []Mention
	namespace string
	// perhaps is an ordinary word in the place of a namespace.
	perhaps    string
	everywhere bool
	kind       string // the kind that the sentence asks for: of the kind words without a name, the first after an interrogative, else the last
	headed     bool   // kind is after an interrogative
	pronoun    bool
	several    bool
}

var everywhereExpr = Pattern(wordlist.AnyOf(
	`\b(all|every|any|each) (the )?namespaces?\b`,
	`\b(everywhere|cluster-?wide|across the cluster|whole cluster|entire cluster)\b`,
	"(^| )(-a|--all-namespaces)( |$)", `\bin (the|this|my|our) cluster\b`,
))

// askedFor are the words before the subject of a question.
var askedFor = Words("is are was were does do did has have can could will would should why with of for called named about restart scale describe logs wtf")

// beforeVerb are the words after which an English word is most likely a verb.
var beforeVerb = Words("not can could will would should must may might to never cannot")

// articles may come between such a word and the name.
var articles = Words("the a an my our your this that not")

// findPlaces finds names, kinds and namespaces.
func findPlaces(s sentence) place {
	p := place{everywhere: everywhereExpr.MatchString(s.low)}
	taken := p.namespaces(s.words)
	for i, w := range s.words {
		p.pronoun = p.pronoun || pronouns[w.low] && !w.quoted
		p.several = p.several || severals[w.low]
		if taken[i] {
			continue
		}
		if host := hostOf(w.low); host != "" {
			p.add(Mention{"", host, false})
			continue
		}
		if kind, name, ok := strings.Cut(w.low, "/"); ok && !isAmount(w.low) {
			p.slash(kind, name)
			continue
		}
		if kind := kindOf(w.low); kind != "" && !w.quoted {
			where := kind == "namespace" && p.everywhere && p.kind != "" // "pods in all namespaces"
			if !belongsToName(s.words, taken, i, func(at int) bool { return isNameAt(s.words, taken, at) }) && !where && !p.headed {
				p.kind, p.headed = kind, isHead(s.words[:i])
			}
			continue
		}
		p.mention(s.words, taken, i)
	}
	return p
}

// isHead reports whether the word after some words is what a question asks for: "which pods", "the oldest pod".
func isHead(before []word) bool {
	for _, w := range slices.Backward(before) {
		switch {
		case heads[w.low] || agedExpr.MatchString(w.low):
			return true
		case !articles[w.low] && !adjectives[w.low]:
			return false
		}
	}
	return false
}

var (
	heads      = Words("which what any list")
	adjectives = Words("other of my all many kind kinds there")
)

// hostOf returns the host of a URL, as people paste it; otherwise "".
func hostOf(low string) string {
	rest, is := strings.CutPrefix(low, "https://")
	if !is {
		if rest, is = strings.CutPrefix(low, "http://"); !is {
			return ""
		}
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, ":")
	if !strings.Contains(host, ".") || !operation.ValidName(host) {
		return ""
	}
	return host
}

// slash reads kind/name, and namespace/name if the first part is no kind.
func (p *place) slash(first, name string) {
	kind := kindOf(first)
	switch {
	case !operation.ValidName(name) || !operation.ValidName(first):
	case kind != "":
		p.add(Mention{kind, name, true})
	case p.namespace == "":
		p.namespace = first
		p.add(Mention{"", name, true})
	}
}

func (p *place) add(m Mention) {
	if len(p.mentions) < operation.MaxNames && !slices.Contains(p.mentions, m) {
		p.mentions = append(p.mentions, m)
	}
}

// belongsToName reports whether a kind word at i belongs to a name beside it.
func belongsToName(words []word, taken []bool, i int, named func(at int) bool) bool {
	return i+1 < len(words) && !taken[i+1] && named(i+1) || i > 0 && !taken[i-1] && named(i-1)
}

// isName reports whether a word can only be a name.
func isName(w word) bool {
	if !operation.ValidName(w.low) || strings.Contains(w.low, ":") {
		return false
	}
	if w.quoted {
		return true
	}
	if kindOf(w.low) != "" || isAmount(w.low) || isVersion(w.low) {
		return false
	}
	if w.known {
		return !isReadAlone(w.low)
	}
	return !isRead(w.low) && !isAdverb(w.low) && !isSuperlative(w.low)
}

// isSuperlative reports whether a plain word has the ending of a superlative: "the oldest pod".
func isSuperlative(low string) bool {
	return len(low) > 5 && strings.HasSuffix(low, "est") && plainWordExpr.MatchString(low) && low != "latest"
}

// isAdverb reports whether a plain word has the ending of an adverb.
func isAdverb(low string) bool { return strings.HasSuffix(low, "ly") && plainWordExpr.MatchString(low) }

var (
	amountExpr  = regexp.MustCompile(`^\d+(\.\d+)?(%|x|h|m|s|d|k|g|[kmgtp]i?b?)?$|^(init:)?\d+/\d+$|^p\d{2,3}$|^\d+(st|nd|rd|th)$|^\dxx$`)
	versionExpr = regexp.MustCompile(`^v?\d+(\.\d+)+([.+_-][\w.+-]*)?$`)
)

func isAmount(low string) bool  { return amountExpr.MatchString(low) }
func isVersion(low string) bool { return versionExpr.MatchString(low) }

func (p *place) mention(words []word, taken []bool, i int) {
	w := words[i]
	if !isNameAt(words, taken, i) {
		if isName(w) || subjectWord(words, taken, i) {
			p.add(Mention{"", w.low, false})
		} else if kind := usedKindBeside(words, taken, i); kind != "" {
			p.add(Mention{kind, w.low, false})
		}
		return
	}
	m := Mention{Name: w.low, Sure: w.quoted}
	if i > 0 && !taken[i-1] {
		if kind := kindOf(words[i-1].low); kind != "" {
			m.Kind, m.Sure = kind, true
		}
	}
	if i+1 < len(words) && !taken[i+1] && m.Kind == "" {
		if kind := kindOf(words[i+1].low); kind != "" && words[i+1].low != "event" && words[i+1].low != "events" {
			m.Kind, m.Sure = kind, true
		}
	}
	at := i - 1
	for at >= 0 && articles[words[at].low] {
		at--
	}
	plain := !w.quoted && plainWordExpr.MatchString(w.low)
	if plain && (tellsOfKind(words, taken, i) || m.Kind == "" && isPredicate(words, i)) {
		p.add(Mention{Name: w.low})
		if i > 0 && p.kind == "" {
			p.kind = kindOf(words[i-1].low)
		}
		return
	}
	if plain && m.Kind == "" && i > 0 && beforeVerb[words[i-1].low] {
		p.add(m) // "cannot read": a verb, unless the cluster has such an object
		return
	}
	// "has the fewest replicas": after an article, a word before another plain one is an adjective.
	describes := at < i-1 && i+1 < len(words) && plainWordExpr.MatchString(w.low) && isContent(words[i+1])
	// Behind an article, a plain word that the cluster does not know is a noun: "is that the fault?"
	describes = describes || at < i-1 && plain && !w.known
	m.Sure = m.Sure || w.known || at >= 0 && askedFor[words[at].low] && !describes || p.enumerated(words, taken, i) || strings.ContainsAny(w.low, "-0123456789") || len(words) == 1
	p.add(m)
}

// isContent reports whether a word of letters has a meaning beyond grammar.
func isContent(w word) bool {
	return plainWordExpr.MatchString(w.low) && !functionWords[w.low] && !restricting[w.low] && kindOf(w.low) == ""
}

// usedKindBeside returns the kind, of those that workloads use, whose word is beside an ordinary word and so makes it a
// name if the cluster has such an object: "the certs secret", "configmap settings".
func usedKindBeside(words []word, taken []bool, i int) string {
	w := words[i].low
	if len(w) < 3 || !isRead(w) || notNouns[w] || kindOf(w) != "" || pronouns[w] || severals[w] || articles[w] || beings[w] || !operation.ValidName(w) {
		return ""
	}
	switch last := i == len(words)-1 || words[i+1].low == "in"; {
	case i > 0 && !taken[i-1] && last:
		return usedKinds[words[i-1].low]
	case i > 0 && articles[words[i-1].low] && i+1 < len(words) && !taken[i+1]:
		return usedKinds[words[i+1].low]
	}
	return ""
}

// notNouns follow a kind word and are never its name.
var notNouns = Words("now too again anymore yet still already then there here please today tomorrow yesterday")

// usedKinds are the words for one object of a kind that workloads use.
var usedKinds = map[string]string{
	"secret": "secret", "configmap": "configmap", "cm": "configmap", "pvc": "persistentvolumeclaim", "claim": "persistentvolumeclaim",
	"persistentvolumeclaim": "persistentvolumeclaim", "serviceaccount": "serviceaccount", "sa": "serviceaccount",
}

// tellsOfKind reports whether an English word after a kind word is most likely its verb and not its name: the kind word
// is a plural, "pods hate me", or has its name before it, "web pods hate me".
func tellsOfKind(words []word, taken []bool, i int) bool {
	if i == 0 || taken[i-1] || kindOf(words[i-1].low) == "" || i+1 < len(words) && kindOf(words[i+1].low) != "" {
		return false
	}
	if plural := words[i-1].low; strings.HasSuffix(plural, "s") && kindOf(strings.TrimSuffix(plural, "s")) == kindOf(plural) {
		return true
	}
	// "the hpa stays at two", but "deployment payments is slow" and "deployment reports in shop".
	if next := i + 1; !words[i].known && strings.HasSuffix(words[i].low, "s") && next < len(words) && words[next].low != "in" && !askedFor[words[next].low] {
		return true
	}
	if i > 1 && !words[i].known && (indefinite[words[i-2].low] || (words[i-2].low == "a" || words[i-2].low == "any") && strings.HasSuffix(words[i].low, "ing")) {
		return true // "did any node reboot?", "is there a policy blocking it?"
	}
	return i > 1 && !taken[i-2] && isNameAt(words, taken, i-2)
}

// indefinite are the words before a kind of which no object is named.
var indefinite = Words("any some each every which no another its their")

// beings connect a subject with its predicate.
var beings = Words("is are was were be looks seems feels gets")

// isPredicate reports whether an English word is the predicate of a subject, and so no name: "everything is red", "what
// is eating cpu".
func isPredicate(words []word, i int) bool {
	if i < 2 || !beings[words[i-1].low] {
		return false
	}
	subject := words[i-2].low
	return !questionWords[subject] || (subject == "what" || subject == "who") && strings.HasSuffix(words[i].low, "ing")
}

// questionWords begin a question whose subject follows the verb: "why is cart slow".
var questionWords = Words("why what where who how which when and but so")

// subjectWord reports whether an ordinary word is in the place of a question's subject: "why did load fail?" It is a
// name if the cluster has such an object.
func subjectWord(words []word, taken []bool, i int) bool {
	w := words[i].low
	if i == 0 && len(words) > 4 && words[1].low == "in" && !pronouns[words[2].low] && !badExpr.MatchString(w) && isRead(w) && kindOf(w) == "" && !questionWords[w] && !neverNames[w] && operation.ValidName(w) {
		return true // "drain in queues takes nothing"
	}
	if len(w) < 3 || !isRead(w) || kindOf(w) != "" || pronouns[w] || severals[w] || articles[w] || askedFor[w] || neverNames[w] || badExpr.MatchString(w) || symptomsOf(w) != nil || !operation.ValidName(w) {
		return false
	}
	if i == 0 {
		return len(words) > 2 && askedFor[words[1].low] // "reports did not run"
	}
	at := i - 1
	for at >= 0 && articles[words[at].low] {
		at--
	}
	return at >= 0 && !taken[at] && askedFor[words[at].low]
}

// neverNames are words that are never a name, even in the place of a subject.
var neverNames = Words(`there here they anything something nothing everything anyone someone nobody what which who wrong going being been not now just still all any some
	cluster namespace pods services nodes jobs happening broken down`)

// enumerated reports whether the word at i continues a list of names: "in shop and payments".
func (p *place) enumerated(words []word, taken []bool, i int) bool {
	if i < 2 || words[i-1].low != "and" && words[i-1].low != "or" {
		return false
	}
	before := words[i-2].low
	return taken[i-2] || slices.ContainsFunc(p.mentions, func(m Mention) bool { return m.Name == before })
}

// namespaces finds the namespace in the sentence, and marks its words.
func (p *place) namespaces(words []word) []bool {
	taken := make([]bool, len(words))
	take := func(name string, at ...int) {
		if p.namespace == "" && operation.ValidName(name) && !strings.ContainsAny(name, ".:") {
			p.namespace = name
			for _, i := range at {
				taken[i] = true
			}
		}
	}
	is := func(i int) bool {
		return i >= 0 && i < len(words) && (isName(words[i]) || words[i].known)
	}
	for i, w := range words {
		name, long := strings.CutPrefix(w.low, "--namespace=")
		switch {
		case w.quoted:
		case long:
			take(name, i)
		case strings.HasPrefix(w.low, "-n") && len(w.low) > 2 && w.low[2] != '-':
			take(strings.TrimPrefix(w.low[2:], "="), i)
		case (w.low == "-n" || w.low == "--namespace") && i+1 < len(words):
			take(words[i+1].low, i, i+1)
		case w.low == "namespace" || w.low == "ns":
			switch {
			case is(i + 1):
				take(words[i+1].low, i, i+1)
			case is(i - 1):
				take(words[i-1].low, i-1, i)
			case i+1 < len(words) && operation.ValidName(words[i+1].low):
				p.perhaps = words[i+1].low
			}
		}
	}
	for i, w := range words {
		if w.low != "in" && w.low != "inside" && w.low != "within" && w.low != "under" {
			continue
		}
		at := i + 1
		for at < len(words) && articles[words[at].low] {
			at++
		}
		// "in deployment api" is no namespace, "in team-a pods" is one.
		switch {
		case at >= len(words) || taken[at] || strings.Contains(words[at].low, "/"):
		case words[at].low == "log" || words[at].low == "logs":
			if at == i+1 && at == len(words)-1 {
				p.perhaps = words[at].low
			}
		case is(at) && !states[words[at].low]:
			take(words[at].low, at)
		case at == len(words)-1 && operation.ValidName(words[at].low) && kindOf(words[at].low) == "":
			p.perhaps = words[at].low // "in policy", as only the cluster can tell
		}
	}
	return taken
}

// Names reports whether a word is in the place of a name.
func (a Ask) Names(word string) bool {
	return slices.ContainsFunc(a.Mentions, func(m Mention) bool { return m.Name == word && (m.Sure || m.Kind != "") }) || a.Namespace == word
}
