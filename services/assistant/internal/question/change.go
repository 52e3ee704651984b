package question

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Change is one requested change, as far as the sentence specifies it.
type Change struct {
	// Verb is the operation; empty means to repair the problem.
	Verb operation.Verb

	Kind      string // of the object; empty: any that fits
	Mentions  []Mention
	Namespace string
	Several   bool // both, all
	// Symptoms are those that a repair must end, or, if Described, those of the object of another change.
	Symptoms  []Symptom
	Described bool

	Count     *int32 // replicas
	Step      int    // 1 or -1: Count and Quantity are an increase or a decrease; 0: an absolute value
	Min, Max  *int32
	Percent   int32
	Revision  int64
	Quantity  string // such as 256Mi
	Resource  string // memory or cpu
	Request   bool   // of the request, else of the limit
	Image     string // repository and tag
	Tag       string // tag alone
	Set       map[string]string
	Remove    []string
	Taints    []string
	Untaint   bool // Taints are removed; if none is named, all that people set
	Container string
	Port      int
}

// leads are polite words before a request.
var leads = []string{
	"please", "hey", "hi", "hello", "so", "now", "then", "and", "also", "just", "well", "ok", "okay", "alright", "right", "hmm", "um", "uh", "wait",
	"can you", "could you", "would you", "will you", "can you please", "would you mind", "i want you to", "i need you to", "i would like you to", "let us", "go ahead and", "quickly",
	"you should", "you can", "you may", "you must", "kindly", "dear assistant", "assistant", "actually", "instead", "for now", "do a", "do an", "do", "perform a", "trigger a", "start a",
}

// polite reports whether a sentence with these words is a request despite its question mark.
var polite = Pattern(`\b(can|could|would|will) you\b|\bplease\b|\bwould you mind\b`)

// verbs are the words that begin a request.
var verbs = map[string]operation.Verb{
	"scale": operation.Scale, "restart": operation.Restart, "bounce": operation.Restart, "reboot": operation.Restart, "redeploy": operation.Restart, "recycle": operation.Restart,
	"undo": operation.Undo, "revert": operation.Undo, "resume": operation.Resume, "unsuspend": operation.Resume, "unpause": operation.Resume,
	"suspend": operation.Suspend, "pause": operation.Pause, "delete": operation.Delete, "remove": operation.Delete, "kill": operation.Delete, "destroy": operation.Delete, "drop": operation.Delete,
	"evict": operation.Evict, "cordon": operation.Cordon, "uncordon": operation.Uncordon, "drain": operation.Drain, "taint": operation.Taint, "untaint": operation.Taint,
	"label": operation.Label, "annotate": operation.Annotate, "expose": operation.Expose, "autoscale": operation.Autoscale,
	"fix": "", "repair": "", "heal": "", "solve": "", "resolve": "", "remedy": "", "remediate": "", "mend": "", "unbreak": "",
	"raise": operation.SetResources, "increase": operation.SetResources, "lower": operation.SetResources, "reduce": operation.SetResources, "decrease": operation.SetResources, "bump": operation.SetResources,
	"set": anything, "change": anything, "update": anything, "upgrade": anything, "downgrade": anything, "use": anything, "give": anything, "make": anything, "deploy": anything, "add": anything, "put": anything,
	"roll": "roll", "rollout": "rollout", "go": "go", "switch": "go", "apply": "apply", "do": "do", "run": operation.RunJob, "trigger": operation.RunJob,
	"disable": operation.Suspend, "enable": operation.Resume, "stop": operation.Suspend, "create": operation.Create, "patch": operation.Patch, "replace": operation.Replace,
	"rolling": "rolling",
}

// NamesChange reports whether a word in lower case begins a request for a change.
func NamesChange(word string) bool { _, ok := verbs[word]; return ok }

// anything is a verb whose meaning depends on the values.
const anything operation.Verb = "set"

var (
	deniedExpr      = Pattern(`\b(not|never|no|nothing|nobody|neither|nor|without|avoid|refrain|cancel)\b`)
	conditionalExpr = Pattern(`\b` + wordlist.AnyOf(
		"if", "unless", "until", "when", "whenever", "once", "while", "after", "before", "later", "tomorrow",
		"tonight", "soon", "eventually", "maybe", "perhaps", "should", "in case", "provided", "assuming",
		"next (week|month|time)", `at (noon|midnight|\d+ ?(am|pm|:\d+|o'clock))`,
		`in (\d+|a few|an|a) (seconds?|minutes?|mins?|hours?|days?)`,
	) + `\b`)
	adviceExpr = Pattern(`^` + wordlist.AnyOf(
		"should", "shall", "may", "can", "could", "do", "does", "would", "will", "is", "are", "was", "were", "did",
		"has", "have", "had", "what", "which", "when", "where", "who", "how", "why", "must", "might", "i wonder",
		"any reason", "suppose", "imagine", "explain", "tell me", "describe", "show me", "give me",
	) + `\b`)
	changeWordExpr = Pattern(`\b` + wordlist.AnyOf(
		"scale", "scaling", "restart", "restarting", "roll(ing)? ?back", "undo", "revert", "fix", "delete",
		"deleting", "remove", "removing", "kill", "drain", "cordon", "uncordon", "evict", "suspend", "resume",
		"pause", "label", "taint", "raise", "increase", "lower", "reduce", "bump", "set", "change", "patch", "apply",
		"redeploy", "bounce", "upgrade", "downgrade", "update",
	) + `\b`)
	putOffExpr = Pattern(`^` + wordlist.AnyOf(
		"not (yet|now|today)", "later", "wait", "hold on", "hold", "stop", "never ?mind", "forget it", "not so fast",
	) + `\b`)
	assentExpr = Pattern(`^` + wordlist.AnyOf(
		"yes", "yep", "yeah", "yup", "ya", "ok", "okay", "sure", "fine", "agreed", "go", "go ahead", "go for it",
		"sounds good", "lgtm", "looks good", "looks good to me", "ship it", "approved", "approve", "accepted",
		"confirm", "confirmed", "proceed", "no", "nope", "nah", "deny", "denied", "cancel", "reject",
	) + `\b`)
	// negatedNounExpr matches a sentence about something absent, whose "no" refuses nothing.
	negatedNounExpr = Pattern(`^no ` + wordlist.AnyOf(
		"traffic", "connections?", "requests?", "responses?", "repl(y|ies)", "answers?", "pods?", "endpoints?", "logs?", "metrics?", "jobs?", "network",
		"access", "nodes?", "space", "memory", "data", "events?", "(new |healthy |ready )?(pods?|replicas?|instances?|backends?|containers?)", "route", "dns",
	) + `\b`)
)

// stripLead removes words that only introduce a request.
func stripLead(s sentence) sentence {
	for {
		long := ""
		for _, l := range leads {
			if len(l) > len(long) && strings.HasPrefix(s.low, l+" ") {
				long = l
			}
		}
		// "do it" alone is a request.
		if long == "" || long == "do" && (s.starts("do it") || s.starts("do that") || s.starts("do this") || s.starts("do both") || s.starts("do so")) {
			return s
		}
		s = s.from(len(strings.Fields(long)))
		s.noun = strings.HasSuffix(long, " a") || strings.HasSuffix(long, " an")
	}
}

// parseRequests reads a sentence as changes. held: it mentions a change but does not request it now; ok: all of it was
// understood as a request.
func parseRequests(s sentence) (changes []Change, held, ok bool) {
	s = imperative(stripLead(s))
	if len(s.words) == 0 {
		return nil, false, false
	}
	if s.starts("do not") || s.starts("never") || s.starts("not") || s.starts("does not need") || s.starts("stop") && len(s.words) > 1 && strings.HasSuffix(s.words[1].low, "ing") {
		return nil, changeWordExpr.MatchString(s.low), false
	}
	if _, begins := verbs[s.words[0].low]; !begins || s.words[0].quoted || isSubject(s.words) || len(s.words) > 1 && s.words[1].low == "of" {
		return nil, false, false // "rollout of web does not progress"
	}
	if deniedExpr.MatchString(s.low) || conditionalExpr.MatchString(s.low) {
		return nil, true, false
	}
	for _, clause := range splitClauses(s) {
		c, ok := parseChange(clause)
		if !ok {
			return nil, false, false
		}
		changes = append(changes, c)
	}
	// A later clause inherits what it omits from the first.
	for i := range changes[1:] {
		if c := &changes[i+1]; c.Namespace == "" {
			c.Namespace = changes[0].Namespace
		}
	}
	return changes, false, true
}

// isSubject reports whether the first word, a verb of change, is instead the subject of a statement: "drain is
// blocked", "drain in queues takes nothing", if something is called drain.
func isSubject(words []word) bool {
	if len(words) < 3 || words[1].quoted {
		return false
	}
	if slices.ContainsFunc(words[2:], func(w word) bool { return wishes[w.low] }) { // "restart is not to be done now"
		return false
	}
	next := words[1].low
	return beings[next] || next == "has" || next == "hangs" || next == "fails" || next == "never" || next == "takes" || next == "does" || next == "can" && words[2].low == "not" || words[0].low == "drain" && next == "in" && slices.ContainsFunc(words[2:], func(w word) bool { return statementVerbs[w.low] })
}

// wishes after the word for a change express the wish to make it.
var wishes = Words("to ok okay allowed wanted needed necessary intended planned advised recommended required tonight tomorrow")

// statementVerbs make a statement of a sentence that might be a request.
var statementVerbs = Words("is was are takes has does hangs fails keeps gets sends receives writes reads stops waits crashes restarts")

// splitClauses splits "scale api to 3 and restart web".
func splitClauses(s sentence) []sentence {
	var all []sentence
	from := 0
	for i := 1; i+1 < len(s.words); i++ {
		joint := s.words[i].low == "and" || s.words[i].low == "then"
		if _, begins := verbs[s.words[i+1].low]; joint && begins && !s.words[i+1].quoted && i > from {
			part := s
			part.words = s.words[:i]
			part.noun = s.noun && from == 0
			all = append(all, part.from(from))
			from = i + 1
		}
	}
	last := s.from(from)
	last.noun = s.noun && from == 0
	return append(all, stripLead(last))
}

var (
	quantityExpr = regexp.MustCompile(`^(\d+(?:\.\d+)?)([kmgtp]i?b?|m)$`)
	decimalExpr  = regexp.MustCompile(`^\d{1,6}(\.\d{1,6})?$`)
	countExpr    = regexp.MustCompile(`^\d{1,6}$`)
	imageExpr    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*(:\d+/[A-Za-z0-9._/-]+)?` +
		`(:[A-Za-z0-9_][\w.-]*|@sha256:[0-9a-f]{64})$`)
	pairExpr     = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_./-]*)=(.*)$`)
	taintExpr    = regexp.MustCompile(`^[A-Za-z0-9][\w./-]*(=[\w.-]*)?:(NoSchedule|PreferNoSchedule|NoExecute)-?$`)
	variableExpr = regexp.MustCompile(`^[A-Z][A-Z0-9_]{2,}$`)
)

// parseChange parses one clause; ok reports that all of its words were understood.
func parseChange(s sentence) (c Change, ok bool) {
	c.Verb = verbs[s.words[0].low]
	if speaksOfChange(s, c.Verb, s.noun) {
		return c, false
	}
	rest := s.words[1:]
	if describable[c.Verb] {
		if kept, described, several, is := takeDescription(rest); is {
			c.Described, c.Several, c.Symptoms = true, several, symptomsOf(described)
			s.words = append([]word{s.words[0]}, kept...)
			s = s.from(0)
			rest = s.words[1:]
		}
	}
	var p changePlace
	if name := ownNamespace(c.Verb, rest); name != "" {
		c.Mentions, p.taken = []Mention{{"namespace", name, true}}, make([]bool, len(rest))
		for i := range rest[:len(rest)-len(afterName(rest, name))] {
			p.taken[i] = true
		}
	} else {
		p = placesOfChange(s.from(1))
	}
	taken := p.taken
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		if taken[i] {
			continue
		}
		switch n := c.value(rest, taken, i); {
		case n > 0:
			i += n - 1
		case c.Verb == "" && i+1 < len(rest) && rest[i+1].low == "of" && !w.known && !w.quoted && kindOf(w.low) == "": // "fix the port of web"
		case w.quoted && operation.ValidName(w.low), isName(w) && (w.known || !plainWordExpr.MatchString(w.low)), c.standsForObject(rest, taken, i):
			c.name(rest, taken, i)
		case strings.Contains(w.low, "/") && c.slash(w.low):
		case kindOf(w.low) != "":
			if !belongsToName(rest, taken, i, func(at int) bool { return isName(rest[at]) }) || c.Kind == "" {
				c.Kind = kindOf(w.low)
			}
		case w.known && !fillers[w.low]:
			c.Mentions = append(c.Mentions, Mention{Name: w.low, Sure: true})
		case fillers[w.low], pronouns[w.low]:
			c.Several = c.Several || severals[w.low]
		case c.Verb == "" && symptomsOf(w.low) != nil, c.Verb == "" && troubleWords[w.low]:
		case s.words[0].low == "roll" && (w.low == "back" || w.low == "out"), s.words[0].low == "rollout" && verbs[w.low] != "", w.low == "replicas":
		case (s.words[0].low == "apply" || s.words[0].low == "do" || s.words[0].low == "make") && applyWords[w.low]:
		default:
			return c, false
		}
	}
	if c.Kind == "event" || c.Described && len(c.Mentions) > 0 {
		return c, false // events are short-lived; a description after a name is a remark
	}
	if c.Verb == "" {
		c.Symptoms = symptomsOf(s.from(1).low)
	}
	if p.namespace != "" {
		c.Namespace = p.namespace
	}
	return c, c.steps(s) && c.decide(s)
}

var (
	troubleWords = Words("issue issues problem problems error errors trouble troubles incident outage bug thing things stuff broken what is wrong failing broken unhealthy empty missing dead there here going on mess")
	applyWords   = Words("fix fixes suggestion suggestions change changes patch proposal recommendation recommended suggested proposed work working happen so go solution healthy")
)

type changePlace struct {
	namespace string
	taken     []bool
}

// ownNamespace returns the namespace that is itself the object of a change, not only its place: "delete namespace
// media".
func ownNamespace(verb operation.Verb, rest []word) string {
	if verb != operation.Delete && verb != operation.Label && verb != operation.Annotate {
		return ""
	}
	for len(rest) > 0 && articles[rest[0].low] {
		rest = rest[1:]
	}
	switch {
	case len(rest) >= 2 && kindOf(rest[0].low) == "namespace" && (isName(rest[1]) || rest[1].known):
		return rest[1].low
	case len(rest) == 2 && kindOf(rest[1].low) == "namespace" && (isName(rest[0]) || rest[0].known):
		return rest[0].low
	}
	return ""
}

// afterName returns the words after the name and the word namespace.
func afterName(rest []word, name string) []word {
	for i, w := range rest {
		if w.low == name {
			if i+1 < len(rest) && kindOf(rest[i+1].low) == "namespace" {
				i++
			}
			return rest[i+1:]
		}
	}
	return nil
}

func placesOfChange(s sentence) changePlace {
	var p place
	taken := p.namespaces(s.words)
	for i, w := range s.words {
		// the word "in" before a namespace is itself a filler
		if i+1 < len(s.words) && taken[i+1] && (w.low == "in" || w.low == "inside" || w.low == "within" || w.low == "under") {
			taken[i] = true
		}
		if i+2 < len(s.words) && taken[i+2] && articles[s.words[i+1].low] && w.low == "in" {
			taken[i], taken[i+1] = true, true
		}
	}
	return changePlace{p.namespace, taken}
}

func (c *Change) slash(low string) bool {
	first, name, _ := strings.Cut(low, "/")
	if !operation.ValidName(first) || !operation.ValidName(name) {
		return false
	}
	kind := kindOf(first)
	if kind == "" {
		if c.Namespace != "" {
			return false
		}
		c.Namespace = first
	}
	c.Mentions = append(c.Mentions, Mention{kind, name, true})
	return true
}

// standsForObject reports whether a plain word that the cluster does not know is in the place of a name: the first one,
// one beside a kind, or one in a list.
func (c *Change) standsForObject(rest []word, taken []bool, i int) bool {
	if w := rest[i]; !plainWordExpr.MatchString(w.low) || isReadAlone(w.low) || isAdverb(w.low) || kindOf(w.low) != "" {
		return false
	}
	beside := func(at int) bool { return at >= 0 && at < len(rest) && !taken[at] && kindOf(rest[at].low) != "" }
	return len(c.Mentions) == 0 || beside(i-1) || beside(i+1) || i > 0 && (rest[i-1].low == "and" || rest[i-1].low == "or")
}

func (c *Change) name(rest []word, taken []bool, i int) {
	m := Mention{Name: rest[i].low, Sure: true}
	if i > 0 && !taken[i-1] && kindOf(rest[i-1].low) != "" {
		m.Kind = kindOf(rest[i-1].low)
	} else if i+1 < len(rest) && !taken[i+1] && kindOf(rest[i+1].low) != "" {
		m.Kind = kindOf(rest[i+1].low)
	}
	if m.Kind == "" && c.Kind != "" && len(c.Mentions) > 0 {
		m.Kind = c.Mentions[len(c.Mentions)-1].Kind // "pods a and b"
	}
	if len(c.Mentions) < operation.MaxNames {
		c.Mentions = append(c.Mentions, m)
	}
}

// value parses a value at i and returns the number of its words; 0 if there is none.
func (c *Change) value(rest []word, taken []bool, i int) int {
	w := rest[i]
	next := func(n int) word {
		if i+n < len(rest) && !taken[i+n] {
			return rest[i+n]
		}
		return word{}
	}
	switch m := pairExpr.FindStringSubmatch(w.text); {
	case taintExpr.MatchString(w.text):
		c.Taints = append(c.Taints, w.text)
		return 1
	case m != nil:
		c.set(m[1], m[2])
		return 1
	case variableExpr.MatchString(w.text) && next(1).low == "to" && next(2).text != "":
		c.set(w.text, next(2).text)
		return 3
	case variableExpr.MatchString(w.text) && next(1).low == "=" && next(2).text != "":
		c.set(w.text, next(2).text)
		return 3
	case variableExpr.MatchString(w.text) && (c.Verb == operation.Delete):
		c.Remove = append(c.Remove, w.text)
		return 1
	case c.Verb == operation.Label && len(w.low) > 1 && strings.HasSuffix(w.low, "-"):
		c.Remove = append(c.Remove, strings.TrimSuffix(w.text, "-"))
		return 1
	case w.low == "by" && isAmountWord(next(1).low):
		c.Step = 1 // or less, depending on the verb
		return 1
	case w.low == "container" && isName(next(1)):
		c.Container = next(1).low
		return 2
	case w.low == "port" && countExpr.MatchString(next(1).low):
		c.Port, _ = strconv.Atoi(next(1).low)
		return 2
	case (w.low == "revision" || w.low == "rev") && countExpr.MatchString(next(1).low):
		c.Revision, _ = strconv.ParseInt(next(1).low, 10, 64)
		return 2
	case w.low == "between" && countExpr.MatchString(next(1).low) && next(2).low == "and" && countExpr.MatchString(next(3).low):
		c.Min, c.Max = parseCount(next(1).low), parseCount(next(3).low)
		return 4
	case (w.low == "max" || w.low == "maximum") && countExpr.MatchString(next(1).low):
		c.Max = parseCount(next(1).low)
		return 2
	case (w.low == "min" || w.low == "minimum") && countExpr.MatchString(next(1).low):
		c.Min = parseCount(next(1).low)
		return 2
	case countExpr.MatchString(w.low) && strings.HasPrefix(w.low, "0") && w.low != "0":
		return 0
	case decimalExpr.MatchString(w.low) && quantityExpr.MatchString(w.low+next(1).low) && next(1).low != "":
		return oneOrTwo(c.quantity(w.low + next(1).text))
	}
	return c.plainValue(w)
}

func oneOrTwo(ok bool) int {
	if ok {
		return 2
	}
	return 0
}

func (c *Change) plainValue(w word) int {
	took := true
	switch {
	case w.low == "memory", w.low == "mem", w.low == "ram":
		c.Resource = "memory"
	case w.low == "cpu":
		c.Resource = "cpu"
	case w.low == "request", w.low == "requests":
		c.Request = true
	case quantityExpr.MatchString(w.low):
		took = c.quantity(w.text)
	case countExpr.MatchString(w.low) && c.Count == nil:
		c.Count = parseCount(w.low)
	case strings.HasSuffix(w.low, "%") && countExpr.MatchString(strings.TrimSuffix(w.low, "%")):
		c.Percent = *parseCount(strings.TrimSuffix(w.low, "%"))
	case isVersion(w.low) && c.Tag == "":
		c.Tag = w.text
	case c.Image == "" && imageExpr.MatchString(w.text):
		c.Image = w.text
	default:
		n, ok := numbers[w.low]
		if took = ok && c.Count == nil && (c.Verb == operation.Scale || c.Verb == anything || c.Step != 0); took {
			c.Count = &n
		}
	}
	if took {
		return 1
	}
	return 0
}

// isAmountWord reports whether a word is an amount of change.
func isAmountWord(low string) bool {
	_, number := numbers[low]
	return number || countExpr.MatchString(low) || decimalExpr.MatchString(low) || quantityExpr.MatchString(low) || strings.HasSuffix(low, "%")
}

var (
	upExpr   = Pattern(`^(increase|raise|bump)\b|\bup\b`)
	downExpr = Pattern(`^(reduce|lower|decrease|remove|drop|kill|delete)\b|\bdown\b`)
	toExpr   = Pattern(`\b(to|at|=) (\d+|zero|one|two|three|four|five|six|seven|eight|nine|ten)\b`)
	copyExpr = Pattern(`\b(replicas?|instances?|copies|copy)\b`)
)

// steps distinguishes an amount from an increase or decrease.
func (c *Change) steps(s sentence) bool {
	less := downExpr.MatchString(s.low)
	switch {
	case s.words[0].low == "add" && c.Count != nil && c.Verb == anything: // "add 2 replicas to cart"
		c.Step = 1
	case c.Verb == operation.Delete && c.Count != nil: // "remove 1 replica from cart"
		if !copyExpr.MatchString(s.low) {
			return false
		}
		c.Verb, c.Step = operation.Scale, -1
	case c.Step == 0 && c.Count != nil && (less || upExpr.MatchString(s.low)) && !toExpr.MatchString(s.low) && c.Resource == "":
		c.Count = nil // "scale down 1" may mean either
	}
	if c.Step != 0 && less {
		c.Step = -1
	}
	return true
}

func parseCount(s string) *int32 {
	n, _ := strconv.ParseInt(s, 10, 32) // at most six digits
	i := int32(n)
	return &i
}

// quantity parses an amount in the API's notation; people write gb and mi.
func (c *Change) quantity(text string) bool {
	m := quantityExpr.FindStringSubmatch(strings.ToLower(text))
	if m == nil || c.Quantity != "" {
		return false
	}
	unit := strings.TrimSuffix(m[2], "b")
	switch {
	case unit == "m" && strings.HasSuffix(text, "m"), unit == "k":
	default:
		unit = strings.ToUpper(unit[:1]) + unit[1:]
	}
	c.Quantity = m[1] + unit
	_, err := resource.ParseQuantity(c.Quantity)
	return err == nil
}

func (c *Change) set(key, value string) {
	if c.Set == nil {
		c.Set = map[string]string{}
	}
	c.Set[key] = value
}

// decide chooses the verb if several share a word. It reports whether the sentence is a known change.
func (c *Change) decide(s sentence) bool {
	first := s.words[0].low
	switch c.Verb {
	case "roll", "rolling":
		switch {
		case strings.Contains(s.low, "back"):
			c.Verb = operation.Undo
		case strings.Contains(s.low, "restart"):
			c.Verb = operation.Restart
		default:
			return false
		}
	case "rollout":
		if len(s.words) < 2 {
			return false
		}
		c.Verb = verbs[s.words[1].low]
		return slices.Contains([]operation.Verb{operation.Undo, operation.Restart, operation.Pause, operation.Resume}, c.Verb)
	case "go":
		c.Verb = operation.Undo
		return strings.Contains(s.low, "back")
	case "apply":
		c.Verb = operation.Apply
		if len(s.words) > 1 && (applyWords[s.words[len(s.words)-1].low] || pronouns[s.words[1].low]) {
			c.Verb = ""
		}
	case "do":
		c.Verb = ""
		return len(s.words) <= 3
	case anything, operation.SetResources:
		return c.byValue(s)
	case operation.Delete:
		switch {
		case len(c.Taints) > 0, strings.Contains(s.low, "taint"):
			c.Verb = operation.Taint
			c.removeTaints()
		case len(c.Remove) > 0:
			c.Verb = operation.SetEnv
		}
	case operation.Taint:
		if first == "untaint" {
			c.removeTaints()
		}
	case operation.RunJob:
		return c.Kind != "pod"
	}
	return true
}

func (c *Change) removeTaints() {
	c.Untaint = true
	for i, t := range c.Taints {
		if !strings.HasSuffix(t, "-") {
			c.Taints[i] = t + "-"
		}
	}
}

// byValue finds the meaning of "set", "use" or "raise".
func (c *Change) byValue(s sentence) bool {
	first := s.words[0].low
	switch {
	case c.Quantity != "" || c.Resource != "" && first != "use":
		if c.Resource == "cpu" && c.Quantity == "" && c.Count != nil {
			c.Quantity, c.Count = strconv.Itoa(int(*c.Count)), nil
		}
		c.Verb = operation.SetResources
	case c.Image != "" || c.Tag != "":
		c.Verb = operation.SetImage
	case len(c.Set) > 0:
		c.Verb = operation.SetEnv
	case c.Count != nil, copyExpr.MatchString(s.low) && first != "give" && first != "use":
		c.Verb = operation.Scale
	case first == "make" && applyWords[s.words[len(s.words)-1].low]:
		c.Verb = "" // make it work
	default:
		return false
	}
	return true
}
