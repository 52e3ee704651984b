package investigate_test

import "testing"

// TestFacts: a question for a fact is answered by the fact, never by what is wrong somewhere.
func TestFacts(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"what labels are on the web pods?", []string{"| `pod web-", "`app=web`"}, nil},
		{"selector of the catalog service", []string{"Service `catalog`", "selector:", "`version=v2`"}, nil},
		{"does web have a startup probe?", []string{"Deployment `web` in namespace `shop` has no startup probe: the field is not set."}, nil},
		{"who owns the pods of ledger?", []string{"owner: `replicaset ledger-"}, nil},
		{"how many containers does a web pod have", []string{"| Object | Containers |", "| `1` |"}, nil},
		{"which deployment has the most replicas?", []string{"by replicas", "| `deployment "}, []string{"left out"}},
		{"which node has the most pods?", []string{"The most by pods: node `worker-"}, []string{"left out"}},
		{"does worker-1 have more pods than worker-2?", []string{"| `node worker-1` |", "| `node worker-2` |"}, nil},
		{"which kubernetes version do we run", []string{"| Object | Kubelet version |"}, []string{"Images"}},
		{"how old is the cluster?", []string{"| Object | Age |", "`node worker-1`"}, []string{"started last"}},
		{"are the nodes ok?", []string{"There are 4 nodes in the cluster."}, nil},
		{"what is the reclaim policy of web", []string{"come nearest to `reclaim`, `policy`"}, nil},
		{"which ports are used", []string{"without a name"}, nil},
		{"who is on call tonight", []string{"it names none"}, nil},
		{"which configmaps are there in shop and who uses them", []string{"The configmaps in namespace `shop`"}, nil},
		{"everything that is not running in media", []string{"pods are not healthy in namespace `media`"}, []string{"What helps"}},
	} {
		not := append([]string{"What helps", "thing is wrong.", "things are wrong.", allClear}, row.not...)
		checkAnswer(t, row.query, askOnce(t, b, "", row.query), row.must, not)
	}
}
