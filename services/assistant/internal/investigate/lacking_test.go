package investigate_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	s := readFixture(t, "", "a19_node_not_ready")
	s.Nodes[0].CreationTimestamp = metav1.Time{Time: s.Taken.Add(-48 * time.Hour)}
	s.Nodes[1].CreationTimestamp = metav1.Time{Time: s.Taken.Add(-24 * time.Hour)}
	checkAnswer(t, "oldest", askOnce(t, withoutMetrics(s, nil), "", "oldest node here?"), []string{"The oldest of 2 nodes", "`node-1`, created at 2025-12-31T12:00:00Z (2d ago)"}, []string{"left out"})
	checkAnswer(t, "youngest", askOnce(t, withoutMetrics(s, nil), "", "which is the youngest node?"), []string{"The newest of 2 nodes", "`node-2`"}, []string{"left out"})
}
