package question_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// A wish is read as the request it stands for.
func TestWishes(t *testing.T) {
	t.Parallel()
	named := func(name string) bool { return name == "web" || name == "api" }
	for wish, request := range map[string]string{
		"I want web restarted":                     "restart web",
		"we need web to be restarted":              "restart web",
		"web should be restarted":                  "restart web",
		"web needs to be scaled to 3":              "scale web to 3",
		"web should have 3 replicas":               "scale web to 3",
		"web needs 3 pods":                         "scale web to 3",
		"3 replicas for web please":                "scale web to 3 please",
		"web needs a restart":                      "restart web",
		"I would like the deployment web gone":     "delete the deployment web",
		"get rid of deployment web":                "delete deployment web",
		"the image of web should be set to web:2":  "set the image of web to web:2",
		"web and api should be restarted":          "restart web and api",
		"give web a bit more memory, say 500Mi":    "give web 500Mi memory",
		"roll web back to the version from before": "roll back web",
		"give web one more copy":                   "add 1 replica to web",
		"another pod for web":                      "add 1 replica to web",
		"give web 2 more pods":                     "add 2 replicas to web",
		"web to 5":                                 "scale web to 5",
		"put web back to the version before":       "roll back web",
		"let web have 512Mi of memory":             "give web 512Mi of memory",
		"web should only get 500m cpu":             "give web 500m cpu",
		"turn web off":                             "stop web",
		"take the label tier off web":              "label web tier-",
		"move everything off api":                  "drain api",
		"stop scheduling on api":                   "cordon api",
		"give web 512Mi instead of 1Gi memory":     "give web 512Mi",
	} {
		got, want := question.Parse(wish, named), question.Parse(request, named)
		if got.Intent != question.Request || len(got.Changes) != len(want.Changes) {
			t.Errorf("%q: %v %+v; want %v %+v", wish, got.Intent, got.Changes, want.Intent, want.Changes)
			continue
		}
		for i, c := range got.Changes {
			w := want.Changes[i]
			if c.Verb != w.Verb || len(c.Mentions) != len(w.Mentions) || c.Mentions[0].Name != w.Mentions[0].Name || (c.Count == nil) != (w.Count == nil) || c.Count != nil && *c.Count != *w.Count || c.Image != w.Image {
				t.Errorf("%q: %+v; want %+v", wish, c, w)
			}
		}
	}
	for _, statement := range []string{
		"web should have 3 replicas but has 1", "web must be restarted every day", "should web be restarted?", "web should not be restarted",
		"web needs 3 seconds to start", "I want to know why web restarted", "web has 3 pods", "web has to wait", "they said web was restarted", "they want web restarted",
		"web has been restarted", "web was deleted", "web should be running", "I need web", "web was restarted by me", "a log says: web should be restarted", "the manual says web needs a restart", "web should get traffic",
	} {
		if a := question.Parse(statement, named); a.Intent == question.Request {
			t.Errorf("%q is a request for %+v", statement, a.Changes)
		}
	}
}

// TestOrders: what seems an order and is not understood gets no answer about something else.
func TestOrders(t *testing.T) {
	t.Parallel()
	named := func(name string) bool { return name == "web" || name == "api" }
	for _, order := range []string{"halve web", "double the replicas of web", "kick the web pod", "let web breathe a bit: 512Mi", "put the pod of web on worker-2", "restart everything but web", "set the log level of web to debug", "delete the broken pod of web"} {
		if a := question.Parse(order, named); a.Intent != question.Order {
			t.Errorf("%q is %v; want an order", order, a.Intent)
		}
	}
	for _, other := range []string{"web is slow", "web crashes", "customers complain about web", "people get kicked from web", "check web", "is web ok", "look at web", "the web is down", "debug web", "nobody can reach web", "web", "memory of web", "fix the broken pod of web", "empty services in shop"} {
		if a := question.Parse(other, named); a.Intent == question.Order {
			t.Errorf("%q is an order", other)
		}
	}
}
