package investigate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/logfact"
	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// evidenceGroups limits the kinds of lines that one answer quotes.
const evidenceGroups = 5

// logEvidence is the evidence in the logs of a workload.
type logEvidence struct {
	sources []logtext.Source
	spaces  map[string][]string // the namespaces in which a pod of each name was read
	logs    *coverage.Logs      // which were to be read, and how far each was; nil: none
	groups  []logtext.Group
	hints   []logtext.Group // what healthy programs may write, too
	over    []logtext.Group // attempts that failed before one succeeded
	climbs  []logfact.Climb // rising numbers, those that reach a limit first
}

// unread names the logs that were not read, as a sentence; empty: none.
func (e logEvidence) unread() string {
	switch {
	case e.logs.None():
		return "Its logs were not read."
	case !e.logs.Complete():
		return "Not all of its logs were read."
	}
	return ""
}

// quote shows the lines that report trouble.
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

// mostStatuses limits the HTTP statuses in one answer.
const mostStatuses = 3

// quoteAnswers counts the HTTP answers in the logs by status; empty if none is an error.
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
	if span := g.Last.Sub(g.First); g.Count >= leastRated && span >= time.Minute {
		text += fmt.Sprintf(", about %s a minute,", formatRate(float64(g.Count-1)/span.Minutes()))
	}
	return text + " in " + engine.QuoteCodes(g.Pods)
}

const (
	// leastRated is the fewest messages that give a rate.
	leastRated = 10
	// mostClimbs limits the rising numbers in one answer.
	mostClimbs = 3
)

func formatRate(perMinute float64) string {
	if perMinute >= 10 {
		return fmt.Sprintf("%.0f", perMinute)
	}
	return fmt.Sprintf("%.1f", perMinute)
}

// quoteClimbs lists the numbers that rise through the logs; empty if there are none.
func (e logEvidence) quoteClimbs() string {
	if len(e.climbs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Numbers that rise through the logs:\n\n")
	for i, c := range e.climbs {
		if i == mostClimbs {
			fmt.Fprintf(&b, "- And %d more.\n", len(e.climbs)-mostClimbs)
			break
		}
		when := ""
		if !c.From.IsZero() && c.To.After(c.From) {
			when = fmt.Sprintf(", from %s to %s", c.From.UTC().Format(time.DateTime), c.To.UTC().Format(time.DateTime))
		}
		limit := ""
		if c.Limit > 0 {
			limit = fmt.Sprintf("; the %g beside it stays, and looks like its limit", c.Limit)
		}
		fmt.Fprintf(&b, "- From %g to %g in %d lines of %s%s%s. The last: %s.\n", c.First, c.Last, c.Count, engine.QuoteCode(c.Pod), when, limit, engine.QuoteLine(c.Line))
	}
	return b.String()
}

// sayEvidence quotes the lines, the HTTP answers, and the leads from both.
func (w *work) sayEvidence(ctx context.Context, t *topic, e logEvidence, head string, groups []logtext.Group) error {
	leads, err := w.leads(ctx, t, groups[:min(evidenceGroups, len(groups))])
	if err != nil {
		return err
	}
	text := e.quote(head, groups) + e.quoteAnswers()
	defer func() { w.say(e.quoteClimbs()) }()
	for _, lead := range leads {
		text += "- " + lead + "\n"
	}
	w.say(text)
	return nil
}

// openQuestionExpr matches a question that leaves open whether anything is wrong.
var openQuestionExpr = question.Pattern(`^` + wordlist.AnyOf("is", "are", "does", "do", "did", "was", "were", "has", "have", "can", "could", "what", "whats", "which", "who", "whose", "where", "when", "any", "anything", "please", "check", "how", "show", "look", "investigate", "debug", "diagnose", "health") + `\b`)

// assertsFault reports whether a sentence claims a fault, rather than asks whether there is one.
func assertsFault(a question.Ask) bool { return !openQuestionExpr.MatchString(a.Words) }

// sayNoFault answers if no object and no line shows a fault. A user who reports a fault is not contradicted: the answer
// shows what the logs contain.
func (w *work) sayNoFault(a question.Ask, t *topic, e logEvidence) {
	r := t.cover(a, nil)
	r.SetLogs(e.logs)
	answers := e.quoteAnswers()
	if len(e.hints) > 0 || answers != "" || len(e.climbs) > 0 && e.climbs[0].Limit > 0 {
		r.Doubt()
	}
	c := coverage.Verdict(r, nil)
	frequent := logtext.Frequent(e.sources, evidenceGroups)
	w.say(c.String())
	switch {
	case len(e.hints) > 0:
		w.say(e.quote("The logs have no error, but messages that may matter:", e.hints) + answers)
	case answers != "":
		w.say("The logs have no error, but rejected or failed HTTP requests:\n\n" + answers)
	case !c.Clear() && assertsFault(a) && len(frequent) > 0:
		w.say(e.quote("No log message reads like a fault. The most frequent messages:", frequent))
	}
	w.say(e.quoteClimbs())
	w.say(e.logs.Summary())
	if len(e.over) > 0 {
		w.say(e.quote("According to the log, these attempts failed before one succeeded:", e.over))
	}
}

// besideFindings returns the lines of running pods that no finding explains for certain. Pods of several namespaces may
// share a name.
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

// readBeside reads the logs of the objects in question although they have findings: a ready pod may fail in a way that
// only its log shows.
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
