package investigate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// proposal is one write, with the reason for it.
type proposal struct {
	op  operation.Operation
	why string
}

// mostProposals limits the writes of one request.
const mostProposals = 10

// request works out the changes in a sentence and proposes the first that has not been made. The others follow, one
// after each decision.
func (w *work) request(ctx context.Context, a question.Ask) (turn.Outcome, error) {
	again := w.ranInThisTurn()
	if !again {
		w.plan("Read what is to be changed", "Work out the change", "Propose it")
	}
	all, missing, err := w.workOut(ctx, a)
	if err != nil {
		return turn.Outcome{}, err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(p proposal) bool { return w.settled(p.op) })
	if !again {
		for _, text := range missing {
			w.say(text)
		}
	}
	if len(left) == 0 {
		w.skip()
		return turn.Outcome{}, nil
	}
	out := w.propose(left, len(all))
	if a.Wish {
		out.Choice = &guard.Choice{Wish: true}
	}
	return out, nil
}

// workOut returns the writes of a request, and questions to the user for those that lack a value.
func (w *work) workOut(ctx context.Context, a question.Ask) (all []proposal, missing []string, err error) {
	for _, c := range a.Changes {
		t, err := w.lookFor(ctx, a, c)
		if err != nil {
			return nil, nil, err
		}
		w.next()
		b := &builder{topic: t, change: c, words: a.Words, wrong: map[string][]engine.Finding{}}
		switch {
		case t.snap == nil || t.noNamespace != "" || len(t.missing) > 0:
			b.miss("%s", strings.TrimSpace(describeAbsent(t)+" "+w.sayAgain(a, t)))
		default:
			b.build()
		}
		all, missing = append(all, b.out...), append(missing, b.missing...)
	}
	if len(all) > mostProposals {
		missing = append(missing, fmt.Sprintf("These are %d changes; the first %d are proposed. Ask again for the rest.", len(all), mostProposals))
		all = all[:mostProposals]
	}
	return all, missing, nil
}

// sayAgain suggests the request with the only name that is similar to an unknown one. A request is never carried out on a
// guess.
func (w *work) sayAgain(a question.Ask, t *topic) string {
	if t.snap == nil || len(t.missing) != 1 {
		return ""
	}
	near := nearest(similarNames(t.snap, t.namespace, t.missing[0]))
	if len(near) == 0 || slices.ContainsFunc(near, func(r operation.Ref) bool { return r.Name != near[0].Name }) {
		return ""
	}
	return fmt.Sprintf("If you mean it, say %s.", report.Code(strings.Replace(a.Words, t.missing[0].Name, near[0].Name, 1)))
}

// lookFor finds the object of a change. What the change does not name comes from the conversation.
func (w *work) lookFor(ctx context.Context, a question.Ask, c question.Change) (*topic, error) {
	of := question.Ask{Intent: question.Request, Mentions: c.Mentions, Namespace: c.Namespace, Everywhere: a.Everywhere}
	if len(c.Mentions) > 0 || a.Everywhere {
		return w.look(ctx, of)
	}
	of.Leans = c.Namespace == ""
	if !of.Leans {
		return w.look(ctx, of)
	}
	past := w.past(ctx, of)
	if c.Several && c.Verb != "" && !slices.Contains(strings.Fields(a.Words), "both") {
		past.Mentions = nil // "restart everything" is not about the last subject
	}
	of.Leans, of.Mentions, of.Namespace = false, slices.Clone(past.Mentions), past.Namespace
	for i := range of.Mentions {
		of.Mentions[i].Kind = ""
		of.Mentions[i].Sure = of.Mentions[i].Sure && a.Leans // otherwise it need not be meant
	}
	if of.Namespace == w.turn.Scope {
		of.Namespace = "" // so that objects found elsewhere are found again
	}
	return w.look(ctx, of)
}

// propose explains the first write, and returns it to the turn.
func (w *work) propose(left []proposal, of int) turn.Outcome {
	w.next()
	w.sink.Status(chat.Planning, "Working out the change")
	p := left[0]
	text := p.why
	if of > 1 {
		text += fmt.Sprintf("\n\nThat is one of %d changes; the others are proposed after it, one by one.", of)
		if len(left) == 1 {
			text = p.why + "\n\nThat is the last of the requested changes."
		}
	}
	w.say(text)
	w.skip()
	return turn.Outcome{Write: []operation.Operation{p.op}}
}

// ranInThisTurn reports whether a write that this turn proposed has already run, because it was approved beforehand.
func (w *work) ranInThisTurn() bool {
	return slices.ContainsFunc(w.turn.Settled, func(s action.Settled) bool {
		return s.Action.Turn == w.turn.Number && s.Action.Session == w.turn.Session
	})
}

// settled reports whether this turn decided or ran a write of the same kind on the same
// object.
func (w *work) settled(op operation.Operation) bool {
	return slices.ContainsFunc(w.turn.Settled, func(s action.Settled) bool {
		return slices.ContainsFunc(s.Action.Ops(), func(o operation.Operation) bool { return sameChange(o, op) })
	})
}

// sameChange compares the verbs and objects of operations; their values may differ.
func sameChange(a, b operation.Operation) bool {
	if a.Verb != b.Verb || a.Namespace != b.Namespace || a.All != b.All || a.LabelSelector != b.LabelSelector || a.Manifest != b.Manifest {
		return false
	}
	return slices.EqualFunc(a.Objects(), b.Objects(), func(x, y operation.Object) bool {
		return bareKind(x.Kind) == bareKind(y.Kind) && x.Name == y.Name
	})
}

// bareKind returns a kind without its group, in the singular.
func bareKind(kind string) string {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	return strings.TrimSuffix(kind, "s")
}

// whyChange answers a question why about the last requested change.
func (w *work) whyChange(ctx context.Context) bool {
	earlier := w.earlier(ctx)
	if len(earlier) == 0 || earlier[0].Intent != question.Request && earlier[0].Intent != question.Line {
		return false
	}
	if earlier[0].Intent == question.Line {
		op, err := kubectl.Parse(earlier[0].Line)
		if err != nil || !op.Verb.Writes() {
			return false
		}
		w.say("You sent the line itself; it is shown and waits because it changes the cluster. Nothing was decided.")
		return true
	}
	a, _, _ := w.lastRequest(ctx)
	all, missing, err := w.workOut(ctx, a)
	if err != nil || len(all)+len(missing) == 0 {
		return false
	}
	w.say("Because you requested it. Your question decided nothing.")
	for _, p := range all {
		w.say(p.why + "\n\n" + indentCode(kubectl.Render(p.op)))
	}
	for _, text := range missing {
		w.say(text)
	}
	return true
}

// advise answers what a change would do, and proposes nothing.
func (w *work) advise(ctx context.Context, a question.Ask, t *topic) error {
	w.synthesize()
	for _, r := range t.objects {
		if line := describeStanding(t.snap, r); line != "" {
			w.say(line)
		}
	}
	if len(a.Changes) > 0 {
		all, missing, err := w.workOut(ctx, a)
		if err != nil {
			return err
		}
		for _, p := range all {
			w.say(p.why + " As a command:\n\n" + indentCode(kubectl.Render(p.op)))
			if effect := effects[p.op.Verb]; effect != "" {
				w.say(effect)
			}
		}
		for _, text := range missing {
			w.say(text)
		}
	}
	w.say("Nothing was changed and no change is pending. For a proposal with its diff, send a request such as `restart api`.")
	if len(t.objects) > 0 {
		if about, _ := t.found(a.Symptoms); len(about) > 0 {
			if keepsCause(a.Changes, about) {
				w.say("It would not remove the cause of what is wrong now:")
			}
			w.say(engine.Answer(t.snap, about))
		}
	}
	return nil
}

// keepsCause reports whether all changes scale or restart pods, which leaves every cause except a wrong number of pods
// or too much load.
func keepsCause(changes []question.Change, found []engine.Finding) bool {
	byNumber := map[engine.Class]bool{engine.CPULimit: true, engine.AutoscalerIdle: true, engine.ServiceWithoutEndpoint: true, engine.BudgetDeadlock: true, engine.NodeTrouble: true}
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c question.Change) bool { return c.Verb != operation.Scale && c.Verb != operation.Restart }) &&
		!slices.ContainsFunc(found, func(f engine.Finding) bool { return byNumber[f.Class] || f.Confidence != engine.High })
}

// effects describe what a verb does to running workloads.
var effects = map[operation.Verb]string{
	operation.Scale:        "Pods are added, if quotas and nodes have room for them (not checked here: ask `quotas` and `capacity`), or ended until the number is right; fewer may mean that requests are refused.",
	operation.Restart:      "New pods come up and take the place of the old, a few at a time. It helps only where the cause is in the running process.",
	operation.Undo:         "The pods of the earlier revision come up and take the place of the present ones, a few at a time.",
	operation.Delete:       "Deletion also removes what the object owns. A workload replaces its deleted pods; a deleted workload does not come back.",
	operation.Drain:        "The node takes no new pods, and those on it are evicted as disruption budgets allow.",
	operation.Cordon:       "The node takes no new pods; those on it stay.",
	operation.Suspend:      "No new jobs are started; a running one continues.",
	operation.SetImage:     "New pods with the other image come up and take the place of the old.",
	operation.SetResources: "New pods with the other amounts come up and take the place of the old.",
}

// afterDecision continues after a decision: with the next change of the request, or after a denial with the
// alternatives.
func (w *work) afterDecision(ctx context.Context) (turn.Outcome, error) {
	var denied []action.Action
	good, own := true, false
	for _, s := range w.turn.Settled {
		if s.Action.Session != w.turn.Session {
			continue
		}
		own = true
		good = good && s.Action.State == action.Succeeded
		if s.Action.State == action.Denied {
			denied = append(denied, s.Action)
		}
	}
	if len(denied) > 0 {
		w.say(listAlternatives(denied))
	}
	if len(denied) > 0 || !own {
		return turn.Outcome{}, nil
	}
	a, at, ok := w.lastRequest(ctx)
	if !ok || len(a.Changes) < 2 && !slices.ContainsFunc(a.Changes, func(c question.Change) bool { return c.Several || len(c.Mentions) > 1 }) {
		return turn.Outcome{}, nil // it was one change, now decided
	}
	all, _, err := w.workOut(ctx, a)
	if err != nil {
		return turn.Outcome{}, err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(p proposal) bool { return w.settled(p.op) || w.proposedSince(at, p.op) })
	switch {
	case len(left) == 0:
		return turn.Outcome{}, nil
	case !good:
		w.say(fmt.Sprintf("The next requested change is not proposed, since this one did not succeed. It would be:\n\n%s", indentCode(kubectl.Render(left[0].op))))
		return turn.Outcome{}, nil
	}
	w.plan("Read the cluster again", "Propose the next change")
	return w.propose(left, len(left)+1), nil
}

// proposedSince reports whether an answer after the request at this place of the history has shown a command with the
// same verb for the same object. Values are not compared: the shown ones may be redacted.
func (w *work) proposedSince(at int, op operation.Operation) bool {
	if op.Verb == operation.RunJob {
		return true // each run has another name
	}
	var head []string
	for word := range strings.FieldsSeq(kubectl.Render(op)) {
		if head = append(head, word); strings.Contains(word, "/") || len(head) == 4 {
			break
		}
	}
	command := strings.Join(head, " ")
	for _, m := range w.turn.History[min(at+1, len(w.turn.History)):] {
		if m.Role != chat.RoleAssistant || op.Namespace != "" && !strings.Contains(m.Text, "-n "+op.Namespace) {
			continue
		}
		for line := range strings.Lines(m.Text) {
			if line = strings.TrimSpace(line); line == command || strings.HasPrefix(line, command+" ") {
				return true
			}
		}
	}
	return false
}

// listAlternatives lists alternatives to the changes that were denied.
func listAlternatives(denied []action.Action) string {
	list := []string{"Leave it as it is; the same change is proposed again only on request."}
	for _, a := range denied {
		for _, op := range a.Ops() {
			list = append(list, instead[op.Verb]...)
		}
	}
	slices.Sort(list[1:])
	return "Nothing was changed. What could be done instead:\n\n- " + strings.Join(slices.Compact(list), "\n- ")
}

var instead = map[operation.Verb][]string{
	operation.Undo:         {"Name another revision: `revisions of NAME` lists them.", "Set only the image or the variable that is wrong."},
	operation.SetImage:     {"Roll back to an earlier revision.", "Name another tag."},
	operation.SetResources: {"Look at what it really uses: `memory usage`.", "Name another amount."},
	operation.Scale:        {"Name another number.", "Let an autoscaler decide: `autoscale NAME between 1 and 5 at 70%`."},
	operation.Restart:      {"Find the cause first: `why does NAME crash?`"},
	operation.Delete:       {"Scale it to 0, which can be taken back.", "Restart it."},
	operation.Drain:        {"Cordon the node only, so that its pods stay.", "Look at the plan first: `what happens if I drain NODE?`"},
	operation.Patch:        {"Name the value that is right.", "Roll back to an earlier revision."},
}
