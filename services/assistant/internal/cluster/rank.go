package cluster

import (
	"cmp"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metricsGroup serves what pods and nodes use, under the names of pods and nodes.
const metricsGroup = "metrics.k8s.io"

// rankLists sorts the kinds of a cluster by group and version: core first, then the groups in
// the server's order, which follows the priorities of its API services, and of each group the
// preferred version first. Discovery in one piece comes out of a map, so in any order.
func rankLists(served []*metav1.APIGroup, lists []*metav1.APIResourceList) {
	type rank struct{ group, version int }
	ranks := map[string]rank{} // by group/version
	for i, g := range served {
		if g.Name == "" {
			i = -1
		}
		for at, v := range g.Versions {
			if v.GroupVersion == g.PreferredVersion.GroupVersion {
				at = -1
			}
			ranks[v.GroupVersion] = rank{i, at}
		}
	}
	of := func(l *metav1.APIResourceList) rank {
		if r, ok := ranks[l.GroupVersion]; ok {
			return r
		}
		return rank{group: math.MaxInt}
	}
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int {
		x, y := of(a), of(b)
		return cmp.Or(cmp.Compare(x.group, y.group), cmp.Compare(x.version, y.version), strings.Compare(a.GroupVersion, b.GroupVersion))
	})
}

// namesOf are the words for a kind, each once.
func namesOf(r metav1.APIResource) []string {
	names := append([]string{r.Name, r.SingularName, strings.ToLower(r.Kind)}, r.ShortNames...)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}
