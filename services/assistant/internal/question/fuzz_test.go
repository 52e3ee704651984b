package question_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// FuzzParse checks that no message breaks the parser, that only requests and advice have changes, that every name it
// finds is valid, and that a denial in front cancels a request.
func FuzzParse(f *testing.F) {
	for _, list := range sentences {
		for line := range strings.Lines(strings.TrimSpace(list)) {
			f.Add(strings.TrimSpace(line))
		}
	}
	f.Add("fix `a b` \"c'd’s …\x00 --namespace= -n ns/ /x 1e9 0x0 ```\nkubectl\n```")
	f.Add("restart İİİ's pods \xe5\x9et's K's")
	f.Fuzz(func(t *testing.T, message string) {
		a := question.Parse(message, inCluster)
		if len(a.Changes) > 0 && a.Intent != question.Request && a.Intent != question.Advice {
			t.Errorf("%q: %s has changes; want ((len(a.Changes) <= 0 || a.Intent == question.Request) || a.Intent == question.Advice)", message, a.Intent.String())
		}
		if a.Intent == question.Request && len(a.Changes) == 0 {
			t.Errorf("%q: a request without a change; want (a.Intent != question.Request || len(a.Changes) != 0)", message)
		}
		names := a.Mentions
		for _, c := range a.Changes {
			names = append(names, c.Mentions...)
			if c.Namespace != "" && !operation.ValidName(c.Namespace) {
				t.Errorf(`%q: namespace %q; want (c.Namespace == "" || operation.ValidName(c.Namespace))`, message, c.Namespace)
			}
		}
		for _, m := range names {
			if !operation.ValidName(m.Name) {
				t.Errorf("%q: name %q; want operation.ValidName(m.Name)", message, m.Name)
			}
		}
		if a.Namespace != "" && !operation.ValidName(a.Namespace) {
			t.Errorf(`%q: namespace %q; want (a.Namespace == "" || operation.ValidName(a.Namespace))`, message, a.Namespace)
		}
		if a.Intent == question.Request {
			for _, before := range []string{"don't ", "should I ", "what happens if I ", "yes, "} {
				if b := question.Parse(before+message, inCluster); b.Intent == question.Request {
					t.Errorf("%q is a request; want b.Intent != question.Request", before+message)
				}
			}
		}
	})
}
