package investigate_test

import "testing"

// A question for the objects that lack something lists those without the field that it names.
func TestListLacking(t *testing.T) {
	t.Parallel()
	b := withoutMetrics(readFixture(t, "", "a19_node_not_ready"), nil)
	for _, c := range []struct {
		query   string
		has, no []string
	}{
		{"which nodes have no taints?", []string{"`.spec.taints` is not set in 1 of 2 nodes in the cluster", "`node-2`"}, []string{"`node-1`", "left out"}},
		{"services without a selector in shop", []string{"`.spec.selector` is set in"}, nil},
		{"which statefulsets have no update strategy?", []string{"`.spec.updateStrategy` is not set in 1 of 1 statefulsets", "`orders`"}, nil},
		{"which services do not have a cluster ip?", []string{"`.spec.clusterIP` is not set in 1 of 2 services", "`edge`"}, nil},
	} {
		checkAnswer(t, c.query, askOnce(t, b, "", c.query), c.has, c.no)
	}
	b = withoutMetrics(readFixture(t, "", "a9_asks_too_much"), nil)
	checkAnswer(t, "no node", askOnce(t, b, "", "which pod has no node?"), []string{"`.spec.nodeName` is not set in"}, []string{"left out"})
	b = withoutMetrics(readFixture(t, "", "healthy"), nil)
	checkAnswer(t, "a complaint", askOnce(t, b, "", "the pods have no network"), nil, []string{"is not set in"})
	checkAnswer(t, "service account", askOnce(t, b, "", "pods without a service account"), []string{"`.spec.serviceAccountName`"}, []string{"`.spec.serviceAccount`"})
}
