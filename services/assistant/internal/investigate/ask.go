package investigate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// wide are questions about the whole cluster, whatever the scope: nodes carry the pods of
// every namespace.
var wide = map[question.Intent]bool{question.Capacity: true, question.DrainPlan: true}

// ask answers a question.
func (w *work) ask(ctx context.Context, a question.Ask) error {
	switch a.Intent {
	case question.Diagnosis, question.Unclear, question.Advice, question.Health:
		w.plan("Read objects and events", "Match them against known problems", "Answer")
	default:
		w.plan("Read the objects in question", "Answer")
	}
	defer w.skip()
	if done, err := w.sayOutside(ctx, a); done || err != nil {
		return err
	}
	a, left, err := w.understand(ctx, a)
	if err != nil {
		return err
	}
	if a, err = w.leaveOut(ctx, a); err != nil {
		return err
	}
	if a, err = w.withoutUnknownCaller(ctx, a); err != nil {
		return err
	}
	foreign := isForeign(left)
	if !foreign && (a.Intent == question.Unclear || meansLittle(a, left)) {
		named, err := w.namesSomething(ctx, a)
		if err != nil {
			return err
		}
		switch {
		case !named:
			foreign = meansLittle(a, left) && !question.TellsFault(a.Words)
		case a.Intent == question.Unclear && meansLittle(a, left):
			foreign = true
		case a.Intent == question.Unclear:
			a.Intent = question.Diagnosis // about an existing object this is most likely a complaint
		}
	}
	asks := !assertsFault(a) && !question.TellsFault(a.Words) && !question.AsksWhy(a.Words)
	if w.cfg.Complaints && (a.Intent == question.Unclear && !asks || foreign && !asks) {
		a.Intent, a.Mentions, foreign = question.Diagnosis, nil, false
	}
	if a.Intent == question.Unclear || foreign {
		t, err := w.look(ctx, question.Ask{Everywhere: true})
		if err != nil {
			return err
		}
		w.synthesize()
		w.refuse(t, left)
		return nil
	}
	parts, err := w.splitByNamespace(ctx, a)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if len(parts) > 1 {
			w.say("**Namespace " + report.Code(part.Namespace) + "**")
		}
		if err := w.askOne(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// askOne answers a question about one place.
func (w *work) askOne(ctx context.Context, a question.Ask) error {
	if wide[a.Intent] {
		a.Everywhere, a.Namespace = true, ""
	}
	if a.Intent == question.DrainPlan {
		a.Mentions = slices.Clone(a.Mentions)
		for i := range a.Mentions {
			a.Mentions[i].Kind = "node"
		}
	}
	if err := w.readVerb(ctx, &a); err != nil {
		return err
	}
	t, err := w.look(ctx, a)
	if err != nil {
		return err
	}
	w.next()
	if t.snap == nil || t.noNamespace != "" {
		w.say(describeAbsent(t))
		ordinary := a.Intent == question.Diagnosis || strings.Contains(a.Words+" ", " the "+a.Namespace+" ") // a name has no article
		if !ordinary || w.turn.Scope == "" || a.Namespace == "" || a.Namespace == w.turn.Scope || strings.ContainsAny(a.Namespace, "-.0123456789") {
			return nil
		}
		// "nothing can be put in the basket" and "is all good in the shop" are about the place of the conversation.
		a.Namespace, a.Mentions = w.turn.Scope, nil
		if t, err = w.look(ctx, a); err != nil || t.snap == nil || t.noNamespace != "" {
			return err
		}
		w.say(fmt.Sprintf("Here are the findings %s instead:", t.where()))
	}
	if len(t.namesakes) > 0 {
		w.say(fmt.Sprintf("I take %s for the namespace; %s has the same name.", report.Code(t.namespace), refTitles(t.namesakes)))
	}
	if question.IsTitle(a.Words) {
		t.missing = slices.DeleteFunc(slices.Clone(t.missing), func(m question.Mention) bool { return question.IsTitleWord(m.Name) })
	}
	t.absent = t.missing
	if len(t.missing) > 0 {
		w.say(describeAbsent(t))
		if done, err := w.instead(ctx, &a, t); done || err != nil {
			return err
		}
	}
	if a.UnreadTime != "" {
		w.say(fmt.Sprintf("This is not limited to %s; say, for example, %s.", report.Code(a.UnreadTime), report.Code("in the last 2 hours")))
	}
	w.sink.Status(chat.Investigating, "Matching known problems")
	if w.besideOnNode(&a, t) {
		return w.reply(ctx, a, t)
	}
	if done, err := w.askFacts(ctx, &a, t); done || err != nil {
		return err
	}
	if a.Intent == question.Diagnosis && !assertsFault(a) && !question.TellsFault(a.Words) {
		words := t.unread(a.Words)
		if len(words) > 0 || len(a.Symptoms) == 0 || factExpr.MatchString(a.Words) {
			words = append(words, question.SymptomWords(a.Words)...)
		}
		if len(words) == 0 && factExpr.MatchString(a.Words) { // "which env does web have?": a rule reads the words, and none answers them
			words = t.contentWords(a.Words)
		}
		if said, err := w.sayFields(ctx, t, a, words); said || err != nil {
			return err
		}
	}
	w.sayUnread(a, t)
	return w.reply(ctx, a, t)
}

// sayUnread names, before an answer, the words of the question that the answer ignores. A complaint has more words than
// any rule knows, and is answered by the findings.
func (w *work) sayUnread(a question.Ask, t *topic) {
	if assertsFault(a) && (len(a.Symptoms) > 0 || question.TellsFault(a.Words)) || a.Intent == question.Manual || a.Intent == question.Clock || a.Intent == question.Number {
		return
	}
	if words := t.unread(a.Words); len(words) > 0 {
		w.say("Not understood, and left out: " + joinCodes(words) + ".")
	}
}

func (w *work) reply(ctx context.Context, a question.Ask, t *topic) error {
	if a.Intent == question.Overview && len(t.objects) > 0 {
		if a.Intent = question.Diagnosis; t.view().HasUsers() {
			a.Intent = question.Keys // "what is in the settings of shop?"
		}
	}
	if a.Intent == question.Usage && len(t.objects) > 0 && !slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Kind != "Node" }) && !question.AskedRanking(a).Ranked {
		a.Intent = question.Capacity // "how much memory of worker-2 is requested?", by the pods of every namespace
		if err := w.widen(ctx, a, t); err != nil {
			return err
		}
	}
	if a.Intent == question.Certificates && len(t.objects) > 0 {
		a.Intent = question.Diagnosis
	}
	if a.Intent == question.Secrets && len(t.objects) > 0 {
		if a.Kind = "secret"; w.listBelonging(ctx, a, t) { // "which secret does gateway use?"
			return nil
		}
	}
	if a.Intent == question.Diagnosis && conditionalExpr.MatchString(a.Words) && slices.ContainsFunc(t.objects, func(r operation.Ref) bool { return r.Kind == "Node" }) {
		w.say("The exact outcome cannot be predicted. Without the node, its pods would have to run elsewhere, as after a drain:")
		a.Intent = question.DrainPlan
	}
	outcome := func() {}
	if a.Intent == question.Events && !strings.Contains(a.Words, "event") {
		outcome = func() {
			if about, _ := t.found(nil); len(about) > 0 { // "what happened in shop?" is also about the outcome
				w.say(engine.Answer(t.snap, about))
			}
		}
		if a.Within == 0 {
			outcome()
			outcome = func() {}
		}
	}
	if table := report.TableNamed(a.Intent.String()); table != nil {
		w.synthesize()
		if a.Intent == question.Health {
			return w.health(ctx, a, t)
		}
		answer := table.Make(t.view())
		w.say(answer.String())
		if rows, more := answer.Rows(); strings.HasPrefix(a.Words, "how many") {
			w.say(fmt.Sprintf("Rows: %d.", len(rows)+more))
		}
		outcome() // for a period, its events come first
		return nil
	}
	switch a.Intent {
	case question.Users:
		w.synthesize()
		t.nameUsed(a)
		if text := askWhich(a, t); text != "" {
			w.say(text)
			return nil
		}
		if !t.view().HasUsers() {
			return w.sayDependencies(ctx, a, t) // "who uses api?"
		}
		w.say(report.Users(t.view()))
		return nil
	case question.Diagnosis:
		if a.Leans && w.whyChange(ctx) {
			return nil
		}
		w.synthesize()
		if wanted := question.Wanted(a.Words); wanted != "" && !asksFuture(a) {
			if !question.TellsFault(a.Words) && !assertsFault(a) {
				w.say(fmt.Sprintf("No rule, table or field answers %s here.", wanted))
				w.sayStandings(t)
				return nil
			}
			w.say(fmt.Sprintf("No rule and no table here answers %s. What the cluster shows:", wanted))
		}
		if words := t.contentWords(a.Words); len(t.objects) == 0 && factExpr.MatchString(a.Words) && !question.TellsFault(a.Words) && !question.AsksWhy(a.Words) && len(words) > 0 && len(a.Symptoms) == 0 {
			w.say(fmt.Sprintf("I cannot answer that: no rule, table or field covers %s.", joinCodes(words)))
			return nil
		}
		return w.diagnose(ctx, a, t)
	case question.Reach:
		w.synthesize()
		return w.reach(ctx, a)
	case question.Certificates:
		w.synthesize()
		w.certificates(t)
		return nil
	case question.Applications:
		w.synthesize()
		w.say(report.Applications(t.view()).String())
		return nil
	case question.Dependencies:
		return w.sayDependencies(ctx, a, t)
	case question.Releases:
		w.synthesize()
		w.say(report.Releases(t.view()).String())
		return nil
	case question.Advice:
		return w.advise(ctx, a, t)
	case question.WhoCan:
		if i := slices.IndexFunc(t.objects, func(r operation.Ref) bool { return judged[r.Kind] }); a.Right.Kind == "" && i >= 0 {
			a.Right.Kind = strings.ToLower(t.objects[i].Kind) // "who can restart web?"
		}
		w.say(report.WhoCan(t.view(), a.Right.Verb, a.Right.Kind))
	case question.NoProbes:
		w.say(report.NoProbes(t.view(), a.Words))
	case question.DrainPlan:
		w.drainPlan(t)
	case question.Usage:
		return w.usage(ctx, a, t)
	case question.ErrorLogs, question.Logs:
		return w.logs(ctx, a, t)
	case question.ErrorRate, question.Latency:
		return w.metrics(ctx, a, t)
	case question.Prices:
		w.say("Costs are unknown here: the cluster's API has no prices. Requests and usage:")
		return w.usage(ctx, a, t)
	case question.Clock:
		w.say(fmt.Sprintf("It is %s, by the assistant's clock. Times in answers are in UTC, too.", t.snap.Taken.UTC().Format("Monday 2006-01-02 15:04:05 UTC")))
		return nil
	case question.Manual:
		w.synthesize()
		w.say(describeManual(a, t))
		return nil
	case question.Runbook:
		w.synthesize()
		return w.sayRunbooks(ctx, t, nil, true)
	case question.Number:
		if text := askWhich(a, t); text != "" {
			w.say(text)
			return nil
		}
		if err := w.widen(ctx, a, t); err != nil {
			return err
		}
		if text, ok := report.Count(t.view(), a.Count); ok {
			w.synthesize()
			w.say(text)
			return nil
		}
		return w.list(ctx, a, t)
	case question.List:
		return w.list(ctx, a, t)
	case question.Describe, question.History:
		return w.describe(ctx, a, t)
	default:
		w.unclear(t)
	}
	return nil
}

// synthesize reports that the answer is being written.
func (w *work) synthesize() {
	w.next()
	w.sink.Status(chat.Synthesizing, "Writing the answer")
}

// whetherFineExpr matches a yes/no question.
var whetherFineExpr = question.Pattern(`^(is|are) `)

// health shows the table, and under it what is wrong. For one place or workload it reads the logs, too: a ready object
// may still fail.
func (w *work) health(ctx context.Context, a question.Ask, t *topic) error {
	if len(t.objects) == 0 && len(a.Symptoms) > 0 && a.Kind == "" {
		return w.diagnose(ctx, a, t) // "is dns working?"
	}
	about, _ := t.found(nil)
	if len(t.objects) == 0 && a.Kind != "" {
		if text, ok := report.Count(t.view(), question.Count{Kind: a.Kind}); ok { // "are the nodes ok?"
			w.say(text)
			about, _ = partition(about, func(f engine.Finding) bool { return strings.EqualFold(f.Object.Kind, a.Kind) })
			if len(about) > 0 {
				return w.sayFindings(ctx, t, about, nil)
			}
			w.say(fmt.Sprintf("No finding is about one of them. For all that is wrong, ask %s.", report.Code("what is wrong?")))
			return nil
		}
	}
	certain := slices.ContainsFunc(about, func(f engine.Finding) bool { return f.Confidence == engine.High })
	if certain && whetherFineExpr.MatchString(a.Words) && !question.TellsFault(a.Words) {
		w.say("No, something is wrong.")
	}
	w.sayStandings(t)
	if len(t.objects) == 0 {
		w.say(report.Health(t.view()).String())
	}
	left := t.unexplained(about)
	switch {
	case len(about) > 0:
		return w.sayFindings(ctx, t, about, left)
	case len(t.objects) > 0 || t.namespace != "":
		return w.diagnoseByLogs(ctx, a, t, left)
	}
	w.sayVerdictOfAll(a, t, left)
	return nil
}

// unclear lists what can be asked.
func (w *work) unclear(t *topic) {
	w.synthesize()
	w.refuse(t, nil)
}

// usage shows the usage of pods; for nodes the metrics API alone suffices.
func (w *work) usage(ctx context.Context, a question.Ask, t *topic) error {
	w.synthesize()
	if a.Kind == "node" && len(t.objects) == 0 && !question.AskedRanking(a).Ranked {
		w.call(ctx, operation.Operation{Verb: operation.Top, Kind: "node"}, "What the nodes use now:")
		return ctx.Err()
	}
	w.say(report.Usage(t.view(), question.AskedRanking(a)))
	return nil
}

// call runs a read and shows its result unchanged; a refusal is an answer, too.
func (w *work) call(ctx context.Context, op operation.Operation, head string) (text string, ok bool) {
	out, ok := w.showResult(ctx, op, head)
	return out.Text, ok
}

// showResult is call for callers that need more of the result than its text.
func (w *work) showResult(ctx context.Context, op operation.Operation, head string) (out turn.Output, ok bool) {
	out, err := w.tools.Call(ctx, operation.Normalize(op))
	if err != nil {
		if ctx.Err() == nil {
			w.say(err.Error())
		}
		return turn.Output{}, false
	}
	if strings.TrimSpace(out.Text) == "" {
		w.say(head + " nothing.")
		return turn.Output{}, true
	}
	w.say(head + "\n\n" + indentCode(out.Text))
	return out, true
}

// indentCode shows foreign text as indented code, since the text could close a fence. Repeated lines appear once.
func indentCode(text string) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		b.WriteString("    " + strings.TrimRight(lines[i], " \r") + "\n")
		if n > 2 {
			fmt.Fprintf(&b, "    (the same line %d times)\n", n)
		} else if n == 2 {
			n = 1
		}
		i += n
	}
	return b.String()
}

// list shows objects of a kind as the server prints them.
func (w *work) list(ctx context.Context, a question.Ask, t *topic) error {
	w.synthesize()
	if a.Kind == "route" {
		a.Kind = "httproute" // people who say just route mean this kind
	}
	if w.sayAged(a, t) || w.listLacking(a, t) || w.listBelonging(ctx, a, t) {
		return ctx.Err()
	}
	op := operation.Operation{Verb: operation.List, Kind: a.Kind, Namespace: t.namespace, AllNamespaces: t.namespace == "", FieldSelector: fieldSelector(a.Kind, t.except)}
	place := t.where()
	if report.IsClusterScoped(a.Kind) {
		op.Namespace, op.AllNamespaces = "", false
		op.FieldSelector = fieldSelector(a.Kind, report.Exclusion{Objects: t.except.Objects})
		place = report.Place("", t.except)
	}
	rest := conditionExpr.FindString(a.Words)
	if before, _, found := strings.Cut(rest, " in "); found && t.namespace != "" {
		rest = before // the list is limited to the namespace
	}
	if rest != "" {
		w.say(fmt.Sprintf("I cannot filter by %s, so the list is unfiltered.", report.Code(rest)))
	}
	if text, ok := w.call(ctx, op, fmt.Sprintf("The %s %s:", report.PluralOf(a.Kind), place)); ok && strings.HasPrefix(a.Words, "how many") {
		w.say(fmt.Sprintf("That is %d rows.", max(0, strings.Count(strings.TrimRight(text, "\n"), "\n"))))
	}
	return ctx.Err()
}

// conditionExpr is the part of a question that limits a list.
var conditionExpr = question.Pattern(`\b(run as|runs? as root|have a|has a|are (fine|ok|okay|healthy)$|without|with no|lacking|whose|(that|which) (have|has|do|does|did|can|were|run|runs) |older than|newer than|bigger than|smaller than|more than|less than|fewer than|running as).*`)

// describe shows one object, or the revisions of one.
func (w *work) describe(ctx context.Context, a question.Ask, t *topic) error {
	if len(t.objects) == 0 {
		w.unclear(t)
		return nil
	}
	w.synthesize()
	r := t.objects[0]
	op := newOperation(operation.Describe, r)
	if a.Intent == question.History {
		op.Verb = operation.RolloutHistory
	}
	if line := describeStanding(t.snap, r); line != "" {
		w.say(line)
	}
	w.call(ctx, op, "As the cluster has it:")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if about, _ := t.found(nil); len(about) > 0 && a.Intent == question.Describe {
		w.say(engine.Answer(t.snap, about))
	}
	return nil
}

// newOperation starts an operation on one object.
func newOperation(verb operation.Verb, r operation.Ref) operation.Operation {
	return operation.Operation{Verb: verb, Kind: strings.ToLower(r.Kind), Names: []string{r.Name}, Namespace: r.Namespace}
}
