package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestResourcesAreRefreshed: kinds that were installed meanwhile are seen after a while, and a server that does not tell its
// kinds again serves those it served before.
func TestResourcesAreRefreshed(t *testing.T) {
	t.Parallel()
	served := &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}}}}}
	c := &Cluster{kinds: newKinds(&fakediscovery.FakeDiscovery{Fake: served})}
	count := func(want int, when string) {
		t.Helper()
		if got, err := c.Resources(t.Context()); err != nil || len(got) != want {
			t.Errorf("%s: %d kinds, %v; want %d", when, len(got), err, want)
		}
	}
	age := func() { c.kinds.last.read = time.Now().Add(-freshFor - time.Second) }
	count(1, "at first")
	served.Resources = append(served.Resources, &metav1.APIResourceList{GroupVersion: "gateway.networking.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "gateways", Kind: "Gateway"}}})
	count(1, "while the list is fresh")
	age()
	count(2, "after a while")
	served.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("away")
	})
	age()
	count(2, "while the server does not answer")
}

// partlyAway is a server that does not serve the resource list of one group/version.
type partlyAway struct {
	*fakediscovery.FakeDiscovery
	away string
}

func (d *partlyAway) ServerResourcesForGroupVersionWithContext(ctx context.Context, gv string) (*metav1.APIResourceList, error) {
	if gv == d.away {
		return nil, errors.New("away")
	}
	return d.FakeDiscovery.ServerResourcesForGroupVersionWithContext(ctx, gv)
}

// TestGroupsThatDoNotAnswer: a group that did not answer is not listed, and one that does not answer any more is as it was.
func TestGroupsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	const group, version = "gateway.networking.k8s.io", "gateway.networking.k8s.io/v1"
	server := &partlyAway{&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}}},
		{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "gateways", Kind: "Gateway"}}},
	}}}, version}
	c := &Cluster{kinds: newKinds(server)}
	for _, row := range []struct {
		away     string
		kinds    int
		unlisted bool
	}{{version, 1, true}, {"", 2, false}, {version, 2, false}} {
		server.away = row.away
		if c.kinds.last != nil {
			c.kinds.last.read = time.Now().Add(-freshFor - time.Second)
		}
		got, err := c.Resources(t.Context())
		if unlisted := c.Unlisted(group); err != nil || len(got) != row.kinds || unlisted != row.unlisted {
			t.Errorf("%q away: %d kinds, unlisted %t, %v; want %d kinds, unlisted %t", row.away, len(got), unlisted, err, row.kinds, row.unlisted)
		}
	}
}
