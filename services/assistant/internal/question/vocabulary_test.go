package question

import (
	"strings"
	"testing"
)

// TestVocabulary: every entry of the vocabulary is used, and short enough to read.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	for i, line := range strings.Split(string(vocabularyFile), "\n") {
		if len(line) > 120 {
			t.Errorf("line %d of vocabulary.yaml has %d characters; want at most 120", i+1, len(line))
		}
	}
	for name := range vocab.Words {
		if !strings.Contains(string(vocabularyFile), "{"+name+"}") {
			t.Errorf("no pattern has {%s}", name)
		}
	}
	if len(rules) == 0 || len(symptoms) != len(symptomNames)-1 {
		t.Errorf("%d intents and %d symptoms are read; want some, and %d", len(rules), len(symptoms), len(symptomNames)-1)
	}
	for word, want := range map[string]string{"storage classes": "storageclasses", "storage class": "storageclass", "network policies": "networkpolicies", "stateful set": "statefulset"} {
		if pairs[word] != want {
			t.Errorf("%q stands for %q; want %q", word, pairs[word], want)
		}
	}
}
