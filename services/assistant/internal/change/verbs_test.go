package change_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func valueAt(o object, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	return v
}

func firstContainer(o object) object {
	list, _ := valueAt(o, "spec", "template", "spec", "containers").([]any)
	c, _ := list[0].(object)
	return c
}

func TestScale(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.propose("kubectl scale deploy/cart -n shop --replicas=3")
		w.want("command", p.Command, "kubectl scale deployment/cart -n shop --replicas=3")
		w.want("diff", p.Diff, "-  replicas: 2\n", "+  replicas: 3\n", "live deployment.apps/cart in shop")
		if p.Verdict.Answer != guard.Approval || p.Verdict.Risk != operation.Medium {
			t.Errorf("verdict %+v; want p.Verdict.Answer == guard.Approval && p.Verdict.Risk == operation.Medium", p.Verdict)
		}
		if n := len(p.Operations[0].Affected); n != 2 {
			t.Errorf("%d pods affected, want 2", n)
		}
		told, seen := w.verified("kubectl scale deploy/cart --replicas=3")
		w.want("result", told, "deployment.apps/cart in shop was scaled.")
		w.want("verification", seen, "3 of 3 replicas are ready")
		w.refused("Nothing would change", "kubectl scale deploy/cart --replicas=3")
		w.refused("cannot be scaled", "kubectl scale svc/cart --replicas=3")
	})
}

// TestScaleOfSeveral: each member is shown, and the rules are those for one plus those for removing many.
func TestScaleOfSeveral(t *testing.T) {
	inWorld(t, func(w *world) {
		const all = "kubectl scale deployment -n payments --all --replicas=0"
		p := w.propose(all)
		var members []string
		for _, target := range p.Operations[0].Targets {
			members = append(members, target.Ref.Name)
			w.want("notes", strings.Join(p.Verdict.Notes, "\n"), target.Ref.String()+" goes from ")
			w.want("diff", p.Diff, "--- live "+target.Ref.String())
		}
		slices.Sort(members)
		if want := []string{"checkout", "gateway", "ledger", "settlements"}; !slices.Equal(members, want) {
			t.Errorf("got the members %v, want %v", members, want)
		}
		if p.Command != all {
			t.Errorf("got the command %q, want %q", p.Command, all)
		}

		for _, c := range []struct {
			command string
			role    guard.Role
			want    guard.Answer
			many    bool
		}{
			{all, guard.Admin, guard.AlwaysAsk, true},
			{all, guard.Operator, guard.Refuse, true},
			{all, guard.Readonly, guard.Refuse, false},
			{"kubectl scale deployment/cart deployment/redis --replicas=0", guard.Admin, guard.AlwaysAsk, true},
			{"kubectl scale deployment -l app=cart --replicas=0", guard.Admin, guard.AlwaysAsk, true},
			{"kubectl scale deployment/cart deployment/redis --replicas=7", guard.Operator, guard.Approval, false},
			{"kubectl scale deployment -l app=cart --replicas=7", guard.Operator, guard.Approval, false},
			{"kubectl scale deployment/cart --replicas=0", guard.Operator, guard.Approval, false},
			{"kubectl scale deployment -n kube-system --all --replicas=0", guard.Admin, guard.Refuse, false},
			{"kubectl scale deployment -n kube-public --all --replicas=0", guard.Admin, guard.Refuse, false},
		} {
			p, err := w.try(c.role, c.command)
			if err != nil || p.Verdict.Answer != c.want || slices.Contains(p.Verdict.Confirms, guard.RemovesMany) != c.many {
				t.Errorf("%s by %s: got %v %v (%s), %v; want %v, removes many: %v", c.command, c.role, p.Verdict.Answer, p.Verdict.Confirms, p.Verdict.Reason, err, c.want, c.many)
			}
		}
		p, err := w.try(guard.Admin, "kubectl scale deployment -l app=nothing --replicas=1")
		if err != nil || p.Verdict.Answer != guard.Refuse || p.Verdict.Code != "unresolved" {
			t.Errorf("selector of nothing: got %+v, %v; want it refused as unresolved", p.Verdict, err)
		}
		w.refused("cannot be scaled", "kubectl scale service --all --replicas=1")

		told, seen := w.verified("kubectl scale deployment/cart deployment/redis --replicas=2")
		w.want("result", told, "deployment.apps/redis in shop was scaled.")
		w.want("verification", seen, "deployment.apps/redis in shop")
		for _, name := range []string{"cart", "redis"} {
			if got := w.get("deploy", "shop", name)["spec"].(object)["replicas"]; got != int64(2) {
				t.Errorf("%s: got %v replicas, want 2", name, got)
			}
		}

		a := w.approved(w.propose("kubectl scale deployment -n shop -l app=cart --replicas=4"))
		w.edit("deploy", "shop", "redis", `{"metadata":{"labels":{"app":"cart"}}}`)
		if again, err := w.Plan(w.ctx, guard.Admin, a.Ops()); err != nil || again.Digest == a.Digest {
			t.Errorf("the digest is the same with one more member, %v; want another", err)
		}
	})
}

func TestUndo(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.propose("kubectl rollout undo deployment/web -n shop")
		w.want("diff", p.Diff, "-      - image: registry.example/shop/web:2.4.0", "+      - image: registry.example/shop/web:2.3.1")
		if p.Operations[0].Revision != 1 || len(p.Operations[0].Sources) != 1 {
			t.Errorf("revision %d, sources %v; want p.Operations[0].Revision == 1 && len(p.Operations[0].Sources) == 1", p.Operations[0].Revision, p.Operations[0].Sources)
		}
		// An image always requires a decision; since this one ran before, its origin adds no reason.
		if p.Verdict.Answer != guard.AlwaysAsk || len(p.Verdict.Confirms) != 1 || p.Verdict.Confirms[0] != guard.ChangesImageOrResources {
			t.Errorf("verdict %+v; want p.Verdict.Answer == guard.AlwaysAsk && len(p.Verdict.Confirms) == 1 && p.Verdict.Confirms[0] == guard.ChangesImageOrResources", p.Verdict)
		}
		told, seen := w.verified("kubectl rollout undo deployment/web -n shop")
		w.want("result", told, "was rolled back to revision 1.")
		w.want("verification", seen, "2 of 2 replicas are ready, 2 are up to date")
		if image := firstContainer(w.get("deploy", "shop", "web"))["image"]; image != "registry.example/shop/web:2.3.1" {
			t.Errorf(`image %v; want "registry.example/shop/web:2.3.1"`, image)
		}
		w.refused("keeps no revision 7; it has", "kubectl rollout undo deployment/web --to-revision=7")
		w.refused("keeps no earlier revision", "kubectl rollout undo deployment/cart")
		w.refused("cannot be rolled back", "kubectl rollout undo cronjob/nightly-report -n reports")
	})
}

func TestRestartPauseResume(t *testing.T) {
	inWorld(t, func(w *world) {
		before := w.podsOf("shop", "cart")
		p := w.propose("kubectl rollout restart deployment/cart")
		a := w.approved(p)
		if _, err := w.Execute(w.ctx, a); err != nil {
			t.Fatal(err)
		}
		stamp := valueAt(w.get("deploy", "shop", "cart"), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		if stamp == "" || stamp != p.Operations[0].At {
			t.Errorf(`restarted at %v, proposed %q; want stamp != "" && stamp == p.Operations[0].At`, stamp, p.Operations[0].At)
		}
		w.want("diff", p.Diff, "kubectl.kubernetes.io/restartedAt: \""+p.Operations[0].At)
		seen, err := w.Verify(w.ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		w.want("verification", seen, "2 of 2 replicas are ready, 2 are up to date")
		for _, pod := range w.podsOf("shop", "cart") {
			for _, old := range before {
				if pod == old {
					t.Errorf("pod %s is an old one; want pod != old", pod)
				}
			}
		}
		_, seen = w.verified("kubectl rollout pause deployment/cart")
		w.want("pause", seen, "It is paused")
		w.refused("resume it first", "kubectl rollout restart deployment/cart")
		_, seen = w.verified("kubectl rollout resume deployment/cart")
		w.want("resume", seen, "2 of 2 replicas are ready")
		w.refused("cannot be paused", "kubectl rollout pause statefulset/warehouse -n reports")
	})
}

func TestCronJobs(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.propose(`kubectl patch cronjob/nightly-report -n reports --type=merge -p '{"spec":{"suspend":false}}'`)
		w.want("diff", p.Diff, "-  suspend: true", "+  suspend: false")
		_, seen := w.verified(`kubectl patch cronjob/nightly-report -n reports --type=merge -p '{"spec":{"suspend":false}}'`)
		w.want("resume", seen, "cronjob.batch/nightly-report in reports is not suspended, read back")
		_, seen = w.verified(`kubectl patch cronjob/nightly-report -n reports --type=merge -p '{"spec":{"suspend":true}}'`)
		w.want("suspend", seen, "is suspended, read back")

		p = w.propose("kubectl create job once --from=cronjob/nightly-report -n reports")
		if p.Verdict.Answer != guard.Approval || len(p.Operations[0].Sources) != 1 || p.Operations[0].Targets[0].UID != "" {
			t.Errorf(`verdict %+v, operation %+v; want p.Verdict.Answer == guard.Approval && len(p.Operations[0].Sources) == 1 && p.Operations[0].Targets[0].UID == ""`, p.Verdict, p.Operations[0])
		}
		told, seen := w.verified("kubectl create job once --from=cronjob/nightly-report -n reports")
		w.want("result", told, "job.batch/once in reports was created.")
		w.want("verification", seen, "job.batch/once in reports")
		if valueAt(w.get("job", "reports", "once"), "metadata", "annotations", "cronjob.kubernetes.io/instantiate") != "manual" {
			t.Error("the job does not say that it was started by hand")
		}
		w.refused("already exists", "kubectl create job once --from=cronjob/nightly-report -n reports")

		// The job would differ from the one shown.
		a := w.approved(w.propose("kubectl create job twice --from=cronjob/nightly-report -n reports"))
		w.edit("cj", "reports", "nightly-report", `{"spec":{"jobTemplate":{"spec":{"backoffLimit":1}}}}`)
		if again, err := w.Plan(w.ctx, guard.Admin, a.Ops()); err != nil || again.Digest == a.Digest {
			t.Errorf("digest of a changed template: %v; want again.Digest != a.Digest", err)
		}
		if _, err := w.Execute(w.ctx, a); err == nil || w.find("job", "reports", "twice") != nil {
			t.Errorf(`the job of another template was made: %v; want an error && w.find("job", "reports", "twice") == nil`, err)
		}
	})
}

func TestContainers(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.propose("kubectl set image deployment/web web=registry.example/shop/web:2.3.1")
		w.want("diff", p.Diff, "web:2.4.0", "web:2.3.1")
		_, seen := w.verified("kubectl set image deployment/web web=registry.example/shop/web:2.3.1")
		w.want("image", seen, "2 of 2 replicas are ready, 2 are up to date")
		w.refused(`has no container "nope"; it has web`, "kubectl set image deployment/web nope=x")

		p = w.propose("kubectl set resources deployment/ledger -n payments --limits=memory=256Mi")
		w.want("diff", p.Diff, "memory: 64Mi", "memory: 256Mi")
		if p.Verdict.Risk != operation.High || p.Verdict.Answer != guard.AlwaysAsk {
			t.Errorf("verdict %+v; want p.Verdict.Risk == operation.High && p.Verdict.Answer == guard.AlwaysAsk", p.Verdict)
		}
		_, seen = w.verified("kubectl set resources deployment/ledger -n payments --limits=memory=256Mi")
		w.want("resources", seen, "1 of 1 replicas are ready")

		_, seen = w.verified("kubectl set env deployment/api DATABASE_URL=postgres://db:5432/shop")
		w.want("env", seen, "2 of 2 replicas are ready")
		_, _ = w.verified("kubectl set env deployment/cart EXTRA=1")
		_, _ = w.verified("kubectl set env deployment/cart EXTRA-")
		if env := firstContainer(w.get("deploy", "shop", "cart"))["env"]; env != nil {
			t.Errorf("env %v; want nil", env)
		}
		// A variable from a Secret gets a value, and so loses its source.
		p = w.propose("kubectl set env deployment/gateway -n payments DATABASE_URL=postgres://db:5432/payments")
		w.want("diff", p.Diff, "-          valueFrom:", "+          value: postgres://db:5432/payments")
		w.run("kubectl set env deployment/gateway -n payments DATABASE_URL=postgres://db:5432/payments")
		w.refused("cannot be changed so", "kubectl set env service/cart A=b")
	})
}

// No secret value is shown to a person or stored in a row to be shown.
func TestSecretsAreNotShown(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.propose("kubectl set env deployment/cart DB_PASSWORD=hunter2hunter2")
		w.want("command", p.Command, "DB_PASSWORD=")
		for what, text := range map[string]string{"command": p.Command, "diff": p.Diff} {
			if containsAny(text, "hunter2") {
				t.Errorf("%s shows the password:\n%s; want !containsAny(text, \"hunter2\")", what, text)
			}
		}
		w.run("kubectl set env deployment/cart DB_PASSWORD=hunter2hunter2")
		p = w.propose("kubectl set env deployment/cart DB_PASSWORD=hunter3hunter3")
		if p.Diff == "" || containsAny(p.Diff, "hunter") {
			t.Errorf("diff of a changed password:\n%s; want p.Diff != \"\" && !containsAny(p.Diff, \"hunter\")", p.Diff)
		}
	})
}

func TestExposeAndAutoscale(t *testing.T) {
	inWorld(t, func(w *world) {
		told, seen := w.verified("kubectl expose deployment/cart --port=8080 --name=cart-direct")
		w.want("expose", told+seen, "service/cart-direct in shop was created.", "has 2 ready endpoints")
		w.refused("already exists", "kubectl expose deployment/cart --port=8080")
		told, seen = w.verified("kubectl autoscale deployment/cart --min=2 --max=5 --cpu-percent=80")
		w.want("autoscale", told+seen, "horizontalpodautoscaler.autoscaling/cart in shop was created.", "keeps cart between 2 and 5 replicas")
		p := w.propose("kubectl scale deploy/cart --replicas=4")
		if len(p.Verdict.Notes) != 1 {
			t.Errorf("notes %v; want len(p.Verdict.Notes) == 1", p.Verdict.Notes)
		}
		w.want("notes", p.Verdict.Notes[0], "The autoscaler cart sets this number, too.")
		w.refused("cannot be exposed", "kubectl expose cronjob/nightly-report -n reports --port=80")
	})
}

func TestMarksAndPatches(t *testing.T) {
	inWorld(t, func(w *world) {
		_, seen := w.verified("kubectl label deployment/cart tier=web")
		w.want("label", seen, "has the label tier.")
		w.refused("with another value", "kubectl label deployment/cart tier=api")
		_, seen = w.verified("kubectl label deployment/cart tier=api --overwrite")
		w.want("label", seen, "has the label tier.")
		_, seen = w.verified("kubectl label deployment/cart tier-")
		w.want("label", seen, "has no label tier.")
		_, seen = w.verified("kubectl annotate service/cart owner=team-a")
		w.want("annotate", seen, "has the annotation owner.")

		p := w.propose(`kubectl patch service/catalog -p '{"spec":{"selector":{"version":"v1"}}}'`)
		w.want("diff", p.Diff, "-    version: v2", "+    version: v1")
		_, seen = w.verified(`kubectl patch service/catalog -p '{"spec":{"selector":{"version":"v1"}}}'`)
		w.want("patch", seen, "service/catalog in shop has 2 ready endpoints")
		w.refused("unknown field", `kubectl patch service/catalog -p '{"spec":{"selectors":{"version":"v1"}}}'`)
		w.refused("no such object", "kubectl label deployment/nope a=b")
		w.refused("no kind", "kubectl label nope/nope a=b")
	})
}
