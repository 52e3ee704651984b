package question

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// PodState is a state that a question for a number names.
type PodState string

// The states, as they are named in answers.
const (
	NotRunning  PodState = "not running"
	NotReady    PodState = "not ready"
	IsReady     PodState = "ready"
	IsRunning   PodState = "running"
	IsPending   PodState = "pending"
	HasFailed   PodState = "failed"
	IsCompleted PodState = "completed"
	IsLeaving   PodState = "terminating"
	WasEvicted  PodState = "evicted"
	IsCrashing  PodState = "crash looping"
	NoImage     PodState = "image not pulled"
	WasOOM      PodState = "ended by lack of memory"
	Cordoned    PodState = "cordoned"
	IsSuspended PodState = "suspended"
	IsUnbound   PodState = "not bound"
	IsBound     PodState = "bound"
)

// Count holds what a question for a number counts. All of its conditions must hold.
type Count struct {
	Kind     string // in the singular
	States   []PodState
	Restarts int // at least this many; 0: any number
	// Labels and Annotations are keys, or key=value, in lower case.
	Labels, Annotations []string
	Image               string // a part of an image's name
	By                  string // the grouping of the number: namespace, node, state, image, workload or a label's key
	New                 bool   // created within the period in question
}

// HasConditions reports whether a count is not of all objects of its kind.
func (c Count) HasConditions() bool {
	return len(c.States)+len(c.Labels)+len(c.Annotations)+c.Restarts > 0 || c.Image != "" || c.New
}

var (
	howManyExpr = Pattern(`\b` + wordlist.AnyOf("how many", "number of", "amount of", "(give|get|show) (me )?(a |the )?count of", "count of", "^count( up)?", "total") +
		`( (the|all|of|my|our|total|different))*((?: \S+){1,4})`)
	// howManyAreExpr matches a question that omits what is counted: pods, if it names a state of theirs.
	howManyAreExpr = Pattern(`\bhow many (are|is|were|have|got|of them are)\b`)
	fitExpr        = Pattern(`\b(fit|fits|room|schedulable|more can|more could|can i|could i)\b|\b(can|could) \S+ (take|hold|run)\b`)
	// whichExpr matches the beginning of a question for a list, which has a number as well.
	whichExpr = Pattern(`^(please )?(which|what|list|show|get|find|give)\b`)

	fewestRestartsExpr = Pattern(`\b(more than|over|above|at least|>=?) ?(\d+|one|two|three|four|five|six|seven|eight|nine|ten)( or more)? (restarts?|times)\b`)
	anyRestartExpr     = Pattern(`\b(were|was|been|got|have|has|that|which) restarted\b|\b(with|have|having) (any )?restarts\b`)
	imageOfExpr        = Pattern(`\b(?:how many|pods?)\b.*\bimages? (?:is |are |called |named |like |of |with |from )*(\S+)`)
	labelOfExpr        = Pattern(`\b(label|labels|labelled|labeled|annotation|annotations|annotated)(?: (?:is|are|called|named|with|as|key))* (\S+)`)
	splitByExpr        = Pattern(`\b(?:per|by|in each|on each|for each|in every|on every|grouped by|for every) (?:the |its |their )?(label |annotation )?(\S+)`)
	createdExpr        = Pattern(`\b(created|started|new|added|launched|deployed|younger)\b`)
)

// podStateWords are the words for a state.
type podStateWords struct {
	state PodState
	expr  *regexp.Regexp
}

// statesOfPods are looked for in order; the words of a match are not used again.
var statesOfPods = []podStateWords{
	{NotRunning, Pattern(`\b(not (in )?(the )?(state |phase |status )?running|non-running|not up|down)\b`)},
	{IsUnbound, Pattern(`\b(unbound|not bound)\b`)},
	{NotReady, Pattern(`\b(not ready|unready|notready|unhealthy|not healthy|failing|broken|unavailable|not available|in trouble|bad)\b`)},
	{IsCrashing, Pattern(`\b(crash ?loop\w*|crashing|in a crash loop|crashed|crash|crashes)\b`)},
	{NoImage, Pattern(`\b(imagepullbackoff|errimagepull|(not|fail\w*|cannot|can not) (to )?pull\w*( (their|the|an))?( images?)?)\b`)},
	{WasOOM, Pattern(`\b(oom|oomkilled|oom killed|out of memory)\b`)},
	{WasEvicted, Pattern(`\bevicted\b`)},
	{IsPending, Pattern(`\bpending\b`)},
	{HasFailed, Pattern(`\bfailed\b`)},
	{IsCompleted, Pattern(`\b(succeeded|completed|complete|finished)\b`)},
	{IsLeaving, Pattern(`\bterminating\b`)},
	{Cordoned, Pattern(`\b(cordoned|unschedulable|schedulingdisabled)\b`)},
	{IsSuspended, Pattern(`\b(suspended|paused)\b`)},
	{IsBound, Pattern(`\bbound\b`)},
	{IsReady, Pattern(`\b(ready|healthy|available)\b`)},
	{IsRunning, Pattern(`\b(in )?(the )?(state|phase|status) running\b|\b(is|are|that|which) running$|\brunning (pods?|jobs?)\b|\b(are|is) running\b`)},
}

// goodStates are those that no table of unhealthy pods lists.
var goodStates = map[PodState]bool{IsReady: true, IsCompleted: true}

// reading states how far a question for a number was understood.
type reading int

const (
	noCount     reading = iota // it wants no number
	unreadCount                // it wants one under a condition that is not understood
	fullCount
)

// unreadConditions negate or compare the words beside them. If one remains after all known conditions are removed from
// a question, a condition was not understood.
var unreadConditions = Words("not no non none never neither nor nothing without except excluding excepting besides unless lack lacks lacking missing " +
	"than least exactly between fewer older newer younger exceed exceeds exceeding before after ago")

func hasUnreadCondition(rest string) bool {
	for word := range strings.FieldsSeq(sinceExpr.ReplaceAllString(rest, " ")) {
		if unreadConditions[word] || strings.HasPrefix(word, "non-") || strings.HasPrefix(word, "<") || strings.HasPrefix(word, ">") || strings.Contains(word, "!=") {
			return true
		}
	}
	return atMostExpr.MatchString(rest)
}

var (
	sinceExpr  = Pattern(periodExpr.String() + `( ago\b)?`)
	atMostExpr = Pattern(`\bat most\b|\b(over|above|under|below|beyond) \d`)
)

// readCount reads a question for a number, or for a list by label, annotation, restarts, image or node. words are those
// of its conditions: they name no object.
func readCount(s sentence, p place) (c Count, words []string, read reading) {
	defer func() {
		c.Labels, c.Annotations, words = s.unmaskAll(c.Labels), s.unmaskAll(c.Annotations), s.unmaskAll(words)
		c.Image = s.unmask(c.Image)
		if kind, key, marked := strings.Cut(c.By, " "); marked {
			c.By = kind + " " + s.unmask(key)
		}
	}()
	low := s.low
	m := howManyExpr.FindStringSubmatch(low)
	if m != nil && !fitExpr.MatchString(low) {
		for word := range strings.FieldsSeq(m[len(m)-1]) {
			if c.Kind = kindOf(word); c.Kind != "" {
				break
			}
		}
	}
	if c.Kind == "" && howManyAreExpr.MatchString(low) && slices.ContainsFunc(statesOfPods, func(p podStateWords) bool { return p.expr.MatchString(low) }) {
		c.Kind = "pod"
	}
	asked := c.Kind != ""
	if !asked && (!whichExpr.MatchString(low) || !slices.ContainsFunc(s.words, func(w word) bool { return kindOf(w.low) == "pod" })) {
		return c, nil, noCount
	}
	if !asked {
		c.Kind = "pod"
	}
	if c.Kind == "event" {
		return c, nil, noCount
	}
	rest := low
	if m := splitByExpr.FindStringSubmatch(rest); m != nil {
		if by := splitOf(m[1], m[2]); by != "" {
			c.By, words, rest = by, append(words, m[2]), strings.Replace(rest, m[0], " ", 1)
		}
	}
	rest, taken := c.readMarks(rest)
	words = append(words, taken...)
	if m := fewestRestartsExpr.FindStringSubmatch(rest); m != nil {
		if c.Restarts = countOf(m[2]); m[1] != "at least" && m[1] != ">=" && m[3] == "" {
			c.Restarts++
		}
		rest = strings.Replace(rest, m[0], " ", 1)
	} else if asked && anyRestartExpr.MatchString(rest) {
		c.Restarts = 1
	}
	if !asked {
		for _, st := range statesOfPods {
			if goodStates[st.state] && st.expr.MatchString(rest) && !slices.ContainsFunc(statesOfPods, func(bad podStateWords) bool { return !goodStates[bad.state] && bad.expr.MatchString(rest) }) {
				c.States, rest = append(c.States, st.state), st.expr.ReplaceAllString(rest, " ") // "which pods are still ready?"
			}
		}
		marked := len(c.States) > 0 || len(c.Labels)+len(c.Annotations)+c.Restarts > 0 || c.Image != "" || placedExpr.MatchString(low) && len(p.mentions) > 0
		switch {
		case !marked || strings.Contains(low, " most"):
			return c, words, noCount
		case hasUnreadCondition(rest):
			return c, words, unreadCount
		}
		return c, words, fullCount
	}
	for _, st := range statesOfPods {
		if st.expr.MatchString(rest) {
			c.States = append(c.States, st.state)
			rest = st.expr.ReplaceAllString(rest, " ")
		}
	}
	if hasUnreadCondition(rest) {
		return c, words, unreadCount
	}
	c.New = periodOf(low) > 0 && createdExpr.MatchString(low)
	return c, words, fullCount
}

// placedExpr matches the words before a node, before an object that pods use, or before the Service of pods.
var placedExpr = Pattern(`\b(on|scheduled to|use|uses|using|mount|mounts|mounting|behind|selected by|reference|references|referencing)\b`)

// readMarks removes labels, annotations and an image from a sentence.
func (c *Count) readMarks(low string) (rest string, words []string) {
	for word := range strings.FieldsSeq(low) {
		key, _, pair := strings.Cut(word, "=")
		if !pair || key == "" || strings.Contains(key, "?") || strings.HasPrefix(word, "-") {
			continue
		}
		words = append(words, word)
		if regexp.MustCompile(`\bannotat\w*( with| is| are| called)* ` + regexp.QuoteMeta(word)).MatchString(low) {
			c.Annotations = append(c.Annotations, word)
		} else {
			c.Labels = append(c.Labels, word)
		}
	}
	rest = low
	if m := labelOfExpr.FindStringSubmatch(low); m != nil && !strings.Contains(m[2], "=") && !isRead(m[2]) && kindOf(m[2]) == "" {
		words = append(words, m[2])
		if strings.HasPrefix(m[1], "label") {
			c.Labels = append(c.Labels, m[2])
		} else {
			c.Annotations = append(c.Annotations, m[2])
		}
		rest = strings.Replace(rest, m[0], " ", 1)
	}
	if m := imageOfExpr.FindStringSubmatch(low); m != nil && !isRead(m[1]) && !fillers[m[1]] && !states[m[1]] && kindOf(m[1]) == "" {
		c.Image = m[1]
		words = append(words, m[1])
		rest = strings.Replace(rest, m[1], " ", 1)
	}
	return rest, words
}

// splitOf returns the grouping of a number, or "".
func splitOf(what, word string) string {
	if what != "" {
		return strings.TrimSpace(what) + " " + word
	}
	switch kind := kindOf(word); kind {
	case "namespace", "node":
		return kind
	case "deployment", "statefulset", "daemonset", "job":
		return "workload"
	}
	switch strings.TrimSuffix(word, "s") {
	case "state", "phase", "statu":
		return "state"
	case "image":
		return "image"
	case "workload", "app", "application":
		return "workload"
	}
	return ""
}
