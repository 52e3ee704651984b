package change

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// object is plain JSON values.
type object = map[string]any

// resource returns the kind of a resolved object, with its subresources.
func (s *Service) resource(ctx context.Context, ref operation.Ref) (cluster.Resource, error) {
	return s.Cluster.Resolve(ctx, strings.TrimSuffix(ref.Resource+"."+ref.Version+"."+ref.Group, "."))
}

// client returns the client for the objects of a kind in a namespace.
func (s *Service) client(ref operation.Ref) dynamic.ResourceInterface {
	r := cluster.Resource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource}
	if ref.Namespace == "" {
		return s.Cluster.Dynamic().Resource(r.GVR())
	}
	return s.Cluster.Dynamic().Resource(r.GVR()).Namespace(ref.Namespace)
}

// read returns the current object.
func (s *Service) read(ctx context.Context, ref operation.Ref) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	return s.client(ref).Get(ctx, ref.Name, metav1.GetOptions{})
}

// readIf is read, but returns nil for an absent object.
func (s *Service) readIf(ctx context.Context, ref operation.Ref) (*unstructured.Unstructured, error) {
	live, err := s.read(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// list returns the objects of a kind that selectors choose, at most one more than limit.
func (s *Service) list(ctx context.Context, of operation.Ref, o metav1.ListOptions, limit int) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	o.Limit = int64(limit) + 1
	found, err := s.client(of).List(ctx, o)
	if err != nil {
		return nil, err
	}
	items := found.Items
	for found.GetContinue() != "" && len(items) <= limit {
		o.Continue = found.GetContinue()
		if found, err = s.client(of).List(ctx, o); err != nil {
			return nil, err
		}
		items = append(items, found.Items...)
	}
	return items, nil
}

// newTarget returns the target that an approval is bound to.
func newTarget(ref operation.Ref, live *unstructured.Unstructured) operation.Target {
	if live == nil {
		return operation.Target{Ref: ref}
	}
	return operation.Target{Ref: ref, UID: string(live.GetUID()), Fingerprint: hashWanted(live), ResourceVersion: live.GetResourceVersion()}
}

// hashWanted identifies the wanted state of an object: by the generation, which counts such
// states, otherwise by a hash of everything except status.
func hashWanted(o *unstructured.Unstructured) string {
	if g := o.GetGeneration(); g > 0 {
		return "generation " + strconv.FormatInt(g, 10)
	}
	return hashObject(o)
}

// hashObject hashes everything except the status and the fields that every write changes.
func hashObject(o *unstructured.Unstructured) string {
	kept := maps.Clone(o.Object)
	delete(kept, "status")
	if meta, ok := kept["metadata"].(object); ok {
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
		kept["metadata"] = meta
	}
	plain, err := json.Marshal(kept) // sorts keys
	if err != nil {
		return "unreadable" // cannot be: it came from JSON
	}
	sum := sha256.Sum256(plain)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// valueAt follows a path into plain values; nil if it leads nowhere.
func valueAt(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(object)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func textAt(v any, path ...string) string {
	text, _ := valueAt(v, path...).(string)
	return text
}

func numberAt(v any, path ...string) int64 {
	switch n := valueAt(v, path...).(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func objectsAt(v any, path ...string) []object {
	list, _ := valueAt(v, path...).([]any)
	found := make([]object, 0, len(list))
	for _, item := range list {
		if o, ok := item.(object); ok {
			found = append(found, o)
		}
	}
	return found
}

// nestValue puts a value at the end of a path of objects.
func nestValue(value any, path ...string) object {
	for i := len(path) - 1; i >= 0; i-- {
		value = object{path[i]: value}
	}
	o, _ := value.(object)
	return o
}

// withoutServerFields returns an object without server-managed fields.
func withoutServerFields(o object) object {
	if o == nil {
		return nil
	}
	kept := maps.Clone(o)
	delete(kept, "status")
	if meta, ok := kept["metadata"].(object); ok {
		meta = maps.Clone(meta)
		for _, name := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
			delete(meta, name)
		}
		kept["metadata"] = meta
	}
	return kept
}

// sameWanted reports whether two objects have the same wanted state.
func sameWanted(a, b object) bool {
	return reflect.DeepEqual(withoutServerFields(a), withoutServerFields(b))
}

// sameRef reports whether two references name the same object; versions of a kind are views of
// the same object.
func sameRef(a, b operation.Ref) bool {
	return a.Group == b.Group && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}
