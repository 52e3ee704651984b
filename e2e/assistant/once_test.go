//go:build e2e

package assistant_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// decide decides an action through its route, which executes nothing.
func (k *talk) decide(id, decision, key string) int {
	k.t.Helper()
	body, err := json.Marshal(map[string]string{"decision": decision})
	if err != nil {
		k.t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, k.url+"/v1/sessions/"+k.session+"/actions/"+id, bytes.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// onceWorld is two replicas on one database with one cluster.
func onceWorld(t *testing.T) (w *world, second *process) {
	w = newWorld(t, nil)
	return w, launchAssistant(t, w.database, w.door.kubeconfig)
}

func (w *world) web(t *testing.T, ns string) {
	t.Helper()
	if err := w.Namespace(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Client.AppsV1().Deployments(ns).Create(t.Context(), kube.Deployment(ns, "web", "registry.test/web:1", 1, program.Program{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := retryUntil(60*time.Second, w.readyPods(ns, 1)); err != nil {
		t.Fatal(err)
	}
}

// TestExactlyOnce kills processes around an approved write, and makes two replicas race for it.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	w, second := onceWorld(t)

	t.Run("approved, killed before execution, restarted", func(t *testing.T) {
		w.web(t, "killed")
		mine := launchAssistant(t, w.database, w.door.kubeconfig)
		k, mark := w.talk(t, "killed"), w.door.mark()
		k.url = mine.url
		p := requireOneApproval(t, k.say("scale web to 2"))
		if status := k.decide(p.ID, "approve", adminKey); status != http.StatusOK {
			t.Fatalf("approve answers %d; want %v", status, http.StatusOK)
		}
		mine.kill()
		w.none(t, mark, "killed", "before the session's next turn")
		mine = launchAssistant(t, w.database, w.door.kubeconfig)
		k.url = mine.url
		requireMatches(t, k.say("and now?"), `2 of 2|2/2|2 ready`)
		k.say("and again?")
		k.sameDigest(p, "succeeded")
		if calls := w.door.written(mark, "killed"); len(calls) != 1 {
			t.Errorf("%d writes:\n%s; want len(calls) == 1", len(calls), formatCalls(calls))
		}
	})

	t.Run("killed in front of the write", func(t *testing.T) {
		w.web(t, "front")
		own := openDoor(t, w.Config)
		database := newDatabase(t) // no other replica may rescue it
		mine := launchAssistant(t, database, own.kubeconfig)
		k := w.talk(t, "front")
		k.url = mine.url
		p := requireOneApproval(t, k.say("scale web to 2"))
		k.approveAndKill(mine, own.holdWrite(false))
		// The held request never arrived: the replica that takes over finds the target unmoved and makes the call.
		mine = launchAssistant(t, database, own.kubeconfig)
		k.url = mine.url
		if err := retryUntil(90*time.Second, func() error {
			if state := k.action(p.ID)["state"]; state != "succeeded" {
				return fmt.Errorf("the action is %v", state)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := retryUntil(10*time.Second, w.readyPods("front", 2)); err != nil {
			t.Error(err)
		}
		d, err := w.Client.AppsV1().Deployments("front").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || d.Generation != 2 {
			t.Errorf("the deployment was changed to generation %d, want 2, %v", d.Generation, err)
		}
	})

	t.Run("two clusters", w.ofTwo)

	t.Run("denied, and expired", func(t *testing.T) {
		w.web(t, "never")
		k, mark := w.talk(t, "never"), w.door.mark()
		p := requireOneApproval(t, k.say("scale web to 2"))
		if status := k.decide(p.ID, "deny", adminKey); status != http.StatusOK {
			t.Fatalf("deny answers %d; want %v", status, http.StatusOK)
		}
		if status := k.decide(p.ID, "approve", adminKey); status != http.StatusConflict {
			t.Errorf("approve after deny answers %d; want %v", status, http.StatusConflict)
		}
		k.say("approve " + p.ID)
		k.say("and now?")
		old := launchAssistant(t, w.database, w.door.kubeconfig, "ASSISTANT_ACTION_TTL=5s")
		late := &talk{t: t, url: old.url, key: adminKey, session: k.session + "-late", scope: "never"}
		p = requireOneApproval(t, late.say("scale web to 3"))
		if err := retryUntil(20*time.Second, func() error {
			if state := late.action(p.ID)["state"]; state != "expired" {
				return fmt.Errorf("after its time the action is %v", state)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if status := late.decide(p.ID, "approve", adminKey); status != http.StatusGone {
			t.Errorf("approve after its time answers %d; want %v", status, http.StatusGone)
		}
		late.say("and now?")
		w.none(t, mark, "never", "of what was denied or expired")
	})

	t.Run("two replicas, one approval each, at once", func(t *testing.T) {
		w.web(t, "race")
		k, mark := w.talk(t, "race"), w.door.mark()
		p := requireOneApproval(t, k.say("scale web to 2"))
		var wg sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			wg.Go(func() {
				own := *k
				if i%2 == 1 {
					own.url = second.url
				}
				statuses[i] = own.decide(p.ID, "approve", []string{adminKey, adminKey2}[i/2%2])
			})
		}
		wg.Wait()
		won := 0
		for _, s := range statuses {
			if s == http.StatusOK {
				won++
			} else if s != http.StatusConflict {
				t.Errorf("a decision answers %d; want %v", s, http.StatusConflict)
			}
		}
		if won != 1 {
			t.Errorf("%d approvals won: %v; want won == 1", won, statuses)
		}
		// The replica with the next turn carries it out; the other's turn is told to wait.
		for i := range 2 {
			wg.Go(func() {
				own := talk{t: t, url: []string{w.process.url, second.url}[i], key: adminKey, session: k.session, scope: "race"}
				if _, err := own.try("and now?"); err != nil && !strings.Contains(err.Error(), "turn_active") {
					t.Error(err, `want (err == nil || strings.Contains(err.Error(), "turn_active"))`)
				}
			})
		}
		wg.Wait()
		k.say("and now?")
		k.sameDigest(p, "succeeded")
		if calls := w.door.written(mark, "race"); len(calls) != 1 {
			t.Errorf("%d writes:\n%s; want len(calls) == 1", len(calls), formatCalls(calls))
		}
		// The ledger names the requester, the decider, the executed action and the outcome.
		told := ""
		for _, e := range readOutbox(t, w.database) {
			if strings.Contains(string(e), p.ID) {
				told += string(e) + "\n"
			}
		}
		for _, want := range []string{p.Digest, p.Summary, `"succeeded"`, `"requester"`, `"decider"`} {
			if !strings.Contains(told, want) {
				t.Errorf("the ledger does not tell %s:\n%s", want, told)
			}
		}
	})

	t.Run("replay is what was streamed", func(t *testing.T) {
		w.web(t, "replay")
		k := w.talk(t, "replay")
		var streamed bytes.Buffer
		for _, q := range []string{"what is wrong?", "scale web to 2", "wait, why?", "yes", "kubectl get pods", "no", "show pods"} {
			a := k.say(q)
			streamed.Write(bytes.TrimSuffix(withoutHeartbeats(a.raw), []byte("data: [DONE]\n\n")))
		}
		streamed.WriteString("data: [DONE]\n\n")
		for _, url := range []string{w.process.url, second.url} {
			own := *k
			own.url = url
			status, raw := own.get("/v1/events/replay/" + k.session)
			if status != http.StatusOK || !bytes.Equal(withoutHeartbeats(raw), streamed.Bytes()) {
				t.Errorf("the replay, %d, differs:\n%s\n--- streamed\n%s", status, raw, streamed.Bytes())
			}
		}
	})
}

// ofTwo adds a second cluster with objects of the same names and kills assistants of both, the first of which is the
// default, around a write that was approved for the second.
func (w *world) ofTwo(t *testing.T) {
	west := &world{Cluster: kube.Start(t)}
	t.Cleanup(west.Stop)
	for ns, behind := range map[string]bool{"two-front": false, "two-behind": true} {
		t.Run(ns, func(t *testing.T) {
			t.Parallel()
			w.web(t, ns)
			west.web(t, ns)
			onceInSecond(t, w, west, ns, behind)
			w.shows(t, ns, 1, 1)
			west.shows(t, ns, 2, 2)
		})
	}
}

// onceInSecond kills the assistant with the write in front of the second cluster's API server, or behind it and unanswered.
func onceInSecond(t *testing.T, east, west *world, ns string, behind bool) {
	first, second := openDoor(t, east.Config), openDoor(t, west.Config)
	kubeconfig := writeKubeconfig(t, map[string]*door{"east": first, "west": second})
	database := newDatabase(t) // no other replica may rescue it
	mine := launchAssistant(t, database, kubeconfig, "ASSISTANT_CONTEXTS=east,west")
	k := east.talk(t, ns)
	k.url, k.cluster = mine.url, "west"
	p := requireOneApproval(t, k.say("scale web to 2"))
	k.approveAndKill(mine, second.holdWrite(behind))
	mine = launchAssistant(t, database, kubeconfig, "ASSISTANT_CONTEXTS=east,west")
	k.url = mine.url
	if err := retryUntil(90*time.Second, func() error {
		if doc := k.action(p.ID); doc["state"] != "succeeded" || doc["cluster"] != "west" {
			return fmt.Errorf("the action is %v in %v", doc["state"], doc["cluster"])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	k.say("and now?")
	k.sameDigest(p, "succeeded")
	if calls := first.written(0, ""); len(calls) != 0 {
		t.Errorf("%d writes in the first cluster:\n%s; want none", len(calls), formatCalls(calls))
	}
	want := 2 // the one that never arrived, and its repeat
	if behind {
		want = 1
	}
	if calls := second.written(0, ""); len(calls) != want {
		t.Errorf("%d writes to the second cluster:\n%s; want %d", len(calls), formatCalls(calls), want)
	}
}

// approveAndKill approves the waiting action and kills the assistant once its write has reached a door.
func (k *talk) approveAndKill(assistant *process, reached chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = k.try("yes") // it is cut off
	}()
	<-reached
	assistant.kill()
	<-ended
}

// shows fails the test unless the deployment web has these replicas, in this generation of its spec.
func (w *world) shows(t *testing.T, ns string, replicas int32, generation int64) {
	t.Helper()
	d, err := w.Client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *d.Spec.Replicas != replicas || d.Generation != generation {
		t.Errorf("got %d replicas in generation %d; want %d in %d", *d.Spec.Replicas, d.Generation, replicas, generation)
	}
}

func withoutHeartbeats(raw []byte) []byte {
	return bytes.ReplaceAll(raw, []byte(": heartbeat\n\n"), nil)
}
