package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestModelChoice: what a language model chose beyond the user's words and the fixes of
// findings always asks.
func TestModelChoice(t *testing.T) {
	t.Parallel()
	at := func(n int32) *int32 { return &n }
	spec := map[string]any{"spec": map[string]any{"paused": true}}
	named := func(kind, namespace, name string) operation.Ref {
		return operation.Ref{Group: "apps", Version: "v1", Kind: kind, Resource: strings.ToLower(kind) + "s", Namespace: namespace, Name: name}
	}
	web, cart := named("Deployment", "shop", "web"), named("Deployment", "shop", "cart")
	scale := operation.Operation{Verb: operation.Scale, Kind: "deploy", Names: []string{"web"}, Replicas: at(3)}
	restart := operation.Operation{Verb: operation.Restart, Kind: "deployment", Names: []string{"web"}}
	label := operation.Operation{Verb: operation.Label, Kind: "namespace", Names: []string{"shop"}, Set: map[string]string{"tier": "privileged"}}
	env := operation.Operation{Verb: operation.SetEnv, Kind: "deployment", Names: []string{"web"}, Set: map[string]string{"LD_PRELOAD": "/tmp/evil.so"}}
	patch := operation.Operation{Verb: operation.Patch, Kind: "deployment", Names: []string{"web"}, Patch: `{"metadata":{"labels":{"tier":"gold"}}}`}
	undo := operation.Operation{Verb: operation.Undo, Kind: "deployment", Names: []string{"web"}, Revision: 2}
	resume := operation.Operation{Verb: operation.Resume, Kind: "deployment", Names: []string{"web"}}
	fixed := func(o operation.Operation) []operation.Operation {
		o.Kind, o.Namespace = "deployment", "shop"
		return []operation.Operation{o}
	}
	for name, tc := range map[string]struct {
		said  string
		op    operation.Operation
		ref   operation.Ref
		scope string
		fixes []operation.Operation
		want  []string // of the notes; none: nothing was chosen
	}{
		"as said":                      {"scale web in shop to 3", scale, web, "", nil, nil},
		"in words":                     {"Please scale deployment/web in shop to three.", scale, web, "", nil, nil},
		"in the scope":                 {"scale `web` to 3, please", scale, web, "shop", nil, nil},
		"another object":               {"scale web in shop to 3", scale, cart, "", nil, []string{`the object "cart"`}},
		"a longer name":                {"scale web-1 in shop to 3", scale, web, "shop", nil, []string{`the object "web"`}},
		"another namespace":            {"scale web to 3", scale, web, "crm", nil, []string{`the namespace "shop"`}},
		"another number":               {"scale web in shop to 30", scale, web, "", nil, []string{`the value "3"`}},
		"another verb":                 {"restart web in shop", scale, web, "", nil, []string{"to scale", `the value "3"`}},
		"restart":                      {"restart web in shop", restart, web, "", nil, nil},
		"a deletion for a restart":     {"restart web in shop", operation.Operation{Verb: operation.Delete, Names: []string{"web"}}, web, "", nil, []string{"to delete"}},
		"a label":                      {"label the namespace shop tier=privileged", label, newRef("", "Namespace", "", "shop"), "", nil, nil},
		"a label's value":              {"label the namespace shop with a tier", label, newRef("", "Namespace", "", "shop"), "", nil, []string{`the value "privileged"`}},
		"a variable":                   {"please fix web in shop", env, web, "", nil, []string{"to set env", `the value "/tmp/evil.so"`, `the value "LD_PRELOAD"`}},
		"a patch":                      {"change the label tier of web in shop to gold", patch, web, "", nil, nil},
		"a patch's name":               {"change web in shop to gold", patch, web, "", nil, []string{`the value "tier"`}},
		"a patch's value":              {"change the label tier of web in shop", patch, web, "", nil, []string{`the value "gold"`}},
		"all":                          {"restart web in shop", operation.Operation{Verb: operation.Restart, Kind: "deployment", All: true}, cart, "shop", nil, []string{"all objects"}},
		"all, as said":                 {"restart all deployments", operation.Operation{Verb: operation.Restart, Kind: "deployment", All: true}, cart, "shop", nil, nil},
		"a finding's fix":              {"fix it", undo, web, "", fixed(undo), nil},
		"a fix of another object":      {"fix it", undo, cart, "", fixed(undo), []string{"to undo", `the object "cart"`, `the namespace "shop"`, `revision "2"`}},
		"a fix in another namespace":   {"fix it", undo, named("Deployment", "crm", "web"), "", fixed(undo), []string{"to undo", `the object "web"`, `the namespace "crm"`, `revision "2"`}},
		"a fix of another kind":        {"fix web in shop", resume, named("StatefulSet", "shop", "web"), "", fixed(resume), []string{"to resume"}},
		"a fix with another value":     {"fix it", env, web, "shop", fixed(patch), []string{"to set env", `the object "web"`, `the value "/tmp/evil.so"`, `the value "LD_PRELOAD"`}},
		"a fix with another revision":  {"undo web", operation.Operation{Verb: operation.Undo, Names: []string{"web"}, Revision: 1}, web, "shop", fixed(undo), []string{`revision "1"`}},
		"the revision before, as said": {"undo web", operation.Operation{Verb: operation.Undo, Names: []string{"web"}}, web, "shop", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := singleCase(guard.Operator, tc.op, tc.ref, spec, spec)
			if tc.op.Verb == operation.Delete {
				c.Role = guard.Admin
			}
			c.Words = []string{tc.said}
			plain := policy.Judge(c)
			c.Choice = &guard.Choice{Requested: true, Fixes: tc.fixes, Scope: tc.scope, Revision: tc.op.Revision}
			v := policy.Judge(c)
			chosen := slices.Contains(v.Confirms, guard.ModelChoice)
			if chosen != (len(tc.want) > 0) {
				t.Fatalf("%v %q; want chosen == (len(tc.want) > 0)", v.Confirms, v.Notes)
			}
			if !chosen {
				if v.Answer != plain.Answer || v.Risk != plain.Risk {
					t.Errorf("%s at %s, without a model %s at %s; want v.Answer == plain.Answer && v.Risk == plain.Risk", v.Answer, v.Risk, plain.Answer, plain.Risk)
				}
				return
			}
			// The verdict requires a decision, and the role keeps the rights that it has without a model.
			if v.Answer != guard.AlwaysAsk || v.Risk != operation.High || v.Row != plain.Row {
				t.Errorf("%s at %s, row %s, without a model %s; want v.Answer == guard.AlwaysAsk && v.Risk == operation.High && v.Row == plain.Row", v.Answer, v.Risk, v.Row, plain.Row)
			}
			for _, what := range tc.want {
				if !slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, what) }) {
					t.Errorf("%q is not in %q; want slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, what) })", what, v.Notes)
				}
			}
			if len(v.Notes) != len(tc.want) {
				t.Errorf("%q, want %q", v.Notes, tc.want)
			}
			c.OriginJudged = true
			if again := policy.Judge(c).Recall(c.Role, []string{string(guard.ModelChoice)}); again.Answer != guard.AlwaysAsk || again.Risk != operation.High || again.Row != plain.Row {
				t.Errorf("at the decision: %+v; want again.Answer == guard.AlwaysAsk && again.Risk == operation.High && again.Row == plain.Row", again)
			}
		})
	}
}

// TestProgramChoice: a program's choice is not reported as a language model's, or as a message that was not said.
func TestProgramChoice(t *testing.T) {
	t.Parallel()
	web := operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"}
	spec := map[string]any{"spec": map[string]any{"paused": true}}
	c := singleCase(guard.Operator, operation.Operation{Verb: operation.Scale, Kind: "deployment", Names: []string{"web"}, Replicas: new(int32(3))}, web, spec, spec)
	c.Words, c.Choice = []string{"scale web in shop to 3"}, &guard.Choice{Program: true}
	v := policy.Judge(c)
	want := []string{"a program chose to make this change; no person requested it in a message"}
	if v.Answer != guard.AlwaysAsk || !slices.Equal(v.Notes, want) {
		t.Errorf("got %s, %q; want %s, %q", v.Answer, v.Notes, guard.AlwaysAsk, want)
	}
}

// TestModelChoiceNeedsAnOrder: a question that contains verb, object and value orders nothing, and neither does a
// finding that has a fix.
func TestModelChoiceNeedsAnOrder(t *testing.T) {
	t.Parallel()
	three := int32(3)
	web := operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"}
	spec := map[string]any{"spec": map[string]any{"paused": true}}
	scale := operation.Operation{Verb: operation.Scale, Kind: "deployment", Names: []string{"web"}, Namespace: "shop", Replicas: &three}
	c := singleCase(guard.Operator, scale, web, spec, spec)
	c.Words = []string{"should I scale web in shop to 3?"}
	for name, choice := range map[string]*guard.Choice{"said": {}, "a finding's fix": {Fixes: []operation.Operation{scale}}} {
		c.Choice = choice
		v := policy.Judge(c)
		if v.Answer != guard.AlwaysAsk || !slices.Equal(v.Confirms, []guard.Confirm{guard.ModelChoice}) {
			t.Errorf("%s: %s for %v; want it to ask for %v", name, v.Answer, v.Confirms, guard.ModelChoice)
		}
		choice.Requested = true
		if v := policy.Judge(c); v.Answer != guard.Approval {
			t.Errorf("%s, ordered: %s for %v; want an approval to cover it", name, v.Answer, v.Confirms)
		}
	}
}

// A manifest with too many values to compare counts as not stated by the user.
func TestModelChoiceIsBounded(t *testing.T) {
	t.Parallel()
	var manifest strings.Builder
	manifest.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\ndata:\n")
	for i := range 600 {
		manifest.WriteString("  k" + strings.Repeat("x", i) + ": v\n")
	}
	op := operation.Operation{Verb: operation.Create, Manifest: manifest.String()}
	c := singleCase(guard.Admin, op, newRef("", "ConfigMap", "shop", "api"), nil, map[string]any{})
	c.Words = []string{"create this in shop: " + manifest.String()}
	c.Choice = &guard.Choice{Requested: true}
	if v := policy.Judge(c); v.Answer != guard.AlwaysAsk || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "values") {
		t.Errorf(`%+v; want v.Answer == guard.AlwaysAsk && len(v.Notes) == 1 && strings.Contains(v.Notes[0], "values")`, v)
	}
}
