package question_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// TestWordsInNames: words inside a name do not affect what is asked.
func TestWordsInNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		sentence, want string
		symptoms       int
		states         []question.PodState
	}{
		{"what is wrong in kafka-logs?", "diagnosis", 0, nil},
		{"what is off in team-quota-a, why?", "diagnosis", 0, nil},
		{"why does job-runner-hpa in a-scale-b misbehave?", "diagnosis", 0, nil},
		{"is secret-store in vault-a broken?", "diagnosis", 0, nil},
		{"how many pods in not-ready-yet run?", "number", 0, nil},
		{"how many pods of crash-reporter are ready?", "number", 0, []question.PodState{question.IsReady}},
		{"how many pods in image-hub are pending?", "number", 0, []question.PodState{question.IsPending}},
		{"how many are stuck pending in image-hub?", "number", 0, []question.PodState{question.IsPending}},
		{"how many are bad in image-hub?", "number", 0, []question.PodState{question.NotReady}},
		{"public-site cannot be opened", "diagnosis", 0, nil},
		{"show the port-forward to restart-me", "manual", 0, nil},
		{"which pods run image cost-center?", "number", 0, nil},
	} {
		a := question.Parse(row.sentence, inCluster)
		if got := a.Intent.String(); got != row.want {
			t.Errorf("%q is %s, want %s", row.sentence, got, row.want)
		}
		if row.want == "diagnosis" && len(a.Symptoms) != row.symptoms {
			t.Errorf("%q has symptoms %v, want %d", row.sentence, a.Symptoms, row.symptoms)
		}
		if row.want == "number" && !slices.Equal(a.Count.States, row.states) {
			t.Errorf("%q counts states %q, want %q", row.sentence, a.Count.States, row.states)
		}
	}
	if a := question.Parse("how many pods have label cost-center in shop?", inCluster); !slices.Equal(a.Count.Labels, []string{"cost-center"}) {
		t.Errorf("labels are %q, want cost-center", a.Count.Labels)
	}
}

// TestComplaints: a statement that something does not work gets its cause, not a table of what it names; a question
// about facts gets the table.
func TestComplaints(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]string{
		"web cannot find its secret":                              "diagnosis",
		"billing fails since the quota was lowered":               "diagnosis",
		"the public pages of shop are down":                       "diagnosis",
		"mailer does not get its credentials, show why":           "diagnosis",
		"the logs of web are full of errors - is it broken?":      "diagnosis",
		"kubectl get pods in shop shows that web is not ready":    "diagnosis",
		"kubectl rollout status never ends for web in shop":       "diagnosis",
		"kubectl get pods -n shop":                                "line",
		"kubectl get pods in shop":                                "line",
		"kubectl delete pods that are in shop; rm -rf /":          "line",
		"which keys are in configmap web-settings?":               "keys",
		"what does the configmap web-settings contain?":           "keys",
		"list the keys of secret web-tls in shop":                 "keys",
		"which workloads mount pvc web-data?":                     "users",
		"which deployments run as serviceaccount robot?":          "users",
		"who uses web-settings in shop?":                          "users",
		"show all secrets in shop":                                "secrets",
		"which services are public?":                              "external",
		"restart web in shop":                                     "request",
		"dosent web in shop work?":                                "diagnosis",
		"wich pods arent ready in shop?":                          "unhealthy_pods",
		"web in shop hasnt started, and there werent any changes": "diagnosis",
	} {
		if got := question.Parse(sentence, inCluster).Intent.String(); got != want {
			t.Errorf("%q is %s, want %s", sentence, got, want)
		}
	}
}

// TestMistypedWords: typing errors swap, drop and double letters; they do not make another word.
func TestMistypedWords(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"mnay": "many", "hvae": "have", "brokne": "broken", "wrnog": "wrong", "deploymnet": "deployment", "configmpa": "configmap", "sevrice": "service", "namepsace": "namespace",
		"unhealhty": "unhealthy", "brokken": "broken", "crahs": "crash", "batch": "", "read": "", "polls": "", "ways": "", "xyz": "",
	} {
		if got := question.NearestWord(typed); got != want && (want != "" || got != "") {
			t.Errorf("%q is taken for %q, want %q", typed, got, want)
		}
	}
	for word := range strings.FieldsSeq("customers complain pages website videos stutter stream stay unsettled") {
		if got := question.NearestWord(word); got != "" {
			t.Errorf("%q is taken for %q; want none", word, got)
		}
	}
}

// TestTimes: a time that is not read is reported, not dropped.
func TestTimes(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]string{
		"what is wrong in shop since 10:30?": "since 10:30", "errors in shop after midnight": "after midnight", "what is wrong in shop in the last hour?": "", "why is web down since monday?": "since monday",
		"why does web listen at 8080?": "",
	} {
		if got := question.Parse(sentence, inCluster).UnreadTime; got != want {
			t.Errorf("%q leaves the time %q unread, want %q", sentence, got, want)
		}
	}
}

func TestHeadingsOfAlerts(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		"partial service unreachability": true, "service quality degradation": true, "service availability disruption": true, "high error rate": false,
		"what causes the disruption": false, "show the configuration of api": false, "degradation": false, "checkout connection failure": true,
	} {
		if got := question.IsTitle(words); got != want {
			t.Errorf("IsTitle(%q) is %t, want %t", words, got, want)
		}
	}
	for word, want := range map[string]bool{"partial": true, "quality": true, "unreachability": true, "significantly": true, "checkout": false, "api": false, "portal": false, "feed": false} {
		if got := question.IsTitleWord(word); got != want {
			t.Errorf("IsTitleWord(%q) is %t, want %t", word, got, want)
		}
	}
}
