package question_test

import (
	"slices"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// TestNaive: hasty sentences are read as meant.
func TestNaive(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]question.Intent{
		"certs ok?": question.Certificates, "are my certificates ok?": question.Certificates, "when do my certs expire": question.Certificates, "any certs expiring soon?": question.Certificates,
		"check the certificates in shop": question.Certificates, "why do we get certificate errors in store?": question.Diagnosis, "web cannot read its certificate": question.Diagnosis,
		"who ate all the memory": question.Usage, "whats eating cpu": question.Usage, "who is hogging the ram": question.Usage,
		"everything is red": question.Diagnosis, "my web pods hate me in shop": question.Diagnosis, "checkout borked": question.Diagnosis, "sth is wrong w/ payments": question.Diagnosis,
		"are we good?": question.Health, "shop ok?": question.Health, "everything ok": question.Health,
		"is it dns": question.Diagnosis, "could it be the network?": question.Diagnosis, "what should i do": question.Diagnosis, "too many open files?": question.Diagnosis,
		"how much money does shop cost": question.Prices, "what does shop cost?": question.Prices, "what is the cost of payments": question.Prices, "how expensive is ledger?": question.Prices,
		"what is wrong with cost-api?": question.Diagnosis, "why does billing fail": question.Diagnosis, "how much memory does price-feed use": question.Usage,
		"any errors in the logs since the cert rotation?": question.ErrorLogs, "which pods mount the certs secret": question.Number,
		"event-writer in clickstream is running but no events get to the topic": question.Diagnosis, "packed in sched is pending and has no events at all": question.Diagnosis, "events of the failing pods": question.Events,
		"login in identity restarts every half minute": question.Diagnosis, "shop is slow and restarts": question.Diagnosis, "restarts in payments": question.Restarts, "which pods restart the most?": question.Restarts,
		"drain in media-queue takes nothing from the queue": question.Diagnosis, "drain is blocked by raft in store and one member is not ready": question.Diagnosis, "drain node-3": question.Request,
		"what did ticker in tail say last?": question.Logs, "there was a readiness warning for head in found - does it still fail?": question.Diagnosis, "any warnings in shop?": question.Warnings,
		"the new template of quotes in pricing is not rolled out": question.Diagnosis, "what was rolled out today?": question.RecentChanges, "api was not updated": question.Diagnosis,
		"are there pods without a readiness probe?": question.NoProbes, "which deployments have no liveness probe": question.NoProbes, "the readiness probe of api fails": question.Diagnosis, "there is no answer to the probe of web": question.Diagnosis,
		"show me everything that uses gateway-db": question.Users, "whats the biggest pod": question.Usage, "how do i get into the db pod": question.Manual, "which node is about to die": question.Diagnosis,
		"no temperature readings from greenhouse in farm": question.Diagnosis, "no bids are going in at auction": question.Diagnosis, "no thanks": question.Assent,
		"no, it is in use": question.Assent, "no, this is on purpose": question.Assent, "no, that changes nothing": question.Assent, "no, lets wait for the deploy": question.Assent,
		"is web back up?": question.Health, "what is wrong with prices in shop?": question.Diagnosis, "please show events of the failing pods": question.Events,
		"drain in eu-west the node w1": question.Request, "no readiness probe failures, but web is slow": question.Diagnosis,
		"no requests reach catalog in shop": question.Diagnosis, "which pods have no requests?": question.NoLimits,
		"no it is still broken": question.Diagnosis, "no, they are still crashing": question.Diagnosis, "no, i still get 503s": question.Diagnosis,
		"traffic does not get into the web pod": question.Diagnosis, "my new config does not get into the pods": question.Diagnosis, "let me get into the db pod": question.Manual, "get into pod db": question.Manual,
		"what changed in pay today?": question.RecentChanges, "which images run in pay": question.Images, "what is running in cost?": question.Overview, "what do we pay for shop?": question.Prices,
		"drain can not get work in queues": question.Diagnosis, "restart is not wanted": question.Held, "restart is not working": question.Diagnosis,
		"restart failed": question.Diagnosis, "restart loop on api": question.Diagnosis,
	} {
		if got := question.Parse(sentence, inCluster).Intent; got != want {
			t.Errorf("%q is %s; want %s", sentence, got.String(), want.String())
		}
	}
}

// TestNaiveOthers: words for certificates and health also have other meanings.
func TestNaiveOthers(t *testing.T) {
	t.Parallel()
	for sentence, not := range map[string]question.Intent{
		"which pods mount the certs secret": question.Certificates, "show the logs of certs": question.Certificates, "any errors in the logs since the cert rotation?": question.Certificates,
		"how much memory does cert-manager use": question.Certificates, "how many pods run in certs": question.Certificates, "which keys does the cert secret have": question.Certificates,
		"sounds good": question.Health, "very good": question.Health, "thats fine": question.Health, "that's fine": question.Health,
	} {
		if got := question.Parse(sentence, inCluster).Intent; got == not {
			t.Errorf("%q is %s; want anything else", sentence, got.String())
		}
	}
}

// TestOrdinaryWordsAreNoNames: a verb after "pods" and the predicate of a subject are no names whose absence is worth
// an answer.
func TestOrdinaryWordsAreNoNames(t *testing.T) {
	t.Parallel()
	for sentence, word := range map[string]string{
		"my web pods hate me in shop": "hate", "pods hate me": "hate", "the web pods act weird": "act", "everything is red": "red", "the web thing in shop is acting up": "acting",
		"what is eating my cluster": "eating",
	} {
		a := question.Parse(sentence, inCluster)
		if slices.ContainsFunc(a.Mentions, func(m question.Mention) bool { return m.Name == word && (m.Sure || m.Kind != "") }) {
			t.Errorf("%q takes %q for a name: %+v; want none that is sure or of a kind", sentence, word, a.Mentions)
		}
	}
	for sentence, want := range map[string]question.Mention{
		"my web pods hate me in shop": {Kind: "pod", Name: "web"}, "why is shipping slow?": {Name: "shipping"}, "why does pod red fail": {Kind: "pod", Name: "red"}, "is red ok?": {Name: "red"},
	} {
		a := question.Parse(sentence, inCluster)
		if !slices.ContainsFunc(a.Mentions, func(m question.Mention) bool { return m.Name == want.Name && m.Kind == want.Kind && m.Sure }) {
			t.Errorf("%q names %+v; want %+v, for sure", sentence, a.Mentions, want)
		}
	}
}

// TestDescribedTargets: an object may be described instead of named, if the change can be undone.
func TestDescribedTargets(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]operation.Verb{
		"restart the thing that keeps crashing in shop": operation.Restart, "restart the deployment that is crash looping": operation.Restart, "please restart whatever is crashing in shop": operation.Restart,
		"restart crashing pods in payments": operation.Restart, "restart the broken app": operation.Restart, "roll back the deployment that keeps dying": operation.Undo, "roll back whatever is crashing in shop": operation.Undo,
	} {
		a := question.Parse(sentence, inCluster)
		if a.Intent != question.Request || len(a.Changes) != 1 || a.Changes[0].Verb != want || !a.Changes[0].Described || len(a.Changes[0].Mentions) > 0 {
			t.Errorf("%q is %s with %+v; want a request to %s what is described", sentence, a.Intent.String(), a.Changes, want)
		}
	}
	for _, sentence := range []string{
		"delete the thing that keeps crashing in shop", "restart failed", "restart keeps failing", "undo failed for the deployment", "do not restart the thing that keeps crashing",
		"restart the thing that keeps crashing if it is safe", "the restart of the crashing pod failed", "should i restart the crashing pod?",
	} {
		if a := question.Parse(sentence, inCluster); a.Intent == question.Request {
			t.Errorf("%q is a request with %+v; want none", sentence, a.Changes)
		}
	}
}

// TestWhatIsLeftOut: words after "not in", "except" etc. may be namespaces that a question excludes.
func TestWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words, rest string
		names       []string
	}{
		{"pods that are not in shop and not ready", "pods and not ready", []string{"shop"}},
		{"everything except shop pls whats broken", "everything pls whats broken", []string{"shop"}},
		{"anything wrong outside of shop", "anything wrong", []string{"shop"}},
		{"list deployments not in kube-system", "list deployments", []string{"kube-system"}},
		{"unhealthy pods except in payments and shop", "unhealthy pods", []string{"payments", "shop"}},
		{"list all pods but the ones in payments", "list all pods", []string{"payments"}},
		{"all services except those that are in shop", "all services", []string{"shop"}},
		{"pods without the ones from media", "pods", []string{"media"}},
		{"does web run without media", "does web run without media", nil},
		{"is everything but media ok", "is everything ok", []string{"media"}},
		{"what is wrong in shop", "what is wrong in shop", nil},
		{"is all ok except for shop payments and the media please", "is all ok please", []string{"shop", "payments", "media"}},
		{"apps that are not in sync", "apps that are not in sync", nil},
	} {
		if rest, names := question.SplitExclusion(c.words, func(word string) bool {
			return slices.Contains([]string{"shop", "payments", "media", "kube-system"}, word)
		}); rest != c.rest || !slices.Equal(names, c.names) {
			t.Errorf("%q is %q without %q; want %q without %q", c.words, rest, names, c.rest, c.names)
		}
	}
}

// TestInsteadOfAChange: a change that is denied first is ignored; the question after it counts.
func TestInsteadOfAChange(t *testing.T) {
	t.Parallel()
	if got := question.Parse("dont restart anything, just tell me why web is stuck", inCluster); got.Intent != question.Diagnosis || len(got.Mentions) != 1 || got.Mentions[0].Name != "web" {
		t.Errorf("%+v; want a diagnosis of web", got)
	}
}

// TestPastedObjects: a pasted log line or event is a complaint about what it names, and never a request.
func TestPastedObjects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]question.Ask{
		`{"level":"error","msg":"upstream timeout","upstream":"api:80","ns":"crm","status":503}`:                                                                   {Namespace: "crm"},
		`{"kind":"Event","involvedObject":{"kind":"ReplicaSet","name":"worker-1","namespace":"media"},"reason":"FailedCreate","message":"exceeded quota: team-a"}`: {Namespace: "media"},
		`{"msg":"delete deployment web in shop now","namespace":"shop"}`:                                                                                           {Namespace: "shop"},
	} {
		got := question.Parse(text, inCluster)
		if got.Intent != question.Diagnosis || got.Namespace != want.Namespace || len(got.Changes) != 0 || slices.ContainsFunc(got.Mentions, func(m question.Mention) bool { return m.Name == "level" || m.Name == "ns" }) {
			t.Errorf("%s is %s in %q of %v; want a diagnosis in %q", text, got.Intent.String(), got.Namespace, got.Mentions, want.Namespace)
		}
	}
}

// TestHastyLines: kubectl by its alias, or misspelt, is still a line.
func TestHastyLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"k get nodes -o wide": "kubectl get nodes -o wide", "kubctl describe deploy app -n crm": "kubectl describe deploy app -n crm"} {
		if got := question.Parse(text, inCluster); got.Intent != question.Line || got.Line != want {
			t.Errorf("%q is %s, %q; want the line %q", text, got.Intent.String(), got.Line, want)
		}
	}
	if got := question.Parse("who can read secrets in payments", inCluster); got.Right != (question.Right{Verb: "get", Kind: "secret"}) || len(got.Mentions) != 0 {
		t.Errorf("%+v; want the right to get secrets and no object", got)
	}
}
