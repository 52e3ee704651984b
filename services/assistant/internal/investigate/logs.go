package investigate

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

const (
	// mostLogs limits how many logs one answer shows without a filter.
	mostLogs = 3
	// tailLines is how many last lines an answer shows by default.
	tailLines = 40
	// mostMatches limits the matching messages shown of one log.
	mostMatches = 20
)

// logWish holds the filters and limits that a question sets for logs.
type logWish struct {
	filter   logtext.Filter
	tail     int
	previous bool
	one, all string // describe the filter, after one message and after several
}

var (
	quotedExpr   = regexp.MustCompile("[\"“”]([^\"“”]{1,80})[\"“”]|(?:^|[\\s(=:])'([^']{2,80})'(?:$|[\\s).,?!])|`([^`]{1,80})`")
	termExpr     = question.Pattern(`(?i)\b` + wordlist.AnyOf("contain(?:s|ing)?", "mention(?:s|ing)?", "match(?:es|ing)?", "with the (?:word|text)", "(?:that|which) say", "saying") + ` (\S+)`)
	tailExpr     = question.Pattern(`(?i)\b(?:last|latest|final|newest) (\d{1,4}) (?:log )?(?:lines?|entries|messages)\b|\b(\d{1,4}) (?:last |latest )?(?:log )?lines\b|--tail[= ](\d{1,4})`)
	statusesExpr = regexp.MustCompile(`(?i)\b([45])xx\b|\b([1-5]\d\d)s?\b`)
	// namesExpr matches a name with a hyphen, whose words are no filter.
	namesExpr = regexp.MustCompile(`[\w.]+(?:-[\w.]+)+`)
	// amountsExpr matches a number that is no status: a port, a length of time, a count.
	amountsExpr  = regexp.MustCompile(`(?i)\bports? \d+|[:/.]\d+|\b\d+(?: ?` + wordlist.AnyOf("ms", "milliseconds?", "secs?", "seconds?", "mins?", "minutes?", "[mhd]", "hrs?", "hours?", "days?", "weeks?", "lines?", "pods?", "messages?", "entries", "times", "bytes", "[kmg]i?b") + `| s)\b`)
	previousExpr = question.Pattern(`(?i)\bprevious\b|\bbefore (the|its|it) (last )?(restart|crash)|\blast run\b`)
	warningsExpr = question.Pattern(`(?i)\bwarn(ing)?s?\b`)
	errorsExpr   = question.Pattern(`(?i)\b(errors?|exceptions?|panics?|fatals?|stack ?traces?|tracebacks?)\b`)
)

// readLogWish reads the filters and limits for logs from a question; quoted words are literal.
func readLogWish(query string, intent question.Intent) logWish {
	l := logWish{tail: tailLines, previous: previousExpr.MatchString(namesExpr.ReplaceAllString(query, " "))}
	var one, all []string
	describe := func(ofOne, ofAll string) { one, all = append(one, ofOne), append(all, ofAll) }
	if m := tailExpr.FindStringSubmatch(query); m != nil {
		for _, digits := range m[1:] {
			if n, err := strconv.Atoi(digits); err == nil && n > 0 {
				l.tail = min(n, mostLines)
			}
		}
		query = strings.Replace(query, m[0], " ", 1)
	}
	if m := quotedExpr.FindStringSubmatch(query); m != nil {
		l.filter.Term = m[1] + m[2] + m[3]
		query = strings.Replace(query, m[0], " ", 1)
	} else if m := termExpr.FindStringSubmatch(query); m != nil && !errorsExpr.MatchString(m[1]) && !warningsExpr.MatchString(m[1]) && !statusesExpr.MatchString(m[1]) {
		l.filter.Term = strings.Trim(m[1], ".,?!")
	}
	if l.filter.Term != "" {
		text := "with " + engine.QuoteCode(l.filter.Term)
		describe(text, text)
	}
	query = namesExpr.ReplaceAllString(query, " ")
	if m := statusesExpr.FindStringSubmatch(amountsExpr.ReplaceAllString(query, " ")); m != nil && l.filter.Term == "" {
		l.filter.Status, _ = strconv.Atoi(m[1] + m[2])
		text := "with " + strings.ToLower(m[0])
		describe(text, text)
	}
	if l.filter.Term == "" && l.filter.Status == 0 {
		l.filter.Warnings = warningsExpr.MatchString(query)
		l.filter.Errors = errorsExpr.MatchString(query) || intent == question.ErrorLogs && !l.filter.Warnings
		switch {
		case l.filter.Errors && l.filter.Warnings:
			describe("that reports an error or a warning", "that report an error or a warning")
		case l.filter.Errors:
			describe("that reports an error", "that report an error")
		case l.filter.Warnings:
			describe("that warns", "that warn")
		}
	}
	l.one, l.all = strings.Join(one, " and "), strings.Join(all, " and ")
	return l
}

// logs shows the last lines of the pods asked about, or the lines that match the question's filter in all of their
// logs.
func (w *work) logs(ctx context.Context, a question.Ask, t *topic) error {
	wish := readLogWish(w.turn.Query, a.Intent)
	sources := t.view().LogSources(engine.Recent)
	most := evidencePods
	if wish.filter.IsZero() {
		sources, most = t.view().LogPods(mostLogs), mostLogs
	}
	if wish.previous {
		sources = previousRuns(sources)
	}
	if len(sources) == 0 {
		w.say(t.whyNoLogs(wish.previous))
		if !wish.previous && (len(t.objects) > 0 || t.namespace != "") {
			return w.diagnose(ctx, a, t) // the next question is why there are none
		}
		return nil
	}
	if len(t.objects) == 0 && wish.filter.IsZero() {
		w.say("Name a pod or workload to read the log of, for example: logs of " + sources[0].Pod)
		return nil
	}
	w.synthesize()
	shown, lines, read, unread, anyCut := 0, 0, 0, 0, false
	limited, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	for i, log := range sources {
		if i == most || limited.Err() != nil {
			break
		}
		n, ok, cut, err := w.showLog(limited, t, log, wish)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && limited.Err() != nil {
			break
		}
		read++
		if err != nil {
			unread++
			w.say(fmt.Sprintf("%s could not be read: %s", titleOfLog(log), err))
			continue
		}
		lines += n
		anyCut = anyCut || cut
		if ok {
			shown++
		}
	}
	left := len(sources) - read
	complete := left == 0 && unread == 0 && !anyCut
	if shown == 0 && lines > 0 {
		w.say(fmt.Sprintf("Of %s in %s %s%s, none is one %s.", engine.CountNoun(lines, "line", "lines"), engine.CountNoun(read-unread, "log", "logs"), t.where(), t.period(), wish.one))
		if anyCut {
			w.say("Older lines of these logs were not read.")
		}
		if about, _ := t.found(nil); complete && wish.filter.Errors && len(about) == 0 && len(t.unexplained(nil)) == 0 && len(t.snap.Unread) == 0 && (len(t.objects) > 0 || t.namespace != "") {
			r := t.cover(a, nil)
			r.SetLogs(coverage.NewLogs(nil)) // all logs were read, and none has an error
			w.say(coverage.Verdict(r, nil).String())
		}
	} else if shown == 0 && read > unread {
		w.say(fmt.Sprintf("No lines were found in %s %s%s.", engine.CountNoun(read-unread, "log", "logs"), t.where(), t.period()))
	}
	if left > 0 {
		w.say(fmt.Sprintf("%s not read.", engine.CountNoun(left, "further log was", "further logs were")))
	}
	return nil
}

// previousRuns returns the runs before the last restart of each container.
func previousRuns(sources []engine.Log) []engine.Log {
	var all []engine.Log
	seen := map[engine.Log]bool{}
	for _, log := range sources {
		log.Previous = true
		if !seen[log] {
			seen[log] = true
			all = append(all, log)
		}
	}
	return all
}

func titleOfLog(log engine.Log) string {
	title := fmt.Sprintf("The log of pod %s, container %s", report.Code(log.Pod), report.Code(log.Container))
	if log.Previous {
		title += ", the run before its restart"
	}
	return title
}

// logPeriod limits the logs that are read; 0: no limit, since a day is the most.
func (t *topic) logPeriod() time.Duration {
	if t.within > 24*time.Hour {
		return 0
	}
	return t.within
}

// period is the end of a sentence about logs.
func (t *topic) period() string {
	switch {
	case t.within == 0:
		return ""
	case t.logPeriod() == 0:
		return " (logs can be limited to a day at most, so these are of whatever age)"
	}
	return " from the last " + report.FormatPeriod(t.within)
}

// showLog shows the selected lines of one log. lines is how many were read; ok reports that some were shown, cut that
// older ones were not read.
func (w *work) showLog(ctx context.Context, t *topic, log engine.Log, wish logWish) (lines int, ok, cut bool, err error) {
	op := operation.Operation{Verb: operation.Logs, Kind: "pod", Names: []string{log.Pod}, Namespace: log.Namespace, Container: log.Container, Previous: log.Previous}
	if within := t.logPeriod(); within > 0 && !log.Previous {
		op.Since = within.String()
	}
	out, err := w.tools.Call(turn.WantWholeLog(ctx), operation.Normalize(op))
	if err != nil {
		return 0, false, false, err
	}
	text := out.Whole
	if text == "" && !out.Empty {
		text = out.Text
	}
	found := wish.filter.Choose(text)
	if len(found.Messages) == 0 {
		return found.All, false, out.WholeTruncated, nil
	}
	from := strings.TrimPrefix(titleOfLog(log), "The log of ")
	most := wish.tail
	if !wish.filter.IsZero() {
		most = min(wish.tail, mostMatches)
	}
	kept := found.Messages[max(0, len(found.Messages)-most):]
	w.say(fmt.Sprintf("From the log of %s: %s\n\n%s", from, describeLines(found, kept, wish, out.WholeTruncated), indentCode(strings.Join(kept, "\n"))))
	return found.All, true, out.WholeTruncated, nil
}

// describeLines states how much is shown of how many lines, and of which time.
func describeLines(found logtext.Chosen, kept []string, wish logWish, cut bool) string {
	all := strconv.Itoa(found.All)
	if cut {
		all = "the last " + all
	}
	text := fmt.Sprintf("the last %d of %s lines", len(kept), all)
	if !wish.filter.IsZero() {
		about := wish.all
		if len(found.Messages) == 1 {
			about = wish.one
		}
		text = fmt.Sprintf("%s %s in %s lines", engine.CountNoun(len(found.Messages), "message", "messages"), about, all)
		if len(kept) < len(found.Messages) {
			text += fmt.Sprintf(", the last %d", len(kept))
		}
	}
	if !found.First.IsZero() && found.Last.After(found.First) {
		text += fmt.Sprintf(", from %s to %s", found.First.UTC().Format(time.DateTime), found.Last.UTC().Format(time.DateTime))
	}
	if cut {
		text += "; older lines were not read"
	}
	return text
}

// whyNoLogs explains why there are no logs: there are no pods, or no container has started, and why.
func (t *topic) whyNoLogs(previous bool) string {
	if t.snap.Unread["pods"] {
		return "Which pods there are could not be read, so no log was read." + listUnread(t.snap)
	}
	near := relatedObjects(t.snap, t.objects)
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		if pod.Name == "" || t.namespace != "" && pod.Namespace != t.namespace || len(t.objects) > 0 && !near[operation.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}] {
			continue
		}
		if previous {
			return fmt.Sprintf("No container %s was restarted, so there is no log of an earlier run.", t.where())
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				return fmt.Sprintf("There is no log yet: container %s of pod %s has never run. It waits: %s.", report.Code(s.Name), report.Code(pod.Name), report.Code(s.State.Waiting.Reason))
			}
		}
		if pod.Status.Phase == corev1.PodPending {
			return fmt.Sprintf("There is no log yet: pod %s is %s, so no container of it has run.", report.Code(pod.Name), report.Code(report.State(pod)))
		}
	}
	return "There are no pods to read logs of " + t.where() + "."
}
