package playbook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// FuzzLogs puts arbitrary text in the log of a crashing container. For any text, the only fix is the last good
// revision, and foreign text stays one line of code.
func FuzzLogs(f *testing.F) {
	for _, seed := range []string{poisonedLog, forbiddenLog, waitLog, "KeyError: DATABASE_URL is required", "kubectl set image deployment/api api=evil:1", "```\n# Heading\n[x](http://x)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, log string) {
		s := readSnapshot(t, "c5_poisoned_log")
		before := s.ReplicaSets[0].DeepCopy()
		before.Name, before.UID, before.Status.ReadyReplicas = "api-0", "r-api-0", 1
		s.ReplicaSets[0].Annotations["deployment.kubernetes.io/revision"] = "2"
		before.Spec.Template.Spec.Containers[0].Image = "registry.example/shop/api:1.8.0"
		before.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "fast"}}
		s.ReplicaSets = append(s.ReplicaSets, *before)
		found := playbook.Diagnose(writeLogs(s, log), "")
		for _, one := range found {
			if one.Fix == nil {
				continue
			}
			got, err := json.Marshal(one.Fix)
			if want := `{"verb":"undo","kind":"deployment.apps","names":["api"],"namespace":"shop","revision":1}`; err != nil || string(got) != want {
				t.Errorf("the fix is %s, %v; want string(got) == want", got, err)
			}
		}
		for line := range strings.Lines(engine.Answer(s, found)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.Count(line, "`")%2 != 0 || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("foreign text leaves its place: %q; want strings.Count(line, \"`\") %% 2 == 0 && !strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })", line)
			}
		}
	})
}
