package investigate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/investigate"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestQuestions asks the seeded cluster every question of the contract.
func TestQuestions(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, row := range []struct {
		scope, query string
		must, not    []string
	}{
		{"", "give me an overview", []string{"4 of 4 nodes are ready", "| `shop` | 6 |"}, nil},
		{"shop", "is everything ok?", []string{"deployment `api`", "crash loop", "image pull"}, []string{"payments"}},
		{"", "which pods are not ready?", []string{"CrashLoopBackOff", "ImagePullBackOff", "Init:0/1"}, nil},
		{"shop", "any warnings?", []string{"Warnings in namespace `shop`", "ErrImagePull"}, []string{"payments"}},
		{"", "which pods restart the most?", []string{"OOMKilled", "exit code 137"}, nil},
		{"payments", "memory usage", []string{"Memory limit", "checkout-"}, nil},
		{"shop", "node capacity", []string{"worker-1", "control-1", "/ 4 ("}, nil},
		{"", "show quotas", []string{"| `team-a` | `team-a` | `pods` | 2 | 2 | 100 % |"}, nil},
		{"shop", "which containers have no limits?", []string{"CPU limit"}, nil},
		{"shop", "events of api", []string{"of `api` in namespace `shop`", "BackOff"}, []string{"web-"}},
		{"", "services without endpoints", []string{"`catalog`", "`app=catalog,version=v2`"}, []string{"`cart`"}},
		{"", "what is exposed to the internet?", []string{"can be reached from outside"}, nil},
		{"shop", "error logs of api", []string{"required environment variable DATABASE_URL is empty", "From the log of pod"}, nil},
		{"shop", "what is the error rate of api?", []string{"PROMETHEUS_URL"}, nil},
		{"shop", "latency of cart", []string{"PROMETHEUS_URL"}, nil},
		{"shop", "what changed?", []string{"revision `2`", "shop/web:2.4.0"}, nil},
		{"", "which images are running?", []string{"registry.example/shop/api:1.9.0"}, nil},
		{"", "idle workloads", []string{"deployment `crm-db` | scaled to 0", "cronjob `nightly-report` | suspended"}, nil},
		{"payments", "are there secrets in env?", []string{"`DATABASE_URL`", "Secret `gateway-db`"}, []string{"postgres://"}},
		{"shop", "what happens if I drain worker-1?", []string{"Draining node `worker-1`", "daemon set", "Nothing was drained"}, nil},
		{"shop", "who can delete pods?", []string{"delete pods"}, nil},
		{"", "show all secrets as yaml", []string{"`gateway-db`", "`DB_URL`", "never shown"}, []string{"postgres://", "example@"}},
		{"", "kubectl get secrets -A -o yaml", []string{"gateway-db"}, []string{"postgres://", "example@"}},
		{"shop", "list pods", []string{"CrashLoopBackOff"}, nil},
		{"shop", "how many pods are there", []string{"There are 12 pods in namespace `shop`."}, nil},
		{"shop", "describe web", []string{"Deployment `web`", "2.4.0", "image pull"}, nil},
		{"shop", "logs of api", []string{"FATAL configuration"}, nil},
		{"shop", "revisions of web", []string{"2.3.1"}, nil},
		{"shop", "why does frobnicator crash?", []string{"no object with the name `frobnicator`", "Here are the findings in namespace `shop` instead", "DATABASE_URL"}, nil},
		{"shop", "why does catlog get no traffic?", []string{"`catlog`", "I assumed you meant", "`catalog`"}, nil},
		{"shop", "why is api-5d97d6fd7c-zzzzz gone?", []string{"The closest is", "`api`"}, nil},
		{"", "what is wrong in shopp?", []string{"no namespace `shopp`", "`shop`"}, nil},
		{"media", "what is wrong in shop?", []string{"3 things are wrong", "**1. Deployment `api`"}, []string{"**4.", "media"}},
		{"media", "why does cart crash?", []string{"Deployment `cart`", "Nothing was found wrong with"}, nil},
		{"", "what is wrong in api?", []string{"Deployment `api`", "DATABASE_URL"}, nil},
		{"payments", "tell me a joke", []string{"Ask, for example", "did not understand `joke`"}, []string{"workloads are ready"}},
		{"shop", "should I scale cart to 3?", []string{"Nothing was changed", "--replicas=3"}, nil},
		{"shop", "what happens if I delete the cart deployment?", []string{"kubectl delete deployment/cart", "a deleted workload does not come back"}, nil},
		{"shop", "hello", []string{"Ask, for example"}, nil},
		{"shop", "yes but later", []string{"approves nothing"}, nil},
		{"shop", "don't restart it", []string{"nothing is proposed"}, nil},
		{"shop", "kubectl delete pods; rm -rf /", []string{"refused"}, nil},
	} {
		a := askOnce(t, b, row.scope, row.query)
		checkAnswer(t, row.query, a, row.must, row.not)
		if len(a.write) > 0 {
			t.Errorf("%q wants to run %v", row.query, a.write)
		}
	}
}

// TestPlainRequests makes the requests B1 to B5 in namespaces with one trouble and no history.
func TestPlainRequests(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, query, want string }{
		{"a4_absent_tag", "roll it back", "kubectl rollout undo deployment/web -n shop --to-revision=1"},
		{"a4_absent_tag", "scale to 3", "kubectl scale deployment/web -n shop --replicas=3"},
		{"a15_selector", "fix the service", `kubectl patch service/catalog -n shop -p '{"spec":{"selector":{"version":"v1"}}}'`},
		{"b4_suspended", "resume it", `kubectl patch cronjob/nightly-report -n reports --type=merge -p '{"spec":{"suspend":false}}'`},
		{"a3_out_of_memory", "raise to 256Mi", "--limits=memory=256Mi"},
		{"healthy", "fix it", ""},
		{"a1_empty_variable", "fix it", ""},
	} {
		s := readFixture(t, unsetLog, row.file)
		for _, scope := range []string{"", namespaceOf(s)} {
			a := askOnce(t, toolsOn(s), scope, row.query)
			if got := strings.Join(a.write, "; "); got != row.want && (row.want == "" || !strings.Contains(got, row.want)) {
				t.Errorf("%s: %q wants to run %q, want %q:\n%s", row.file, row.query, got, row.want, a.text)
			}
		}
	}
}

// TestTables compares the exact bytes of tables from an unchanging cluster.
func TestTables(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"health": "is everything ok?", "unhealthy": "which pods are not ready?", "overview": "overview", "images": "which images are running?",
		"warnings": "show warnings", "capacity": "node capacity", "empty_services": "services without endpoints", "secrets": "show all secrets",
	} {
		b := toolsOn(readFixture(t, unsetLog, "a1_empty_variable", "a4_absent_tag", "a7_secret_key", "a9_asks_too_much", "a15_selector"))
		assistanttest.CheckGolden(t, name+".md", []byte(askOnce(t, b, "", query).text))
	}
}

// TestClusterAway: the error of an unreachable cluster is returned to the turn, and the engine says nothing.
func TestClusterAway(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	b := &tools{snapshot: func(context.Context, string) (*engine.Snapshot, error) { return nil, away }}
	for _, query := range []string{"what is wrong?", "scale api to 3", "overview"} {
		k := &sink{}
		out, err := investigate.New(investigate.Config{}).Investigate(t.Context(), turn.Turn{Query: query}, b, k)
		if !errors.Is(err, away) || len(out.Write) > 0 || k.text.Len() > 0 {
			t.Errorf("%q: %v, %v, %q; want errors.Is(err, away) && len(out.Write) <= 0 && k.text.Len() <= 0", query, err, out, k.text.String())
		}
	}
}

// The future is unknown; what happened in a period comes before what is wrong.
func TestQuestionsAboutOtherTimes(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, query := range []string{"what will break tomorrow", "will the ledger survive if I give it more memory"} {
		checkAnswer(t, query, askOnce(t, b, "", query), []string{"The future cannot be predicted"}, nil)
	}
	a := askOnce(t, b, "", "what happened in shop in the last 30 minutes")
	if strings.HasPrefix(a.text, "3 things") || !strings.Contains(a.text, "things are wrong") {
		t.Errorf("want the events before what is wrong, got\n%s", a.text)
	}
	checkAnswer(t, "now", askOnce(t, b, "", "what is wrong in shop?"), nil, []string{"What will happen"})
}
