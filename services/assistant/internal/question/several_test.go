package question_test

import (
	"slices"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// TestSeveralQuestions: a message is split only where a question ends.
func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int{
		"any warnings? who can delete pods in shop?":                          2,
		"any warnings?? who can delete pods in shop?":                         2,
		"why does web fail at http://api/?id=3":                               0,
		"why does web fail at http://api/?id=3? who can delete pods in shop?": 2,
		"what is wrong with api?id=3&x=?":                                     0,
	} {
		parts, _ := question.Parse(message, inCluster).Questions()
		if got := len(parts); got != want {
			t.Errorf("%q has %d questions; want %d", message, got, want)
		}
	}
}

// TestClauses: each question of a message is answered, and a request beside one is proposed; a single question is left
// whole.
func TestClauses(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]question.Intent{
		"why is web failing and who can delete pods?":             {question.Diagnosis, question.WhoCan},
		"how many pods are there and are they all ready?":         {question.Number, question.Health},
		"when did web start and what version is it":               {question.Starts, question.Images},
		"what changed in the last hour and is anything broken":    {question.RecentChanges, question.Diagnosis},
		"is web ok and what does it need?":                        {question.Health, question.Dependencies},
		"list pods and services":                                  {question.List, question.List},
		"give me deployments, services and pods":                  {question.List, question.List, question.List},
		"show me the events and the restarts":                     {question.Events, question.Restarts},
		"restart web and tell me why it was failing":              {question.Request, question.Diagnosis},
		"what is wrong with web? restart it":                      {question.Diagnosis, question.Request},
		"any warnings? what is failing? who can delete pods? why": nil,
		"which pods are failing and why":                          nil,
		"web is slow and does not start":                          nil,
		"why is web slow and why does it restart?":                nil, // one diagnosis
		"why does web fail and restart all the time":              nil,
		"show pods and their nodes":                               nil,
		"scale web to 3 and restart api":                          nil, // one request of two changes
		"does web reach api and the internet?":                    nil,
		"do not restart web and tell me why it fails":             nil,
		"if web is down restart it and tell me why":               nil,
	} {
		all, _ := question.Parse(message, inCluster).Questions()
		var got []question.Intent
		for _, q := range all {
			got = append(got, q.Intent)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is read as %v; want %v", message, got, want)
		}
	}
}

// TestClausesShareASubject: a part that names nothing is about the subject of its neighbour.
func TestClausesShareASubject(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"when did web start and what version is it", "show events and logs of web", "what is wrong with web? restart it"} {
		all, _ := question.Parse(message, inCluster).Questions()
		for _, q := range all {
			if q.Leans || !slices.ContainsFunc(q.Mentions, func(m question.Mention) bool { return m.Name == "web" }) {
				t.Errorf("%q: the part %q is about %v; want web", message, q.Title(), q.Mentions)
			}
		}
		if len(all) != 2 {
			t.Errorf("%q has %d parts; want 2", message, len(all))
		}
	}
}

// TestRequestBesideAQuestionIsAWish: an approval given in advance does not cover it.
func TestRequestBesideAQuestionIsAWish(t *testing.T) {
	t.Parallel()
	all, _ := question.Parse("what is wrong with web? restart it", inCluster).Questions()
	if len(all) != 2 || !all[1].Wish || question.RequestsChange("what is wrong with web? restart it") {
		t.Errorf("the request beside a question is an order of its own: %+v", all)
	}
}

// TestKindsOfTwoWordsInRequests: two words are a kind only before a name.
func TestKindsOfTwoWordsInRequests(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]question.Mention{
		"restart the stateful set warehouse": {Kind: "statefulset", Name: "warehouse", Sure: true},
		"delete config map settings-v2":      {Kind: "configmap", Name: "settings-v2", Sure: true},
		"restart service account":            {Kind: "service", Name: "account", Sure: true},
		"restart webhook":                    {Name: "webhook", Sure: true},
	} {
		a := question.Parse(message, inCluster)
		if a.Intent != question.Request || len(a.Changes) != 1 || len(a.Changes[0].Mentions) != 1 || a.Changes[0].Mentions[0] != want {
			t.Errorf("%q is %+v; want one change of %+v", message, a, want)
		}
	}
}
