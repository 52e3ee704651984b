package ground_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/assistant/internal/model/ground"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

const pods = `NAME                     READY   STATUS             RESTARTS      AGE
api-7d9f8b6c5-x2k4z      0/1     CrashLoopBackOff   7 (5m ago)    2d3h
api-7d9f8b6c5-p8w1q      0/1     CrashLoopBackOff   6 (4m ago)    2d3h
web-5c6d7e8f9-abcde      1/1     Running            0             12d
db-0                     1/1     Running            2             30d`

const described = `Name: api-7d9f8b6c5-x2k4z
Namespace: shop
Node: worker-1/10.0.0.7
Containers:
  app:
    Image: registry.local/shop/api:v1.4.2
    Limits: memory: 256Mi, cpu: 500m
    Last State: Terminated, Reason: OOMKilled, Exit Code: 137
    Liveness: http-get :8080/healthz delay=30s timeout=1s period=10s #failure=3
    Environment: DB_URL: postgres://db.shop:5432/shop
Events: 2026-01-02T03:04:05Z Back-off restarting failed container, x42`

func newRecord() *ground.Record {
	r := &ground.Record{}
	r.AddSaid("why does api in shop crash? We gave it 3 replicas and 90 seconds.")
	r.AddResult(pods)
	r.AddResult(described)
	r.AddCall(operation.Operation{Verb: operation.Logs, Names: []string{"api-7d9f8b6c5-x2k4z"}, Namespace: "shop"})
	return r
}

// stream checks a text that arrives in pieces of a given size.
func stream(r *ground.Record, text string, size int) string {
	c := ground.NewChecker(r)
	var out strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		out.WriteString(c.Write(text[:n]))
		text = text[n:]
	}
	return out.String() + c.Close()
}

func TestHonestAnswersPass(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"The pod `api-7d9f8b6c5-x2k4z` was killed: its limit of 256Mi is too low (exit code 137, which is 128 + 9).",
		"Deployment `api` in namespace `shop` has 2 of 2 pods in CrashLoopBackOff; together they restarted 13 times.",
		"| Pod | Ready | Restarts |\n|---|---|---|\n| api-7d9f8b6c5-x2k4z | 0/1 | 7 |\n| db-0 | 1/1 | 2 |\n",
		"```\n" + pods + "\n```\n",
		"**Cause.** The image `registry.local/shop/api:v1.4.2` needs more than 256 MB.\n\n1. Raise the limit to 512Mi:\n   `kubectl set resources deployment/api -n shop --limits=memory=512Mi`\n2. Watch it for 10 minutes.\n",
		"You gave it 3 replicas; after 90 seconds it is killed. The last restart was 5 minutes ago, the pods are 2 days old.",
		"All 4 pods were listed: 2 crash and 2 run. That is 50% of them.",
		"It listens on port 8080 and asks `db.shop:5432`; the probe waits 30 seconds and asks every 10 s.",
		"There is no ConfigMap `app-settings-v2`; create it, then restart the Deployment.",
		"```yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-settings\ndata:\n  size: \"99\"\n```\n",
		"The container was OOMKilled and restarted by the kubelet at 2026-01-02T03:04:05Z.",
		"`web` is healthy. I ran `kubectl logs api-7d9f8b6c5-x2k4z -n shop` and it printed nothing.",
		"Kubernetes backs off exponentially. A liveness probe such as `httpGet` with `failureThreshold: 5` could help.",
		"Pod anti-affinity plays no part; the read-only root does not either, and both pods of deployment/api are alike.",
		"You should scale it to 5 replicas. If the pod has been restarted, check again in 15 minutes.",
		"The events say `Back-off restarting failed container` 42 times.",
		"Run `kubectl create configmap app-settings -n shop --from-literal=size=99`.",
		"There are 2 problems.\n\n## Fix\n\n- memory limit: 640Mi\n- replicas: 6\n",
		"**Fix:** a memory limit of 512Mi, see step 2.",
		"Its restart count of 7 has been restarted by nobody; the container has been restarting since 03:04:05.",
		"Could it be the node `worker-1` (10.0.0.7)?",
	} {
		for _, size := range []int{1, 7, len(text)} {
			if got := stream(newRecord(), text, size); got != text {
				t.Errorf("in pieces of %d:\n%s", size, cmp.Diff(text, got))
			}
		}
	}
}

func TestLiesAreMarked(t *testing.T) {
	t.Parallel()
	// The sign ¤ shows where the mark has to be.
	for _, text := range []string{
		"The pod `ghost-7f9` ¤crashes.", "The pod ghost-7f9c ¤crashes.", "See pod/ghost ¤in shop.", "The `payments` ¤deployment is down.",
		"It runs the image `ghost:9`¤.", "It runs `registry.local/shop/api:v9.9`¤.", "`stale-worker` ¤is the cause.",
		"It restarted 99 ¤times.", "Its limit is 128Mi¤.", "Its limit is 256Gi¤.", "It uses 83% ¤of it.", "The delay is 45 seconds¤.", "It exits with code 139¤.",
		"It listens on port 9191¤.", "The address is 10.9.9.9¤.", "It began at 2026-05-05T01:02:03Z¤.",
		"Delete it: `kubectl delete namespace staging`¤.", "```\nkubectl delete pod ghost-1 -n shop # ¤\n```\n",
		"| pod | restarts |\n|---|---|\n| `ghost-1` ¤| 88 ¤|\n",
		"I ran `kubectl exec -it db-0 -- ls` ¤and saw it.", "I checked with `kubectl logs db-0 -n shop`¤.", "`kubectl top pods -n shop` ¤showed the peak.",
		"I have scaled ¤it.", "The deployment was successfully restarted¤.", "api has been scaled ¤down and the rollback is complete¤.", "Done¤. All set.",
		"I've deleted ¤the pod.", "The restart is complete¤.", "The deployment was rolled back ¤to the version before.", "## Cause\n\nThe memory limit is 640Mi¤.\n",
	} {
		want := strings.ReplaceAll(strings.ReplaceAll(text, " ¤", " "+ground.Mark+" "), "¤", " "+ground.Mark)
		want = strings.ReplaceAll(want, "# "+ground.Mark+" \n", "# "+ground.Mark+"\n")
		said := strings.ReplaceAll(strings.ReplaceAll(text, " # ¤", ""), "¤", "")
		for _, size := range []int{1, len(said)} {
			if got := stream(newRecord(), said, size); got != want {
				t.Errorf("in pieces of %d:\n%s", size, cmp.Diff(want, got))
			}
		}
	}
}

// One executed write does not make claims about others true, and a word inside a longer one claims none.
func TestAnotherWriteIsALie(t *testing.T) {
	t.Parallel()
	for _, verb := range []operation.Verb{operation.SetImage, operation.SetEnv, operation.SetResources} {
		r := newRecord()
		r.AddWrite(verb)
		if got := stream(r, "I have deleted the namespace.", 5); !strings.Contains(got, ground.Mark) {
			t.Errorf("after %s: %q; want it marked", verb, got)
		}
	}
	r := newRecord()
	r.AddResult("ReplicaSet offset reset")
	if got := stream(r, "The limit has been set.", 5); !strings.Contains(got, ground.Mark) {
		t.Errorf("%q; want it marked", got)
	}
}

func TestWritesThatWereExecutedAreNoLies(t *testing.T) {
	t.Parallel()
	r := newRecord()
	r.AddWrite(operation.Scale)
	text := "Done. I have scaled the Deployment; api has been scaled as you asked, the change is complete."
	if got := stream(r, text, 3); got != text {
		t.Error(cmp.Diff(text, got))
	}
	if got := stream(r, "I have deleted the pod.", 3); !strings.Contains(got, "deleted "+ground.Mark) {
		t.Errorf("%q; want a deletion marked that nobody made", got)
	}
}

func TestAnAllClearIsReplaced(t *testing.T) {
	t.Parallel()
	for text, replaced := range map[string]bool{
		"Everything in shop is healthy.": true, "All pods are running normally.": true, "I found no problems.": true, "All systems are operational.": true, "No issues detected in namespace shop.": true, "The cluster is healthy.": true, "Nothing is wrong.": true,
		"`api` is healthy.": true, "All is well. Nothing is wrong in the cluster.": true, "Every Deployment in shop is ready.": true,
		"`web` is healthy.": false, "All nodes are ready.": false, "Not everything is fine.": false, "Everything except api is healthy.": false,
		"All other pods are running.": false, "Once it is raised, all pods are ready.": false, "The log shows no errors.": false,
		"The pod is not healthy.": false, "`kube-system` has its own trouble.": false,
	} {
		r := newRecord()
		r.AddResult("NAMESPACE NAME\nkube-system coredns-1")
		r.AddFindings([]ground.Finding{{Namespaces: []string{"shop"}, Kinds: []string{"deployment", "pod"}, Names: []string{"api", "api-7d9f8b6c5-x2k4z"}}})
		r.Contradiction = "Deployment shop/api: out of memory."
		got := stream(r, text, 4)
		if has := strings.Count(got, "out of memory") == 1; has != replaced || replaced && strings.Contains(got, strings.Fields(text)[0]+" "+strings.Fields(text)[1]) || !replaced && got != text {
			t.Errorf("%q became %q; want replaced %v", text, got, replaced)
		}
	}
}

func TestWhatWasMarkedStaysUnseen(t *testing.T) {
	t.Parallel()
	r := newRecord()
	r.AddAnswer("The pod `ghost-7f9` " + ground.Mark + " crashes in `crm`.")
	if got := stream(r, "The pod `ghost-7f9` is in namespace `crm`.", 100); strings.Count(got, ground.Mark) != 1 || !strings.Contains(got, "`ghost-7f9` "+ground.Mark) {
		t.Errorf("%q; want the pod marked again and the namespace not", got)
	}
}

// FuzzChecker: only marks are added, wherever the stream is split.
func FuzzChecker(f *testing.F) {
	f.Add("The pod `ghost-7f9` crashes 99 times. ```\nx\n", 3)
	f.Add("| a | 1 |\n**1.** Raise 5m30s, 10:30, 1.2.3.4:80/`", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		for strings.Contains(text, "not seen") { // the test finds marks by their text
			text = strings.ReplaceAll(text, "not seen", "")
		}
		size = 1 + (size%4096+4096)%4096
		strip := func(s string) string {
			return strings.ReplaceAll(strings.ReplaceAll(s, " # "+ground.Mark, ""), " "+ground.Mark, "")
		}
		if got := strip(stream(newRecord(), text, size)); got != text {
			t.Errorf("%q became %q; want only marks added", text, got)
		}
	})
}
