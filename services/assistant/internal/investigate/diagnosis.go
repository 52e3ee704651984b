package investigate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/symptom"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// fitsSymptoms reports whether a finding, or its consequences, may show one of the symptoms.
func fitsSymptoms(f engine.Finding, symptoms []question.Symptom) bool {
	for _, s := range symptoms {
		if slices.Contains(coverage.Classes(s), f.Class) || f.As != 0 && slices.Contains(coverage.Classes(s), f.As) {
			return true
		}
	}
	return slices.ContainsFunc(f.Consequences, func(c engine.Finding) bool { return fitsSymptoms(c, symptoms) })
}

// found returns the findings about a topic, and the other findings in the same place.
func (t *topic) found(symptoms []question.Symptom) (about, others []engine.Finding) {
	where := t.namespace
	if slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Namespace == "" }) {
		where = "" // cluster-scoped objects such as nodes
	}
	all := slices.DeleteFunc(playbook.Findings(t.snap, where), func(f engine.Finding) bool { return t.except.Has(f.Object) })
	if len(t.objects) > 0 {
		about, others = partition(all, concernsObjects(t.snap, t.objects))
		// Of several findings about one object, those that fit the question come first.
		first, rest := partition(about, func(f engine.Finding) bool { return fitsSymptoms(f, symptoms) })
		return append(first, rest...), others
	}
	if about, others = partition(all, func(f engine.Finding) bool { return fitsSymptoms(f, symptoms) }); len(about) > 0 {
		return about, others
	}
	return all, nil
}

func partition(all []engine.Finding, ok func(engine.Finding) bool) (yes, no []engine.Finding) {
	for _, f := range all {
		if ok(f) {
			yes = append(yes, f)
		} else {
			no = append(no, f)
		}
	}
	return yes, no
}

// futureExpr matches a question about the future.
var futureExpr = question.Pattern(`\btomorrow\b|\bnext (hour|day|week|month|year|release|deploy\w*)\b|\b(will|would|going to|gonna)\b.*\b(` +
	`break|fail|crash|die|happen|survive|recover|go (down|wrong)|come back|run out|be (ok|okay|fine|enough|better)|hold|help)\b`)

// conditionalExpr matches a question about the effect of something that has not happened.
var conditionalExpr = question.Pattern(`^(what|which|who|would|will|could|can|does|do|is|are|how)\b.*\b(if|in case|should)\b`)

// asksFuture reports whether a question concerns the future.
func asksFuture(a question.Ask) bool {
	return futureExpr.MatchString(a.Words) || conditionalExpr.MatchString(a.Words)
}

// diagnose answers what is wrong and why.
func (w *work) diagnose(ctx context.Context, a question.Ask, t *topic) error {
	if asksFuture(a) {
		w.say("The future cannot be predicted from the cluster. This is the current state.")
	}
	about, others := t.found(a.Symptoms)
	if w.cfg.Found != nil {
		w.cfg.Found(slices.Concat(about, others))
	}
	for _, r := range t.objects {
		if line := describeStanding(t.snap, r); line != "" {
			w.say(line)
		}
		if len(t.objects) > 4 {
			break
		}
	}
	if a.Route != nil {
		blocked, err := w.barrier(ctx, a)
		if err != nil || blocked {
			return err
		}
	} else if len(about) == 0 {
		if blocked, err := w.barrierBetween(ctx, a, t); err != nil || blocked {
			return err
		}
	}
	meant := t.meant(a.Symptoms, about)
	meant = w.sayBoundAutoscalers(meant)
	var besides []engine.Finding // intended states that fit the symptom less well than others
	switch {
	case len(t.objects) > 0:
		about, meant = append(about, meant...), nil
	case len(about) == 0 && len(a.Symptoms) > 0:
		about, meant = partition(meant, func(f engine.Finding) bool { return fitsSymptoms(f, a.Symptoms) || f.Class == engine.PolicyBlocks })
		besides = meant
	case len(a.Symptoms) > 0 && !slices.ContainsFunc(about, func(f engine.Finding) bool { return fitsSymptoms(f, a.Symptoms) }):
		// No finding fits the question; an intended state that fits comes first.
		meant, besides = partition(meant, func(f engine.Finding) bool { return fitsSymptoms(f, a.Symptoms) })
		about = append(meant, about...)
	}
	left := t.unexplained(slices.Concat(about, others))
	switch {
	case len(about) > 0:
		w.sayUnfitting(a, t, about)
		if err := w.sayFindings(ctx, t, about, left); err != nil {
			return err
		}
		if !assertsFault(a) {
			w.say(coverage.Unmeasured(a.Symptoms))
		}
		w.sayIntended(besides)
		if err := w.sayRunbooks(ctx, t, about, false); err != nil {
			return err
		}
	case len(t.objects) == 0 && t.namespace != "":
		if err := w.diagnoseByLogs(ctx, a, t, left); err != nil {
			return err
		}
		w.sayIntended(meant)
		w.say(report.Health(t.view()).String())
		return nil
	case len(t.objects) == 0:
		w.sayVerdictOfAll(a, t, left)
		w.sayIntended(meant)
		w.say(report.Health(t.view()).String())
		return nil
	default:
		if err := w.diagnoseByLogs(ctx, a, t, left); err != nil {
			return err
		}
	}
	if slices.Contains(a.Symptoms, question.Slow) {
		if t.logs == nil && len(t.objects) > 0 { // durations are in logs, not in objects
			e, err := w.readEvidence(ctx, t)
			if err != nil {
				return err
			}
			t.logs = e.sources
			if len(e.groups) > 0 {
				if err := w.sayEvidence(ctx, t, e, "The logs show problems:", e.groups); err != nil {
					return err
				}
			}
			w.say(e.logs.Summary())
		}
		if err := w.speed(ctx, a, t); err != nil {
			return err
		}
	}
	w.elsewhere(t, others)
	switch {
	case t.logPeriod() > 0:
		w.say(fmt.Sprintf("Only the log lines are limited to the last %s; object state is current.", report.FormatPeriod(t.within)))
	case t.within > 0:
		w.say(fmt.Sprintf("Nothing here is limited to the last %s: object state is current, and logs can be limited to a day at most.", report.FormatPeriod(t.within)))
	}
	return nil
}

// sayUnfitting states that no finding fits the symptom asked about, before the answer lists what else is wrong.
func (w *work) sayUnfitting(a question.Ask, t *topic, found []engine.Finding) {
	fits := func(f engine.Finding) bool { return fitsSymptoms(f, a.Symptoms) }
	if len(t.objects) > 0 || len(a.Symptoms) == 0 || assertsFault(a) || slices.ContainsFunc(found, fits) {
		return
	}
	w.say("No finding matches the question. Something else is wrong:")
}

// sayFindings shows the findings, and what else the logs of running pods show.
func (w *work) sayFindings(ctx context.Context, t *topic, about []engine.Finding, left []symptom.Symptom) error {
	e, beside, err := w.readBeside(ctx, t, about)
	if err != nil {
		return err
	}
	about = withConcluded(about, t.concluded(beside, e.spaces))
	certain := slices.ContainsFunc(about, func(f engine.Finding) bool { return f.Confidence == engine.High })
	if len(beside) > 0 && !certain { // a program's own log explains more than a mere possibility
		if err := w.sayEvidence(ctx, t, e, "The logs show problems:", beside); err != nil {
			return err
		}
	}
	w.say(engine.Answer(t.snap, about))
	if len(beside) > 0 && certain {
		if err := w.sayEvidence(ctx, t, e, "The logs of running pods also show problems:", beside); err != nil {
			return err
		}
	}
	if len(beside) > 0 {
		w.say(e.logs.Summary())
	}
	w.say(t.besides(left))
	w.say(e.logs.NotLookedAt())
	return nil
}

// sayVerdictOfAll is the verdict on the whole cluster, of which no logs are read.
func (w *work) sayVerdictOfAll(a question.Ask, t *topic, left []symptom.Symptom) {
	w.say(coverage.Verdict(t.cover(a, left), nil).String())
}

// sayIntended shows states that may be intended, such as policies and suspended jobs. f.Cause refers to its object as
// "it".
func (w *work) sayIntended(meant []engine.Finding) {
	for _, f := range meant {
		switch f.Class {
		case engine.PolicyBlocks:
			w.say("An intended state may explain it: " + strings.ToLower(f.Cause[:1]) + f.Cause[1:])
		default:
			w.say(fmt.Sprintf("An intended state of %s may explain it: %s%s %s", engine.RefTitle(f.Object), strings.ToLower(f.Cause[:1]), f.Cause[1:], f.Text))
		}
	}
}

// sayBoundAutoscalers describes autoscalers that work as configured (findings of low confidence), and returns the other
// findings.
func (w *work) sayBoundAutoscalers(meant []engine.Finding) []engine.Finding {
	return slices.DeleteFunc(meant, func(f engine.Finding) bool {
		if f.Class != engine.AutoscalerIdle || f.Confidence != engine.Low {
			return false
		}
		w.say(strings.Join(slices.Concat([]string{fmt.Sprintf("%s works as configured: %s%s", engine.UpperFirst(engine.RefTitle(f.Object)), strings.ToLower(f.Cause[:1]), f.Cause[1:])}, f.Evidence, []string{f.Text}), " "))
		return true
	})
}

// diagnoseByLogs answers about objects whose status shows no cause, from the logs of their programs.
func (w *work) diagnoseByLogs(ctx context.Context, a question.Ask, t *topic, left []symptom.Symptom) error {
	e, err := w.readEvidence(ctx, t)
	if err != nil {
		return err
	}
	t.logs = e.sources
	switch {
	case len(e.groups) == 0 && len(left) == 0:
		w.sayNoFault(a, t, e)
		return nil
	case len(e.groups) == 0:
		r := t.cover(a, left)
		r.SetLogs(e.logs)
		w.say(coverage.Verdict(r, nil).String())
		w.say(e.logs.Summary())
		return nil
	}
	whose := "its logs"
	if !slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Kind != "Node" }) && len(t.objects) > 0 {
		whose = "the logs of pods on it, which other faults may explain," // nodes have no logs here
	}
	if found := t.concluded(e.groups, e.spaces); len(found) > 0 {
		w.say(fmt.Sprintf("No object of %s shows a fault, but %s report one.", t.subject(), whose))
		w.say(engine.Answer(t.snap, found))
	} else {
		w.say(fmt.Sprintf("No finding is about %s, but %s do not look healthy.", t.subject(), whose))
	}
	if len(left) > 0 {
		w.say("Not healthy:\n\n" + listSymptoms(t.snap, left))
	}
	if err := w.sayEvidence(ctx, t, e, "The logs show problems:", e.groups); err != nil {
		return err
	}
	w.say(e.logs.Summary() + listUnread(t.snap))
	w.say(e.logs.NotLookedAt())
	return nil
}

// meant returns the states that may be intended and explain the question: those of the named objects, or those that fit
// the symptoms. Beside findings only those that fit the symptoms count.
func (t *topic) meant(symptoms []question.Symptom, about []engine.Finding) []engine.Finding {
	near, concerns := relatedObjects(t.snap, t.objects), concernsObjects(t.snap, t.objects)
	told := map[operation.Ref]bool{}
	for _, f := range about {
		told[f.Object] = true
	}
	return slices.DeleteFunc(playbook.Meant(t.snap), func(f engine.Finding) bool {
		switch {
		case t.except.Has(f.Object):
			return true
		case told[f.Object], t.namespace != "" && f.Object.Namespace != t.namespace:
			return true
		case f.Class == engine.AutoscalerIdle && f.Confidence < engine.High && !fitsSymptoms(f, symptoms):
			return true // a transitional state
		case t.namespace != "" && concerns(f) && slices.ContainsFunc(f.Touches, func(r operation.Ref) bool { return r.Kind == "Node" && slices.Contains(t.objects, r) }):
			return false // the named node has none of its pods
		case len(t.objects) > 0:
			return !near[plainRef(f.Object)] || len(about) > 0 && !fitsSymptoms(f, symptoms)
		case t.namespace != "" && len(about) == 0:
			return false // a deliberate setting explains more than a healthy status
		}
		return f.Class != engine.PolicyBlocks && !fitsSymptoms(f, symptoms)
	})
}

// subject returns the topic as part of a sentence.
func (t *topic) subject() string {
	if len(t.objects) == 0 {
		return "namespace " + report.Code(t.namespace)
	}
	return refTitles(t.objects)
}

// elsewhere names other problems in one line, without explanation.
func (w *work) elsewhere(t *topic, others []engine.Finding) {
	if len(others) == 0 {
		return
	}
	if list := t.listBeside(others); list != "" {
		w.say(fmt.Sprintf("Something else is wrong %s:\n\n%s\n%s", t.where(), list, askAbout(len(others))))
		return
	}
	const most = 5
	var list []string
	for _, f := range others {
		if title := t.short(f.Object); !slices.Contains(list, title) {
			list = append(list, title)
		}
	}
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	where := t.where()
	if slices.ContainsFunc(others, func(f engine.Finding) bool { return t.namespace != "" && f.Object.Namespace != t.namespace }) {
		where = "in the cluster"
	}
	w.say(fmt.Sprintf("Something else is wrong %s: %s. %s", where, strings.Join(list, ", "), askAbout(len(list))))
}

func askAbout(n int) string {
	if n > 1 {
		return "Ask about any of them."
	}
	return "Ask what is wrong with it."
}

// quotedLog returns the sentence of a finding that quotes a log, after a blank.
func quotedLog(f engine.Finding) string {
	for _, sentence := range f.Evidence {
		if strings.HasPrefix(sentence, "Its log ") || strings.HasPrefix(sentence, "The log ") {
			return " " + sentence
		}
	}
	return ""
}
