package investigate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Bounds on the logs that one question reads as evidence.
const (
	evidencePods   = 20
	evidenceBytes  = 10 << 20
	evidenceGroups = 5
	evidenceTime   = 3 * time.Second // for all of them together
)

// spentLogs is what one question has read of logs: the bounds hold for all of its reads together.
type spentLogs struct {
	pods  map[string]bool // by namespace/name
	bytes int
	took  time.Duration
}

// logEvidence is what the logs of a workload tell.
type logEvidence struct {
	sources []logtext.Source
	spaces  map[string][]string // the namespaces in which a pod of a name was read
	read    string              // what was read and what was not, as a sentence
	groups  []logtext.Group
	hints   []logtext.Group // what healthy programs may write, too
	over    []logtext.Group // attempts that failed before one succeeded
	gap     string          // which logs were not read, as the end of a sentence; empty: none
}

// readEvidence reads the logs of the pods of a topic, of all containers and of the run before a
// recent restart, up to the bounds.
func (w *work) readEvidence(ctx context.Context, t *topic) (logEvidence, error) {
	return w.readLogs(ctx, t, evidencePods)
}

// readLogs is readEvidence for at most some pods. It draws from what the question may read at all.
func (w *work) readLogs(ctx context.Context, t *topic, most int) (logEvidence, error) {
	wanted := t.view().LogSources(engine.Recent)
	e := logEvidence{spaces: map[string][]string{}}
	if w.spent.pods == nil {
		w.spent.pods = map[string]bool{}
	}
	pods := map[string]bool{}
	failed, skipped, late := 0, 0, false
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, evidenceTime-w.spent.took)
	defer func() {
		cancel()
		w.spent.took += time.Since(begin)
	}()
	for _, log := range wanted {
		pod := log.Namespace + "/" + log.Pod
		if limited.Err() != nil {
			late = true
			skipped++
			continue
		}
		if w.spent.bytes >= evidenceBytes || !pods[pod] && len(pods) == most || !w.spent.pods[pod] && len(w.spent.pods) == evidencePods {
			skipped++
			continue
		}
		pods[pod], w.spent.pods[pod] = true, true
		op := operation.Operation{Verb: operation.Logs, Kind: "pod", Names: []string{log.Pod}, Namespace: log.Namespace, Container: log.Container, Previous: log.Previous, Tail: operation.MaxLimit}
		if within := t.logPeriod(); within > 0 && !log.Previous {
			op.Since = within.String()
		}
		out, err := w.tools.Call(limited, operation.Normalize(op))
		if ctx.Err() != nil {
			return e, ctx.Err()
		}
		if limited.Err() != nil && err != nil {
			late = true
			skipped++
			continue
		}
		if err != nil {
			failed++
			continue
		}
		text := out.Whole
		if text == "" && !out.Empty {
			text = out.Text
		}
		w.spent.bytes += len(text)
		if !slices.Contains(e.spaces[log.Pod], log.Namespace) {
			e.spaces[log.Pod] = append(e.spaces[log.Pod], log.Namespace)
		}
		e.sources = append(e.sources, logtext.Source{Pod: log.Pod, Container: log.Container, Text: text})
	}
	groups, lines := logtext.Telling(e.sources)
	for _, g := range groups {
		switch {
		case g.Over:
			e.over = append(e.over, g)
		case g.Hint:
			e.hints = append(e.hints, g)
		default:
			e.groups = append(e.groups, g)
		}
	}
	switch {
	case t.snap.Unread["pods"], len(wanted) > 0 && len(e.sources) == 0:
		e.gap = "its logs were not read"
	case failed > 0, skipped > 0:
		e.gap = "not all of its logs were read"
	}
	if len(wanted) == 0 {
		return e, nil
	}
	e.read = fmt.Sprintf("Read %s (at most the last %d per log) from %s of %s", engine.CountNoun(lines, "line", "lines"), operation.MaxLimit,
		engine.CountNoun(len(e.sources), "log", "logs"), engine.CountNoun(len(pods), "pod", "pods"))
	switch {
	case t.logPeriod() > 0:
		e.read += ", from the last " + report.FormatPeriod(t.within)
	case t.within > 0:
		e.read += ", of whatever age"
	}
	if failed > 0 {
		e.read += fmt.Sprintf("; %s could not be read", engine.CountNoun(failed, "log", "logs"))
	}
	if skipped == 1 {
		e.read += "; 1 further log was not read"
	} else if skipped > 1 {
		e.read += fmt.Sprintf("; %d further logs were not read", skipped)
	}
	if late {
		e.read += fmt.Sprintf(", since reading stopped after %s", evidenceTime)
	}
	e.read += "."
	return e, nil
}

// quote shows the lines that tell of trouble.
func (e logEvidence) quote(head string, groups []logtext.Group) string {
	var b strings.Builder
	b.WriteString(head + "\n\n")
	for i, g := range groups {
		if i == evidenceGroups {
			fmt.Fprintf(&b, "- And %d further kinds of such lines.\n", len(groups)-evidenceGroups)
			break
		}
		fmt.Fprintf(&b, "- %s: %s", countLines(g), engine.QuoteLine(g.Line))
		if g.Root != "" {
			fmt.Fprintf(&b, "; under it: %s", engine.QuoteLine(g.Root))
		}
		if g.Place != "" {
			fmt.Fprintf(&b, ", at %s", engine.QuoteCode(g.Place))
		}
		if g.Past() {
			fmt.Fprintf(&b, "; none in the %d messages since", g.Since)
		}
		if i == 0 && g.Before != "" {
			fmt.Fprintf(&b, "; the line before it is %s", engine.QuoteCode(g.Before))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// mostStatuses limits the HTTP statuses that one answer tells.
const mostStatuses = 3

// quoteAnswers tells how many HTTP answers of which status the logs have; empty where none is a fault.
func (e logEvidence) quoteAnswers() string {
	var lines []string
	for _, a := range logtext.Refused(e.sources) {
		if len(lines) == mostStatuses || a.Status < 500 && 5*a.Count < a.All {
			continue
		}
		line := fmt.Sprintf("%d of %d HTTP answers in the logs have status %d", a.Count, a.All, a.Status)
		if a.Most != "" {
			line += ", most of them to " + engine.QuoteCode(a.Most)
		}
		if a.Flags != "" {
			line += ": " + a.Flags
		}
		lines = append(lines, "- "+line+".\n")
	}
	return strings.Join(lines, "")
}

func countLines(g logtext.Group) string {
	text := "Once"
	if g.Count > 1 {
		text = fmt.Sprintf("%d times", g.Count)
	}
	switch {
	case g.First.IsZero():
	case g.Count > 1:
		text += fmt.Sprintf(" from %s to %s", g.First.UTC().Format(time.DateTime), g.Last.UTC().Format(time.DateTime))
	default:
		text += " at " + g.First.UTC().Format(time.DateTime)
	}
	return text + " in " + engine.QuoteCodes(g.Pods)
}

// sayEvidence quotes the lines, what the HTTP answers were, and where both lead.
func (w *work) sayEvidence(ctx context.Context, t *topic, e logEvidence, head string, groups []logtext.Group) error {
	leads, err := w.leads(ctx, t, groups[:min(evidenceGroups, len(groups))])
	if err != nil {
		return err
	}
	text := e.quote(head, groups) + e.quoteAnswers()
	for _, lead := range leads {
		text += "- " + lead + "\n"
	}
	w.say(text)
	return nil
}

// openQuestionExpr is a question that leaves open whether anything is wrong.
var openQuestionExpr = regexp.MustCompile(`^` + wordlist.AnyOf("is", "are", "does", "do", "did", "was", "were", "has", "have", "can", "could", "what", "whats", "any", "anything", "please", "check", "how", "show", "look", "investigate", "debug", "diagnose", "health") + `\b`)

// statusShows are the symptoms that the status of a pod shows whenever they are there.
var statusShows = []question.Symptom{question.Crash, question.Pending, question.Image, question.Init, question.Terminating}

// complains reports whether a sentence asserts a fault that pod status cannot disprove.
func complains(a question.Ask) bool {
	return !openQuestionExpr.MatchString(a.Words) && !slices.ContainsFunc(a.Symptoms, func(s question.Symptom) bool { return slices.Contains(statusShows, s) })
}

// sayNoFault answers where no object and no line tells a fault. Who says that something is wrong is not
// told the contrary: the answer shows what the logs do say.
func (w *work) sayNoFault(a question.Ask, t *topic, e logEvidence) {
	if len(e.over) > 0 {
		defer func() { w.say(e.quote("Attempts that failed before one succeeded, as the log says:", e.over)) }()
	}
	answers := e.quoteAnswers()
	if !complains(a) || e.gap != "" || len(e.sources) == 0 || len(t.snap.Unread) > 0 || len(t.unjudged()) > 0 {
		if len(e.hints) == 0 && answers == "" {
			w.say(strings.TrimSpace(t.verdict(nil, e.gap) + " " + e.read))
			return
		}
		if e.gap == "" && len(t.unjudged()) == 0 { // the verdict would call it well
			w.say(fmt.Sprintf("No object shows a fault in %s.%s", t.subject(), listUnread(t.snap)))
		} else {
			w.say(t.verdict(nil, e.gap))
		}
		if len(e.hints) > 0 {
			w.say(e.quote("The logs have no error, but messages that may matter:", e.hints) + answers)
		} else {
			w.say("The logs have no error, but HTTP answers that refuse or fail:\n\n" + answers)
		}
		w.say(e.read)
		return
	}
	w.say(fmt.Sprintf("No object shows a fault in %s.", t.subject()))
	frequent := logtext.Frequent(e.sources, evidenceGroups)
	switch {
	case len(e.hints) > 0:
		w.say(e.quote("The logs have no error, but messages that may be what you see:", e.hints) + answers)
	case len(frequent) > 0:
		w.say(e.quote("No message of the logs tells of a fault by its words. What they say most:", frequent) + answers)
	}
	w.say(e.read)
}

// besideFindings are the lines of pods that run and that no finding explains for certain. Pods of several
// namespaces may have one name.
func (t *topic) besideFindings(e logEvidence, about []engine.Finding) []logtext.Group {
	explained := map[string]bool{}
	for _, f := range about {
		if f.Confidence == engine.High || f.Class == engine.CrashLoop {
			for _, namespace := range append(slices.Clone(f.Namespaces), f.Object.Namespace) {
				for _, pod := range f.Pods {
					explained[namespace+"/"+pod] = true
				}
			}
		}
	}
	runs := map[string]bool{}
	for i := range t.snap.Pods {
		pod := &t.snap.Pods[i]
		if slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil }) || engine.PodReady(pod) {
			runs[pod.Namespace+"/"+pod.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(e.groups), func(g logtext.Group) bool {
		return !slices.ContainsFunc(g.Pods, func(pod string) bool {
			return slices.ContainsFunc(e.spaces[pod], func(namespace string) bool { return runs[namespace+"/"+pod] && !explained[namespace+"/"+pod] })
		})
	})
}

// readBeside reads the logs of what is asked about although objects show findings: a ready pod may fail in
// what only its log tells.
func (w *work) readBeside(ctx context.Context, t *topic, about []engine.Finding) (logEvidence, []logtext.Group, error) {
	if t.namespace == "" && len(t.objects) == 0 {
		return logEvidence{}, nil, nil
	}
	e, err := w.readEvidence(ctx, t)
	if err != nil {
		return e, nil, err
	}
	t.logs = e.sources
	return e, t.besideFindings(e, about), nil
}
