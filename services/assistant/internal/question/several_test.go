package question_test

import (
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
		if got := len(question.Parse(message, inCluster).Questions()); got != want {
			t.Errorf("%q has %d questions; want %d", message, got, want)
		}
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
