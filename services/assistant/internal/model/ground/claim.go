package ground

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

var (
	// modalExpr matches the start of a recommendation or a possibility.
	modalExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf(
		"should", "could", "would", "can", "may", "might", "must", "try", "consider", "recommend(?:ed)?", "suggest(?:ed)?", "e\\.g\\.", "for example",
		"such as", "if", "unless", "let", "needs? to", "propos(?:e|ed|al)", "at least", "enough", "typically", "usually", "by default", "fix", "remedy", "solution", "recommendations?", "mitigation", "workaround",
	) + `\b`)
	orderExpr = regexp.MustCompile(`(?i)(?:^[\s>*#\d.)-]*|\b(?:to|and|or|then|please|by)\s+|[:,;]\s+)([a-z]+)\b`)
	// roundExpr matches the words before an approximate number.
	roundExpr = regexp.MustCompile(`(?i)(?:` + wordlist.AnyOf("about", "around", "roughly", "approximately", "nearly", "almost", "over", "under", "than", "some") + ` |[~≈<>]=? ?)$`)
	itemExpr  = regexp.MustCompile(`^[\s>*#-]*(?:[A-Z][a-z]+ )?$`)
	clockExpr = regexp.MustCompile(`\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?)?|\b\d\d?:\d\d(?::\d\d)?\b|\b\d+\.\d+\.\d+(?:\.\d+)?(?::\d+|/\d+)?\b`)
)

// suggestion returns where a sentence begins to recommend; its length: nowhere.
func suggestion(text string) int {
	at := len(text)
	if m := modalExpr.FindStringIndex(text); m != nil {
		at = m[0]
	}
	for _, m := range orderExpr.FindAllStringSubmatchIndex(text, -1) {
		word := strings.ToLower(text[m[2]:m[3]])
		if m[2] < at && (question.NamesChange(word) || strings.HasSuffix(word, "ing") && namesChangeStem(strings.TrimSuffix(word, "ing"))) {
			at = m[2]
		}
	}
	return at
}

func namesChangeStem(stem string) bool {
	return question.NamesChange(stem) || question.NamesChange(stem+"e") || len(stem) > 2 && question.NamesChange(stem[:len(stem)-1])
}

// numbers returns the positions after numbers that were not seen and cannot be computed from others.
func (c *Checker) numbers(s sentence) (marks []int) {
	var open, seen []number
	clocks := clockExpr.FindAllStringIndex(s.text, -1)
	for _, m := range clocks {
		if !c.record.contains(s.text[m[0]:m[1]]) {
			marks = append(marks, s.behind(m[1]))
		}
	}
	for _, n := range findNumbers(s.text) {
		switch {
		case c.advice, n.start >= s.suggests, !n.measured() && (n.value == 0 || n.value == 1), isItem(s.text, n),
			slices.ContainsFunc(clocks, func(m []int) bool { return n.start >= m[0] && n.start < m[1] }):
			continue
		}
		if code, ok := s.inCode(n.start); ok && isCommand(s.content(code)) {
			continue
		}
		tolerance := 0.0
		if roundExpr.MatchString(s.text[:n.start]) {
			tolerance = 0.2
		}
		if c.record.numbers.has(n, tolerance) {
			seen = append(seen, n)
			c.shown = append(c.shown, n)
		} else {
			open = append(open, n)
		}
	}
	c.shown = c.shown[max(0, len(c.shown)-maxShown):]
	for i, n := range open {
		if computed(n, c.shown) || explains(n, open, seen) {
			c.shown = append(c.shown, open[i])
			continue
		}
		marks = append(marks, s.behind(n.end))
	}
	return marks
}

// explains reports whether a number is part of a sum that was seen: 137 is 128 + 9.
func explains(n number, open, seen []number) bool {
	return slices.ContainsFunc(open, func(o number) bool {
		return o.start != n.start && slices.ContainsFunc(seen, func(s number) bool { return s.value == n.value+o.value || s.value == n.value*o.value })
	})
}

var (
	headingExpr = regexp.MustCompile(`^(?:#+ .*|\*\*[^*]+\*\*:?|\d+\. \*\*[^*]+\*\*:?)$`)
	adviceExpr  = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("fix", "remedy", "solution", "recommendations?", "mitigation", "workaround", "next steps?", "what helps", "how to", "advice", "suggestions?") + `\b`)
)

// readHeading records whether the text below a heading is advice, whose values are yet to be set.
func (c *Checker) readHeading(line string) {
	if headingExpr.MatchString(line) {
		c.advice = adviceExpr.MatchString(line)
	}
}

// isItem reports whether a number counts the items of a list or the steps of a plan.
func isItem(text string, n number) bool {
	rest := text[n.end:]
	return itemExpr.MatchString(text[:n.start]) && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, ")") || strings.HasPrefix(rest, ":"))
}

var (
	ranBefore = regexp.MustCompile("(?i)\\b(?:I|we)(?:['’]ve| have| had)?(?: (?:also|just|already|then|first))? " + wordlist.AnyOf("ran", "run", "executed", "used", "issued", "called", "tried", "checked") + "\\b[^.`]*`+$")
	ranAfter  = regexp.MustCompile("(?i)^\\W*" + wordlist.AnyOf(
		"showed", "returned", "reported", "said", "printed", "listed", "gave", "revealed", "confirmed", "failed", "(?:shows|reports|says|confirms|returns) that",
	) + "\\b")
)

// commands returns the positions after commands that are claimed to have been run and were not.
func (c *Checker) commands(s sentence) (marks []int) {
	for _, p := range s.subs {
		if !ranBefore.MatchString(s.text[:p.start]) && !ranAfter.MatchString(s.text[p.after:]) {
			continue
		}
		words := strings.Fields(s.content(p))
		if len(words) < 2 || !c.couldBeCommand(words[0]) {
			continue
		}
		if !c.ran(s.content(p)) {
			marks = append(marks, p.after)
		}
	}
	return marks
}

// couldBeCommand reports whether code that begins with a word is a command and not a value.
func (c *Checker) couldBeCommand(word string) bool {
	return word == "kubectl" || strings.ToLower(word) == word && operation.ValidName(word) && !c.record.mentions(word)
}

func (c *Checker) ran(line string) bool {
	line, _, _ = strings.Cut(line, " | ")
	op, err := kubectl.Parse(line)
	if err != nil {
		return false
	}
	if c.record.listed && op.Verb == operation.List {
		return true
	}
	return slices.ContainsFunc(c.record.calls, func(have operation.Operation) bool {
		return sameSubject(have, op) && (have.Verb == op.Verb || reads(have.Verb) && reads(op.Verb))
	}) || slices.Contains(c.record.writes, op.Verb)
}

// reads reports whether a verb shows an object.
func reads(v operation.Verb) bool {
	return v == operation.Get || v == operation.List || v == operation.Describe
}

func sameSubject(a, b operation.Operation) bool {
	return slices.Equal(a.Names, b.Names) && (a.Namespace == b.Namespace || a.Namespace == "" || b.Namespace == "")
}

// done maps verbs to the words for completed writes.
var done = map[operation.Verb]string{
	operation.Scale: "scaled", operation.Restart: "restarted", operation.Undo: "rolled back|reverted|undone", operation.Pause: "paused",
	operation.Resume: "resumed|unpaused|unsuspended", operation.Suspend: "suspended|disabled", operation.RunJob: "triggered", operation.Expose: "exposed",
	operation.Autoscale: "autoscaled", operation.Label: "labell?ed", operation.Annotate: "annotated", operation.Patch: "patched", operation.Apply: "applied",
	operation.Create: "created|recreated", operation.Replace: "replaced", operation.Delete: "deleted|removed|killed", operation.Evict: "evicted",
	operation.Cordon: "cordoned", operation.Uncordon: "uncordoned", operation.Drain: "drained", operation.Taint: "tainted",
}

// anyWrite are words that fit every write.
const anyWrite = "updated|changed|set|fixed|modified|adjusted|repaired|resolved|corrected|raised|increased|lowered|reduced|upgraded|redeployed|rolled out"

var (
	doneWords = func() string {
		all := []string{anyWrite}
		for _, words := range done {
			all = append(all, words)
		}
		return strings.Join(all, "|")
	}()
	adverbs = `(?:(?:now|just|already|also|successfully|manually) )`
	// boldExpr matches a claim about a write by the assistant itself, or one just made.
	boldExpr = regexp.MustCompile(`(?i)\b(?:I|we)(?:['’]ve| have)? ` + adverbs + `*(` + doneWords + `)\b|\bsuccessfully (` + doneWords + `)\b|\b(?:has|have) ` + adverbs + `+been (` + doneWords + `)\b|\b(?:is|are) now (` + doneWords + `)\b`)
	ownExpr  = regexp.MustCompile(`^(?i)(?:I|we)\b`)
	// mildExpr may also describe events in the cluster.
	mildExpr = regexp.MustCompile(`(?i)\b(?:has|have) been ` + adverbs + `*(` + doneWords + `)\b`)
	// pastExpr matches a change described with verbs that are rarely used for events without an actor.
	pastExpr = regexp.MustCompile(`(?i)\b(?:was|were) ` + adverbs + `*(scaled|restarted|rolled back|reverted|undone|paused|resumed|suspended|cordoned|uncordoned|drained|evicted|deleted|patched|tainted)\b`)
	// overExpr matches a change named as completed.
	overExpr = regexp.MustCompile(`(?i)\b(rollback|restart|scaling|deletion|drain|upgrade|fix|patch|change) (?:is|was|has been) ` + adverbs + `*` + wordlist.AnyOf("complete", "completed", "done", "finished", "successful", "in place", "live") + `\b`)
	justDone = regexp.MustCompile(`(?i)^\W*(done)\b[.!:, ]`)
	ifExpr   = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("if", "once", "after", "when", "until", "before", "unless", "whether", "should", "would", "will", "can", "not", "never", "nothing", "must") + `\b`)
)

// writes returns the positions after claims of writes that were not executed.
func (c *Checker) writes(s sentence) (marks []int) {
	claim := func(expr *regexp.Regexp, mild bool) {
		for _, m := range expr.FindAllStringSubmatchIndex(s.text, -1) {
			if _, quoted := s.inCode(m[0]); quoted || ifExpr.MatchString(clauseBefore(s.text, m[0])) {
				continue
			}
			word := ""
			for i := 2; i < len(m); i += 2 {
				if m[i] >= 0 {
					word = strings.ToLower(s.text[m[i]:m[i+1]])
				}
			}
			if c.executed(word) || mild && (c.record.resultsHave(word) || !strings.Contains(word, " ") && c.record.resultsHave(stem(word)+"ing")) || !ownExpr.MatchString(s.text[m[0]:m[1]]) && c.record.resultsHave(strings.ToLower(s.text[m[0]:m[1]])) {
				continue
			}
			marks = append(marks, m[1])
		}
	}
	claim(boldExpr, false)
	claim(mildExpr, true)
	claim(pastExpr, true)
	claim(overExpr, false)
	if m := justDone.FindStringSubmatchIndex(s.text); m != nil && len(c.record.writes) == 0 {
		marks = append(marks, m[3])
	}
	return marks
}

// clauseBefore returns the part of a clause before a position.
func clauseBefore(text string, at int) string {
	return text[strings.LastIndexAny(text[:at], ".;!?\n")+1 : at]
}

// stem returns the common part of the forms of a word.
func stem(word string) string {
	word, _, _ = strings.Cut(word, " ")
	return strings.TrimSuffix(strings.TrimSuffix(word, "ed"), "e")
}

// executed reports whether a write that fits the word was executed.
func (c *Checker) executed(word string) bool {
	for _, v := range c.record.writes {
		words := done[v]
		if slices.Contains(strings.Split(anyWrite, "|"), word) || word == "change" || word == "fix" {
			return true
		}
		for w := range strings.SplitSeq(words, "|") {
			if regexp.MustCompile("^(?:"+w+")$").MatchString(word) || stem(w) == stem(word) {
				return true
			}
		}
		if v == operation.Undo && word == "rollback" || v == operation.Scale && word == "scaling" || v == operation.Delete && word == "deletion" {
			return true
		}
	}
	return false
}

var (
	// clearExpr matches the claim that all is well, and exceptExpr its exceptions.
	clearExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("everything", "all", "every", "each", "both") + `\b[^.;,:]*\b` + wordlist.AnyOf("healthy", "fine", "well", "ok", "okay", "good", "running", "ready", "up", "normal(?:ly)?", "available", "as expected", "green", "operational", "stable") + `\b` +
		`|\b(?:no|not any|zero|without)(?: \w+)? ` + wordlist.AnyOf("problems?", "issues?", "errors?", "faults?", "troubles?", "failures?", "anomal(?:y|ies)", "findings?") + `\b` +
		`|\b(?:nothing|no pods?|no workloads?|none) (?:is|are|was|were|looks?|seems?|appears?)(?: to be)?(?: \w+)? ` + wordlist.AnyOf("wrong", "broken", "failing", "unhealthy", "amiss", "crashing", "faulty", "out of the ordinary", "down") + `\b` +
		`|\b(?:is|are|looks?|seems?|appears?)(?: to be)?(?: \w+)? ` + wordlist.AnyOf("healthy", "fine", "okay", "operational", "stable", "in good (?:shape|health|order)", "working (?:normally|correctly|as expected)", "running (?:normally|fine|smoothly|as expected)") + `\b`)
	exceptExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("except", "but", "apart from", "besides", "other than", "aside from", "else", "other", "others", "rest", "not", "isn['’]t", "aren['’]t", "if", "once", "until", "after", "when", "should", "would", "will", "whether", "although", "however", "while") + `\b`)
	// textExpr matches statements about logs, events or metrics rather than about the current state.
	textExpr = regexp.MustCompile(`(?i)\b(?:logs?|lines?|events?|metrics?)\b`)
	// universalExpr matches statements about everything.
	universalExpr = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("everything", "all", "nothing", "every", "none", "no", "cluster", "namespace") + `\b`)
)

// allClear reports whether a sentence calls something healthy.
func allClear(text string) bool {
	return clearExpr.MatchString(text) && !exceptExpr.MatchString(text) && !textExpr.MatchString(text)
}

// contradicted reports whether a finding concerns an object that the sentence calls healthy: the one that it names or,
// for "all", any of the kind and the namespace.
func (c *Checker) contradicted(text string) bool {
	low := strings.ToLower(text)
	for _, f := range c.record.Findings {
		if slices.ContainsFunc(f.Names, func(name string) bool { return mentions(low, strings.ToLower(name)) }) {
			return true
		}
	}
	for _, m := range codeExpr.FindAllStringSubmatch(text, -1) {
		if c.record.mentions(m[1]) && !c.isNamespace(m[1]) {
			return false // about another object
		}
	}
	var kinds, places []string
	for _, m := range wordExpr.FindAllString(low, -1) {
		if kind := question.KindOf(m); kind != "" && kind != "namespace" {
			kinds = append(kinds, kind)
		}
	}
	for _, m := range placeExpr.FindAllStringSubmatch(low, -1) {
		if c.isNamespace(m[1]) || c.record.mentions(m[1]) && !question.IsOrdinary(m[1]) {
			places = append(places, m[1])
		}
	}
	return universalExpr.MatchString(text) && slices.ContainsFunc(c.record.Findings, func(f Finding) bool { return overlap(kinds, f.Kinds) && overlap(places, f.Namespaces) })
}

// overlap reports whether a finding concerns any of the names in a sentence. A sentence without names covers
// everything.
func overlap(named, have []string) bool {
	return len(named) == 0 || slices.ContainsFunc(named, func(n string) bool { return slices.Contains(have, n) })
}

// placeExpr matches a word in the position of a namespace.
var placeExpr = regexp.MustCompile("\\b(?:in|namespace)(?: the)?(?: namespace)? [`\"*]*([a-z0-9][a-z0-9-]*)")

func (c *Checker) isNamespace(name string) bool {
	return slices.ContainsFunc(c.record.Findings, func(f Finding) bool { return slices.Contains(f.Namespaces, strings.ToLower(name)) })
}

// contradict returns the replacement for an all-clear.
func (c *Checker) contradict(text string) string {
	if c.replaced {
		return ""
	}
	c.replaced = true
	end := ""
	if strings.HasSuffix(text, "\n") {
		end = "\n"
	}
	return "The playbooks found otherwise. " + strings.TrimSpace(c.record.Contradiction) + "\n" + end
}
