package kubectl_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// FuzzParse: for any input, Parse either refuses it with a sentence, or returns a valid operation that renders to an
// equivalent line and names no other identity.
func FuzzParse(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, v := range operation.Verbs() {
		for range 3 {
			f.Add(kubectl.Render(assistanttest.GenerateOperation(r, v)))
		}
	}
	f.Add("kubectl get pod x --as=admin")
	f.Add("kubectl get pod a;b")
	f.Add("kubectl delete pod x -- --dry-run")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := kubectl.Parse(line)
		if err != nil {
			var fault *operation.Fault
			if !errors.As(err, &fault) || fault.Sentence == "" || fault.Reason == "" {
				t.Fatalf(`refused without a fault: %v; want errors.As(err, &fault) && fault.Sentence != "" && fault.Reason != ""`, err)
			}
			if !reflect.DeepEqual(o, operation.Operation{}) {
				t.Fatalf("refused, yet %+v; want reflect.DeepEqual(o, operation.Operation{})", o)
			}
			return
		}
		if err := o.Validate(); err != nil {
			t.Fatalf("read as invalid %+v: %v", o, err)
		}
		for _, obj := range o.Objects() {
			if strings.HasPrefix(obj.Name, "-") || strings.ContainsAny(obj.Name, "/ ;|&$`<>") {
				t.Fatalf("read the name %q; want !strings.HasPrefix(obj.Name, \"-\") && !strings.ContainsAny(obj.Name, \"/ ;|&$`<>\")", obj.Name)
			}
		}
		shown := kubectl.Render(o)
		back, err := kubectl.Parse(shown)
		if err != nil || !reflect.DeepEqual(back, o) {
			t.Fatalf("%q is shown as %q, which is %+v (%v), not %+v; want reflect.DeepEqual(back, o)", line, shown, back, err, o)
		}
	})
}
