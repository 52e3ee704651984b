package question

import "testing"

// TestLearned: the words of a pattern are those that it can match, whole or with any ending.
func TestLearned(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{
		"crashing": true, "crashloop": true, "namespace": true, "how": true, "overnight": true, "nodes": true,
		"lunchbox": false, "parcels": false, "canlog": false, "xyz": false, "above-two": false,
	} {
		if got := isRead(word) || isInflected(word); got != want {
			t.Errorf("%q is read: %v, want %v", word, got, want)
		}
	}
	if isReadAlone("api") {
		t.Error(`"api" is read alone; want only beside other words, as in "api keys"`)
	}
}

// TestNamesAreLookedUp: a word that no rule reads is a name if the cluster has it, and else only in the place of one.
func TestNamesAreLookedUp(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		sentence, name string
		sure           bool
	}{
		{"the orders are late again", "orders", true},
		{"the parcels are late again", "parcels", false},
		{"what is wrong with deployment parcels?", "parcels", true},
		{"the hpa stays at two replicas", "stays", false},
	} {
		a := Parse(row.sentence, func(name string) bool { return name == "orders" })
		sure := false
		for _, m := range a.Mentions {
			sure = sure || m.Name == row.name && m.Sure
		}
		if sure != row.sure {
			t.Errorf("%q: %+v; want %s as a sure name: %v", row.sentence, a.Mentions, row.name, row.sure)
		}
	}
}
