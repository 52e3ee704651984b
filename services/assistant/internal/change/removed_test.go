package change_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// judged plans for a role and fails if anything is written meanwhile.
func (w *world) judged(role guard.Role, op operation.Operation) guard.Verdict {
	w.t.Helper()
	before := w.wire.writes.Load()
	p, err := w.planner().Plan(w.ctx, turnBy(role, op.Manifest+op.Patch), []operation.Operation{op})
	if err != nil {
		w.t.Fatalf("%s %s%s: %v", role, op.Manifest, op.Patch, err)
	}
	if w.wire.writes.Load() != before {
		w.t.Errorf("%s: the plan wrote; want w.wire.writes.Load() == %v", p.Command, before)
	}
	return p.Verdict
}

func (w *world) closed(v guard.Verdict) {
	w.t.Helper()
	if v.Answer != guard.Refuse || v.Code != "protected_namespace" {
		w.t.Errorf(`not refused for a protected namespace: %+v; want v.Answer == guard.Refuse && v.Code == "protected_namespace"`, v)
	}
}

const orphaned = `"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"00000000-0000-0000-0000-000000000001"}]`

// An owner that does not exist ends the object, so setting one is no ordinary patch.
func TestOwnerIsNoPatch(t *testing.T) {
	inWorld(t, func(w *world) {
		patch := `{"metadata":{` + orphaned + `}}`
		for _, op := range []operation.Operation{
			w.op("kubectl patch deployment/web -n shop -p '" + patch + "'"),
			w.op("kubectl patch namespace/team-a -p '" + patch + "'"),
			{Verb: operation.Create, Manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, namespace: shop, " + orphaned + "}}"},
			{Verb: operation.Apply, Manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, " + orphaned + "}}"},
		} {
			if v := w.judged(guard.Operator, op); v.Answer != guard.Refuse {
				t.Errorf("operator: %+v; want v.Answer == %v", v, guard.Refuse)
			}
			v := w.judged(guard.Admin, op)
			if v.Answer != guard.AlwaysAsk || !slices.Contains(v.Confirms, guard.ChangesOwner) {
				t.Errorf("admin: %+v; want v.Answer == guard.AlwaysAsk && slices.Contains(v.Confirms, guard.ChangesOwner)", v)
			}
		}
		p := w.propose("kubectl patch deployment/web -n shop -p '" + patch + "'")
		if len(p.Operations[0].Affected) == 0 {
			t.Error("no pod is named that goes with it")
		}
		w.closed(w.judged(guard.Admin, w.op("kubectl patch node/worker-1 -p '"+patch+"'")))
		synctest.Wait()
		if w.find("deploy", "shop", "web") == nil || w.find("ns", "", "team-a") == nil {
			t.Error("gone")
		}
	})
}

// Other verbs with the effect of taint, delete or drain on a node are judged like them.
func TestNodeByOtherVerbs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.closed(w.judged(guard.Admin, w.op("kubectl taint node worker-1 x=y:NoExecute")))
		w.closed(w.judged(guard.Admin, w.op(`kubectl patch node/worker-1 -p '{"spec":{"taints":[{"key":"x","value":"y","effect":"NoExecute"}]}}'`)))
		w.closed(w.judged(guard.Admin, operation.Operation{Verb: operation.Apply, Manifest: "{apiVersion: v1, kind: Node, metadata: {name: worker-1}, spec: {taints: [{key: x, effect: NoExecute}]}}"}))
		if v := w.judged(guard.Admin, w.op(`kubectl patch node/worker-1 -p '{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}'`)); v.Answer != guard.Approval {
			t.Errorf("NoSchedule: %+v; want v.Answer == %v", v, guard.Approval)
		}
		w.closed(w.judged(guard.Admin, w.op("kubectl delete node worker-1")))
		w.closed(w.judged(guard.Admin, operation.Operation{Verb: operation.Replace, Force: true, Manifest: "{apiVersion: v1, kind: Node, metadata: {name: worker-1}}"}))

		// Daemon sets remove their pods from a node that has lost the labels they require.
		w.edit("node", "", "worker-1", `{"metadata":{"labels":{"disk":"ssd","agents":"yes"}}}`)
		set := func(namespace, name, attracts string) {
			w.create("ds", namespace, `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"`+name+`"},"spec":{"selector":{"matchLabels":{"app":"`+name+`"}},
				"template":{"metadata":{"labels":{"app":"`+name+`"}},"spec":{"nodeSelector":`+attracts+`,"containers":[{"name":"c","image":"registry.example/agent:1"}]}}}}`)
		}
		set("shop", "agent", `{"disk":"ssd"}`)
		synctest.Wait()
		if len(w.podsOf("shop", "agent")) != 1 {
			t.Fatalf(`pods of the agent: %v; want len(w.podsOf("shop", "agent")) == 1`, w.podsOf("shop", "agent"))
		}
		lose := w.op("kubectl label node worker-1 disk-")
		if v := w.judged(guard.Operator, lose); v.Answer != guard.Refuse {
			t.Errorf("operator: %+v; want v.Answer == %v", v, guard.Refuse)
		}
		v := w.judged(guard.Admin, lose)
		if v.Answer != guard.Approval || v.Risk != operation.High || !strings.Contains(strings.Join(v.Notes, " "), "makes a controller delete pod/agent-") {
			t.Errorf(`admin: %+v; want v.Answer == guard.Approval && v.Risk == operation.High && strings.Contains(strings.Join(v.Notes, " "), "makes a controller delete pod/agent-")`, v)
		}
		if v := w.judged(guard.Operator, w.op("kubectl label node worker-1 agents-")); v.Answer != guard.Approval {
			t.Errorf("a label that attracts nothing: %+v; want v.Answer == %v", v, guard.Approval)
		}
		set("shop", "second", `{"disk":"ssd"}`)
		synctest.Wait()
		if v := w.judged(guard.Admin, lose); v.Answer != guard.AlwaysAsk || !slices.Contains(v.Confirms, guard.RemovesMany) {
			t.Errorf("two: %+v; want v.Answer == guard.AlwaysAsk && slices.Contains(v.Confirms, guard.RemovesMany)", v)
		}
		set("kube-system", "third", `{"disk":"ssd"}`)
		synctest.Wait()
		w.closed(w.judged(guard.Admin, lose))
		w.closed(w.judged(guard.Admin, w.op(`kubectl patch node/worker-1 -p '{"metadata":{"labels":{"disk":"hdd"}}}'`)))
	})
}

// A workload that adopts pods that it does not need deletes them.
func TestAdoptedAndUnused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.create("pod", "shop", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"lone","labels":{"app":"lone"}},"spec":{"containers":[{"name":"c","image":"registry.example/lone:1"}]}}`)
		synctest.Wait()
		set := func(replicas, app string) operation.Operation {
			return operation.Operation{Verb: operation.Create, Manifest: "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: taker, namespace: shop}, spec: {replicas: " + replicas +
				", selector: {matchLabels: {app: " + app + "}}, template: {metadata: {labels: {app: " + app + "}}, spec: {containers: [{name: c, image: 'registry.example/lone:1'}]}}}}"}
		}
		if v := w.judged(guard.Operator, set("0", "lone")); v.Answer != guard.Refuse {
			t.Errorf("operator: %+v; want v.Answer == %v", v, guard.Refuse)
		}
		if v := w.judged(guard.Admin, set("0", "lone")); v.Risk != operation.High || !strings.Contains(strings.Join(v.Notes, " "), "makes a controller delete pod/lone") {
			t.Errorf(`admin: %+v; want v.Risk == operation.High && strings.Contains(strings.Join(v.Notes, " "), "makes a controller delete pod/lone")`, v)
		}
		for _, op := range []operation.Operation{set("1", "lone"), set("0", "alone")} {
			if v := w.judged(guard.Operator, op); v.Answer != guard.Approval {
				t.Errorf("%s: %+v; want v.Answer == %v", op.Manifest, v, guard.Approval)
			}
		}
	})
}

// Notes may quote a password, from a manifest or from a log.
func TestNotesHoldNoSecrets(t *testing.T) {
	inWorld(t, func(w *world) {
		const url = "mysql://app:hunter2hunter2@db/x"
		op := operation.Operation{Verb: operation.Create, Manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {url: '" + url + "'}}"}
		for _, read := range [][]string{nil, {"use " + url}} {
			turn := turnBy(guard.Admin, "make it")
			turn.Untrusted = read
			p, err := w.planner().Plan(w.ctx, turn, []operation.Operation{op})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(p.Verdict.Notes, "\n")
			if strings.Contains(notes, "hunter2") || !strings.Contains(notes, "mysql://") {
				t.Errorf(`%q; want !strings.Contains(notes, "hunter2") && strings.Contains(notes, "mysql://")`, notes)
			}
		}
	})
}

// A job that cleans up after itself may have run although it is absent, and is not created again.
func TestProbeOfTheFleeting(t *testing.T) {
	inWorld(t, func(w *world) {
		job := func(ttl string) operation.Operation {
			return operation.Operation{Verb: operation.Create, Manifest: "{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: shop}, spec: {" + ttl +
				"template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'registry.example/once:1'}]}}}}"}
		}
		for ttl, want := range map[string]action.Effect{"": action.Unmoved, "ttlSecondsAfterFinished: 0, ": action.Unclear} {
			effect, err := w.Probe(w.ctx, w.approved(w.planned(job(ttl))))
			if err != nil || effect != want {
				t.Errorf("%q: %v, %v; want effect == want", ttl, effect, err)
			}
		}
	})
}
