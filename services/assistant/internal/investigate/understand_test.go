package investigate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestWordsOfPeople asks the seeded cluster as people do: misspelt, in other languages, about several places, and with
// ordinary words in place of names.
func TestWordsOfPeople(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"what is wrong in shop and payments?", []string{"**Namespace `shop`**", "Deployment `api`", "**Namespace `payments`**", "Deployment `ledger`"}, []string{allClear}},
		{"what is wrong in shop, payments and media?", []string{"**Namespace `media`**", "`transcoder`"}, []string{allClear}},
		{"what is wrong in shop, paymets and media?", []string{"no namespace `paymets`. I assumed you meant namespace `payments`", "That is a guess.", "Deployment `ledger`"}, []string{allClear}},
		{"what is wrong in shop and frobnicator?", []string{"`frobnicator`", "There is no"}, nil},
		{"any warnings in shop and media?", []string{"Warnings in namespace `shop`", "Warnings in namespace `media`"}, nil},
		{"what is wrong in shopp?", []string{"no namespace `shopp`. I assumed you meant namespace `shop`", "Deployment `api`"}, nil},
		{"wat is wrng in shop", []string{"`wrng` for `wrong`", "Deployment `api`"}, []string{"There is no object"}},
		{"why is depoyment catalog broken", []string{"`depoyment` for `deployment`", "version=v2"}, []string{allClear}},
		{"¿qué pasa en shop?", []string{"did not understand", "`pasa`", "what is wrong in"}, []string{"There are no workloads", "things are wrong"}},
		{"what is wrong in shop since 10:30 IST?", []string{"Deployment `api`"}, []string{"did not understand"}},
		{"what is wrong in shop since 10:30 EST?", []string{"Deployment `api`"}, []string{"did not understand"}},
		{"was ist in shop kaputt?", []string{"did not understand", "`kaputt`"}, []string{"There is no object", "things are wrong"}},
		{"что сломалось", []string{"did not understand", "`сломалось`"}, []string{"things are wrong"}},
		{"show me pods showing errors in shop", []string{"CrashLoopBackOff"}, []string{"There is no pod"}},
		{"how do I resolve the crash of api", []string{"DATABASE_URL"}, []string{"`resolve`"}},
		{"what is wrong with deployment accounting?", []string{"There is no deployment `accounting`"}, []string{allClear}},
		{"what is wrong with the reviews service?", []string{"There is no service `reviews`"}, []string{allClear}},
		{"what is wrong with planning?", []string{"There is no object", "`planning`"}, []string{allClear}},
		{"pods stuck in ContainerCreating", nil, []string{"no namespace"}},
		{"what is wrong with the stateful set warehouse?", []string{"Statefulset `warehouse`", "fast-ssd"}, []string{"`stateful`"}},
		{"why can web in shop not reach payments?", nil, []string{"**Namespace"}},
		{"any warnings? who can delete pods in shop?", []string{"Warnings in namespace `shop`", "delete pods"}, nil},
		{"which version of web is running?", []string{"shop/web:2.3.1` in 2 pods"}, nil},
		{"warnings in the last hour", []string{"in the last hour"}, []string{"no namespace"}},
		{"what changed in the last 2 minutes in kube-system?", []string{"Nothing was created, rolled out or scaled in namespace `kube-system` in the last 2 minutes"}, nil},
		{"who changed catalog in the last 2 minutes?", []string{"Other edits, such as of a selector or a value, are not visible here"}, nil},
		{"did anything restart overnight in shop", []string{"`api`"}, []string{"`overnight`"}},
		{"which pods restarted in the last 30 minutes?", []string{"in the last 30 minutes"}, nil},
	} {
		a := askOnce(t, b, "", row.query)
		checkAnswer(t, row.query, a, row.must, row.not)
		if len(a.write) > 0 {
			t.Errorf("%q wants to run %v", row.query, a.write)
		}
	}
}

// A guess never turns a message into a request.
func TestGuessesChangeNothing(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, query := range []string{"restat api in shop", "scal cart to 3", "delet pod api", "deleet deployment cart", "roll bak web", "scale crt in shop to 3"} {
		if a := askOnce(t, b, "", query); len(a.write) > 0 {
			t.Errorf("%q wants to run %v", query, a.write)
		}
	}
	// A change is never taken from earlier messages about something else.
	s := readFixture(t, unsetLog, "a1_empty_variable")
	for _, name := range []string{"webhook", "account"} {
		named := *s.Deployments[0].DeepCopy()
		named.Name = name
		s.Deployments = append(s.Deployments, named)
	}
	history := []chat.Message{{Role: chat.RoleUser, Text: "why does api crash?"}, {Role: chat.RoleAssistant, Text: "A variable is empty."}}
	for _, query := range []string{"restart webhook", "scale webhook to 3", "restart service account", "restart service account api", "restart config map", "scale the node to 3"} {
		a := runTurn(t, toolsOn(s), turn.Turn{Session: "s-1", Number: 2, Query: query, History: history, Who: event.Who{Principal: "ann", Role: guard.Admin}})
		if ran := strings.Join(a.write, "\n"); strings.Contains(ran, "/api") || strings.Contains(query, "webhook") != strings.Contains(ran, "/webhook") {
			t.Errorf("%q wants to run %q; want nothing on api, and of webhook only what names it", query, ran)
		}
	}
}

// The examples that an answer offers are understood when typed.
func TestExamplesWork(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, about := range []string{"hello", "tell me a joke"} {
		for line := range strings.Lines(askOnce(t, b, "", about).text) {
			example, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if !ok || strings.HasPrefix(example, "any kubectl line") {
				continue
			}
			example, _, _ = strings.Cut(example, ";")
			checkAnswer(t, example, askOnce(t, b, "", example), nil, []string{"did not understand", "not something I can answer", "There is no object", "left out"})
		}
	}
}

// A namespace may have an ordinary word as its name.
func TestNamespaceOfAnOrdinaryWord(t *testing.T) {
	t.Parallel()
	s := readFixture(t, unsetLog, "a1_empty_variable")
	s.Namespaces = append(s.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "policy"}})
	b := toolsOn(s)
	for _, query := range []string{"what is wrong in policy?", "what is wrong in namespace policy?"} {
		checkAnswer(t, query, askOnce(t, b, "", query), []string{"namespace `policy`"}, []string{"DATABASE_URL", "There is no"})
	}
}

// If there is more than one answer holds, the answer says so, and shows the rest on request.
func TestMore(t *testing.T) {
	t.Parallel()
	const many = engine.MostFindings + 5
	s := readFixture(t, "", "a15_selector")
	for i := range many - 1 {
		broken := *s.Services[0].DeepCopy()
		broken.Name = fmt.Sprintf("catalog-%02d", i)
		s.Services = append(s.Services, broken)
	}
	b := toolsOn(s)
	first := askOnce(t, b, "", "what is wrong?")
	checkAnswer(t, "what is wrong?", first, []string{fmt.Sprintf("%d things are wrong", many), "The other 5 are left out; say `more`"}, nil)
	history := []chat.Message{{Role: chat.RoleUser, Text: "what is wrong?"}, {Role: chat.RoleAssistant, Text: first.text}}
	ask := func(query string, history []chat.Message) answer {
		return runTurn(t, b, turn.Turn{Session: "s-1", Number: 2, Query: query, History: history, Who: event.Who{Principal: "ann", Role: guard.Admin}})
	}
	for _, query := range []string{"more", "where is the rest?", "show me the rest"} {
		checkAnswer(t, query, ask(query, history), []string{"5 more things are wrong", "**21.", "**25."}, []string{"**20.", "**26."})
	}
	again := append(slices.Clone(history), chat.Message{Role: chat.RoleUser, Text: "more"})
	checkAnswer(t, "more, twice", ask("more", again), []string{"That was all"}, nil)
}

// A name similar to the namespace in the question is that of another one.
func TestNameNearItsNamespace(t *testing.T) {
	t.Parallel()
	b := logsBy(gallery(t), func(string) string { return "ERROR pull failed: x509: certificate signed by unknown authority\n" })
	a := askOnce(t, b, "", "why does medla in media not sync?")
	checkAnswer(t, "medla in media", a, []string{"`medla`", "certificate signed by unknown authority"}, []string{"There is no namespace", "Nothing was found wrong"})
}

// A quota that shares its namespace's name is not meant by the bare name.
func TestNamespaceWithAQuotaOfItsName(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, query := range []string{"could you tell me why team-a people complain that nothing new starts", "what is wrong with team-a?"} {
		checkAnswer(t, query, askOnce(t, b, "", query), []string{"used up for `pods`"}, []string{"Nothing was found wrong"})
	}
	checkAnswer(t, "by kind", askOnce(t, b, "", "is quota team-a full?"), []string{"| `pods` | 2 | 2 |"}, nil)
}
