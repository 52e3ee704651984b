package question_test

import "strings"

// called are the names of what the cluster of these tests has.
var called = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`api web db cart checkout payments shop media player ledger worker worker-1 node-1 issuer counter metrics warehouse account webhook shipping red`) {
		called[name] = true
	}
}

// inCluster reports whether the cluster of these tests has something with a name.
func inCluster(name string) bool { return called[name] }
