package investigate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// instead decides what a question about unknown names is answered about: similar names, else the place in the question.
// done reports that the answer is complete.
func (w *work) instead(ctx context.Context, a *question.Ask, t *topic) (done bool, err error) {
	if len(t.objects) == 0 {
		if found := t.quoting(t.missing[0].Name); len(found) > 0 {
			w.say("A finding mentions it. " + engine.Answer(t.snap, found))
			return true, nil
		}
	}
	rest := false // another name remains that may be anything in the place
	for _, m := range t.missing {
		near := nearest(similarNames(t.snap, t.namespace, m))
		switch {
		case len(near) > 0 && near[0].Kind != "Namespace" && !slices.ContainsFunc(near, func(r operation.Ref) bool { return r.Name != near[0].Name }):
			w.say(fmt.Sprintf("I assume you mean %s.", refTitles(near)))
			t.add(near)
		case len(t.objects) == 0 || looksLikeName(*a, m):
			rest = true
		}
	}
	missing := t.missing
	t.missing = nil
	if !rest {
		return false, nil
	}
	if t.namespace == "" {
		return len(t.objects) == 0, nil
	}
	switch a.Intent {
	case question.Diagnosis, question.Health, question.Describe, question.Logs, question.ErrorLogs, question.Events, question.Users, question.Keys:
		t.objects = nil
		w.say(fmt.Sprintf("Here are the findings %s instead:", t.where()))
		a.Intent, a.Symptoms, a.Route = question.Diagnosis, nil, nil
		return false, nil
	}
	if len(t.objects) > 0 || !looksLikeName(*a, missing[0]) {
		return false, nil // the question can be answered for the place
	}
	w.say(fmt.Sprintf("How it is %s: %s", t.where(), report.Health(t.view()).String()))
	return true, nil
}

// nearest returns the objects that run something, if all of those have one name: by redis people mean the deployment
// redis-cart, and not its claim redis-cart-pvc.
func nearest(similar []operation.Ref) []operation.Ref {
	running := slices.DeleteFunc(slices.Clone(similar), func(r operation.Ref) bool { return !runsSomething[r.Kind] })
	if len(running) == 0 || slices.ContainsFunc(running, func(r operation.Ref) bool { return r.Name != running[0].Name }) {
		return similar
	}
	return running
}

// runsSomething are the kinds that people mean by a bare name.
var runsSomething = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "CronJob": true, "Job": true, "Service": true}

// looksLikeName reports whether a word that no object has as its name must have been meant as one.
func looksLikeName(a question.Ask, m question.Mention) bool {
	if m.Kind != "" || strings.ContainsAny(m.Name, "-.0123456789") {
		return true
	}
	words := " " + a.Words + " "
	for _, beside := range []string{" and %s ", " %s and ", " or %s ", " %s or ", " of %s ", " called %s ", " named %s "} {
		if strings.Contains(words, fmt.Sprintf(beside, m.Name)) {
			return true
		}
	}
	return false
}

// nameUsed makes all objects of a kind the topic of a question for their users that names none: "which pods mount a
// claim?" Of many, the user has to name one.
func (t *topic) nameUsed(a question.Ask) {
	const most = 10
	if len(t.objects) > 0 || len(t.missing) > 0 {
		return
	}
	for word := range strings.FieldsSeq(a.Kind + " " + a.Words) {
		kind := question.KindOf(word)
		if !report.IsUsed(kind) {
			continue
		}
		for _, o := range nameableObjects(t.snap) {
			if isKind(kind, o.ref.Kind) && withinNamespace(o.ref, t.namespace) && !t.except.Has(o.ref) {
				t.objects = append(t.objects, o.ref)
			}
		}
		if len(t.objects) > most {
			t.objects = nil
		}
		return
	}
}

// askWhich requests the name of the ConfigMap, Secret, volume claim or service account if a question about its users
// omits it or has it wrong, and lists the existing ones. It is empty if one is found, or none of these kinds is asked
// about.
func askWhich(a question.Ask, t *topic) string {
	const most = 10
	kind := ""
	if a.Intent == question.Users {
		kind = a.Kind
	}
	for _, m := range a.Mentions {
		if m.Kind != "" {
			kind = m.Kind
		}
	}
	if len(t.objects) > 0 || !report.IsUsed(kind) {
		return ""
	}
	var have []string
	more := 0
	for _, o := range nameableObjects(t.snap) {
		if name := report.Code(o.ref.Name); strings.EqualFold(o.ref.Kind, kind) && o.ref.Name != "" && withinNamespace(o.ref, t.namespace) && !slices.Contains(have, name) {
			if len(have) == most {
				more++
				continue
			}
			have = append(have, name)
		}
	}
	text := fmt.Sprintf("Name the %s, for example %s.", kind, report.Code("which pods use "+kind+" NAME"))
	switch {
	case len(have) == 0 && t.snap.Unread[report.PluralOf(kind)]:
		return fmt.Sprintf("Not all %s could be read, so which there are is not known.", report.PluralOf(kind))
	case len(have) == 0:
		return fmt.Sprintf("I see no %s here.", kind)
	case more > 0:
		have = append(have, fmt.Sprintf("and %d more", more))
	}
	return text + " There are " + strings.Join(have, ", ") + "."
}
