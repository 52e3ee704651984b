package engine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Pair is one label in one namespace.
type Pair struct{ Namespace, Key, Value string }

// Chooser finds the objects that a selector matches by the rarest of its labels, so that the cost depends on a few
// objects and not on a whole namespace.
type Chooser[T any] struct {
	all    map[string][]T // by namespace
	Having map[Pair][]T
	labels func(T) map[string]string
}

// NewChooser returns an empty Chooser of objects with the given labels.
func NewChooser[T any](labels func(T) map[string]string) *Chooser[T] {
	return &Chooser[T]{all: map[string][]T{}, Having: map[Pair][]T{}, labels: labels}
}

// PodLabels returns the labels of a pod.
func PodLabels(pod *corev1.Pod) map[string]string { return pod.Labels }

// Add adds an object. Results are in the order of Add.
func (c *Chooser[T]) Add(namespace string, o T) {
	c.all[namespace] = append(c.all[namespace], o)
	for key, value := range c.labels(o) {
		p := Pair{namespace, key, value}
		c.Having[p] = append(c.Having[p], o)
	}
}

// rarest returns the wanted label that the fewest objects have, with these objects.
func (c *Chooser[T]) rarest(namespace string, want map[string]string) (p Pair, few []T) {
	first := true
	for key, value := range want {
		at := Pair{namespace, key, value}
		list := c.Having[at]
		if first || len(list) < len(few) || len(list) == len(few) && key < p.Key {
			p, few, first = at, list, false
		}
	}
	return p, few
}

// Choose returns the objects of a namespace with all of these labels, or without labels all. The caller owns the list.
func (c *Chooser[T]) Choose(namespace string, want map[string]string) []T {
	var chosen []T
	if len(want) == 0 {
		return append(chosen, c.all[namespace]...)
	}
	_, few := c.rarest(namespace, want)
	for _, o := range few {
		if HasAll(c.labels(o), want) {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

// Any reports whether a namespace has an object with all of these labels.
func (c *Chooser[T]) Any(namespace string, want map[string]string) bool {
	if len(want) == 0 {
		return len(c.all[namespace]) > 0
	}
	_, few := c.rarest(namespace, want)
	for _, o := range few {
		if HasAll(c.labels(o), want) {
			return true
		}
	}
	return false
}

// ChooseBy is Choose for a selector of any form; one that cannot be parsed matches nothing.
func (c *Chooser[T]) ChooseBy(namespace string, s *metav1.LabelSelector) []T {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || s == nil {
		return nil
	}
	chosen := c.Choose(namespace, s.MatchLabels)
	if len(s.MatchExpressions) == 0 {
		return chosen
	}
	kept := chosen[:0]
	for _, o := range chosen {
		if selector.Matches(labels.Set(c.labels(o))) {
			kept = append(kept, o)
		}
	}
	return kept
}

// HasAll reports whether labels include all wanted ones.
func HasAll(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Selecting is the inverse of a Chooser: it finds the objects whose selectors may match given labels. Each is stored
// under the rarest label that it requires.
type Selecting[T any] struct {
	all     map[string][]T // by namespace: those that require no label
	wanting map[Pair][]T
}

func NewSelecting[T any]() *Selecting[T] {
	return &Selecting[T]{all: map[string][]T{}, wanting: map[Pair][]T{}}
}

// Add adds an object that requires labels; pods determine which of these is rarest.
func (s *Selecting[T]) Add(pods *Chooser[*corev1.Pod], namespace string, want map[string]string, o T) {
	if len(want) == 0 {
		s.all[namespace] = append(s.all[namespace], o)
		return
	}
	p, _ := pods.rarest(namespace, want)
	s.wanting[p] = append(s.wanting[p], o)
}

// May lists the objects that may match the labels, in no particular order; the caller still has to match each.
func (s *Selecting[T]) May(namespace string, have map[string]string) []T {
	found := s.all[namespace]
	found = found[:len(found):len(found)]
	for key, value := range have {
		found = append(found, s.wanting[Pair{namespace, key, value}]...)
	}
	return found
}
