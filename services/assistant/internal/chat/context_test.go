package chat_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
)

func TestCutContext(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:eks:eu-central-1:123456789012:cluster/prod"
	for text, want := range map[string]struct {
		context chat.Context
		rest    string
	}{
		"why?":                           {chat.Context{}, "why?"},
		"  why?\n":                       {chat.Context{}, "why?"},
		"[context: namespace=shop] why?": {chat.Context{Namespace: "shop"}, "why?"},
		"[context: namespace=shop]why?":  {chat.Context{Namespace: "shop"}, "why?"},
		"[context:namespace=shop]\n\nwhy [context: namespace=b]?":      {chat.Context{Namespace: "shop"}, "why [context: namespace=b]?"},
		"[Context: Namespace=shop ] why?":                              {chat.Context{Namespace: "shop"}, "why?"},
		"[context: namespace=a] [context: kube_context=" + arn + "] x": {chat.Context{Namespace: "a", KubeContext: arn}, "x"},
		"[context: namespace=a, kube_context=admin@prod] x":            {chat.Context{Namespace: "a", KubeContext: "admin@prod"}, "x"},
		"[context: namespace=a][context: namespace=b] x":               {chat.Context{Namespace: "b"}, "x"},
		"[context: namespace=] x":                                      {chat.Context{}, "x"},
		"[context: region=eu] x":                                       {chat.Context{}, "x"},
		"[context: namespace=Shop_1] x":                                {chat.Context{Unusable: []string{"namespace"}}, "x"},
		"[context: namespace=a=b] x":                                   {chat.Context{Unusable: []string{"namespace"}}, "x"},
		"[context: kube_context=" + strings.Repeat("x", 513) + "] x":   {chat.Context{Unusable: []string{"kube_context"}}, "x"},
		"[context: namespace=a]":                                       {chat.Context{Namespace: "a"}, ""},
		// No such groups: a query that looks like one is the user's own.
		"[context: ] x":                  {chat.Context{}, "[context: ] x"},
		"[context: shop] x":              {chat.Context{}, "[context: shop] x"},
		"[context: =shop] x":             {chat.Context{}, "[context: =shop] x"},
		"[context: namespace=a and b] x": {chat.Context{}, "[context: namespace=a and b] x"},
		"[context: namespace=a\n] x":     {chat.Context{}, "[context: namespace=a\n] x"},
		"[context: namespace=a x":        {chat.Context{}, "[context: namespace=a x"},
		"[ctx: namespace=a] x":           {chat.Context{}, "[ctx: namespace=a] x"},
		"x [context: namespace=a]":       {chat.Context{}, "x [context: namespace=a]"},
	} {
		context, rest := chat.CutContext(text)
		if !reflect.DeepEqual(context, want.context) || rest != want.rest {
			t.Errorf("%.80q: %+v, %q; want reflect.DeepEqual(context, want.context) && rest == want.rest", text, context, rest)
		}
	}
}

// FuzzCutContext checks that the rest is a suffix of the text, that a second cut removes nothing, and that the
// namespace is valid.
func FuzzCutContext(f *testing.F) {
	f.Add("[context: namespace=shop, kube_context=x] [context: a=b] why?")
	f.Fuzz(func(t *testing.T, text string) {
		c, rest := chat.CutContext(text)
		if !strings.HasSuffix(strings.TrimSpace(text), rest) {
			t.Fatalf("%q is no end of %q; want strings.HasSuffix(strings.TrimSpace(text), rest)", rest, text)
		}
		if _, again := chat.CutContext(rest); again != rest {
			t.Fatalf("%q, cut again %q; want again == %v", rest, again, rest)
		}
		if c.Namespace != "" && len(validation.IsDNS1123Label(c.Namespace)) > 0 {
			t.Fatalf(`namespace %q; want (c.Namespace == "" || len(validation.IsDNS1123Label(c.Namespace)) <= 0)`, c.Namespace)
		}
		if len(c.KubeContext) > 512 {
			t.Fatalf("context of %d bytes; want len(c.KubeContext) <= 512", len(c.KubeContext))
		}
	})
}
