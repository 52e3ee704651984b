package investigate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// TestNaiveQuestions: hasty questions to the sample cluster get true answers.
func TestNaiveQuestions(t *testing.T) {
	t.Parallel()
	const refused, allClear, absent = "not something I can answer", "Nothing was found wrong", "There is no"
	b := liveTools(t)
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"my web pods hate me in shop", []string{"Deployment `web` in namespace `shop`: image pull"}, []string{absent, "`hate`"}},
		{"shop is slow af", []string{"crash loop"}, []string{"`af`"}},
		{"nothing works", []string{"crash loop", "out of memory"}, nil},
		{"everything is red", []string{"crash loop"}, []string{absent}},
		{"who ate all the memory", []string{"uses the most memory"}, []string{refused}},
		{"whats eating cpu", []string{"uses the most CPU"}, []string{absent}},
		{"are we good?", []string{"workloads are ready", "crash loop"}, []string{refused, allClear}},
		{"is prod ok", []string{"10 of 22 workloads are ready"}, []string{allClear}},
		{"the web thing in shop is acting up", []string{"image pull"}, []string{absent}},
		{"sth is wrong w/ payments", []string{"out of memory"}, []string{"`sth`"}},
		{"payments borked", []string{"out of memory"}, []string{allClear}},
		{"shop ded", []string{"crash loop"}, []string{"`ded`"}},
		{"certs ok?", []string{"no TLS Secrets in the cluster"}, []string{refused, "crash loop"}},
		{"is it dns", []string{"wrong"}, []string{refused, allClear}},
		{"what should i do", []string{"crash loop"}, []string{refused, allClear}},
		{"too many open files?", nil, []string{refused, allClear}},
		{"gateway down", []string{"Deployment `gateway` in namespace `payments`: missing key"}, nil},
		{"502s from gateway", []string{"missing key"}, []string{allClear}},
		{"cant reach catalog", []string{"`version=v2`"}, []string{allClear}},
		{"team-a cant scale", []string{"quota"}, []string{allClear}},
		{"cron didnt fire", []string{"`nightly-report`"}, []string{allClear}},
		{"pvc stuck", []string{"`fast-ssd`"}, []string{allClear}},
		{"pods wont schedule", []string{"more cpu than any"}, []string{allClear}},
		{"why 503 on checkout", []string{"has 2 of 2 pods ready", "Something else is wrong"}, []string{allClear}},
		{"ledger oom again?", []string{"out of memory"}, nil},
		{"any errors in the logs since the cert rotation?", nil, []string{"`logs`", refused}},
		{"which pods mount the certs secret", []string{"Name the secret", "`gateway-db`"}, []string{"crash loop", refused}},
		{"are there pods without a readiness probe?", []string{"without a readiness probe"}, []string{"CrashLoopBackOff", "liveness"}},
		{"which deployments have no liveness probe?", []string{"without a liveness probe"}, []string{"readiness"}},
		{"list pods that have a sidecar", []string{"I cannot filter by `that have a sidecar`"}, nil},
		{"show me everything that uses gateway-db", []string{"deployment `gateway`"}, []string{"redacted"}},
		{"whats the biggest pod", []string{"uses the most memory"}, nil},
		{"how do i get into the db pod", []string{"kubectl exec"}, nil},
		{"is the db in shop backed up?", []string{"backed up"}, []string{allClear}},
		{"why do i see CreateContainerConfigError", []string{"2 things are wrong", "settlements-config"}, nil},
		{"how many secrets are there in payments?", nil, []string{"is meant", refused}},
		{"how many pods use secrets?", nil, []string{"is meant", refused}},
		{"which pods use the gateway-db secret?", []string{"1 pod"}, []string{"is meant"}},
		{"how much money does shop cost", []string{"has no prices", "uses the most memory"}, []string{"crash loop", refused}},
		{"reports didnt run last night", []string{"nightly-report"}, []string{allClear}},
	} {
		checkAnswer(t, row.query, askOnce(t, b, "", row.query), row.must, slices.Concat(row.not, []string{"I did not understand"}))
	}
}

// TestDescribedRestart: the object of a restart may be described; if several fit, the answer asks which, and it names a
// cause that a restart does not end.
func TestDescribedRestart(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for query, line := range map[string]string{
		"restart the thing that keeps crashing in shop": "kubectl rollout restart deployment/api -n shop",
		"restart the pods that keep dying in payments":  "kubectl rollout restart deployment/ledger -n payments",
		"roll back whatever is crashing in shop":        "kubectl rollout undo deployment/api -n shop --to-revision=1",
	} {
		if a := askOnce(t, b, "", query); !slices.Equal(a.write, []string{line}) {
			t.Errorf("%q proposes %v; want %s:\n%s", query, a.write, line, a.text)
		}
	}
	for query, say := range map[string]string{
		"restart the deployment that is crash looping": "Name one of these: deployment `thumbnails`",
		"restart whatever is crashing in crm":          "fits the description",
		"delete the thing that keeps crashing in shop": "crash loop",
	} {
		a := askOnce(t, b, "", query)
		if len(a.write) > 0 {
			t.Errorf("%q proposes %v; want nothing", query, a.write)
		}
		checkAnswer(t, query, a, []string{say}, nil)
	}
	const query = "restart the thing that keeps crashing in shop"
	checkAnswer(t, query, askOnce(t, b, "", query), []string{"A restart alone will not fix it", "`DATABASE_URL` is set to nothing"}, nil)
}

// TestCertificates: a question about all certificates shows each with its hosts and dates, and judges unused ones as
// well.
func TestCertificates(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "a16_ingress_port")
	s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
	add := func(name string, days int, fault redact.CertificateFault) {
		c := &redact.Certificate{Names: []string{name + ".example"}, NotBefore: s.Taken.AddDate(0, -1, 0), NotAfter: s.Taken.AddDate(0, 0, days), Fault: fault}
		s.Secrets = append(s.Secrets, engine.SecretKeys{Namespace: "store", Name: name, Keys: []string{"tls.crt", "tls.key"}, Certificate: c})
	}
	add("good", 10, redact.CertificateSound)
	add("old", -2, redact.CertificateSound)
	add("swapped", 20, redact.KeyOfAnother)
	for _, query := range []string{"certs ok?", "are my certificates ok?", "check the certs in store", "when do my certs expire?"} {
		checkAnswer(t, query, askOnce(t, toolsOn(s), "", query), []string{
			"| `store` | `good` | `good.example` | " + s.Taken.AddDate(0, 0, 10).UTC().Format(time.RFC3339) + " | valid, 10 days left |", "| expired |", "| key of another certificate |",
			"Its certificate expired on", "does not belong to its `tls.crt`",
		}, []string{"not something I can answer"})
	}
}
