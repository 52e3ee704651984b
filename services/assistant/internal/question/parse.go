package question

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Ask is the parsed sentence. Names are as written, in lower case.
type Ask struct {
	Intent Intent
	// Changes are those of a Request, in the order in which they are said; for Advice, those it asks about, as far as
	// they were understood.
	Changes []Change
	// Line is the text of a Line, in the form that kubectl.Parse reads.
	Line string

	Kind      string // a kind without a name
	Mentions  []Mention
	Namespace string
	// Perhaps is an ordinary word in the place of a namespace: it counts if that namespace exists.
	Perhaps    string
	Everywhere bool
	// Wish means that the request was worded as a wish: "web should be restarted".
	Wish bool
	// Aged is "oldest" or "newest" if the question is for one object of the kind by its age.
	Aged string
	// Lacks are the words for what the listed objects lack: "pods without a node".
	Lacks []string
	// Except are namespaces that the question excludes, and Without names of objects; Parse does not set them.
	Except, Without []string
	// Within is the period that the question is about, such as the last hour; 0: none given.
	Within time.Duration
	// UnreadTime is a time, such as "since 10:30", that does not limit the answer; empty: none.
	UnreadTime string
	// Leans reports that the sentence names nothing itself and refers to what was spoken of before: "fix it", "why?".
	Leans    bool
	Symptoms []Symptom
	// Right is the subject of a WhoCan.
	Right Right
	// Route is the network connection in the sentence; nil: none.
	Route *Route
	// Count is the subject of a Number.
	Count Count
	// Invalid is a word in the place of a name that is no valid name.
	Invalid string
	// Words is the sentence in lower case without punctuation.
	Words   string
	said    sentence
	message string
	parts   []string // the clauses of a message that has several
	named   Named
	unread  bool // it wants a number under a condition that is not understood
}

// bareExpr matches a follow-up question without a subject.
var bareExpr = Pattern(`^(` + wordlist.AnyOf(
	"wait", "but", "and", "hm+", "ok", "so", "then", "uh",
) + ` )*` + wordlist.AnyOf(
	"why( not| so| though)?", "how come", "what for", "really", "more", "tell me more", "explain( why)?",
	"details", "go on", "reason",
) + `$`)

// Right is an API verb and a kind.
type Right struct{ Verb, Kind string }

// insteadExpr matches a message that denies a change and then makes another request.
var insteadExpr = Pattern(`(?is)^(?:please )?(?:do not|don'?t|dont|never) [^,.;]{1,60}[,.;] *(?:but )?(?:(?:just|only) )?((?:tell|show|explain|say|look|check|find|why|what|which|how|is|are|does)\b.+)$`)

// tellExpr matches the polite words before a question: "can you tell me which …".
var tellExpr = Pattern(`(?i)^(?:(?:please|hey|hi|hello|so|and|also|then|now),? )*(?:(?:can|could|would|will) you )?(?:please )?` +
	`(?:tell me|let me know|show me|i would like to know|i want to know|i wonder|do you know|any idea)(?: please)?[,:]? ((?:which|what|who|whose|when|where|why) )`)

// prepositionExpr matches a preposition before an interrogative: "on which port does web listen".
var prepositionExpr = Pattern(`(?i)^(?:on|in|at|from|for|to|by|with|of) ((?:which|what|whose) )`)

// Parse parses a message; named may be nil. It never fails: a message that is not understood is Unclear.
func Parse(message string, named Named) Ask {
	message = prepositionExpr.ReplaceAllString(tellExpr.ReplaceAllString(message, "$1"), "$1")
	if words, ok := readPasted(message); ok {
		message = words
	} else if m := insteadExpr.FindStringSubmatch(message); m != nil {
		message = m[1] // "do not restart anything, just tell me why web is stuck"
	}
	if line, ok := findKubectlLine(message); ok {
		return Ask{Intent: Line, Line: line, Words: line}
	}
	s := readSentence(message, named)
	request := s.joinPairs(true)
	changes, held, requested := parseRequests(request)
	if requested || held {
		s = request
	} else {
		s = s.joinPairs(false).readKinds().maskNames()
	}
	p := findPlaces(s)
	a := Ask{
		Kind: p.kind, Mentions: p.mentions, Namespace: p.namespace, Perhaps: p.perhaps, Everywhere: p.everywhere, Within: periodOf(s.low), UnreadTime: unreadTimeOf(s.low), Symptoms: symptomsOf(s.low),
		Words: request.low, Invalid: findInvalidName(s), said: s, message: message, parts: clauses(message), named: named,
	}
	if len(s.words) == 0 {
		return a
	}
	switch {
	case requested:
		a.Changes, a.Intent, a.Wish = changes, Request, isWish(request)
		if s.asks && !polite.MatchString(s.low) {
			a.Intent = Advice
		}
	case held:
		a.Intent = Held
	default:
		a.Intent = questionIntent(s, p)
		if (a.Intent == Diagnosis || a.Intent == Describe || a.Intent == Unclear || a.Intent == Health || a.Intent == Logs && request.starts("set")) && isOrder(request) {
			a.Intent = Order
		}
		if a.Intent != Assent && asksAdvice(s) && a.Intent != DrainPlan && a.Intent != WhoCan && a.Intent != RecentChanges {
			a.Intent, a.Changes = Advice, advisedChanges(request)
		}
	}
	if !whyExpr.MatchString(s.low) {
		a.readNumber(s, p)
	}
	if aged := agedExpr.FindString(s.low); aged != "" && a.Kind != "" && (a.Intent == List || a.Intent == Starts || a.Intent == Diagnosis || a.Intent == Unclear || a.Intent == Describe) {
		a.Intent, a.Aged = List, strings.Replace(aged, "youngest", "newest", 1)
	}
	if kind, words := lacking(s.low); kind != "" && (a.Intent == List || a.Intent == Diagnosis || a.Intent == Unclear) {
		a.Intent, a.Kind, a.Lacks = List, kind, words
		a.drop(setOf(strings.Join(words, " ")))
	}
	if a.Intent == Unclear || a.Intent >= Diagnosis && a.Intent != WhoCan && a.Intent != Manual || a.Intent == Advice || a.Intent == Assent && negatedNounExpr.MatchString(s.low) {
		a.readRoute(s)
	}
	if a.Intent == Manual {
		a.drop(setOf("port-forward port-forwarding portforward portforwarding forward forwarding exec shell ssh terminal console"))
	}
	if a.asksFact(s) {
		a.Intent = Facts
	}
	a.Leans = len(a.Mentions) == 0 && p.namespace == "" && !p.everywhere && (p.pronoun || p.several && a.Intent == Request || bareExpr.MatchString(s.low))
	if a.Intent == WhoCan {
		a.Right = rightOf(s)
		verbs := map[string]bool{}
		for verb := range verbsOfAPI {
			verbs[verb] = true
		}
		a.drop(verbs)
	}
	return a
}

// RequestsChange reports whether a message is a request for a change and nothing else: not a question, not denied, not
// postponed, and understood to its last word. A wish is none: "web should be deleted" may be an opinion, or somebody
// else's.
func RequestsChange(message string) bool {
	a := Parse(message, nil)
	return a.Intent == Request && !a.Wish
}

// countable are the intents that a number may replace. All others have their own condition, which a number would lose:
// no limits, no endpoints, scaled to zero.
var countable = map[Intent]bool{Unclear: true, Diagnosis: true, Overview: true, Health: true, UnhealthyPods: true, Restarts: true, Images: true, List: true, Describe: true, Users: true}

// readNumber turns a question for a table into one for a number, if it wants one. A question with a condition
// that is not understood becomes Unclear: any number would answer another question.
func (a *Ask) readNumber(s sentence, p place) {
	if !countable[a.Intent] && a.Intent != Idle {
		return
	}
	c, words, reading := readCount(s, p)
	suspended := a.Intent == Idle && slices.Contains(c.States, IsSuspended)
	switch {
	case reading == noCount, a.Intent == Idle && !suspended:
		return
	case reading == unreadCount:
		a.Intent, a.unread = Unclear, true
		return
	}
	a.Intent, a.Count, a.Kind = Number, c, c.Kind
	for _, word := range words {
		if first, rest, slash := strings.Cut(word, "/"); slash && first == a.Namespace { // "image shop/web" is no namespace
			a.Namespace = ""
			words = append(words, rest)
		}
	}
	a.drop(setOf(strings.Join(words, " ")))
}

// readRoute turns a question about a network connection into Reach, if it asks whether there is one. One that asks why
// keeps its intent, and the route.
func (a *Ask) readRoute(s sentence) {
	if a.Intent == Dependencies {
		return // "who talks to ledger?" names one side
	}
	a.Route = readRoute(s)
	switch {
	case a.Route == nil:
	case whyExpr.MatchString(s.low), a.Intent == Diagnosis && !asksWhether.MatchString(s.low):
		a.Intent = Diagnosis
	case a.Intent == Unclear, asksWhether.MatchString(s.low):
		a.Intent = Reach
	default:
		a.Intent = Diagnosis
	}
}

// drop removes words that mean something else from the names of a question.
func (a *Ask) drop(words map[string]bool) {
	a.Mentions = slices.DeleteFunc(slices.Clone(a.Mentions), func(m Mention) bool { return words[m.Name] })
	a.said.words = slices.DeleteFunc(slices.Clone(a.said.words), func(w word) bool { return words[w.low] })
}

// refusalWords after "no" continue a refusal: "no, it is in use".
var refusalWords = Words("it its this that thats these those do dont does not lets let we i you he she they is was are always never thanks thank please wait stop just need")

// noUseExpr matches a refusal whose words about uselessness might otherwise be a complaint.
var noUseExpr = Pattern(`^no (it|this|that) \w+s nothing$`)

// questionIntent returns the intent of a sentence that requests no change.
func questionIntent(s sentence, p place) Intent {
	complains := s.starts("no") && len(s.words) > 3 && (badExpr.MatchString(s.low) || !refusalWords[s.words[1].low] && lacksExpr.MatchString(s.low)) && !noUseExpr.MatchString(s.low) // "no parcels leave, shipping is stuck"
	if assentExpr.MatchString(s.low) && !complains && !negatedNounExpr.MatchString(s.low) && !whyExpr.MatchString(s.low) && !(s.asks && badExpr.MatchString(s.low)) {
		return Assent
	}
	if putOffExpr.MatchString(s.low) && !whyExpr.MatchString(s.low) && len(s.words) <= 4 {
		return Assent
	}
	return intentOf(s, p)
}

// asksAdvice reports whether a question is about making a change.
func asksAdvice(s sentence) bool {
	return changeWordExpr.MatchString(s.low) && (adviceExpr.MatchString(s.low) && !whyExpr.MatchString(s.low) && slices.ContainsFunc(askers, func(w string) bool { return strings.Contains(s.low, w) }) || s.starts("i want to") || s.starts("i think") || s.starts("we should") || s.starts("we could") || s.starts("we need to") || s.starts("i need to") || s.starts("i would"))
}

// askers are the words that turn a change into a question.
var askers = []string{
	"should i", "should we", "shall i", "shall we", "can i", "can we", "could i", "could we", "may i", "may we", "do i", "do we", "how do", "how can", "how to", "how would", "how should",
	"what if", "what happens if", "what would happen", "what happens when", "what will happen", "is it safe", "is it ok", "is it okay", "is it possible", "would it", "will it", "is it worth", "does it help", "must i", "must we", "when should", "what would", "is it a good idea", "what does", "show me how", "tell me how", "tell me what",
}

// advisedChanges returns the changes that a question asks about: from its first verb of change on.
func advisedChanges(s sentence) []Change {
	for i, w := range s.words {
		if _, begins := verbs[w.low]; begins && changeWordExpr.MatchString(w.low) {
			part := s.from(i)
			if c, ok := parseChange(part); ok {
				return []Change{c}
			}
			return nil
		}
	}
	return nil
}

// verbsOfAPI are the words for what an account may do.
var verbsOfAPI = map[string]string{
	"get": "get", "read": "get", "see": "get", "view": "get", "list": "list", "watch": "watch", "create": "create", "make": "create", "update": "update", "change": "update", "edit": "update",
	"modify": "update", "write": "update", "patch": "patch", "delete": "delete", "remove": "delete", "kill": "delete", "scale": "patch", "restart": "patch", "deploy": "create", "exec": "create",
}

func rightOf(s sentence) Right {
	r := Right{}
	for _, w := range s.words {
		if v := verbsOfAPI[w.low]; v != "" && r.Verb == "" {
			r.Verb = v
		}
		if k := kindOf(w.low); k != "" && k != "namespace" && k != "serviceaccount" && (r.Kind == "" || r.Verb == "") {
			r.Kind = k
		}
	}
	return r
}

// misspeltExpr matches hasty spellings of kubectl: its usual alias, or swapped letters.
var misspeltExpr = regexp.MustCompile(`^(?:k|kc|kubctl|kubectrl|kubeclt|kubetcl|kubecl|kubelctl|kuebctl) (get|describe|logs|events|top|rollout|scale|delete|apply|edit|explain|drain|cordon|uncordon|patch|set|label|annotate|auth|diff) `)

// commands are the first words of kubectl's lines.
var commands = setOf("get describe logs events top rollout auth explain diff scale set expose autoscale label annotate patch apply create replace delete evict cordon uncordon drain taint exec attach cp debug run port-forward proxy edit certificate config cluster-info")

var linePrefixes = []string{"please run ", "run ", "execute ", "please execute ", "please ", "can you run ", "could you run ", "$ "}

// findKubectlLine finds a kubectl line: one that begins with kubectl, or one with a flag that only such a line has.
func findKubectlLine(message string) (string, bool) {
	text := misspeltExpr.ReplaceAllString(strings.TrimSpace(message), "kubectl $1 ")
	if isReport(text) {
		return "", false
	}
	if inner, ok := strings.CutPrefix(text, "```"); ok && strings.HasSuffix(inner, "```") {
		inner = strings.TrimSuffix(inner, "```")
		if first, rest, ok := strings.Cut(inner, "\n"); ok && len(strings.Fields(first)) <= 1 && !kubectl.IsCommand(first) {
			inner = rest
		}
		text = strings.TrimSpace(inner)
	}
	for _, p := range linePrefixes {
		if len(text) > len(p) && strings.EqualFold(text[:len(p)], p) {
			if rest := strings.Trim(strings.TrimSpace(text[len(p):]), "`"); kubectl.IsCommand(rest) {
				return rest, true
			}
		}
	}
	if inner := strings.Trim(text, "`"); kubectl.IsCommand(inner) && !strings.Contains(inner, "`") {
		return inner, true
	}
	if kubectl.IsCommand(text) {
		return text, true
	}
	words := strings.Fields(text)
	if len(words) < 2 || !commands[words[0]] {
		return "", false
	}
	if words[0] == "auth" && (words[1] == "reconcile" || words[1] == "can-i" || words[1] == "whoami") {
		return "kubectl " + text, true
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") && len(w) > 1 && w[1] != ' ' && strings.Trim(w, "-") != "" {
			return "kubectl " + text, true
		}
	}
	return "", false
}

var (
	reportVerbs = Words("says say said shows show hangs hang fails fail failed gives gave returns returned prints printed reports reported complains tells told keeps never does")
	reportWords = Words("the a an is are was in on of with and why my our that it but not no does says")
	shellExpr   = regexp.MustCompile("[;|&$<>`\\\\(){}*]|(^| )-")
)

// isReport reports whether a message that begins with kubectl describes what that line did: "kubectl drain hangs, why?"
// No line has such words; one with flags or shell syntax is always a line.
func isReport(text string) bool {
	words := strings.Fields(strings.ToLower(strings.TrimRight(text, "?!. ")))
	if len(words) < 5 || words[0] != "kubectl" || shellExpr.MatchString(text) || strings.ContainsAny(text, "\n\"'") {
		return false
	}
	told, said := false, 0
	for _, w := range words[2:] {
		w = strings.Trim(w, ",.:;")
		told = told || reportVerbs[w]
		if reportWords[w] {
			said++
		}
	}
	return told && said > 0 || said >= 3
}

// findInvalidName finds a word in the place of a name that a shell or a flag parser could read as more than a name.
func findInvalidName(s sentence) string {
	for i, w := range s.words {
		if strings.HasPrefix(w.low, "--namespace") || strings.HasPrefix(w.low, "--all-namespaces") {
			continue
		}
		if strings.HasPrefix(w.text, "--") {
			return w.text
		}
		inName := w.quoted || i > 0 && (kindOf(s.words[i-1].low) != "" || s.words[i-1].low == "get" || s.words[i-1].low == "describe" || s.words[i-1].low == "named" || s.words[i-1].low == "called")
		if inName && strings.ContainsAny(w.text, ";|&$<>`\\(){}*") {
			return w.text
		}
	}
	return ""
}
