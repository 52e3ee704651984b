package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// A question for a kind that is not known reads the whole discovery again, since it may have been made a moment ago:
// so many times at once, and then once in refreshEvery.
const (
	refreshBurst = 10
	refreshEvery = 2 * time.Second
	// freshFor is how long a list of all kinds counts as that of now.
	freshFor = 30 * time.Second
	// refreshLimit is how long a question waits for a newer list; the read continues for the next one.
	refreshLimit = 2 * time.Second
)

// Resource is a kind as the cluster serves it.
type Resource struct {
	Group, Version, Kind string
	Resource             string // plural, as in URLs
	Namespaced           bool
	Verbs                []string
	Subresources         map[string]bool // scale, log, eviction, …
}

// GVR is the resource as clients name it.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// Ref is an object of the kind. A namespace that the kind does not have is left out.
func (r Resource) Ref(namespace, name string) operation.Ref {
	if !r.Namespaced {
		namespace = ""
	}
	return operation.Ref{Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Resource, Namespace: namespace, Name: name}
}

// Can reports whether the kind knows an API verb, such as list.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Resolve finds a kind by plural, singular, kind or short name, in any case, alone or with .group or .version.group
// behind it. Where several groups have the name, a bare word means the core group, then the group that the server lists
// first, as it does for kubectl; it never means metrics.k8s.io. An unknown one is an *operation.Fault that names similar
// ones.
func (c *Cluster) Resolve(ctx context.Context, kind string) (Resource, error) {
	return c.kinds.resolve(ctx, kind)
}

// Known is [Cluster.Resolve] with the list read last; it sends no request.
func (c *Cluster) Known(kind string) (Resource, bool) {
	ix := c.kinds.known(time.Time{})
	if ix == nil {
		return Resource{}, false
	}
	return ix.find(strings.ToLower(kind))
}

// Resources are all kinds, in the server's order, the preferred version of a group first, as of the last half minute: kinds
// may be added while this runs. If they cannot be re-read in time, the previous list is returned.
func (c *Cluster) Resources(ctx context.Context) ([]Resource, error) {
	limit, cancel := ctx, context.CancelFunc(func() {})
	if c.kinds.known(time.Time{}) != nil {
		limit, cancel = context.WithTimeout(ctx, refreshLimit)
	}
	defer cancel()
	ix, err := c.kinds.index(limit, time.Now().Add(-freshFor))
	if err != nil {
		if ix = c.kinds.known(time.Time{}); ix == nil {
			return nil, err
		}
	}
	return slices.Clone(ix.all), nil
}

// Unlisted reports whether the cluster did not say, when it was last asked, what a group or a version of it serves.
func (c *Cluster) Unlisted(group string) bool {
	ix := c.kinds.known(time.Time{})
	return ix == nil || ix.unlisted[group]
}

// kinds remembers what the cluster serves.
type kinds struct {
	cache discovery.CachedDiscoveryInterface
	// reading admits one reader at a time; a waiting reader can give up.
	reading chan struct{}
	again   *rate.Limiter // of reads for the sake of a kind that is not known
	mu      sync.Mutex
	last    *index // guarded by mu; nil: not read yet
}

type index struct {
	all     []Resource
	names   map[string][]int // to places in all, the first wins
	partial error            // groups that did not answer
	// lists holds the discovery results by group/version: one that later does not answer keeps its last result.
	lists    map[string]*metav1.APIResourceList
	unlisted map[string]bool // groups that did not answer, then or before
	read     time.Time
}

func newKinds(client discovery.DiscoveryInterface) *kinds {
	return &kinds{cache: memory.NewMemCacheClient(client), reading: make(chan struct{}, 1), again: rate.NewLimiter(rate.Every(refreshEvery), refreshBurst)}
}

func (k *kinds) resolve(ctx context.Context, kind string) (Resource, error) {
	name := strings.ToLower(kind)
	asked := time.Now()
	ix, err := k.index(ctx, time.Time{})
	if err != nil {
		return Resource{}, err
	}
	if r, ok := ix.find(name); ok {
		return r, nil
	}
	if ix.read.Before(asked) && k.again.Allow() {
		if ix, err = k.index(ctx, asked); err != nil {
			return Resource{}, err
		}
		if r, ok := ix.find(name); ok {
			return r, nil
		}
	}
	if ix.partial != nil {
		return Resource{}, explainError(ix.partial, operation.Unavailable, "The kind "+operation.Quote(kind)+" may be served by a part of the cluster's API that does not answer", ix.partial.Error())
	}
	if near := ix.near(name); len(near) > 0 {
		return Resource{}, operation.Refuse(operation.UnknownKind, "kind", "The cluster has no kind %s; similar ones are %s.", operation.Quote(kind), strings.Join(near, ", "))
	}
	return Resource{}, operation.Refuse(operation.UnknownKind, "kind", "The cluster has no kind %s.", operation.Quote(kind))
}

// index returns an index read no earlier than newer.
func (k *kinds) index(ctx context.Context, newer time.Time) (*index, error) {
	if ix := k.known(newer); ix != nil {
		return ix, nil
	}
	select {
	case k.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, Fail(ctx.Err())
	}
	if ix := k.known(newer); ix != nil { // another reader has read it meanwhile
		<-k.reading
		return ix, nil
	}
	type result struct {
		ix  *index
		err error
	}
	done := make(chan result, 1)
	go func() { // discovery takes no context; its calls end by the client's own limit
		defer func() { <-k.reading }()
		ix, err := k.read()
		done <- result{ix, err}
	}()
	select {
	case r := <-done:
		return r.ix, r.err
	case <-ctx.Done():
		return nil, Fail(ctx.Err())
	}
}

func (k *kinds) known(newer time.Time) *index {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil || k.last.read.Before(newer) {
		return nil
	}
	return k.last
}

func (k *kinds) read() (*index, error) {
	k.cache.Invalidate()
	ix := &index{names: map[string][]int{}, read: time.Now(), lists: map[string]*metav1.APIResourceList{}, unlisted: map[string]bool{}}
	served, lists, err := k.cache.ServerGroupsAndResources()
	var groups *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &groups) && len(lists) > 0 {
		ix.partial, err = groups, nil
	}
	if err != nil {
		return nil, Fail(err)
	}
	if groups != nil {
		before := k.known(time.Time{})
		for gv := range groups.Groups {
			if before != nil && before.lists[gv.String()] != nil {
				lists = append(lists, before.lists[gv.String()])
			} else {
				ix.unlisted[gv.Group] = true
			}
		}
	}
	for _, list := range lists {
		ix.lists[list.GroupVersion] = list
	}
	rankLists(served, lists)
	subs := map[schema.GroupVersionResource]map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // a name that no URL can hold
		}
		for _, r := range list.APIResources {
			if plural, sub, ok := strings.Cut(r.Name, "/"); ok {
				set := subs[gv.WithResource(plural)]
				if set == nil {
					set = map[string]bool{}
					subs[gv.WithResource(plural)] = set
				}
				set[sub] = true
				continue
			}
			at := len(ix.all)
			ix.all = append(ix.all, Resource{Group: gv.Group, Version: gv.Version, Kind: r.Kind, Resource: r.Name, Namespaced: r.Namespaced, Verbs: r.Verbs})
			for _, n := range namesOf(r) {
				ix.names[n] = append(ix.names[n], at)
			}
		}
	}
	for i := range ix.all {
		if ix.all[i].Subresources = subs[ix.all[i].GVR()]; ix.all[i].Subresources == nil {
			ix.all[i].Subresources = map[string]bool{}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = ix
	return ix, nil
}

// find takes name, name.group, name.version.group and, for the core group, name.version apart.
func (ix *index) find(name string) (Resource, bool) {
	name, rest, _ := strings.Cut(name, ".")
	rest = strings.TrimSuffix(rest, ".")
	for _, at := range ix.names[name] {
		r := ix.all[at]
		if rest == "" && r.Group == metricsGroup && name != strings.ToLower(r.Kind) {
			continue // measurements are called pods and nodes, too
		}
		if rest == "" || rest == r.Group || rest == strings.TrimSuffix(r.Version+"."+r.Group, ".") {
			return r, true
		}
	}
	return Resource{}, false
}

// near are up to three kinds whose names begin alike.
func (ix *index) near(name string) []string {
	const enough, most = 3, 3
	name, _, _ = strings.Cut(name, ".")
	alike := map[string]int{}
	for n, places := range ix.names {
		i := 0
		for i < len(n) && i < len(name) && n[i] == name[i] {
			i++
		}
		r := ix.all[places[0]]
		plural := schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
		if i >= enough && i > alike[plural] {
			alike[plural] = i
		}
	}
	found := make([]string, 0, len(alike))
	for n := range alike {
		found = append(found, n)
	}
	slices.SortFunc(found, func(a, b string) int {
		if alike[a] != alike[b] {
			return alike[b] - alike[a]
		}
		return strings.Compare(a, b)
	})
	return found[:min(most, len(found))]
}
