package investigate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
)

// parse parses a sentence, and looks up its names in the cluster. If that cannot be read, no word is a name; the answer
// reports why.
func (w *work) parse(ctx context.Context, text string) question.Ask {
	names := sync.OnceValue(func() clusterNames {
		names, _ := w.namesFor(ctx, text)
		return names
	})
	return question.Parse(text, func(word string) bool { return names().has(word) })
}

// namesFor returns the names that a sentence may use: those of the namespace in it, else of the scope; if it has none
// of these, those of the whole cluster.
func (w *work) namesFor(ctx context.Context, text string) (clusterNames, error) {
	place := cmp.Or(question.Parse(text, nil).Namespace, w.turn.Scope)
	if place != "" {
		names, err := w.namesIn(ctx, place)
		if err != nil || slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(text), isNoName), func(word string) bool { return word != place && names.has(word) }) {
			return names, err
		}
	}
	all, err := w.namesIn(ctx, "")
	if err == nil && w.names[place].has(place) {
		all[place] = "namespace"
	}
	return all, err
}

// isNoName reports whether a rune is in no name.
func isNoName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// namesIn returns the names in a namespace and those of all namespaces; with "" those of the whole cluster. An absent
// namespace has none.
func (w *work) namesIn(ctx context.Context, namespace string) (clusterNames, error) {
	if names, ok := w.names[namespace]; ok {
		return names, nil
	}
	s, err := w.snapshot(ctx, namespace)
	if err != nil {
		return nil, err
	}
	names := clusterNames{}
	if s != nil {
		names = namesOf(s)
		if namespace != "" {
			names[namespace] = "namespace"
		}
	}
	w.names[namespace] = names
	return names, nil
}

// clusterNames maps the names that a question may use to what they are.
type clusterNames map[string]string

func namesOf(s *engine.Snapshot) clusterNames {
	all := clusterNames{}
	for _, o := range nameableObjects(s) {
		if _, known := all[o.ref.Name]; !known || o.ref.Kind == "Namespace" {
			all[o.ref.Name] = strings.ToLower(o.ref.Kind)
		}
	}
	for i := range s.Pods {
		for j := range s.Pods[i].Spec.Containers {
			name := s.Pods[i].Spec.Containers[j].Name
			all[name] = cmp.Or(all[name], "container")
		}
	}
	for i := range s.Namespaces {
		all[s.Namespaces[i].Name] = "namespace"
	}
	return all
}

func (n clusterNames) has(word string) bool {
	_, ok := n[word]
	return ok
}

// unguessed are kinds whose names people do not misspell: the cluster makes them up, or they serve other objects.
var unguessed = map[string]bool{"pod": true, "replicaset": true, "configmap": true, "secret": true, "serviceaccount": true, "storageclass": true, "persistentvolume": true, "container": true}

// guess finds the one name, or the word of the vocabulary, that a word misspells.
func (n clusterNames) guess(word string) (guess, bool) {
	allowed := 1
	switch {
	case len(word) < 4:
		return guess{}, false
	case len(word) > 6:
		allowed = 2
	}
	best, far, several := "", allowed+1, false
	for name, kind := range n {
		if unguessed[kind] {
			continue
		}
		switch d := spelling.Distance(word, name); {
		case d < far:
			best, far, several = name, d, false
		case d == far && d <= allowed:
			several = true
		}
	}
	meant := question.NearestWord(word)
	switch {
	case meant != "" && spelling.Distance(word, meant) <= far:
		return guess{word: word, taken: meant}, true
	case best != "" && far <= allowed && !several:
		return guess{word, best, n[best]}, true
	}
	return guess{}, false
}
