package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/samplecluster"
)

// maxLog limits the bytes kept of one log: its end.
const maxLog = 16 << 20

const (
	// maxValues limits the values of all documents: a small file, once decoded, may take a hundred times its size.
	maxValues = 20_000_000
	maxKinds  = 5_000
)

// wellKnown are the kinds that every cluster has.
var wellKnown = samplecluster.Resources()

// Recording is a recorded cluster. It is immutable once read.
type Recording struct {
	// AsOf is the newest time in the recording.
	AsOf time.Time
	// Skipped are files that could not be read, with the reason.
	Skipped []string

	resources map[schema.GroupResource]*recordedKind
	logs      map[logKey]containerLog
}

// recordedKind holds the objects of one kind.
type recordedKind struct {
	metav1.APIResource
	objects map[objectKey]*unstructured.Unstructured
	sorted  []*unstructured.Unstructured
	// covered are the namespaces whose objects of this kind were recorded; "" means all.
	covered map[string]bool
}

type objectKey struct{ namespace, name string }

type logKey struct {
	namespace, pod, container string
	previous                  bool
}

// listFile holds the lists in one file.
type listFile struct {
	name       string
	resource   schema.GroupResource
	namespaces map[string]bool
}

// loader collects the contents of the files.
type loader struct {
	*Recording
	lists  []listFile
	files  []logFile
	kinds  map[schema.GroupKind]*recordedKind
	values int
}

// Open reads a recording from a directory or an archive.
func Open(location string) (*Recording, error) {
	l := newLoader()
	if err := walk(location, l.add); err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", printable.Line(location), err)
	}
	r, err := l.finish()
	if err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", printable.Line(location), err)
	}
	return r, nil
}

func newLoader() *loader {
	l := &loader{Recording: &Recording{resources: map[schema.GroupResource]*recordedKind{}, logs: map[logKey]containerLog{}}, kinds: map[schema.GroupKind]*recordedKind{}}
	for _, known := range wellKnown {
		l.addKind(known)
	}
	return l
}

func (l *loader) addKind(r metav1.APIResource) *recordedKind {
	k := &recordedKind{APIResource: r, objects: map[objectKey]*unstructured.Unstructured{}, covered: map[string]bool{}}
	l.resources[k.groupResource()] = k
	if of := (schema.GroupKind{Group: r.Group, Kind: r.Kind}); l.kinds[of] == nil {
		l.kinds[of] = k
	}
	return k
}

// add reads one file: a document, or a possible log.
func (l *loader) add(name string, content io.Reader) error {
	data, whole, err := readFile(content, maxFile)
	switch {
	case errors.Is(err, errTooLarge):
		return err
	case err != nil:
		l.skip(name, err.Error())
		return nil
	case !looksLikeDocuments(name, data):
		l.files = append(l.files, logFile{name, string(data[max(0, len(data)-maxLog):]), whole && len(data) <= maxLog})
		return nil
	case !whole:
		l.skip(name, fmt.Sprintf("it is longer than %d MiB", maxFile>>20))
		return nil
	}
	if l.values += countValues(data); l.values > maxValues {
		l.skip(name, fmt.Sprintf("the recording has more than %d values; ask about a part of it", maxValues))
		return nil
	}
	documents, err := parseDocuments(name, data)
	if err != nil {
		l.skip(name, err.Error())
	}
	for _, d := range documents {
		l.addDocument(name, d)
	}
	if len(documents) == 0 { // a program may write JSON
		l.files = append(l.files, logFile{name, string(data[max(0, len(data)-maxLog):]), len(data) <= maxLog})
	}
	return nil
}

// maxSkipped limits the files that are named as unread.
const maxSkipped = 20

func (l *loader) skip(name, why string) {
	if line := printable.Line(name + ": " + why); len(l.Skipped) < maxSkipped && !slices.Contains(l.Skipped, line) {
		l.Skipped = append(l.Skipped, line)
	}
}

func (l *loader) addDocument(name string, d document) {
	seen := map[schema.GroupResource]map[string]bool{}
	if d.kind.Kind != "" {
		if kind := l.kind(d.kind); kind != nil {
			seen[kind.groupResource()] = map[string]bool{}
		}
	}
	for _, o := range d.objects {
		kind := l.kind(o.GroupVersionKind())
		if kind == nil {
			l.skip(name, fmt.Sprintf("the recording has more than %d kinds", maxKinds))
			break
		}
		if o.GetNamespace() != "" {
			kind.Namespaced = true
		}
		at := objectKey{o.GetNamespace(), o.GetName()}
		if kind.Version != o.GroupVersionKind().Version && len(kind.objects) == 0 {
			kind.Version = o.GroupVersionKind().Version
		}
		kind.objects[at] = o
		of := kind.groupResource()
		if seen[of] == nil {
			seen[of] = map[string]bool{}
		}
		seen[of][at.namespace] = true
	}
	for of, namespaces := range seen {
		l.lists = append(l.lists, listFile{name, of, namespaces})
	}
}

func (k *recordedKind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Name}
}

// kind finds the resource of a kind, or adds it under the name that the API's conventions give it; nil if there are too many.
func (l *loader) kind(gvk schema.GroupVersionKind) *recordedKind {
	if k := l.kinds[gvk.GroupKind()]; k != nil {
		return k
	}
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	if k := l.resources[schema.GroupResource{Group: gvk.Group, Resource: plural.Resource}]; k != nil {
		return k // differs in case only
	}
	if len(l.resources) >= maxKinds {
		return nil
	}
	return l.addKind(metav1.APIResource{Name: plural.Resource, SingularName: singular.Resource, Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
}

// finish links the contents of the files.
func (l *loader) finish() (*Recording, error) {
	total := 0
	for _, k := range l.resources {
		total += len(k.objects)
	}
	if total == 0 {
		return nil, errors.New("it has no objects: no file holds a list or an object with apiVersion and kind")
	}
	l.addNamespaces()
	l.cover()
	for _, k := range l.resources {
		k.sorted = slices.SortedFunc(maps.Values(k.objects), func(a, b *unstructured.Unstructured) int {
			return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		})
	}
	l.addLogs()
	l.AsOf = l.newest()
	if l.AsOf.IsZero() {
		return nil, errors.New("no object or log in it has a time, so ages are unknown")
	}
	return l.Recording, nil
}

// addNamespaces makes a Namespace of each name that objects are in: at least the names of unrecorded namespaces are
// known.
func (l *loader) addNamespaces() {
	namespaces := l.resources[schema.GroupResource{Resource: "namespaces"}]
	for _, k := range l.resources {
		for at := range k.objects {
			if at.namespace == "" || namespaces.objects[objectKey{name: at.namespace}] != nil {
				continue
			}
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
			o.SetName(at.namespace)
			namespaces.objects[objectKey{name: at.namespace}] = o
		}
	}
	namespaces.covered[""] = true
}

// cover records which namespaces the lists cover: those named in their path, otherwise those of their objects. A list
// of several namespaces, or an empty one without a namespace in its path, covers all.
func (l *loader) cover() {
	namespaces := l.resources[schema.GroupResource{Resource: "namespaces"}]
	for _, list := range l.lists {
		covered := l.resources[list.resource].covered
		if !l.resources[list.resource].Namespaced {
			covered[""] = true
			continue
		}
		named := ""
		for _, part := range strings.Split(list.name, "/") {
			stem, _, _ := strings.Cut(part, ".")
			for _, candidate := range []string{part, stem} {
				if namespaces.objects[objectKey{name: candidate}] != nil {
					named = candidate
				}
			}
		}
		switch {
		case named != "" && (len(list.namespaces) == 0 || list.namespaces[named]):
			covered[named] = true
		case len(list.namespaces) == 1:
			maps.Copy(covered, list.namespaces)
		default:
			covered[""] = true
		}
	}
}

// covers reports whether the objects of a kind were recorded in a namespace; "" means any.
func (k *recordedKind) covers(namespace string) bool {
	if namespace == "" || !k.Namespaced {
		return len(k.covered) > 0
	}
	return k.covered[""] || k.covered[namespace]
}

// find returns the kind served under a path of the API.
func (r *Recording) find(group, plural string) *recordedKind {
	return r.resources[schema.GroupResource{Group: group, Resource: plural}]
}

// Now is the clock of the recording.
func (r *Recording) Now() time.Time { return r.AsOf }

// Notice returns the last line of every answer about the recording.
func (r *Recording) Notice() string {
	return fmt.Sprintf("Note: this is a recording of a cluster as of %s; nothing can be written to it, and what was not recorded is not known to be absent.",
		r.AsOf.UTC().Format("2006-01-02 15:04:05 UTC"))
}
