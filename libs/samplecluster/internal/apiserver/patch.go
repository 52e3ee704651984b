package apiserver

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/admission"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// maxOperations limits a JSON patch, as a real API server does.
const maxOperations = 10_000

// samplesManager owns the fields that the cluster's objects began with.
const samplesManager = "kubectl-client-side-apply"

func patchType(r request) types.PatchType {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return types.PatchType(kind)
}

// applyPatch applies a JSON, merge or strategic patch to what original encodes to.
func applyPatch(r request, original any, patch []byte, shape any) ([]byte, error) {
	before, err := json.Marshal(original)
	if err != nil {
		return nil, err
	}
	switch patchType(r) {
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if len(operations) > maxOperations {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(operations)))
		}
		after, err := operations.Apply(before)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", r.kind.GroupResource(), r.name, err.Error(), 0, false)
		}
		return after, nil
	case types.MergePatchType:
		var probe map[string]any
		if err := json.Unmarshal(patch, &probe); err != nil {
			return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
		after, err := jsonpatch.MergePatch(before, patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	case types.StrategicMergePatchType:
		after, err := strategicpatch.StrategicMergePatch(before, patch, shape)
		if err != nil {
			return nil, apierrors.NewBadRequest("error applying patch: " + err.Error())
		}
		return after, nil
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
		"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml", 0, true)
}

// patchDecodeError returns a real server's message for a patch whose result does not decode.
func patchDecodeError(err error, after []byte) error {
	_, why, strict := strings.Cut(err.Error(), "strict decoding error: ")
	if !strict {
		return err
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(after), "strict decoding error: "+why)})
}

func (s *Server) patch(w http.ResponseWriter, r request) error {
	opts, err := writeOptions(r)
	if err != nil {
		return err
	}
	data, err := readBody(r.Request)
	if err != nil {
		return err
	}
	if patchType(r) == types.ApplyPatchType {
		return s.apply(w, r, data, opts)
	}
	var out resource.Object
	s.store.Do(func(tx store.Tx) {
		old, missing := s.find(tx, r)
		if missing != nil {
			err = missing
			return
		}
		var after []byte
		if after, err = applyPatch(r, old, data, r.kind.New()); err != nil {
			return
		}
		var o resource.Object
		if o, err = decodeObject(w, r.kind, after, opts.validation); err != nil {
			err = patchDecodeError(err, after)
			return
		}
		if err = checkPlace(r, o); err != nil {
			return
		}
		if uid := o.GetUID(); uid != old.GetUID() && o.GetResourceVersion() == old.GetResourceVersion() {
			err = apierrors.NewInvalid(r.kind.GroupVersionKind.GroupKind(), old.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
			return
		}
		out, err = s.admitChange(tx, r, old, o, opts)
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// apply is server-side apply: fields have owners, and taking one from another needs force.
func (s *Server) apply(w http.ResponseWriter, r request, data []byte, opts options) error {
	if r.URL.Query().Get("fieldManager") == "" {
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	var wanted unstructured.Unstructured
	if err := wanted.UnmarshalJSON(data); err != nil {
		return apierrors.NewBadRequest("error decoding apply configuration: " + err.Error())
	}
	if wanted.GroupVersionKind() != r.kind.GroupVersionKind {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", wanted.GetAPIVersion(), r.kind.GroupVersionKind.GroupVersion()))
	}
	if err := checkPlace(r, &wanted); err != nil {
		return err
	}
	if _, err := decodeObject(w, r.kind, data, opts.validation); err != nil {
		return err
	}
	code := http.StatusOK
	var out resource.Object
	var err error
	s.store.Do(func(tx store.Tx) {
		old, missing := s.find(tx, r)
		live := old
		if missing != nil {
			if r.subresource != "" || wanted.GetUID() != "" {
				err = missing
				return
			}
			live = r.kind.New()
		}
		var o resource.Object
		if o, err = s.managers.apply(r.kind, r.subresource, live, &wanted, opts.manager, opts.force); err != nil {
			return
		}
		if missing != nil {
			code = http.StatusCreated
			o.SetNamespace(r.namespace)
			out = o
			if err = admission.Create(tx, r.kind, o, s.now()); err == nil && !opts.dryRun {
				tx.Put(r.kind.GroupResource(), o)
			}
			return
		}
		if v := wanted.GetResourceVersion(); v != "" {
			o.SetResourceVersion(v)
		}
		out, err = s.replace(tx, r, old, o, opts.dryRun)
	})
	if err != nil {
		return err
	}
	writeJSON(w, code, out)
	return nil
}

// managers holds one field manager per kind and sub-resource. They are made at the first write: the schema they need is large.
type managers struct {
	mu        sync.Mutex // guards both fields
	converter managedfields.TypeConverter
	made      map[string]*managedfields.FieldManager
}

func (m *managers) of(kind resource.Kind, subresource string) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = map[string]*managedfields.FieldManager{}
		m.converter = applyconfigurations.NewTypeConverter(scheme.Scheme)
	}
	gvk := kind.GroupVersionKind
	key := gvk.String() + "/" + subresource
	if f, ok := m.made[key]; ok {
		return f, nil
	}
	f, err := managedfields.NewDefaultFieldManager(m.converter, scheme.Scheme, scheme.Scheme, scheme.Scheme, gvk, gvk.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, err
	}
	m.made[key] = f
	return f, nil
}

// update records that manager set the fields in which o differs from live.
func (m *managers) update(kind resource.Kind, subresource string, live, o resource.Object, manager string) (resource.Object, error) {
	f, err := m.of(kind, subresource)
	if err != nil {
		return nil, err
	}
	if live.GetUID() != "" && len(live.GetManagedFields()) == 0 {
		// The samples are put in place without a note of whose they are. An object without any would never get one,
		// though in a real cluster its creation has left one.
		live = f.UpdateNoErrors(kind.New(), live.DeepCopyObject(), samplesManager).(resource.Object)
	}
	return f.UpdateNoErrors(live, o, manager).(resource.Object), nil
}

func (m *managers) apply(kind resource.Kind, subresource string, live resource.Object, wanted *unstructured.Unstructured, manager string, force bool) (resource.Object, error) {
	f, err := m.of(kind, subresource)
	if err != nil {
		return nil, err
	}
	o, err := f.Apply(live.DeepCopyObject(), wanted, manager, force)
	if err != nil {
		return nil, err
	}
	applied, ok := o.(resource.Object)
	if !ok {
		return nil, fmt.Errorf("apply made a %T", o)
	}
	return applied, nil
}
