package question

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostQuestions limits the questions of one message that are answered.
const mostQuestions = 4

var (
	// joiners connect two clauses.
	joiners = Words("and also plus then & but so")
	// interrogatives begin a clause behind a joiner; auxiliaries only before a subject.
	interrogatives = Words("who whose whom what which where when why how")
	auxiliaries    = Words("is are was were do does did has have had can could will would")
	// elidedExpr matches a question that leaves out the kind it is about.
	elidedExpr = Pattern(`(?i)\bwhich(?: ones?)? (is|are|was|were|has|have|do|does|can|runs?)\b`)
	// elidedNumberExpr matches one for a number that leaves out what is counted.
	elidedNumberExpr = Pattern(`(?i)^how many (of them )?(on|in|are|is|have|has|run)\b`)
	asking           = Words("show list tell give check describe explain count find compare inspect")
)

// clauses splits a message into its clauses: behind the end of a sentence, and where a new question or order begins
// behind a joiner. A message of one clause, or with quoted or pasted text, gives nil.
func clauses(message string) []string {
	if strings.ContainsAny(message, "`\"\n") || len(message) > MaxSentence {
		return nil
	}
	fields := strings.Fields(message)
	var parts []string
	from := 0
	cut := func(end, next int) {
		if text := strings.TrimRight(strings.Join(fields[from:end], " "), ",;. "); text != "" {
			parts = append(parts, text)
		}
		from = next
	}
	for i := 1; i < len(fields); i++ {
		next := i
		for next < len(fields) && joiners[strings.ToLower(strings.TrimRight(fields[next], ","))] {
			next++
		}
		last := fields[i-1]
		switch {
		case i <= from || next >= len(fields):
		case strings.HasSuffix(last, "?"):
			cut(i, next)
		case strings.ContainsAny(last[len(last)-1:], ".;!") && len(last) > 2, next > i && beginsClause(fields[next:], true),
			strings.HasSuffix(last, ",") && beginsClause(fields[next:], false):
			cut(i, next)
		}
	}
	cut(len(fields), len(fields))
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// beginsClause reports whether words begin a question or an order to show something. Without a joiner before them,
// "which" and its like begin a relative clause.
func beginsClause(fields []string, joined bool) bool {
	first := strings.ToLower(strings.TrimRight(fields[0], ",?."))
	if long, ok := shortened[first]; ok {
		first, _, _ = strings.Cut(long, " ")
	}
	switch {
	case len(fields) == 1 && first != "why":
		return false // "can I reach it, and how"
	case interrogatives[first]:
		return joined || first == "what" || first == "how" || first == "why"
	case auxiliaries[first] && len(fields) > 1:
		second := strings.ToLower(fields[1])
		verbal := strings.HasSuffix(second, "ed") || strings.HasSuffix(second, "ing") && !strings.HasSuffix(second, "thing")
		return len(fields) > 2 && !restricting[second] && !verbal
	}
	_, changes := verbs[first]
	return asking[first] || joined && changes && len(fields) > 1 && !severals[strings.ToLower(fields[1])] && !restricting[strings.ToLower(fields[1])]
}

// listSeparator separates the items of a list.
var listSeparator = regexp.MustCompile(`,? (?:and|&) |, `)

// coordinated splits "list pods and services" into orders with the same verb.
func coordinated(message string) []string {
	message = strings.TrimRight(message, "?!. ")
	if !listExpr.MatchString(strings.ToLower(message)) || strings.ContainsAny(message, "`\"\n") {
		return nil
	}
	items := listSeparator.Split(message, -1)
	if len(items) < 2 || len(items) > mostQuestions {
		return nil
	}
	for i := range items[1:] {
		if strings.HasPrefix(items[i+1], "their ") || strings.HasPrefix(items[i+1], "its ") {
			return nil // one list with a column more
		}
		items[i+1] = "show " + items[i+1]
	}
	return items
}

// listed are the intents of an order that lists one kind of thing.
var listed = map[Intent]bool{List: true, Events: true, Restarts: true, Warnings: true, Images: true, RecentChanges: true, Logs: true, Quotas: true, Certificates: true, Secrets: true}

// Questions splits a message into several independent questions, in their order, and at most one request for a change.
// For any other message it returns nil: it is answered as a whole. left are the texts of those beyond the limit.
func (a Ask) Questions() (all []Ask, left []string) {
	if a.Intent == Request || a.Intent == Line || a.Intent == Held {
		return nil, nil
	}
	if len(a.parts) < 2 {
		return a.listsOf(coordinated(a.message)), nil
	}
	if all, left = a.independent(a.parts); len(all) > 1 {
		return all, left
	}
	return nil, nil
}

// listsOf returns the different lists that "list pods and services" wants, or nil.
func (a Ask) listsOf(parts []string) []Ask {
	all, _ := a.independent(parts)
	last := len(all) - 1
	for i, q := range all {
		same := func(o Ask) bool { return o.Intent == q.Intent && o.Kind == q.Kind }
		if len(all) != len(parts) || !listed[q.Intent] || slices.ContainsFunc(all[:i], same) {
			return nil
		}
		if len(q.Mentions) == 0 { // "events and logs of web" are both of web
			all[i].Mentions = slices.Clone(all[last].Mentions)
		}
	}
	return all
}

// Title returns a part of a message as a heading.
func (a Ask) Title() string {
	text := strings.NewReplacer("*", "", "<", "", "\\", "").Replace(a.message)
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimRight(text[size:], "?!. ")
}

func (a Ask) independent(parts []string) (all []Ask, left []string) {
	requests, understood := 0, false
	for _, text := range parts {
		part := text
		if len(all) > 0 && all[len(all)-1].Kind != "" { // "which nodes are there and which one is full?"
			part = elidedExpr.ReplaceAllString(part, "which "+all[len(all)-1].Kind+" $1")
			part = elidedNumberExpr.ReplaceAllString(part, "how many "+all[len(all)-1].Kind+"s $2")
		}
		q := Parse(part, a.named)
		if q.Intent == Unclear || q.Intent > Request {
			q = Parse(strings.TrimRight(part, "?")+"?", a.named)
		}
		q.message = text
		switch {
		case q.Invalid != "" || bareExpr.MatchString(q.Words):
			return nil, nil
		case q.Intent == Request && requests == 0:
			q.Wish = true // what is requested beside a question was not ordered by itself
			requests++
		case q.Intent < Diagnosis && q.Intent != Unclear:
			return nil, nil
		}
		understood = understood || q.Intent != Unclear
		all = append(all, q)
	}
	if !understood {
		return nil, nil
	}
	inherit(all)
	all, parts = joinDiagnoses(all, parts, a.named)
	if len(all) > mostQuestions {
		all, left = all[:mostQuestions], parts[mostQuestions:]
	}
	return all, left
}

// lacksSubject reports whether a question names nothing. An ordinary word that the cluster does not know is no name.
func (a Ask) lacksSubject() bool {
	names := func(m Mention) bool { return m.Sure || a.named == nil || a.named(m.Name) }
	return !slices.ContainsFunc(a.Mentions, names) && a.Namespace == "" && a.Perhaps == "" && !a.Everywhere
}

// pointsBack reports whether a question has a pronoun.
func (a Ask) pointsBack() bool {
	return a.Leans || slices.ContainsFunc(a.said.words, func(w word) bool { return pronouns[w.low] && !w.quoted })
}

// inherit gives each part that names nothing the subject of the nearest part before it, or else of the next:
// "any warnings? who can delete pods in shop?" is about one place.
func inherit(all []Ask) {
	for i := range all {
		if !all[i].lacksSubject() {
			continue
		}
		pronoun := all[i].pointsBack()
		for _, from := range slices.Concat(reversed(all[:i]), all[i+1:]) {
			if from.lacksSubject() {
				continue
			}
			all[i].Namespace, all[i].Perhaps, all[i].Everywhere = from.Namespace, from.Perhaps, from.Everywhere
			if pronoun && all[i].Kind == "" && len(from.Mentions) == 0 {
				all[i].Kind = from.Kind // "which configmaps are there and who uses them?"
			}
			if pronoun || all[i].Kind == "" && len(all[i].Mentions) == 0 || all[i].Intent == Logs {
				all[i].Mentions = slices.Clone(from.Mentions)
			}
			for c := range all[i].Changes {
				if len(all[i].Changes[c].Mentions) == 0 {
					all[i].Changes[c].Mentions = slices.Clone(from.Mentions)
				}
			}
			all[i].Leans = false
			break
		}
	}
}

func reversed(all []Ask) []Ask {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}

// joinDiagnoses joins parts that want a diagnosis of the same subject: "web is slow and why does it restart?"
func joinDiagnoses(all []Ask, parts []string, named Named) ([]Ask, []string) {
	for i := 1; i < len(all); i++ {
		before, q := all[i-1], all[i]
		if before.Intent != Diagnosis || q.Intent != Diagnosis || !slices.Equal(before.Mentions, q.Mentions) || before.Namespace != q.Namespace {
			continue
		}
		text := parts[i-1] + " and " + parts[i]
		joined := Parse(text, named)
		if joined.Intent != Diagnosis {
			continue
		}
		joined.Mentions, joined.Namespace, joined.Everywhere = before.Mentions, before.Namespace, before.Everywhere
		all, parts = slices.Delete(slices.Clone(all), i-1, i), slices.Delete(slices.Clone(parts), i-1, i)
		all[i-1], parts[i-1] = joined, text
		i--
	}
	return all, parts
}
