package change_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

const twoMaps = `apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  labels: {set: a}
data: {colour: first}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  labels: {set: a}
data: {colour: second}
`

func TestCreate(t *testing.T) {
	inWorld(t, func(w *world) {
		create := operation.Operation{Verb: operation.Create, Manifest: twoMaps}
		p := w.planned(create)
		// Pods may wait for a ConfigMap, so a new one changes the running program.
		if len(p.Operations[0].Targets) != 2 || p.Operations[0].Namespace != "shop" || p.Verdict.Answer != guard.AlwaysAsk || !slices.Contains(p.Verdict.Confirms, guard.ChangesProgram) {
			t.Errorf("%+v, %+v; want 2 targets in shop, and guard.AlwaysAsk since it changes a program", p.Operations, p.Verdict)
		}
		w.want("diff", p.Diff, "+++ new configmap/one in shop", "+++ new configmap/two in shop", "+  colour: second")
		_, told := w.runPlan(p)
		w.want("result", told, "configmap/one in shop was created. configmap/two in shop was created.")
		if _, err := w.plan(create); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf(`a second time: %v; want an error && strings.Contains(err.Error(), "already exists")`, err)
		}
		twoMaps := strings.NewReplacer("name: one", "name: three", "name: two", "name: four").Replace(twoMaps)
		for manifest, want := range map[string]string{
			strings.Replace(twoMaps, "data: {colour: first}", "datum: {colour: first}", 1):                             `unknown field "datum"`,
			strings.Replace(twoMaps, "name: four", "name: three", 1):                                                   "configmap/three in shop is named twice.",
			strings.Replace(twoMaps, "name: four", "name: four\n  namespace: payments", 1):                             "One object says namespace payments, and shop is to hold the others",
			strings.Replace(twoMaps, "kind: ConfigMap", "kind: ConfigMop", 1):                                          "no kind",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: nowhere}\n":                               `namespaces "nowhere" not found`,
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bare}\nspec: {selector: {matchLabels: {a: b}}}\n": "template",
			"apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: old}\nspec: {}\n":                            "kind",
			strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many}\n", operation.MaxDocuments+1): "At most",
		} {
			if _, err := w.plan(operation.Operation{Verb: operation.Create, Manifest: manifest}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s\n%v, want %q", manifest[:min(len(manifest), 200)], err, want)
			}
		}
	})
}

// An object in a namespace of the same manifest cannot be dry-run, so it requires a decision.
func TestCreateWithItsNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		manifest := "apiVersion: v1\nkind: Namespace\nmetadata: {name: fresh}\n---\n" + strings.ReplaceAll(twoMaps, "  labels: {set: a}", "  namespace: fresh")
		p := w.planned(operation.Operation{Verb: operation.Create, Manifest: manifest})
		if !p.Operations[0].NoDryRun || !slices.Contains(p.Verdict.Confirms, guard.NoDryRun) || p.Verdict.Answer != guard.AlwaysAsk {
			t.Errorf("%+v; want p.Operations[0].NoDryRun && slices.Contains(p.Verdict.Confirms, guard.NoDryRun) && p.Verdict.Answer == guard.AlwaysAsk", p.Verdict)
		}
		if p.Operations[0].Namespace != "" {
			t.Errorf(`namespace %q; want ""`, p.Operations[0].Namespace)
		}
		_, told := w.runPlan(p)
		w.want("result", told, "namespace/fresh was created. configmap/one in fresh was created.")
	})
}

func TestApply(t *testing.T) {
	inWorld(t, func(w *world) {
		apply := operation.Operation{Verb: operation.Apply, Manifest: twoMaps}
		_, told := w.runPlan(w.planned(apply))
		w.want("result", told, "configmap/one in shop was created.")
		if _, err := w.plan(apply); err == nil || !strings.Contains(err.Error(), "Nothing would change") {
			t.Errorf(`a second time: %v; want an error && strings.Contains(err.Error(), "Nothing would change")`, err)
		}
		apply.Manifest = strings.Replace(twoMaps, "first", "third", 1)
		p := w.planned(apply)
		w.want("diff", p.Diff, "-  colour: first", "+  colour: third")
		before := w.wire.writes.Load()
		_, told = w.runPlan(p)
		w.want("result", told, "configmap/one in shop was applied.")
		// The assistant owned the fields already: no write is made only to be refused.
		if n := w.wire.writes.Load() - before; n != 2 {
			t.Errorf("%d writes for two objects; want 2", n)
		}

		// A field of another owner is taken over only with a flag.
		w.edit("cm", "shop", "two", `{"data":{"colour":"theirs"}}`)
		_, err := w.plan(apply)
		if err == nil {
			t.Fatal("the field of another was taken")
		}
		w.want("conflict", err.Error(), `"kubectl-edit"`, ".data.colour", "leave those fields out of the manifest", "--force-conflicts")
		apply.Force = true
		w.runPlan(w.planned(apply))
		if valueAt(w.get("cm", "shop", "two"), "data", "colour") != "second" {
			t.Error("not taken over")
		}

		one, _, _ := strings.Cut(apply.Manifest, "---\n")
		prune := operation.Operation{Verb: operation.Apply, Manifest: one, Prune: true, LabelSelector: "set=a"}
		p = w.planned(prune)
		w.want("diff", p.Diff, "--- live configmap/two in shop\n+++ deleted")
		if p.Verdict.Answer != guard.AlwaysAsk || !slices.Contains(p.Verdict.Confirms, guard.Prunes) || slices.Contains(p.Verdict.Confirms, guard.NoDryRun) {
			t.Errorf("%+v; want p.Verdict.Answer == guard.AlwaysAsk && slices.Contains(p.Verdict.Confirms, guard.Prunes) && !slices.Contains(p.Verdict.Confirms, guard.NoDryRun)", p.Verdict)
		}
		a, told := w.runPlan(p)
		w.want("result", told, "configmap/two in shop was pruned.")
		seen, err := w.Verify(w.ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		w.want("verification", seen, "configmap/one in shop is there", "configmap/two in shop is gone.")
	})
}

func TestReplace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runPlan(w.planned(operation.Operation{Verb: operation.Create, Manifest: twoMaps}))
		one, _, _ := strings.Cut(twoMaps, "---\n")
		replace := operation.Operation{Verb: operation.Replace, Manifest: strings.Replace(one, "data: {colour: first}", "data: {other: x}", 1)}
		p := w.planned(replace)
		w.want("diff", p.Diff, "-  colour: first", "+  other: x")
		if p.Verdict.Risk != operation.High {
			t.Errorf("%+v; want p.Verdict.Risk == %v", p.Verdict, operation.High)
		}
		_, told := w.runPlan(p)
		w.want("result", told, "configmap/one in shop was replaced.")

		uid := w.find("cm", "shop", "one").GetUID()
		replace.Force, replace.Manifest = true, one
		p = w.planned(replace)
		if !slices.Contains(p.Verdict.Confirms, guard.ReplacesByForce) {
			t.Errorf("%+v; want slices.Contains(p.Verdict.Confirms, guard.ReplacesByForce)", p.Verdict)
		}
		_, told = w.runPlan(p)
		w.want("result", told, "configmap/one in shop was deleted and created.")
		if now := w.find("cm", "shop", "one"); now == nil || now.GetUID() == uid {
			t.Error("it is the old one")
		}
		replace = operation.Operation{Verb: operation.Replace, Manifest: strings.Replace(one, "name: one", "name: three", 1)}
		if _, err := w.plan(replace); err == nil || !strings.Contains(err.Error(), "is not there, so it cannot be replaced") {
			t.Errorf(`%v; want an error && strings.Contains(err.Error(), "is not there, so it cannot be replaced")`, err)
		}
	})
}

func TestDelete(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.propose("kubectl delete deployment/cart")
		if p.Verdict.Risk != operation.High || p.Verdict.Answer != guard.Approval || len(p.Operations[0].Affected) != 2 {
			t.Errorf("%+v, affected %v; want p.Verdict.Risk == operation.High && p.Verdict.Answer == guard.Approval && len(p.Operations[0].Affected) == 2", p.Verdict, p.Operations[0].Affected)
		}
		w.want("diff", p.Diff, "--- live deployment.apps/cart in shop\n+++ deleted")
		_, seen := w.verified("kubectl delete deployment/cart")
		w.want("verification", seen, "deployment.apps/cart in shop is gone.")

		p = w.propose("kubectl delete pods -l app=web")
		if !slices.Contains(p.Verdict.Confirms, guard.RemovesMany) || len(p.Operations[0].Targets) < 2 {
			t.Errorf("%+v %+v; want slices.Contains(p.Verdict.Confirms, guard.RemovesMany) && len(p.Operations[0].Targets) >= 2", p.Verdict, p.Operations[0].Targets)
		}
		_, seen = w.verified("kubectl delete pods -l app=web --force")
		w.want("verification", seen, "is gone.")
		w.refused("Nothing in the cluster matches", "kubectl delete pods -l app=nobody")

		// Comma-separated lists expand, and one member makes the whole a member.
		p = w.propose("kubectl delete cm,ns --all -n team-a")
		if !slices.Contains(p.Verdict.Confirms, guard.DeletesCascadingKind) && p.Verdict.Answer != guard.Refuse {
			t.Errorf("%+v; want (slices.Contains(p.Verdict.Confirms, guard.DeletesCascadingKind) || p.Verdict.Answer == guard.Refuse)", p.Verdict)
		}
		p = w.propose("kubectl delete namespace/team-a")
		if !slices.Contains(p.Verdict.Confirms, guard.DeletesCascadingKind) || len(p.Operations[0].Affected) != 2 {
			t.Errorf("%+v, affected %v; want slices.Contains(p.Verdict.Confirms, guard.DeletesCascadingKind) && len(p.Operations[0].Affected) == 2", p.Verdict, p.Operations[0].Affected)
		}

		pod := w.podsOf("payments", "checkout")[0]
		told, seen := w.verified("kubectl evict pod/" + pod + " -n payments")
		w.want("evict", told+seen, "pod/"+pod+" in payments was evicted.", "pod/"+pod+" in payments is gone.")
	})
}
