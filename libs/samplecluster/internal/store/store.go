// Package store keeps the objects of the sample cluster in memory.
//
// One lock orders everything: a transaction has the cluster to itself, so controllers and requests never see partial
// changes. Stored objects are never changed in place; to change one, put a changed copy.
package store

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

// history is the number of changes kept for watchers that resume.
const history = 1024

// Change is one write, in the order of versions.
type Change struct {
	Version uint64
	Type    watch.EventType
	Key     schema.GroupResource
	Object  resource.Object
}

type name struct{ namespace, name string }

type shelf struct {
	objects map[name]resource.Object
	// sorted caches the objects in namespace and name order; nil after one came or went.
	sorted []resource.Object
	// changed is the version of the newest change on this shelf.
	changed uint64
}

// Store holds the objects.
type Store struct {
	mu      sync.Mutex // guards everything below
	version uint64
	shelves map[schema.GroupResource]*shelf
	changes []Change
	moved   chan struct{}
}

// New returns an empty store.
func New() *Store {
	return &Store{version: 1, shelves: map[schema.GroupResource]*shelf{}, moved: make(chan struct{})}
}

// Tx is a store held alone. It must not outlive the function it was passed to.
type Tx struct{ s *Store }

// Do runs f with the store held alone.
func (s *Store) Do(f func(Tx)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.version
	f(Tx{s})
	if s.version != before {
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

// Moved returns a channel that is closed after the next change, and the version it is next to.
func (s *Store) Moved() (<-chan struct{}, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved, s.version
}

// Since returns the changes after a version. It answers false if they are no longer all kept.
func (s *Store) Since(version uint64) ([]Change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version >= s.version {
		return nil, true
	}
	if len(s.changes) == 0 || s.changes[0].Version > version+1 {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(s.changes, version+1, func(c Change, v uint64) int {
		switch {
		case c.Version < v:
			return -1
		case c.Version > v:
			return 1
		}
		return 0
	})
	return slices.Clone(s.changes[at:]), true
}

// Version is the resourceVersion of the newest change.
func (t Tx) Version() uint64 { return t.s.version }

// Get returns the stored object; the caller must not change it.
func (t Tx) Get(key schema.GroupResource, namespace, objectName string) (resource.Object, bool) {
	sh := t.s.shelves[key]
	if sh == nil {
		return nil, false
	}
	o, ok := sh.objects[name{namespace, objectName}]
	return o, ok
}

// List returns the objects of a namespace ("" for all) ordered by namespace and name; the caller must not change them.
func (t Tx) List(key schema.GroupResource, namespace string) []resource.Object {
	sh := t.s.shelves[key]
	if sh == nil {
		return nil
	}
	if sh.sorted == nil {
		sh.sorted = make([]resource.Object, 0, len(sh.objects))
		for _, o := range sh.objects {
			sh.sorted = append(sh.sorted, o)
		}
		slices.SortFunc(sh.sorted, func(a, b resource.Object) int {
			if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
				return c
			}
			return strings.Compare(a.GetName(), b.GetName())
		})
	}
	if namespace == "" {
		return slices.Clone(sh.sorted)
	}
	from, _ := slices.BinarySearchFunc(sh.sorted, namespace, func(o resource.Object, ns string) int { return strings.Compare(o.GetNamespace(), ns) })
	to := from
	for to < len(sh.sorted) && sh.sorted[to].GetNamespace() == namespace {
		to++
	}
	return slices.Clone(sh.sorted[from:to])
}

// Put stores the object under its name, gives it the next resourceVersion and reports whether anything differed.
// A write that changes nothing moves no version, as in a real API server.
func (t Tx) Put(key schema.GroupResource, o resource.Object) bool {
	sh := t.s.shelves[key]
	if sh == nil {
		sh = &shelf{objects: map[name]resource.Object{}}
		t.s.shelves[key] = sh
	}
	at := name{o.GetNamespace(), o.GetName()}
	old, exists := sh.objects[at]
	kind := watch.Added
	if exists {
		kind = watch.Modified
		o.SetResourceVersion(old.GetResourceVersion())
		if equal(old, o) {
			return false
		}
	}
	o.GetObjectKind().SetGroupVersionKind(resource.Of(key).GroupVersionKind)
	t.s.version++
	o.SetResourceVersion(strconv.FormatUint(t.s.version, 10))
	o = o.DeepCopyObject().(resource.Object) // the caller may keep using its own
	sh.objects[at] = o
	if !exists {
		sh.sorted = nil
	} else if i := slices.IndexFunc(sh.sorted, func(x resource.Object) bool { return x == old }); i >= 0 {
		sh.sorted[i] = o
	}
	t.record(kind, key, o)
	return true
}

// equal reports whether two objects mean the same. Most writes of the controllers change nothing, and equal encodings
// show that about ten times as fast as comparing by reflection.
func equal(a, b resource.Object) bool {
	x, ok := a.(encodable)
	y, alsoOK := b.(encodable)
	if ok && alsoOK && x.Size() == y.Size() {
		p, err := x.Marshal()
		q, alsoErr := y.Marshal()
		if err == nil && alsoErr == nil && bytes.Equal(p, q) {
			return true
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// encodable has the encoding of the API server, in which maps are sorted.
type encodable interface {
	Size() int
	Marshal() ([]byte, error)
}

// Remove deletes the object at once. Nothing happens if it is absent.
func (t Tx) Remove(key schema.GroupResource, namespace, objectName string) {
	sh := t.s.shelves[key]
	if sh == nil {
		return
	}
	at := name{namespace, objectName}
	old, ok := sh.objects[at]
	if !ok {
		return
	}
	delete(sh.objects, at)
	sh.sorted = nil
	t.s.version++
	gone := old.DeepCopyObject().(resource.Object)
	gone.SetResourceVersion(strconv.FormatUint(t.s.version, 10))
	t.record(watch.Deleted, key, gone)
}

// Changed is the version of the newest change to any of the resources.
func (t Tx) Changed(keys ...schema.GroupResource) uint64 {
	newest := uint64(0)
	for _, key := range keys {
		if sh := t.s.shelves[key]; sh != nil {
			newest = max(newest, sh.changed)
		}
	}
	return newest
}

func (t Tx) record(kind watch.EventType, key schema.GroupResource, o resource.Object) {
	t.s.shelves[key].changed = t.s.version
	if len(t.s.changes) >= history {
		t.s.changes = slices.Clone(t.s.changes[history/2:])
	}
	t.s.changes = append(t.s.changes, Change{Version: t.s.version, Type: kind, Key: key, Object: o})
}

// Get returns a typed object.
func Get[T resource.Object](t Tx, key schema.GroupResource, namespace, objectName string) (T, bool) {
	o, ok := t.Get(key, namespace, objectName)
	if !ok {
		var none T
		return none, false
	}
	return o.(T), true
}

// List returns typed objects.
func List[T resource.Object](t Tx, key schema.GroupResource, namespace string) []T {
	found := t.List(key, namespace)
	typed := make([]T, len(found))
	for i, o := range found {
		typed[i] = o.(T)
	}
	return typed
}
